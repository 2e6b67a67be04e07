"""Wake chains on real captures whose programs logged who woke them, and what that one did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag.causes.thread_waits import INTERPRETER_LOCK
from nsysdiag.config.settings import Settings
from tests.wakeups.grafted import CAPTURES, grafted, log_of, waits_of_main

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Gap
    from tests.shared import Shared

pytestmark = [pytest.mark.fixtures, pytest.mark.slow]

CAUSE_OF = {"io": "io_wait", "compute": "host_compute", "sleep": "sleep", "lock": "lock_wait"}


@dataclass(frozen=True)
class Expected:
    """Of a kind of wait: the root cause (None: what the last waker did), the least share of the waits that are traced
    there, by how many hops, and what the others read: the wait itself."""

    itself: str
    root: str | None = None
    least: float = 1.0
    hops: int = 1


EXPECTED = {
    ("condition_chain", "Condition.wait"): Expected("lock_wait", hops=2),
    ("contended_lock", "Lock.acquire"): Expected("lock_wait"),
    ("gil", "gil"): Expected("lock_wait", root="lock_wait"),
    ("join", "Thread.join"): Expected("lock_wait"),
    ("native_condition", "pthread_cond_wait"): Expected("lock_wait", least=0.95),
    ("native_condition", "pthread_cond_timedwait"): Expected("lock_wait"),
    ("native_condition_2022", "pthread_cond_wait"): Expected("lock_wait"),
    ("native_condition_2022", "pthread_cond_timedwait"): Expected("lock_wait"),
    ("pipe_processes", "Connection.recv_bytes"): Expected("io_wait", root="data_loading", least=0.95),
    ("pipe_processes", "multiprocessing.Queue.get"): Expected("io_wait", root="data_loading", least=0.95, hops=2),
    ("pipe_untraced_child", "Connection.recv_bytes"): Expected("io_wait", least=0),
    ("pipe_untraced_child", "multiprocessing.Queue.get"): Expected("io_wait", root="data_loading"),
    ("queue_feed", "queue.get"): Expected("lock_wait", root="data_loading"),
    ("queue_feed_2022", "queue.get"): Expected("lock_wait", root="data_loading"),
    ("slow_read", "pread of a file"): Expected("io_wait", least=0),
    ("slow_read", "read of a FIFO"): Expected("io_wait", root="data_loading"),
    ("timed_get", "multiprocessing.Queue.get with a timeout"): Expected("io_wait", root="data_loading", hops=2),
}
KINDS = [pytest.param(f"real_wait_{name}", kind, id=f"{name}-{kind}") for name, kind in EXPECTED]


@dataclass(frozen=True)
class Analyzed:
    """A capture with a made-up GPU, analyzed: each logged wait with the gap that it caused."""

    device: DeviceReport
    pairs: list[tuple[dict[str, Any], Gap]]

    def of_kind(self, kind: str) -> list[tuple[dict[str, Any], Gap]]:
        return [(wait, gap) for wait, gap in self.pairs if wait["kind"] == kind]


def analyzed(name: str, shared: Shared, *, without: tuple[str, ...] = ()) -> Analyzed:
    (device,) = shared.report(grafted(shared, name, without), Settings(gaps=0)).devices
    gaps = {gap.start_ns: gap for gap in device.gaps}
    return Analyzed(device, [(wait, gaps[wait["start"]]) for wait in waits_of_main(log_of(name))])


@pytest.fixture(scope="module")
def captures(shared: Shared) -> dict[str, Analyzed]:
    return {name: analyzed(name, shared) for name in CAPTURES}


def followed(gap: Gap) -> bool:
    return gap.root is not None and len(gap.root.hops) > 0


@pytest.mark.parametrize(("name", "kind"), KINDS)
class TestKind:
    def test_no_one_is_blamed_who_did_not_wake(self, captures: dict[str, Analyzed], name: str, kind: str) -> None:
        for wait, gap in captures[name].of_kind(kind):
            for hop, waker in zip(gap.root.hops if gap.root else [], wait["wakers"], strict=False):
                assert (hop.thread.pid, hop.thread.tid) == (waker["pid"], waker["tid"])

    def test_the_root_is_what_the_last_waker_did(self, captures: dict[str, Analyzed], name: str, kind: str) -> None:
        expected, pairs = EXPECTED[name.removeprefix("real_wait_"), kind], captures[name].of_kind(kind)
        assert pairs
        for wait, gap in pairs:
            if gap.root is None:
                # The thread had no CPU for most of this one.
                assert max(gap.slices, key=lambda part: part.ns).cause == "off_cpu"
            elif followed(gap):
                assert gap.root.cause == (expected.root or CAUSE_OF[wait["wakers"][-1]["did"]])
                assert 0.5 <= gap.root.confidence < 1
            else:
                assert gap.root.cause == expected.itself
        assert sum(map(followed, (gap for _, gap in pairs))) >= expected.least * len(pairs)

    def test_hop_by_hop(self, captures: dict[str, Analyzed], name: str, kind: str) -> None:
        expected = EXPECTED[name.removeprefix("real_wait_"), kind]
        hops = [len(gap.root.hops) for _, gap in captures[name].of_kind(kind) if gap.root and gap.root.hops]
        assert max(hops, default=0) == (expected.hops if expected.least else 0)
        assert sum(count == expected.hops for count in hops) >= 0.9 * len(hops)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_total_is_cut_again(captures: dict[str, Analyzed], name: str) -> None:
    device = captures[name].device
    assert sum(device.root_ledger.values()) == sum(device.ledger.values()) == device.idle_ns


@pytest.mark.parametrize("name", CAPTURES)
def test_data_loading_keeps_the_worker_s_own_cause(captures: dict[str, Analyzed], name: str) -> None:
    device = captures[name].device
    loading = device.root_ledger.get("data_loading", 0)
    assert sum(device.root_labels.get("data_loading", {}).values()) == loading


def test_reading_and_computing_of_the_loader_are_told_apart(captures: dict[str, Analyzed]) -> None:
    """The program logs how long its loader read and computed while the main thread waited."""
    analyzed = captures["real_wait_queue_feed"]
    did = analyzed.device.root_labels["data_loading"]
    logged = [wait["wakers"][0]["did_ns"] for wait, _ in analyzed.pairs]
    read, computed = (sum(each.get(kind, 0) for each in logged) for kind in ("io", "compute"))
    assert did["io_wait"] == pytest.approx(read, rel=0.1)
    assert did["host_compute"] == pytest.approx(computed, rel=0.1)


def test_the_interpreter_lock_is_told_apart(captures: dict[str, Analyzed]) -> None:
    for name in CAPTURES:
        device = captures[name].device
        waited = device.root_labels.get("lock_wait", {}).get(INTERPRETER_LOCK.words, 0)
        if name == "real_wait_gil":
            assert waited >= 0.99 * device.ledger["lock_wait"]
        else:
            assert waited <= 0.01 * device.idle_ns


def test_a_preempted_thread_waited_for_nobody(captures: dict[str, Analyzed]) -> None:
    analyzed = captures["real_wait_preempt"]
    assert analyzed.device.root_ledger == analyzed.device.ledger
    assert analyzed.device.verdict.id == "contended"
    assert not any(followed(gap) for _, gap in analyzed.pairs)


@pytest.mark.parametrize("name", ["real_wait_queue_feed", "real_wait_contended_lock", "real_wait_native_condition"])
@pytest.mark.parametrize("table", ["SCHED_EVENTS", "OSRT_API"])
def test_less_evidence_makes_less_sure(captures: dict[str, Analyzed], name: str, table: str, shared: Shared) -> None:
    """Without scheduling or OS calls no hop is surer than with them, and none of them wrong."""
    less = analyzed(name, shared, without=(table,))
    assert sum(less.device.root_ledger.values()) == less.device.idle_ns
    for (wait, gap), (_, full) in zip(less.pairs, captures[name].pairs, strict=True):
        if gap.root is None or not gap.root.hops:
            continue
        assert full.root is not None
        assert gap.root.confidence <= full.root.confidence
        assert (gap.root.hops[0].thread.pid, gap.root.hops[0].thread.tid) in {
            (waker["pid"], waker["tid"]) for waker in wait["wakers"]
        }
