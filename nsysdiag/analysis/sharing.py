"""Processes that use the same device number in a trace without a map to GPUs: do they take turns, or run at once?

```
one        [==]    [==]    [==]        none of these meets one of the other, however busy both are: on one GPU, without
other          [==]    [==]    [==]    MPS, the work of two processes never runs at once
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.device import DeviceActivity, DeviceTimeline
from nsysdiag.timeline.intervals import Intervals, clip, coverage, union
from nsysdiag.units import format_count, format_share

ENOUGH = 10
"""So many stretches of work must meet the others' by chance, if nothing keeps them apart."""
SELDOM = 0.01
OFTEN = 0.5
_KEPT_APART = "Several processes use this device number and the trace has no map to GPUs: they are kept apart here"


def sharing_notes(activity: DeviceActivity) -> dict[str, str]:
    """By device key a sentence for each device that may be the same GPU as others."""
    apart = [device for device in activity.devices if activity.assumed_apart and device.gpu_id is None]
    busy = {device.key: _busy(device) for device in apart}
    return {
        device.key: _note(busy[device.key], union(*(busy[each.key] for each in others)))
        for device in apart
        if (others := _others(device, apart))
    }


def _busy(device: DeviceTimeline) -> Intervals:
    rows = device.operations
    return union(Intervals(rows.start[device.running], rows.end[device.running]))


def _others(device: DeviceTimeline, apart: list[DeviceTimeline]) -> list[DeviceTimeline]:
    """Those that go by the same number in other processes."""
    numbers = {number for _, number in device.ids}
    return [each for each in apart if each is not device and numbers & {number for _, number in each.ids}]


def _note(mine: Intervals, others: Intervals) -> str:
    met, expected, stretches, shared = _meetings(mine, others)
    if expected >= ENOUGH and met <= SELDOM * stretches:
        told = f"{met:,} of {format_count(stretches)}" if met else f"none of {format_count(stretches)}"
        return (
            f"{_KEPT_APART}, but take turns, as on one GPU: {told} stretches of its work meet one of the others, where"
            f" chance would let {format_count(round(expected))} do so. --same-gpu unites them."
        )
    if expected >= ENOUGH and met >= OFTEN * expected:
        return (
            f"{_KEPT_APART}, and run at the same time for {format_share(shared, 1)} of its work, as on different GPUs,"
            " or on one with MPS. --same-gpu would unite them."
        )
    return f"{_KEPT_APART}, and may share a GPU. --same-gpu unites them."


def _meetings(mine: Intervals, others: Intervals) -> tuple[int, float, int, float]:
    """How many stretches of work met others', how many chance lets meet at least, of how many; and the share of the
    work that ran beside others'. All while both were at work."""
    if len(mine) == 0 or len(others) == 0:
        return 0, 0.0, 0, 0.0
    low, high = max(int(mine.start[0]), int(others.start[0])), min(int(mine.end[-1]), int(others.end[-1]))
    if low >= high:
        return 0, 0.0, 0, 0.0
    mine, others = clip(mine, low, high), clip(others, low, high)
    beside = coverage(others, mine)
    chance = float((others.end - others.start).sum()) / (high - low)
    whole = max(int((mine.end - mine.start).sum()), 1)
    return int(np.count_nonzero(beside)), len(mine) * chance, len(mine), float(beside.sum()) / whole
