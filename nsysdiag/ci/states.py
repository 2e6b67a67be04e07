"""The state of each GPU of a trace: whether there is anything to judge on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import NO_WORK, UNRESOLVED
from nsysdiag.phases.facts import LEAST_WORK

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report

JUDGED, BARELY_USED, UNEXPLAINED, IDLE = "judged", "barely-used", "unexplained", "no-gpu-work"
"""It worked, and the report says what limits it; it did less than LEAST_WORK of the busiest GPU's work; it worked, and
the trace does not tell what limits it; nothing ran on it in the judged time."""


def states(report: Report) -> dict[str, str]:
    """The state of each device, by its key."""
    work = _work(report)
    most = max(work.values(), default=0)
    return {device.key: _state(device, work.get(device.key, 0), most) for device in report.devices}


def unused_gpus(report: Report) -> int:
    """How many GPUs of the machine the trace has no work of; 0 where it does not say, and where devices were chosen."""
    present = report.diagnosis.gpus_present if report.diagnosis else None
    return max(0, (present or 0) - len(report.devices)) if "device" not in report.settings else 0


def _state(device: DeviceReport, work_ns: int, most_ns: int) -> str:
    if device.verdict.id == NO_WORK or not device.window_ns:
        return IDLE
    if work_ns < LEAST_WORK * most_ns:
        return BARELY_USED
    return UNEXPLAINED if device.verdict.id == UNRESOLVED else JUDGED


def _work(report: Report) -> dict[str, int]:
    """The time in ns that each device worked in the judged phase; in the whole window where no phase is judged alone,
    and in reports of older versions, which have none."""
    at = report.diagnosis.phase if report.diagnosis else None
    if at is None or not report.phases[at : at + 1]:
        return {device.key: device.busy_ns for device in report.devices}
    judged = report.phases[at].devices
    return {each.key: each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns for each in judged}
