"""The job before and after: the step of its slowest device, its work, and what the judged time counts to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.comparison.changes import DECIDED, UNKNOWN, Changes, adding_up
from nsysdiag.comparison.facts import AccountChange, Change, DeviceComparison, JobComparison, PartChange
from nsysdiag.comparison.pairing import Pair
from nsysdiag.comparison.side import STEADY, WORK, judged_phases
from nsysdiag.comparison.steps import MEAN, MEDIAN, Step, speedup, step_change
from nsysdiag.comparison.units import Sides
from nsysdiag.report import DeviceReport, Report

MOST_TOP, LEAST_TOP = 3, 0.1
DIFFER = 0.02
"""Devices whose steps are no further apart keep one step: they wait for each other."""


class Compared(Struct, frozen=True):
    """A device with its captures, the changes that were found, and what is written of it."""

    pair: Pair
    sides: Sides
    changes: Changes
    step: Step | None
    made: DeviceComparison


def job_comparison(devices: Sequence[Compared], verdict: str) -> JobComparison:
    """The job over all devices that were compared, at least one."""
    statistic = _statistic(devices)
    before = max(devices, key=lambda each: (_shown(each, statistic).before_ns, each.made.key))
    after = max(devices, key=lambda each: (_shown(each, statistic).after_ns, each.made.key))
    step, mean = _step(before, after, statistic), _step(before, after, MEAN)
    times = [_shown(each, statistic) for each in devices]
    sides = [each.before_ns for each in times], [each.after_ns for each in times]
    account = _account(devices, mean)
    return JobComparison(
        statistic=statistic,
        unit=after.sides.unit,
        verdict=verdict,
        device_before=before.made.key,
        device_after=after.made.key,
        devices_differ=any(max(side) > (1 + DIFFER) * min(side) for side in sides),
        step=step,
        mean=mean,
        speedup=speedup(step),
        work=after.made.work,
        account=account,
        top=[] if account and len(devices) > 1 else _top(after.made),
        slow_steps=any(each.made.slow_steps for each in devices),
    )


def _statistic(devices: Sequence[Compared]) -> str:
    """The median step, unless the mean of some device changed and the median of none did: the slow steps changed."""
    if any(each.step is None for each in devices):
        return MEAN
    mean = any(each.made.length.verdict in DECIDED for each in devices)
    median = any(each.step and each.step.change.verdict in DECIDED for each in devices)
    return MEAN if mean and not median else MEDIAN


def _shown(device: Compared, statistic: str) -> Change:
    return device.step.change if device.step is not None and statistic == MEDIAN else device.made.length


def _step(before: Compared, after: Compared, statistic: str) -> Change:
    """From the slowest device before to the slowest one after."""
    if before is after:
        return _shown(after, statistic)
    noise = max(before.changes.noise, after.changes.noise)
    return step_change(before.sides.before, after.sides.after, noise, statistic).change


def _account(devices: Sequence[Compared], mean: Change) -> list[AccountChange]:
    """The judged time of the devices by bottleneck, scaled to the mean step. Not to the median one: time that a few
    steps spend would make all other parts of a step look shorter."""
    sides = [
        _judged_time([each for device in devices for each in device.pair.before]),
        _judged_time([each for device in devices for each in device.pair.after]),
    ]
    if not all(sides):
        return []
    names = sorted({name for side in sides for name in side})
    times = []
    for side, step_ns in zip(sides, (mean.before_ns, mean.after_ns), strict=True):
        total = sum(side.values())
        times.append(adding_up(np.array([side.get(name, 0) * step_ns / total for name in names]), step_ns))
    rows = [
        AccountChange(bottleneck=name, before_ns=was, after_ns=now, change_ns=now - was)
        for name, was, now in zip(names, *times, strict=True)
    ]
    return sorted(rows, key=lambda row: (-max(row.before_ns, row.after_ns), row.bottleneck))


def _judged_time(side: Sequence[tuple[Report, DeviceReport]]) -> dict[str, int]:
    """ns by bottleneck in the judged steady phases; nothing where a report has none."""
    found: Counter[str] = Counter()
    for report, device in side:
        if report.diagnosis is None or report.diagnosis.basis not in (*STEADY, "window"):
            return {}
        for each in judged_phases(report, device):
            found.update(each.account)
    return {name: ns for name, ns in found.items() if ns}


def _top(device: DeviceComparison) -> list[PartChange]:
    """The kinds of work and the root causes that changed most, at most three: those beyond chance, or, if chance is
    unknown, those large enough."""
    rows = [*(row for row in device.parts if row.id in WORK), *device.root_ledger]
    known = device.length.verdict != UNKNOWN
    counted = [
        row
        for row in rows
        if (row.change.verdict in DECIDED if known else abs(row.change.change_ns) > row.change.least_ns)
    ]
    counted.sort(key=lambda row: (-abs(row.change.change_ns), row.id))
    least = LEAST_TOP * abs(counted[0].change.change_ns) if counted else 0
    return [row for row in counted if abs(row.change.change_ns) >= least][:MOST_TOP]
