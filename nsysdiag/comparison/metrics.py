"""Numbers of both sides that are no times of a unit of work: how it was launched, how the GPU was used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nsysdiag.comparison.facts import MetricChange
from nsysdiag.comparison.side import Capture, mean_count
from nsysdiag.report import DeviceReport, Distribution

NS, SHARE, COUNT = "ns", "share", "count"
Read = Callable[[DeviceReport], float | None]


def launch_metrics(before: Sequence[Capture], after: Sequence[Capture]) -> list[MetricChange]:
    """Launches: how many, how long, how far ahead of the device."""
    calls = [mean_count(side, [capture.device.launch.calls for capture in side]) for side in (before, after)]
    found = [
        MetricChange(
            id="calls", title="Launching calls", unit=COUNT, before=_rounded(calls[0]), after=_rounded(calls[1])
        )
    ]
    rows: list[tuple[str, str, str, Read]] = [
        ("call_p50", "Launch call, median", NS, lambda device: _median(device.launch.call)),
        ("interval_p50", "Time between launching calls, median", NS, lambda device: device.launch.median_interval_ns),
        ("kernel_p50", "Kernel, median", NS, lambda device: device.launch.median_kernel_ns),
        ("queue_delay_p50", "Time in the queue, median", NS, lambda device: device.launch.median_queue_delay_ns),
        ("found_idle", "Launches that found the device idle", SHARE, _found_idle),
        ("run_ahead_mean", "Operations that the host is ahead, mean", COUNT, _run_ahead),
    ]
    return found + [_metric(before, after, *row) for row in rows]


def utilization_metrics(before: Sequence[Capture], after: Sequence[Capture]) -> list[MetricChange]:
    """What dashboards say, and what the GPU did."""
    rows: list[tuple[str, str, str, Read]] = [
        ("util_time_share", "Utilization by time", SHARE, lambda device: device.utilization.util_time_share),
        ("util_period_share", "Utilization by polling", SHARE, lambda device: device.utilization.util_period_share),
        ("busy", "Busy", SHARE, lambda device: device.busy_ns / device.window_ns),
        ("compute", "Computing", SHARE, lambda device: device.compute_ns / device.window_ns),
        ("sm_active", "SM activity", SHARE, lambda device: device.utilization.sm_active_share),
        ("overlapped_comm", "Communication beside compute", SHARE, _overlapped),
        ("coverage", "Idle time with evidence", SHARE, lambda device: device.coverage),
    ]
    return [_metric(before, after, *row) for row in rows]


def _metric(
    before: Sequence[Capture], after: Sequence[Capture], id: str, title: str, unit: str, read: Read
) -> MetricChange:
    return MetricChange(id=id, title=title, unit=unit, before=_mean(before, read), after=_mean(after, read))


def _mean(captures: Sequence[Capture], read: Read) -> float | None:
    """The mean over captures; None where one of them cannot tell."""
    values = [read(capture.device) for capture in captures]
    known = [value for value in values if value is not None]
    return _rounded(sum(known) / len(known)) if len(known) == len(values) else None


def _rounded(value: float) -> float:
    return round(value, 6)


def _median(distribution: Distribution | None) -> int | None:
    return distribution.p50_ns if distribution is not None else None


def _found_idle(device: DeviceReport) -> float | None:
    launch = device.launch
    return launch.found_device_idle / launch.launched_ops if launch.launched_ops else None


def _run_ahead(device: DeviceReport) -> float | None:
    return device.launch.run_ahead.mean if device.launch.run_ahead is not None else None


def _overlapped(device: DeviceReport) -> float | None:
    total = device.overlapped_comm_ns + device.exposed_comm_ns
    return device.overlapped_comm_ns / total if total else None
