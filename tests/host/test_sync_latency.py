"""Synchronizations that return late, on traces of a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.host.facts import SyncLatency
from tests.builder import MAIN, TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

NEIGHBOUR = (5000, 5001)
SCHEMA = "3.24.8"


def latency_of(trace: TraceBuilder, folder: Path) -> SyncLatency:
    host = report_of(trace, folder).host
    assert host is not None
    assert host.sync_latency is not None
    return host.sync_latency


def two_streams(*, device: int = 0) -> TraceBuilder:
    """
    stream 7     [=== A ===)
    stream 8     [===== B =====)
                           500   520 µs
    """
    trace = TraceBuilder(schema=SCHEMA).gpu(0).gpu(1).cuda_device(0, 0).cuda_device(1, 1)
    trace.kernel(100_000, 500_000, launch=(10_000, 20_000), stream=7)
    return trace.kernel(100_000, 520_000, launch=(30_000, 40_000), stream=8, device=device, context=1 + device)


def test_from_the_end_of_the_work(tmp_path: Path) -> None:
    """
    device   [=== A ===)
    thread       [synchronize )      from the end of A: 30 µs
                        500_000 530_000
    """
    trace = (
        TraceBuilder().kernel(100_000, 500_000, launch=(10_000, 20_000)).api("cudaStreamSynchronize", 400_000, 530_000)
    )
    assert latency_of(trace.kernel(600_000, 700_000, launch=(550_000, 560_000)), tmp_path).p50_ns == 30_000


def test_from_its_own_beginning_where_the_work_was_done(tmp_path: Path) -> None:
    trace = (
        TraceBuilder().kernel(100_000, 300_000, launch=(10_000, 20_000)).api("cudaStreamSynchronize", 400_000, 404_000)
    )
    assert latency_of(trace.kernel(600_000, 700_000, launch=(550_000, 560_000)), tmp_path).p50_ns == 4_000


@pytest.mark.parametrize(("told", "late"), [(True, 30_000), (False, 10_000)])
def test_a_stream_by_itself(tmp_path: Path, told: bool, late: int) -> None:
    """It waits for A alone, and returns at 530 µs; without a row that says so, B counts too."""
    trace = two_streams().api("cudaStreamSynchronize", 400_000, 530_000, correlation=77)
    if told:
        trace.sync_row(400_300, 529_000, correlation=77, stream=7)
    assert latency_of(trace, tmp_path).p50_ns == late


@pytest.mark.parametrize(("told", "late"), [(True, 30_000), (False, 10_000)])
def test_a_device_by_itself(tmp_path: Path, told: bool, late: int) -> None:
    """The same with B on another device."""
    trace = two_streams(device=1).api("cudaDeviceSynchronize", 400_000, 530_000, correlation=77)
    if told:
        trace.sync_row(400_300, 529_000, correlation=77, kind="context", stream=0xFFFFFFFF, device=0)
    assert latency_of(trace, tmp_path).p50_ns == late


def test_an_inner_call_counts_once(tmp_path: Path) -> None:
    trace = two_streams().api("cudaDeviceSynchronize", 400_000, 530_000).api("cuCtxSynchronize", 410_000, 525_000)
    assert latency_of(trace, tmp_path).calls == 1


@pytest.mark.parametrize(("each", "ratio"), [(3, 3.0), (2, None)])
def test_quiet_and_busy_windows_need_twenty_calls_each(tmp_path: Path, each: int, ratio: float | None) -> None:
    """Thirty windows of 1 ms with `each` synchronizations that wait for nothing: of 10 µs, and of 30 µs in the last
    seven, a quarter, in which a neighbour has the CPU half of the time.

    CPU 3   [== main ==)[== neighbour ==)[== main ==)
    sync     | | |                                      7 * 3 = 21 calls a side, or 14
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 5_000)).sched(0, True, cpu=3)
    for at in range(30):
        begin = 10_000 + 1_000_000 * at
        for number in range(each):
            start = begin + 50_000 * (number + 1)
            trace.api("cudaStreamSynchronize", start, start + (30_000 if at >= 23 else 10_000))
        if at >= 23:
            trace.sched(begin + 400_000, False, cpu=3).sched(begin + 900_000, True, cpu=3, thread=MAIN)
            trace.sched(begin + 400_000, True, cpu=3, thread=NEIGHBOUR).sched(
                begin + 900_000, False, cpu=3, thread=NEIGHBOUR
            )
    trace.kernel(30_009_000, 30_010_000, launch=(30_000_000, 30_001_000))
    found = latency_of(trace, tmp_path)
    assert found.by == "crowded_share"
    assert found.quiet is not None
    assert found.busy is not None
    assert (found.quiet.calls, found.busy.calls) == (7 * each, 7 * each)
    assert (found.quiet.crowded_share, found.busy.crowded_share) == (0.0, 0.5)
    assert (found.quiet.preempted_share, found.busy.preempted_share) == (0.0, 0.5)
    assert (found.p50_ratio, found.p99_ratio) == (ratio, ratio)
