"""What holds for the launch part of any report."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsysdiag.document.packed import unpack_series
from nsysdiag.launches.words import distributions

if TYPE_CHECKING:
    from nsysdiag.launches.facts import LaunchBound, QueueDepth
    from nsysdiag.report import DeviceReport


def check_launches(device: DeviceReport) -> None:
    """Sums are consistent, nothing is negative, nothing exceeds the idle time that it is a part of."""
    launch = device.launch
    for _name, each in distributions(device):
        percentiles = [each.p5_ns, each.p25_ns, each.p50_ns, each.p75_ns, each.p95_ns, each.p99_ns, each.max_ns]
        assert percentiles == sorted(percentiles)
        assert percentiles[0] >= 0
        assert sum(count for _, count in each.bins) == each.count
    assert 0 <= launch.calls <= launch.launched_ops
    if launch.queue_depth is None:
        assert device.window_ns == 0
    else:
        check_queue_depth(device, launch.queue_depth)
    if launch.launch_bound is not None:
        check_launch_bound(device, launch.launch_bound)
    if launch.graphs is not None:
        graphs = launch.graphs
        assert graphs.count >= len(graphs.rows)
        assert sum(row.launches for row in graphs.rows) <= graphs.launches
        assert graphs.between_ns <= device.idle_ns


def check_queue_depth(device: DeviceReport, ahead: QueueDepth) -> None:
    assert ahead.observed_ns == device.window_ns
    assert 0 <= ahead.p5 <= ahead.p25 <= ahead.p50 <= ahead.p75 <= ahead.p95 <= ahead.max
    assert 0 <= ahead.mean <= ahead.max
    assert ahead.empty_ns <= ahead.observed_ns
    series = unpack_series(ahead)
    assert (series.lowest >= 0).all()
    assert (series.lowest <= series.mean + 0.001).all()
    assert (series.mean <= series.highest + 0.001).all()
    assert series.highest.max() >= ahead.max
    assert (series.edges[0], series.edges[-1]) == (device.window.start_ns, device.window.end_ns)
    assert ahead.drain_idle_ns <= device.idle_ns
    if len(ahead.drains) < 20:
        assert sum(row.count for row in ahead.drains) == ahead.drain_count
        assert sum(row.idle_ns for row in ahead.drains) == ahead.drain_idle_ns


def check_launch_bound(device: DeviceReport, phases: LaunchBound) -> None:
    assert phases.idle_ns == sum(phases.causes.values()) <= device.idle_ns
    assert all(ns <= device.ledger[cause] for cause, ns in phases.causes.items())
    assert phases.busy_ns + phases.idle_ns == phases.span_ns <= device.window_ns
    assert 1 <= len(phases.rows) <= phases.count
    for row in phases.rows:
        assert row.busy_ns + row.idle_ns == row.end_ns - row.start_ns
        assert row.median_interval_ns > row.median_work_ns
    placed = sorted((row.start_ns, row.end_ns) for row in phases.rows)
    assert all(one[1] <= other[0] for one, other in pairwise(placed))
