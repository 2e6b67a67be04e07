"""Utilization of one device: what a dashboard shows, and what the SMs did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from nsysdiag.arrays.intervals import BoolArray, Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.launch_shapes import LaunchShapes
from nsysdiag.kernels.residency import residency
from nsysdiag.kernels.shapes import kernel_shapes
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.utilization.dashboard import Dashboard, dashboard
from nsysdiag.utilization.facts import SmEstimate, Utilization
from nsysdiag.utilization.rules import ESTIMATE, MEASURED, UtilizationInput, headline
from nsysdiag.utilization.sm_activity import MeasuredSm, estimate, while_computing

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings


def utilization(
    device: DeviceTimeline,
    parts: Intervals,
    split: WindowSplit,
    inside: BoolArray,
    shapes: LaunchShapes,
    strings: Strings,
    settings: Settings,
    measured: MeasuredSm | None = None,
) -> Utilization:
    """`parts` is the window, `inside` marks the operations that tables count. Measured values take precedence over the
    estimate, which is reported too."""
    shown = dashboard(split.kernels, parts, settings.utilization)
    found = residency(shapes, device.gpu)
    estimated = estimate(device, split, parts, found)
    computing = estimated.sm_active_running
    if device.communication.any() or estimated.covered_share != 1.0:
        computing = while_computing(device, parts, found)
    estimated = structs.replace(estimated, sm_active_computing=computing)
    given = _input(split, shown, estimated, measured, settings)
    return Utilization(
        util_time_share=_share(split.kernel_ns, split),
        busy_share=_share(split.busy_ns, split),
        compute_share=_share(split.compute_ns, split),
        exposed_comm_share=_share(split.exposed_comm_ns, split),
        exposed_copy_share=_share(split.exposed_copy_ns, split),
        idle_share=_share(split.idle_ns, split),
        util_period_share=None if shown is None else shown.period_share,
        by_time=None if shown is None else shown.by_time,
        by_period=None if shown is None else shown.by_period,
        sm_active_share=given.active,
        sm_source=given.source,
        estimate=estimated,
        efficiency=estimated.sm_active_running if measured is None else _efficiency(measured, split),
        sentence=headline(given),
        kernels=kernel_shapes(device, inside, shapes, found, strings),
        notes=[] if shown is None else shown.notes,
    )


def _input(
    split: WindowSplit,
    shown: Dashboard | None,
    estimated: SmEstimate,
    measured: MeasuredSm | None,
    settings: Settings,
) -> UtilizationInput:
    active, most = estimated.sm_active_share, estimated.sm_active_at_most
    source = None if active is None else ESTIMATE
    if measured is not None:
        active = most = round(measured.active_share, 6)
        source = MEASURED
    return UtilizationInput(split, shown, active, most, source, settings.utilization, settings.thresholds)


def _efficiency(measured: MeasuredSm, split: WindowSplit) -> float | None:
    """Measured SM activity of each unit of utilization; above 1 where the counter saw what the trace did not."""
    return round(measured.active_share * split.window_ns / split.kernel_ns, 6) if split.kernel_ns else None


def _share(ns: int, split: WindowSplit) -> float | None:
    return round(ns / split.window_ns, 6) if split.window_ns else None
