"""The account of a start: from the first CUDA call on, before the device had work."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag import analyze
from nsysdiag.findings.facts import Finding
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.report import Report
from tests.builder import TraceBuilder
from tests.selecting import selected

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


def sampled(driver: str) -> TraceBuilder:
    """
    calls      [get]                          [malloc 300 .. 310]
    samples    d . d d .. d d p p p p p p p                          d to 200: in the driver; . in the kernel alone
    """
    trace = TraceBuilder().api("cudaGetDevice_v2000", 100 * MS, 101 * MS).api("cudaMalloc_v3020", 300 * MS, 310 * MS)
    for at in range(100, 300):
        program = [("work", "/usr/bin/app"), ("main", "/usr/bin/app")]
        setting_up = [("0x7f0010", driver), ("main", "/usr/bin/app")]
        kernel = [("0xffff0010", "[kernel.kallsyms]")]
        chain = program if at >= 200 else kernel if at % 3 == 1 else setting_up
        trace.sample(at * MS + MS // 2, symbols=chain)
    return trace


@pytest.mark.parametrize(("driver", "ms"), [("/usr/lib/libcuda.so.550.58", 100), ("/usr/lib/libcudart.so.12", 0)])
def test_host_code_in_the_driver_is_the_start_of_cuda(driver: str, ms: int, tmp_path: Path) -> None:
    """cudaSetDevice creates the context, and leaves no row: 100 ms in the driver, then 100 ms of the program."""
    _, device = started(sampled(driver), tmp_path)
    assert before(device)["host"] == pytest.approx(200 - ms, abs=2)


def test_host_code_in_the_driver_is_no_start_once_cuda_works(tmp_path: Path) -> None:
    _, device = started(sampled("/usr/lib/libcuda.so.1").api("cudaMalloc_v3020", 101 * MS, 102 * MS), tmp_path)
    assert before(device)["host"] == pytest.approx(198, abs=2)


def test_without_an_earlier_call_there_is_nothing_before_but_the_launch(tmp_path: Path) -> None:
    _, device = started(TraceBuilder(), tmp_path)
    assert device.outside_ns == 2 * MS
    assert sum(device.account.values()) == 3 * MS


def before_work(report: Report, bottleneck: str) -> Finding:
    return next(each for each in report.findings if each.id == f"f-before_work-{bottleneck}")


def test_the_rows_are_the_calls_with_most_of_that_time(tmp_path: Path) -> None:
    """
    calls    100 [cudaMalloc 100 ms]   300 [read 400 ms]   750 [read 10 ms]
    """
    trace = TraceBuilder().api("cudaMalloc_v3020", 100 * MS, 200 * MS).osrt("ioctl", 120 * MS, 180 * MS)
    trace.osrt("read", 300 * MS, 700 * MS).osrt("read", 750 * MS, 760 * MS)
    report, device = started(trace, tmp_path)
    found = before_work(report, "input")
    assert [(row.table, row.name, row.start_ns, row.ns) for row in found.rows] == [
        ("OSRT_API", "read", 300 * MS, 400 * MS),
        ("OSRT_API", "read", 750 * MS, 10 * MS),
    ]
    first = before_work(report, "startup").rows[0]
    assert (first.table, first.name, first.start_ns, first.ns) == (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "cudaMalloc",
        100 * MS,
        100 * MS,
    )
    for each in report.findings:
        if each.cause == "before_work":
            assert sum(row.ns for row in each.rows) <= device.account[each.bottleneck]
            assert all(100 * MS <= row.start_ns < 900 * MS for row in each.rows)
            assert [selected(tmp_path / "trace.sqlite", row) for row in each.rows] == [1] * len(each.rows)


def test_host_code_is_named_by_cpu_samples(tmp_path: Path) -> None:
    """
    calls    100 [cudaMalloc 10 ms]   300 . . samples, 1 ms apart . . 500
    """
    trace = TraceBuilder().api("cudaMalloc_v3020", 100 * MS, 110 * MS)
    for at in range(300, 500):
        trace.sample(at * MS, symbols=("generate" if at % 4 else "parse", "main"))
    report, device = started(trace, tmp_path)
    found = before_work(report, "host")
    assert "(200 CPU samples: generate 75.0%, parse 25.0%)" in found.summary
    assert "on more threads" in found.advice[0]
    (row,) = found.rows
    assert (row.table, row.start_ns) == ("COMPOSITE_EVENTS", 300 * MS)
    assert 199 * MS <= row.ns <= device.account["host"]
    assert selected(tmp_path / "trace.sqlite", row) == 1
