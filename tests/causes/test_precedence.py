"""Two kinds of evidence for the same time: the one that comes first in the rules has it, to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder
from tests.causes.example import CALL, NEIGHBOUR, first, late
from tests.levels import crossed

if TYPE_CHECKING:
    from pathlib import Path

Evidence = Callable[[TraceBuilder, int, int], TraceBuilder]


def calls(name: str) -> Evidence:
    return lambda trace, start, end: trace.api(name, start, end)


def overhead(kind: str) -> Evidence:
    return lambda trace, start, end: trace.overhead(start, end, kind=kind)


def os_calls(name: str) -> Evidence:
    return lambda trace, start, end: trace.osrt(name, start, end)


def out(trace: TraceBuilder, start: int, end: int) -> TraceBuilder:
    """Scheduled out, and before and after in a state that nobody knows: other evidence has nothing to say there."""
    return trace.sched(start, False, state=1).sched(end, True).sched(end, False)


def sampled(trace: TraceBuilder, start: int, end: int) -> TraceBuilder:
    return trace.sample((start + end) // 2)


OVERHEAD, LOADING, FULL = overhead("flush"), overhead("lazy_load"), overhead("buffer_full")
BEFORE_THE_CALL = [
    ("profiler_overhead", OVERHEAD, calls("cudaStreamSynchronize")),
    ("profiler_overhead", OVERHEAD, calls("cudaMemcpy")),
    ("profiler_overhead", OVERHEAD, FULL),
    ("profiler_overhead", OVERHEAD, LOADING),
    ("profiler_overhead", OVERHEAD, os_calls("read")),
    ("profiler_overhead", OVERHEAD, out),
    ("sync", calls("cudaStreamSynchronize"), FULL),
    ("sync", calls("cudaStreamSynchronize"), LOADING),
    ("blocking_copy", calls("cudaMemcpy"), FULL),
    ("memory_allocation", calls("cudaMalloc"), FULL),
    ("memory_allocation", calls("cudaMalloc"), LOADING),
    ("context_init", calls("cuCtxCreate_v2"), LOADING),
    ("queue_full", FULL, LOADING),
    ("queue_full", FULL, calls("cudaGraphInstantiate")),
    ("queue_full", FULL, calls("cudaEventRecord")),
    ("module_load", LOADING, calls("cudaGraphInstantiate")),
    ("module_load", LOADING, calls("cudaEventRecord")),
    ("module_load", LOADING, os_calls("read")),
    ("module_load", calls("cuModuleLoadData"), os_calls("read")),
    ("graph_build", calls("cudaGraphInstantiate"), os_calls("read")),
    ("cuda_api", calls("cudaEventRecord"), os_calls("ioctl")),
    ("cuda_api", calls("cudaEventRecord"), out),
    ("lock_wait", os_calls("sem_wait"), out),
    ("io_wait", os_calls("read"), out),
    ("os_memory", os_calls("munmap"), out),
    ("sleep", os_calls("nanosleep"), out),
    ("off_cpu", out, sampled),
]


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize(("pair", "swapped"), crossed(BEFORE_THE_CALL, [False, True], 2))
def test_before_the_call(pair: tuple[str, Evidence, Evidence], swapped: bool, tmp_path: Path) -> None:
    """
    device  [==A==)....................................[launch B][==B==)
    thread           [ stronger: 60_000 ]
                     [ weaker: 60_000   ]
    """
    cause, stronger, weaker = pair
    trace = late(schema="3.24.8")
    for evidence in (weaker, stronger) if swapped else (stronger, weaker):
        evidence(trace, 150_000, 210_000)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger[cause] == 60_000
    assert sum(ns for name, ns in device.ledger.items() if name not in ("host_compute", "uncovered")) == 80_000


INSIDE_THE_CALL = [
    ("profiler_overhead", OVERHEAD, LOADING),
    ("profiler_overhead", OVERHEAD, calls("cuMemAlloc_v2")),
    ("profiler_overhead", OVERHEAD, FULL),
    ("module_load", LOADING, calls("cuMemAlloc_v2")),
    ("module_load", LOADING, calls("cuStreamSynchronize")),
    ("module_load", LOADING, FULL),
    ("module_load", calls("cuModuleLoadData"), FULL),
    ("memory_allocation", calls("cuMemAlloc_v2"), FULL),
    ("sync", calls("cuStreamSynchronize"), FULL),
    ("context_init", calls("cuCtxCreate_v2"), FULL),
    ("blocking_copy", calls("cuMemcpyHtoD_v2"), FULL),
    ("graph_build", calls("cuGraphInstantiateWithFlags"), FULL),
    ("queue_full", FULL, calls("cuEventRecord")),
    ("launch_call", calls("cuEventRecord"), calls("cuLaunchKernel")),
    ("launch_call", os_calls("read"), out),
]


@pytest.mark.sampled(quick=10, normal=5)
@pytest.mark.parametrize(("cause", "stronger", "weaker"), INSIDE_THE_CALL)
@pytest.mark.parametrize("swapped", [pytest.param(False, marks=pytest.mark.slow), True])
def test_inside_the_call(cause: str, stronger: Evidence, weaker: Evidence, swapped: bool, tmp_path: Path) -> None:
    """
    device  [==A==)....................................[ launch B: 100_000          ][==B==)
    thread                                                 [ stronger: 60_000 ]
                                                           [ weaker: 60_000   ]
    """
    trace = first("3.24.8").kernel(400_000, 500_000, launch=(280_000, 380_000))
    for evidence in (weaker, stronger) if swapped else (stronger, weaker):
        evidence(trace, 300_000, 360_000)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    before = {name: device.ledger.get(name, 0) for name in ("host_compute", "uncovered")}
    assert sum(before.values()) == 170_000
    found = {name: ns for name, ns in device.ledger.items() if name not in before}
    rest = {"launch_call": 40_000} if cause != "launch_call" else {}
    assert found == {"launch_latency": 20_000, cause: 60_000 if rest else 100_000, **rest}


def test_a_first_launch_that_found_the_buffer_full(tmp_path: Path) -> None:
    """
    device  [==A==)..170_000..[ launch B, a new kernel: 1_100_000   ]10_000[==B==)
    thread                        [buffer full: 60_000]                    queue_full first, the rest is loading
    """
    trace = first("3.24.8").kernel(1_390_000, 1_400_000, name="novel", launch=(280_000, 1_380_000))
    trace.overhead(300_000, 360_000, kind="buffer_full")
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger == {
        "uncovered": 170_000,
        "queue_full": 60_000,
        "module_load": 1_040_000,
        "launch_latency": 10_000,
    }


def test_loading_inside_a_blocking_copy_s_own_call(tmp_path: Path) -> None:
    """
    device  [==A==)..170_000..[ cudaMemcpy: 100_000        ]20_000|50_000[copy)
    thread                        [lazy loading: 60_000]                  what comes after the latency is loading too
    """
    trace = first("3.24.8").memcpy(450_000, 500_000, api="cudaMemcpy", launch=(280_000, 380_000))
    trace.overhead(300_000, 360_000, kind="lazy_load")
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger == {
        "uncovered": 170_000,
        "module_load": 60_000 + 50_000,
        "blocking_copy": 40_000,
        "launch_latency": 20_000,
    }


def test_evidence_is_cut_at_the_borders_of_the_host_s_part(tmp_path: Path) -> None:
    """
    device      [==A==)....................................[launch B][==B==)
    thread   [read ..............]          [read .............................]
    """
    trace = late().osrt("read", 50_000, 150_000).osrt("read", 250_000, 500_000)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger == {"io_wait": 40_000 + 30_000, "uncovered": 100_000, **CALL}


def test_host_intervals_of_consecutive_gaps_are_not_in_order(tmp_path: Path) -> None:
    """
    device, stream 7  [==A==)......................................[==B==).. 90_000 ..
    device, stream 9                                                                  [==C==)
    thread         [A]            [launch C: 5_000]     [launch B]
    """
    trace = late().kernel(490_000, 500_000, launch=(200_000, 205_000), stream=9)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger == {"cuda_api": 5_000, "uncovered": 165_000, **CALL, "device_stall": 90_000}


def test_two_threads_launch_by_turns(tmp_path: Path) -> None:
    """
    device      [==A==).......................[==C==)..................[==B==)
    thread   [A]   [cudaMalloc, 50_000                                ][B]
    neighbour      [nanosleep     ]  [launch C]
    """
    trace = late(500_000).api("cudaMalloc", 110_000, 450_000)
    trace.kernel(300_000, 400_000, launch=(280_000, 290_000), thread=NEIGHBOUR)
    trace.osrt("nanosleep", 110_000, 200_000, thread=NEIGHBOUR)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    gaps = {gap.start_ns: {part.cause: part.ns for part in gap.slices} for gap in device.gaps}
    assert gaps == {
        110_000: {"sleep": 90_000, "uncovered": 80_000, **CALL},
        400_000: {"memory_allocation": 50_000, "uncovered": 30_000, **CALL},
    }
    assert {gap.start_ns: gap.thread.tid for gap in device.gaps if gap.thread} == {110_000: 4300, 400_000: 4242}
