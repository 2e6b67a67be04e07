"""The table over time, on one trace of a few rows: thirty windows of 100 µs from 10 µs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.host.facts import HostWindow
from nsysdiag.host.sync_latency import window_edges
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

WORKER = (4242, 4300)
SECOND = 1_000_000_000


def windows_of(folder: Path, *, scheduled: bool = True) -> list[HostWindow]:
    """
    windows  | 0       | 1       | 2       | 3
             10        110       210       310 µs
    device   [=A=)           [==B==)
    main     on        ....[ on ...                launches A, then B at 115 µs; off for half of window 1
    worker   on                  [syncs)           launches the last kernel, in window 29
    """
    trace = TraceBuilder().kernel(10_000, 60_000, launch=(1_000, 5_000))
    trace.kernel(180_000, 230_000, launch=(115_000, 116_000)).api(
        "cudaDeviceSynchronize", 210_000, 240_000, thread=WORKER
    )
    trace.kernel(3_000_000, 3_010_000, launch=(2_950_000, 2_960_000), thread=WORKER)
    if scheduled:
        trace.sched(0, True, cpu=1).sched(110_000, False, cpu=1).sched(160_000, True, cpu=1)
        trace.sched(0, True, cpu=2, thread=WORKER)
    host = report_of(trace, folder).host
    assert host is not None
    return host.windows


def test_each_column(tmp_path: Path) -> None:
    windows = windows_of(tmp_path)
    assert [(row.start_ns, row.end_ns) for row in windows[:3]] == [
        (10_000, 110_000),
        (110_000, 210_000),
        (210_000, 310_000),
    ]
    assert (len(windows), windows[-1].end_ns) == (30, 3_010_000)
    assert [row.switches for row in windows[:3]] == [0, 1, 0]
    assert [row.off_cpu_share for row in windows[:3]] == [0.0, 0.25, 0.0]
    assert [row.preempted_share for row in windows[:3]] == [0.0, 0.0, 0.0]
    assert [row.busy_share for row in windows[:3]] == [0.5, 0.3, 0.2]
    assert [row.launches_per_second for row in windows[:3]] == [0.0, 10_000.0, 0.0]
    assert [row.kernels_per_second for row in windows[:3]] == [10_000.0, 10_000.0, 0.0]
    assert [row.sync_calls for row in windows[:3]] == [0, 0, 1]
    assert [row.sync_p50_ns for row in windows[:3]] == [None, None, 30_000]
    assert (windows[2].sync_p99_ns, windows[2].sync_total_ns, windows[2].sync_late_p50_ns) == (30_000, 30_000, 10_000)
    assert windows[29].launches_per_second == 10_000.0


def test_without_scheduling(tmp_path: Path) -> None:
    for row in windows_of(tmp_path, scheduled=False):
        assert (row.switches, row.off_cpu_share, row.preempted_share, row.crowded_share) == (None, None, None, None)
        assert row.busy_share is not None


def test_how_many() -> None:
    """One a second, but thirty at least and sixty at most; never more than there are ns."""
    assert len(window_edges(0, SECOND)) - 1 == 30
    assert len(window_edges(0, 45 * SECOND)) - 1 == 45
    assert len(window_edges(0, 3_600 * SECOND)) - 1 == 60
    assert window_edges(7, 10).tolist() == [7, 8, 9, 10]
