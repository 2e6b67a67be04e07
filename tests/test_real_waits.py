"""Real captures of programs that logged their own waits and wakes: the log and the trace must tell the same story."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nsysdiag import open_trace
from nsysdiag.arrays.intervals import Intervals, coverage, union
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from nsysdiag.report import Report
from nsysdiag.saved import from_json

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

pytestmark = [pytest.mark.fixtures, pytest.mark.slow]

FIXTURES = Path(__file__).parent / "fixtures"
CAPTURES = sorted(path.name.removesuffix(".sqlite.gz") for path in FIXTURES.glob("real_wait_*.sqlite.gz"))
PROCESS_AND_THREAD = (1 << 48) - 1
COVERED = 0.8
CLOCKS_AGREE_NS = 50_000
WAKE_BEFORE_NS = 150_000


@dataclass(frozen=True)
class Expected:
    """Of a kind of wait: how many, in which OS call, and the waker's call that ends it where nsys shows one."""

    count: int
    waits_in: str | None
    wake: tuple[str, ...] = ()
    seen: float = 0.9
    """The least share of the waits that show the wake call."""


SIGNALS = ("pthread_cond_signal", "pthread_cond_broadcast")
NATIVE = {
    "pthread_cond_wait": Expected(24, "pthread_cond_wait", SIGNALS, seen=1),
    "pthread_cond_timedwait": Expected(24, "pthread_cond_timedwait", SIGNALS, seen=1),
}
EXPECTED = {
    "queue_feed": {"queue.get": Expected(32, "sem_wait")},
    "queue_feed_2022": {"queue.get": Expected(32, "sem_wait")},
    "pipe_processes": {
        "Connection.recv_bytes": Expected(20, "read", ("write",)),
        "multiprocessing.Queue.get": Expected(20, "read", ("write",)),
    },
    "pipe_untraced_child": {
        "Connection.recv_bytes": Expected(20, "read"),
        "multiprocessing.Queue.get": Expected(20, "read"),
    },
    "contended_lock": {"Lock.acquire": Expected(45, "sem_wait")},
    "gil": {"gil": Expected(80, "pthread_cond_timedwait", ("pthread_cond_signal", "pthread_cond_wait"), seen=0.8)},
    "slow_read": {
        "pread of a file": Expected(25, "pread64"),
        "read of a FIFO": Expected(30, "read", ("write",), seen=0.8),
    },
    "preempt": {"preempted": Expected(34, None)},
    "condition_chain": {"Condition.wait": Expected(80, "sem_wait")},
    "timed_get": {
        "queue.get with a timeout": Expected(20, None),
        "multiprocessing.Queue.get with a timeout": Expected(20, "poll", ("write",)),
    },
    "native_condition": NATIVE,
    "native_condition_2022": NATIVE,
    "join": {
        "Thread.join": Expected(12, "sem_wait"),
        "waitpid": Expected(12, "waitpid"),
        "Popen.wait": Expected(4, "waitpid"),
    },
}
KINDS = [(f"real_wait_{name}", kind) for name, kinds in EXPECTED.items() for kind in kinds]


@dataclass(frozen=True)
class Thread:
    """What the trace holds of one thread: OS calls with their names, the times it was off its CPU, samples' times."""

    calls: Intervals
    names: list[str]
    scheduled: np.ndarray
    out: Intervals
    samples: np.ndarray

    def longest_call(self, start: int, end: int) -> int:
        """Which call covers most of [start, end)."""
        return int(np.argmax(np.minimum(self.calls.end, end) - np.maximum(self.calls.start, start)))

    def is_active(self, start: int, end: int) -> bool:
        """Anything at all of it in [start, end)."""
        times = np.concatenate([self.scheduled, self.samples])
        inside = np.any((times >= start) & (times < end))
        return bool(inside or np.any((self.calls.start < end) & (self.calls.end > start)))


@dataclass(frozen=True)
class Capture:
    """One fixture: the trace's file, its log, and the threads that the log names."""

    path: Path
    log: dict[str, Any]
    threads: dict[tuple[int, int], Thread]
    ranges: dict[str, np.ndarray]
    rows: dict[str, int]

    def waits(self, kind: str | None = None) -> list[dict[str, Any]]:
        return [wait for wait in self.log["waits"] if kind in (None, wait["kind"])]

    def thread(self, who: dict[str, Any]) -> Thread:
        return self.threads[who["pid"], who["tid"]]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Capture]:
    folder = tmp_path_factory.mktemp("waits")
    return {name: read_capture(folder, name) for name in CAPTURES}


def read_capture(folder: Path, name: str) -> Capture:
    """Unpack and read one fixture."""
    path = folder / f"{name}.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / f"{path.name}.gz").read_bytes()))
    log = json.loads((FIXTURES / f"{name}.json").read_text())
    with open_trace(path) as trace:
        calls = trace.read("OSRT_API", "start", "end", "globalTid", "nameId")
        names = trace.strings.texts(calls["nameId"])
        scheduling = trace.read("SCHED_EVENTS", "start", "isSchedIn", "globalTid")
        samples = trace.read("COMPOSITE_EVENTS", "start", "globalTid")
        threads = {
            (thread["pid"], thread["tid"]): one_thread(thread, calls, names, scheduling, samples)
            for thread in log["threads"]
        }
        rows = {"OSRT_API": len(calls), "SCHED_EVENTS": len(scheduling), "COMPOSITE_EVENTS": len(samples)}
        return Capture(path, log, threads, ranges_by_name(trace), rows)


def one_thread(thread: dict[str, int], calls: Any, names: list[str], scheduling: Any, samples: Any) -> Thread:
    """The rows of one thread."""

    def mine(rows: Any) -> np.ndarray:
        return rows["globalTid"] & PROCESS_AND_THREAD == thread["pid"] << 24 | thread["tid"]

    chosen = np.flatnonzero(mine(calls))
    order = np.argsort(scheduling["start"][mine(scheduling)], kind="stable")
    times = scheduling["start"][mine(scheduling)][order]
    leaves = scheduling["isSchedIn"][mine(scheduling)][order][:-1] == 0
    return Thread(
        calls=Intervals(calls["start"][chosen], calls["end"][chosen]),
        names=[names[row] for row in chosen],
        scheduled=times,
        out=union(Intervals(times[:-1][leaves], times[1:][leaves])),
        samples=samples["start"][mine(samples)],
    )


def ranges_by_name(trace: Trace) -> dict[str, np.ndarray]:
    """When the NVTX ranges of each name began."""
    rows = trace.read("NVTX_EVENTS", "start", "eventType", "textId")
    names = np.array(trace.strings.texts(rows["textId"]))
    ranges = rows["eventType"] == 59
    return {str(name): rows["start"][ranges & (names == name)] for name in np.unique(names[ranges])}


def test_every_capture_is_expected() -> None:
    assert sorted(f"real_wait_{name}" for name in EXPECTED) == CAPTURES


@pytest.mark.parametrize("name", CAPTURES)
class TestCapture:
    @pytest.mark.sampled(normal=3)
    def test_holds_calls_scheduling_and_samples(self, captures: dict[str, Capture], name: str) -> None:
        assert all(captures[name].rows.values())

    def test_analysis_says_that_there_is_no_gpu_work(
        self, captures: dict[str, Capture], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = tmp_path / "report.json"
        assert run(app, ["analyze", str(captures[name].path), "-o", str(target)]) == 0
        assert "No GPU activity was recorded" in capsys.readouterr().out
        report = from_json(target.read_bytes(), Report)
        assert (report.devices, report.findings, report.diagnosis.basis) == ([], [], "none")

    def test_clocks_agree(self, captures: dict[str, Capture], name: str) -> None:
        """Every wait is in an NVTX range of its own, which took no part in mapping the clocks."""
        capture = captures[name]
        assert capture.log["clock_error_ns"] < 1_000
        apart = [
            np.min(np.abs(capture.ranges[wait["kind"]] - wait["start"]))
            for wait in capture.waits()
            if wait["kind"] in capture.ranges
        ]
        # A thread may lose its CPU between the two readings, but not often.
        assert not apart or np.quantile(apart, 0.9) < CLOCKS_AGREE_NS

    def test_waits_are_in_the_trace(self, captures: dict[str, Capture], name: str) -> None:
        """An OS call of the waiting thread, or the time that it was scheduled out, covers each."""
        for wait in captures[name].waits():
            thread, length = captures[name].thread(wait), wait["end"] - wait["start"]
            query = Intervals.of([(wait["start"], wait["end"])])
            out = int(coverage(thread.out, query)[0])
            call = coverage(union(thread.calls[[thread.longest_call(wait["start"], wait["end"])]]), query)
            assert max(out, int(call[0])) >= COVERED * length, wait

    def test_wakers_are_in_the_trace(self, captures: dict[str, Capture], name: str) -> None:
        for wait in captures[name].waits():
            for waker in wait["wakers"]:
                assert captures[name].thread(waker).is_active(wait["start"], wait["end"]), wait

    def test_semaphore_posts_are_never_recorded(self, captures: dict[str, Capture], name: str) -> None:
        """The call that ends most waits of Python's own locks: no nsys that we know traces it."""
        assert all("sem_post" not in thread.names for thread in captures[name].threads.values())


@pytest.mark.parametrize(("name", "kind"), KINDS)
class TestKind:
    def test_waits_are_in_the_expected_call(self, captures: dict[str, Capture], name: str, kind: str) -> None:
        capture, expected = captures[name], expected_of(name, kind)
        waits = capture.waits(kind)
        assert len(waits) == expected.count
        if expected.waits_in:
            found = Counter(longest(capture, wait)[0] for wait in waits)
            assert found == {expected.waits_in: expected.count}

    def test_wake_calls_are_where_they_should_be(self, captures: dict[str, Capture], name: str, kind: str) -> None:
        """The waker's call begins shortly before the waiting call ends."""
        capture, expected = captures[name], expected_of(name, kind)
        ends = [(wait, last_end(capture, wait)) for wait in capture.waits(kind) if expected.wake]
        seen = sum(woken_by(capture.thread(wait["wakers"][0]), expected.wake, end) for wait, end in ends)
        assert seen >= expected.seen * len(ends)


def expected_of(name: str, kind: str) -> Expected:
    return EXPECTED[name.removeprefix("real_wait_")][kind]


def longest(capture: Capture, wait: dict[str, Any]) -> tuple[str, int]:
    """Name and end of the OS call that covers most of a wait."""
    thread = capture.thread(wait)
    call = thread.longest_call(wait["start"], wait["end"])
    return thread.names[call], int(thread.calls.end[call])


def last_end(capture: Capture, wait: dict[str, Any]) -> int:
    """When the last of its waiting calls ended: a wait with a time limit may take several."""
    thread, (name, _) = capture.thread(wait), longest(capture, wait)
    same = np.array([other == name for other in thread.names])
    return int(thread.calls.end[same & (thread.calls.start < wait["end"])].max())


def woken_by(waker: Thread, calls: tuple[str, ...], end: int) -> bool:
    """Whether the waker began one of these calls shortly before a wait's end."""
    named = np.array([name in calls for name in waker.names])
    before = end - waker.calls.start
    return bool(np.any(named & (before >= 0) & (before < WAKE_BEFORE_NS)))


class TestChain:
    def test_two_hops_lead_to_the_reader(self, captures: dict[str, Capture]) -> None:
        """Main waits for A, A waits for B, and B mostly reads."""
        capture = captures["real_wait_condition_chain"]
        waits = [wait for wait in capture.waits() if len(wait["wakers"]) == 2]
        assert len(waits) == 40
        for wait in waits:
            first, second = wait["wakers"]
            assert [first["role"], second["role"], second["did"]] == ["A", "B", "io"]
            assert wait["start"] < second["wake"]["time"] < first["wake"]["time"] < wait["end"]
            names = capture.thread(second).names
            row = capture.thread(second).longest_call(wait["start"], second["wake"]["time"])
            assert names[row] == "pread64"

    def test_untraced_child_has_scheduling_but_no_calls(self, captures: dict[str, Capture]) -> None:
        capture = captures["real_wait_pipe_untraced_child"]
        for wait in capture.waits():
            for waker in wait["wakers"]:
                assert len(capture.thread(waker).calls) == 0
                assert len(capture.thread(waker).scheduled) > 0

    def test_timed_waits_for_a_lock_are_in_no_call(self, captures: dict[str, Capture]) -> None:
        """No row tells them from a preemption: Python calls sem_clockwait, which is not traced."""
        capture = captures["real_wait_timed_get"]
        for wait in capture.waits("queue.get with a timeout"):
            calls = coverage(union(capture.thread(wait).calls), Intervals.of([(wait["start"], wait["end"])]))
            assert int(calls[0]) < 0.1 * (wait["end"] - wait["start"])

    def test_neighbours_hold_the_cpu_meanwhile(self, captures: dict[str, Capture]) -> None:
        """Each neighbour's scheduling is kept: it runs for a part of each preemption."""
        capture = captures["real_wait_preempt"]
        for wait in capture.waits("preempted"):
            out = coverage(capture.thread(wait["wakers"][0]).out, Intervals.of([(wait["start"], wait["end"])]))
            ran = wait["end"] - wait["start"] - int(out[0])
            assert ran > 0.2 * (wait["end"] - wait["start"])
