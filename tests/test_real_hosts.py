"""Real captures of programs that keep a device waiting on purpose: the ledger must say what they did, and for how long.

The host is real: OS calls, scheduling, samples and NVTX ranges under the real nsys, beside the program's own clock.
Where no GPU was at hand the device is the one that the program reckoned with (see `tests/grafting.py`).
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.arrays.intervals import Intervals, coverage, union
from nsysdiag.diagnosis.facts import REPLAY
from tests.grafting import graft
from tests.test_against_nsys import bare_names, call_counts, kernel_sums, merged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.phases.facts import PhaseDevice
    from nsysdiag.report import DeviceReport, Gap, Report
    from tests.shared import Shared

pytestmark = [pytest.mark.fixtures, pytest.mark.slow]

FIXTURES = Path(__file__).parent / "fixtures"
OF_RANKS = "starved_training"
"""A program of several ranks, each with a device: `tests/test_real_training.py`."""
SERVERS = "serve_"
"""Servers of a language model: `tests/test_real_servers.py`."""
CAPTURES = sorted(
    path.name.removesuffix(".sqlite.gz")
    for kind in ("host", "gpu")
    for path in FIXTURES.glob(f"real_{kind}_*.sqlite.gz")
    if OF_RANKS not in path.name and SERVERS not in path.name
)
SUFFIXES = ("", "_2022")
LONG_NS = 1_000_000
CLOSE = 0.1
"""How far the time of a cause may be from what the program measured."""


@dataclass(frozen=True)
class Expected:
    """The bottleneck that most time outside of kernels is charged to, the verdict, the root cause that leads, what the
    program calls what it injects, and the root causes that share that time: the leading one, unless said."""

    bottleneck: str
    verdict: str
    leads: str
    injected: str
    shares: tuple[str, ...] = ()

    @property
    def causes(self) -> tuple[str, ...]:
        return self.shares or (self.leads,)


EXPECTED = {
    "sleep": Expected("host", "sleep-bound", "sleep", "sleep"),
    "host_compute": Expected("host", "host_compute-bound", "host_compute", "host_compute"),
    # The read-back waits as long as the kernels run, 49% of the time, and could have been done without: the idle time
    # after it is its own.
    "read_back": Expected("sync", "gpu-bound", "host_compute", "after the read-back"),
    "launch_bound": Expected(
        "launch", "launch-bound", "launch_call", "launches", ("launch_call", "launch_latency", "host_compute")
    ),
    "allocator_churn": Expected("memory", "memory_allocation-bound", "memory_allocation", "memory_allocation"),
    "lock_held": Expected("host", "lock_wait-bound", "host_compute", "lock_wait"),
    "gil_contention": Expected("host", "lock_wait-bound", "lock_wait", "gil"),
    "preempted": Expected("host", "contended", "off_cpu", "off_cpu and host_compute", ("off_cpu", "host_compute")),
    "starved_by_reads": Expected("input", "input-bound", "data_loading", "data_loading"),
    "starved_by_decoding": Expected("input", "input-bound", "data_loading", "data_loading"),
}
KEEP_BUSY = {
    "graph_replay": "gpu-bound",
    "pageable_copies": "copy-bound",
    "pinned_copies": "copy-bound",
    "healthy": "gpu-bound",
    "two_processes": "gpu-bound",
}
"""The verdicts of programs whose host is never late. In the graph are breaks of 1 µs after kernels of 2 µs."""


def program_of(capture: str) -> str:
    return re.sub("^real_(host|gpu)_", "", capture).removesuffix("_2022")


INJECTING = [name for name in CAPTURES if program_of(name) in EXPECTED]
BUSY = [name for name in CAPTURES if name.startswith("real_host_") and program_of(name) in KEEP_BUSY]
ON_A_GPU = sorted(path.name.removesuffix(".sqlite.gz") for path in FIXTURES.glob("real_gpu_*.sqlite.gz"))


@dataclass(frozen=True)
class Capture:
    """A fixture: what its program logged, and the report over its steps, which is judged as a whole."""

    log: dict[str, Any]
    report: Report

    @property
    def device(self) -> DeviceReport:
        (device,) = self.report.devices
        return device

    @property
    def account(self) -> dict[str, int]:
        """The device's time by bottleneck, from its first launch or the host's wait before that on."""
        return self.judged.account

    @property
    def judged(self) -> PhaseDevice:
        """The device in the only phase."""
        (phase,) = self.report.phases
        (device,) = phase.devices
        assert phase.judged
        return device

    def injected_ns(self, what: str) -> int:
        """The time that the program injected while its device had nothing to do, by the program's own clock; from the
        first operation of the steps to the last, as nobody knows what the device was waiting for outside."""
        low, high = self.device.window.start_ns, self.device.window.end_ns
        chosen = [each for each in self.log["injected"] if each["what"] == what]
        inside = [(max(each["start"], low), min(each["end"], high)) for each in chosen]
        spans = Intervals.of([(start, end) for start, end in inside if start < end])
        return idle_within(spans, self.log.get("operations", ()))

    def waits(self) -> list[tuple[dict[str, Any], Gap]]:
        """Each logged wait of the main thread, and the gap that it lies in."""
        gaps = sorted(self.device.gaps, key=lambda gap: gap.start_ns)
        main = next(thread for thread in self.log["threads"] if thread["role"] == "main")
        long_ones = [wait for wait in self.log["waits"] if wait["end"] - wait["start"] >= LONG_NS]
        mine = [wait for wait in long_ones if wait["tid"] == main["tid"]]
        found = [
            (wait, gap) for wait in mine for gap in gaps if gap.start_ns <= wait["start"] and wait["end"] <= gap.end_ns
        ]
        assert len(found) >= len(mine) - 1  # the first batch may be there before the device has run at all
        return found


def idle_within(spans: Intervals, operations: Iterable[dict[str, Any]]) -> int:
    """How much of the spans, in ns, no operation ran. On a real device the log has none: what it ran while the host was
    late is small."""
    busy = union(Intervals.of([(each["start"], each["end"]) for each in operations]))
    return int((spans.end - spans.start - coverage(busy, spans)).sum())


@cache
def read_capture(shared: Shared, name: str) -> Capture:
    """A fixture with its device, and the report about its steps."""
    log = json.loads((FIXTURES / f"{name}.json").read_text())
    low, high = log["steps"][0]["start"], log["steps"][-1]["end"]
    settings = Settings(start_ns=low, end_ns=high, timeline=False, gaps=0, same_gpu=True)
    return Capture(log, shared.report(grafted(shared, name), settings))


def grafted(shared: Shared, name: str) -> Path:
    """The trace of a fixture, with the device that its log reckons with, if it does."""

    def make(path: Path) -> None:
        unpack(path, name)
        log = json.loads((FIXTURES / f"{name}.json").read_text())
        if "operations" in log:
            graft(path, log)

    return shared.file(f"{name}.sqlite", make)


def unpack(path: Path, name: str) -> None:
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.sqlite.gz").read_bytes()))


def test_every_capture_is_expected() -> None:
    names = sorted(f"real_host_{name}{suffix}" for name in EXPECTED | KEEP_BUSY for suffix in SUFFIXES)
    assert [name for name in CAPTURES if name not in ON_A_GPU] == names


@pytest.mark.parametrize("name", INJECTING)
class TestInjected:
    def test_it_leads_the_ledger(self, shared: Shared, name: str) -> None:
        ledger = read_capture(shared, name).device.root_ledger
        assert max(ledger, key=lambda cause: ledger[cause]) == EXPECTED[program_of(name)].leads

    def test_its_time_is_what_the_program_measured(self, shared: Shared, name: str) -> None:
        capture, expected = read_capture(shared, name), EXPECTED[program_of(name)]
        told = sum(capture.device.root_ledger.get(cause, 0) for cause in expected.causes)
        assert told == pytest.approx(capture.injected_ns(expected.injected), rel=CLOSE)

    def test_verdict(self, shared: Shared, name: str) -> None:
        assert read_capture(shared, name).device.verdict.id == EXPECTED[program_of(name)].verdict

    def test_its_bottleneck_leads_the_time_outside_of_kernels(self, shared: Shared, name: str) -> None:
        capture = read_capture(shared, name)
        account = {bottleneck: ns for bottleneck, ns in capture.account.items() if bottleneck != "kernels"}
        device = capture.device
        assert sum(account.values()) == device.idle_ns + device.exposed_copy_ns + capture.judged.outside_ns
        assert max(account, key=lambda bottleneck: account[bottleneck]) == EXPECTED[program_of(name)].bottleneck

    def test_it_leads_the_findings(self, shared: Shared, name: str) -> None:
        """Of those about a cause: the kernels have none."""
        capture = read_capture(shared, name)
        found = [each for each in capture.report.findings if each.bottleneck != "kernels"]
        assert max(found, key=lambda each: each.share).bottleneck == EXPECTED[program_of(name)].bottleneck


@pytest.mark.parametrize("name", [each for each in INJECTING if EXPECTED[program_of(each)].bottleneck == "host"])
def test_a_synchronization_makes_no_more_idle_time_than_it_waited(shared: Shared, name: str) -> None:
    """These programs wait for the device, then are late for longer than they waited: the rest is what they did."""
    capture = read_capture(shared, name)
    assert capture.account["sync"] <= capture.device.compute_ns + capture.device.ledger.get("sync", 0)
    assert capture.account["host"] + capture.account["sync"] >= (1 - CLOSE) * capture.device.idle_ns


@pytest.mark.parametrize("name", BUSY)
def test_a_busy_device_is_not_blamed_on_the_host(shared: Shared, name: str) -> None:
    capture = read_capture(shared, name)
    assert capture.device.verdict.id == KEEP_BUSY[program_of(name)]
    late = capture.judged.outside_ns  # the calls that launch the first work
    blamed = capture.account.get("host", 0) + capture.account.get("input", 0)
    assert blamed - late < 0.01 * capture.device.window_ns


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_breaks_inside_a_graph_are_dispatch(suffix: str, shared: Shared) -> None:
    """All of its idle time: a third of the time, beside the two thirds of the kernels."""
    capture = read_capture(shared, f"real_host_graph_replay{suffix}")
    assert capture.device.ledger["dispatch"] == pytest.approx(capture.device.idle_ns, rel=0.01)
    assert capture.account["launch"] == capture.device.idle_ns
    assert capture.account["launch"] == pytest.approx(capture.device.window_ns / 3, rel=CLOSE)
    found = [each for each in capture.report.findings if each.cause == "dispatch"]
    assert found
    assert not any("run the step as a CUDA graph" in text for each in found for text in each.advice), "it is one"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_two_processes_on_one_gpu_take_turns(suffix: str, shared: Shared) -> None:
    """Taken for two GPUs, each stalls half of the time; the trace tells that they are one."""
    path = grafted(shared, f"real_host_two_processes{suffix}")
    devices = analyze(path, Settings(timeline=False)).devices
    assert len(devices) == 2
    for each in devices:
        assert each.idle_ns == pytest.approx(each.window_ns / 2, rel=CLOSE)
        assert each.ledger["device_stall"] > 0.8 * each.idle_ns
        assert [note for note in each.notes if "they take turns, as on one GPU" in note]


@pytest.mark.parametrize("name", ON_A_GPU)
def test_kernels_and_calls_are_counted_as_nsys_counts_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    unpack(path, name)
    told = json.loads((FIXTURES / f"{name}.json").read_text())["nsys_stats"]
    assert kernel_sums(path) == merged(told["kernels"])
    assert call_counts(path) == bare_names(told["api"])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("name", "hops"), [("lock_held", 1), ("gil_contention", 1), ("starved_by_reads", 2), ("starved_by_decoding", 2)]
)
def test_waits_lead_to_who_ended_them(shared: Shared, name: str, suffix: str, hops: int) -> None:
    pairs = read_capture(shared, f"real_host_{name}{suffix}").waits()
    assert pairs
    for wait, gap in pairs:
        assert gap.root is not None
        for hop, waker in zip(gap.root.hops, wait["wakers"], strict=False):
            assert (hop.thread.pid, hop.thread.tid) == (waker["pid"], waker["tid"])
    told = [len(gap.root.hops) for _, gap in pairs if gap.root]
    assert sum(count > 0 for count in told) >= 0.9 * len(pairs)
    assert sum(count == hops for count in told) >= 0.85 * len(pairs)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_runs_while_others_wait_for_the_interpreter_lock_is_the_locks(shared: Shared, suffix: str) -> None:
    """The wait for the lock saves most. The launching thread's own code is too short for a finding."""
    capture = read_capture(shared, f"real_host_gil_contention{suffix}")
    findings = capture.report.findings
    assert (findings[0].cause, findings[0].bottleneck) == ("lock_wait", "host")
    assert findings[0].saves is not None
    assert findings[0].saves.method == REPLAY
    assert findings[0].share > 0.9 * capture.account["host"] / sum(capture.account.values())
    assert [each for each in findings if each.cause == "host_compute"] == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_computing_under_a_lock_in_a_regular_beat_paces_no_loop(suffix: str, shared: Shared) -> None:
    """Another thread computes 8.1 of 10.5 ms of a step under a lock: without that about 77% are saved."""
    capture = read_capture(shared, f"real_host_lock_held{suffix}")
    first = capture.report.findings[0]
    assert (first.cause, first.severity) == ("host_compute", "high")
    assert "on another thread, awaited in Lock.acquire" in first.title
    assert first.saves is not None
    assert not first.saves.paced_ns
    low, high = (ns / first.saves.of_ns for ns in (first.saves.low_ns, first.saves.high_ns))
    assert 0.4 < low < 0.76 <= high < 0.8


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_rest_of_waits_for_input_does_not_promise_what_reads_cost(suffix: str, shared: Shared) -> None:
    """The worker reads in nearly all of each wait: what it does else saves no 73 to 81% of a step."""
    found = [each for each in read_capture(shared, f"real_host_starved_by_reads{suffix}").report.findings if each.saves]
    first, *rest = found
    assert (first.cause, first.variant) == ("data_loading", "reads")
    for each in rest:
        assert each.cause != "data_loading" or (each.saves is not None and each.saves.low_ns == 0)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_host_code_around_a_range_saves_about_its_own_time(shared: Shared, suffix: str) -> None:
    """Between the launches of each step there is host code in a range; a little is outside of it."""
    findings = read_capture(shared, f"real_host_launch_bound{suffix}").report.findings
    inside, outside = (
        next(each for each in findings if each.cause == "host_compute" and bool(each.nvtx) == placed)
        for placed in (True, False)
    )
    assert inside.saves is not None
    assert outside.saves is not None
    assert outside.saves.method == REPLAY
    assert outside.saves.most <= 2 * outside.share < inside.saves.low_ns / inside.saves.of_ns


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_time_without_a_cpu_is_what_the_program_saw(shared: Shared, suffix: str) -> None:
    """Holes in its reading of the clock, over 1 ms each."""
    capture = read_capture(shared, f"real_host_preempted{suffix}")
    holes = sum(wait["end"] - wait["start"] for wait in capture.log["waits"] if wait["kind"] == "preempted")
    assert capture.device.root_ledger["off_cpu"] == pytest.approx(holes, rel=CLOSE)
