"""The account of a start: from the first CUDA call on, before the device had work."""

from __future__ import annotations

from pathlib import Path

from nsysdiag import analyze
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.report import Report
from tests.builder import TraceBuilder

MS = 1_000_000


def started(trace: TraceBuilder, tmp_path: Path) -> tuple[Report, PhaseDevice]:
    """A trace with one kernel at 900 ms, which runs for 1 ms."""
    trace.process().gpu().kernel(900 * MS, 901 * MS, launch=(898 * MS, 899 * MS))
    report = analyze(trace.write(tmp_path / "trace.sqlite"))
    assert report.diagnosis is not None
    assert report.diagnosis.basis == "cold"
    (device,) = report.phases[0].devices
    return report, device


def before(device: PhaseDevice) -> dict[str, int]:
    """In ms, without the kernel."""
    return {name: round(ns / MS) for name, ns in device.account.items() if name not in ("kernels", "parallelism")}


def test_it_adds_up_to_the_time_since_the_first_call(tmp_path: Path) -> None:
    """
    calls    100 [get][malloc 200 .. 300]                              [launch 898 .. 899]
    device                                                                    900 [==)
    """
    trace = TraceBuilder().api("cudaGetDevice_v2000", 100 * MS, 101 * MS).api("cudaMalloc_v3020", 200 * MS, 300 * MS)
    _, device = started(trace, tmp_path)
    assert device.account_base == "start"
    assert device.outside_ns == 800 * MS
    assert sum(device.account.values()) == 801 * MS


def test_until_the_first_allocation_is_over_cuda_is_initialized(tmp_path: Path) -> None:
    trace = TraceBuilder().api("cudaGetDevice_v2000", 100 * MS, 101 * MS).api("cudaMalloc_v3020", 200 * MS, 300 * MS)
    _, device = started(trace, tmp_path)
    found = before(device)
    assert found["unknown"] == 599, "300 to 898, and from the launch call to the kernel"
    assert found["startup"] >= 200


def test_what_the_host_does_then_is_its_own(tmp_path: Path) -> None:
    """A read of 400 ms after the allocation is input, wherever CUDA was initialized."""
    trace = TraceBuilder().api("cudaMalloc_v3020", 100 * MS, 200 * MS).osrt("read", 300 * MS, 700 * MS)
    report, device = started(trace, tmp_path)
    assert before(device)["input"] == 400
    assert report.diagnosis is not None
    assert (report.diagnosis.bottleneck, report.diagnosis.findings[0]) == ("input", "f-before_work-input")


def test_without_an_earlier_call_there_is_nothing_before_but_the_launch(tmp_path: Path) -> None:
    _, device = started(TraceBuilder(), tmp_path)
    assert device.outside_ns == 2 * MS
    assert sum(device.account.values()) == 3 * MS
