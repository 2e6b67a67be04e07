"""All that the report says of the copies of a device."""

from __future__ import annotations

from nsysdiag.activity.device import DeviceActivity, DeviceTimeline
from nsysdiag.activity.memory import MemoryLimits
from nsysdiag.analysis.busy import WindowSplit
from nsysdiag.analysis.copies import copy_rows
from nsysdiag.analysis.copy_overlap import exposed_copies
from nsysdiag.analysis.copy_rates import copy_rates, pinning
from nsysdiag.analysis.tiny_copies import tiny_copies
from nsysdiag.config import MemoryThresholds
from nsysdiag.model import Copies
from nsysdiag.timeline.intervals import BoolArray, Intervals


def copy_report(
    device: DeviceTimeline,
    activity: DeviceActivity,
    inside: BoolArray,
    split: WindowSplit,
    steady: Intervals | None,
    chip: MemoryLimits,
    limits: MemoryThresholds,
) -> Copies:
    """Copies and sets of the operations that `inside` marks."""
    rows = copy_rows(device, inside)
    return Copies(
        rows=rows,
        total_ns=sum(row.total_ns for row in rows),
        bytes=sum(row.bytes for row in rows),
        exposed_ns=split.exposed_copy_ns,
        rates=copy_rates(device, inside, chip.bandwidth, limits),
        pinning=pinning(device, inside),
        exposed=exposed_copies(device, activity.api_calls, activity.streams, inside, split.parts[2]),
        tiny=tiny_copies(device, activity.api_calls, inside, steady, limits.tiny_copy),
    )
