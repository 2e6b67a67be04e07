"""The tables about utilization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.document.columns import columns, of_devices
from nsysdiag.utilization.facts import KernelShape, Utilization

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


class _Step(NamedTuple):
    """A step of a series that is in the window."""

    series: str
    start_ns: int
    end_ns: int
    share: float


def _steps(device: DeviceReport) -> Iterator[_Step]:
    for name, series in (("by_time", device.utilization.by_time), ("by_period", device.utilization.by_period)):
        for at, share in enumerate(series.values if series else ()):
            if series is not None and share is not None:
                start = series.start_ns + at * series.step_ns
                yield _Step(name, start, min(start + series.step_ns, device.window.end_ns), share)


_SHARES = """
    util_time_share util_period_share busy_share compute_share exposed_comm_share exposed_copy_share idle_share
    sm_active_share efficiency estimated_sm_active_share=estimate.sm_active_share
    estimated_sm_active_at_most=estimate.sm_active_at_most estimated_resident_share=estimate.resident_share
    estimate_covered_share=estimate.covered_share
"""
_SHAPES = """
    short_name name count total_ns shapes blocks threads registers shared_bytes blocks_per_sm waves sm_share
    resident_share limit
"""
TABLES = (
    of_devices(
        "utilization",
        (
            *columns(Utilization, _SHARES),
            *columns(Utilization, "sm_source"),
            *columns(Utilization, "sentence"),
        ),
        lambda device: [device.utilization],
    ),
    of_devices("utilization_series", columns(_Step), _steps),
    of_devices("kernel_shapes", columns(KernelShape, _SHAPES), lambda device: device.utilization.kernels),
)
