"""What budgets make of the numbers of a device: their units, and which of them add up over the window."""

from __future__ import annotations

from typing import Annotated

import pytest

from nsysdiag.ci.measuring import _numbers, measures
from nsysdiag.fields import NO_BUDGET, Bytes, Count, Number, OwnText, Share, TotalCount, TotalNs
from nsysdiag.record import Record

ADDING_UP = """
    idle_ns:ns busy_ns:ns window_ns:ns gap_count:count ops.kernel:count ops.malformed:count launch.calls:count
    launch.unlaunched_ops:count launch.found_device_idle:count launch.kernel.total_ns:ns launch.kernel.count:count
    launch.queue_full_ns:ns launch.queue_depth.empty_ns:ns launch.queue_depth.drain_count:count
    launch.launch_bound.span_ns:ns launch.launch_bound.causes.sync:ns launch.graphs.nodes:count
    launch.graphs.untraced:count copies.bytes:count copies.exposed_ns:ns copies.pinning.pinned_bytes:count
    copies.pinning.saving_ns:ns copies.tiny.called:count copies.tiny.blocking_ns:ns communication.overlapped_ns:ns
    gpu_metrics.clocks.low_ns:ns unified_memory.gpu_faults:count
    unified_memory.thrashing.migrations:count memory.churn.freed_bytes:count memory.churn.idle_ns:ns ledger.sync:ns
    root_ledger.data_loading:ns sync_drained.gaps:count sync_drained.ns:ns
"""
OTHERS = """
    sm_count:count window.start_ns:ns window.edge_ns:ns coverage:share floor_ns:ns launch_latency_ns:ns
    iterations.count:count iterations.p95_ns:ns iterations.worst_ns:ns launch.median_interval_ns:ns
    launch.kernel.p50_ns:ns launch.queue_depth.mean:count launch.queue_depth.max:count copies.tiny.below_bytes:count
    copies.tiny.per_iteration:count utilization.efficiency:share utilization.by_time.lowest:share
    utilization.by_time.period_ns:ns utilization.by_time.periods:count utilization.estimate.sm_active_at_most:share
    cost.idle.hour:count cost.gpu_hour_cost:count
    cost.best.amount.run:count gpu_metrics.period_ns:ns gpu_metrics.clocks.limit:share gpu_metrics.clocks.mean_hz:count
    gpu_metrics.sm_active:share gpu_metrics.gpc_clock.gaps:count unified_memory.thrashing.blocks:count
    memory.peak_bytes:count memory.peak_at_ns:ns memory.unknown_frees:count
    findings.high:count idle_share:share ledger.sync_share:share
    copies.total_share:share launch.queue_depth.empty_share:share sync_drained.ns_share:share
"""
NO_NAMES = """
    gaps_packed.count iterations.packed.each iterations.median_index launch.queue_depth.buckets memory.buckets
    gpu_metrics.buckets gpu_metrics.gpu ledger.data_loading window_share iterations.p95_share ids.pid
"""


@pytest.mark.parametrize(("written", "adds_up"), [(ADDING_UP, True), (OTHERS, False)], ids=["sums", "others"])
def test_units_and_sums(written: str, adds_up: bool) -> None:
    found = measures()
    names = [each.split(":")[0] for each in written.split()]
    assert [f"{name}:{found[name].unit}" for name in names] == written.split()
    assert {name for name in names if found[name].adds_up is not adds_up} == set()


def test_what_is_no_figure_has_no_name() -> None:
    assert set(NO_NAMES.split()) & set(measures()) == set()


class Inner(Record, frozen=True):
    bytes: Bytes
    share: Share


class Outer(Record, frozen=True):
    total_ns: TotalNs
    calls: TotalCount | None
    inner: Inner | None
    hidden: Annotated[Inner, NO_BUDGET]
    pid: Number
    title: OwnText
    rows: list[Inner]
    by_cause: dict[OwnText, TotalNs]


def test_names_follow_from_the_types() -> None:
    found = [(each.name, each.unit, each.adds_up) for each in _numbers(Outer)]
    assert found == [
        ("total_ns", "ns", True),
        ("calls", "count", True),
        ("inner.bytes", "count", False),
        ("inner.share", "share", False),
    ]


class Unmarked(Record, frozen=True):
    known: Count
    unknown: int


def test_a_number_without_a_unit_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"Unmarked\.unknown"):
        list(_numbers(Unmarked))
