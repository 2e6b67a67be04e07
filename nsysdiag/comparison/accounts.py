"""The judged time by bottleneck before and after: of the job, and of devices whose causes divide it otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.facts import AccountChange, Change, DeviceComparison, PartChange
from nsysdiag.comparison.pairing import DevicePair
from nsysdiag.comparison.side import COMPUTE, IDLE, STEADY, judged_phases
from nsysdiag.comparison.waterfall import LEAST_OF_LENGTH, adding_up
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.report import DeviceReport, Report

ALIKE = 0.05
"""Of the length: an account whose kernels differ more from those of the unit is of other work."""


def account_changes(pairs: Sequence[DevicePair], mean: Change) -> list[AccountChange]:
    """The judged time of devices by bottleneck, scaled to their mean step. Not to the median one: time that a few
    steps spend would make all other parts of a step look shorter."""
    sides = [
        _judged_time([each for pair in pairs for each in pair.before]),
        _judged_time([each for pair in pairs for each in pair.after]),
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


def with_accounts(pairs: Sequence[DevicePair], devices: Sequence[DeviceComparison]) -> list[list[AccountChange]]:
    """The account of each device: of all of them, where that of one differs from its causes, else of none."""
    found = [account_changes([pair], each.length) for pair, each in zip(pairs, devices, strict=True)]
    both = list(zip(found, devices, strict=True))
    if all(rows and of_this_work(rows, each) for rows, each in both) and any(_differs(*each) for each in both):
        return found
    return [[] for _each in found]


def _differs(account: Sequence[AccountChange], device: DeviceComparison) -> bool:
    """Does a bottleneck change by another time than the work and the causes that are its own?"""
    left = Counter({row.bottleneck: row.change_ns for row in account})
    left["kernels"] += left.pop("parallelism", 0)
    for row in (*(each for each in device.parts if each.id != IDLE), *device.ledger):
        left[_bottleneck_of(row)] -= row.change.change_ns
    least = LEAST_OF_LENGTH * max(device.length.before_ns, device.length.after_ns)
    return any(abs(ns) > least for ns in left.values())


def _bottleneck_of(row: PartChange) -> str:
    return OF_WORK.get(row.id) or (CAUSES[row.id].bottleneck if row.id in CAUSES else "")


def of_this_work(account: Sequence[AccountChange], device: DeviceComparison) -> bool:
    """Whether the kernels take about as long in the account as in the unit that is compared: else the judged phases
    hold other work as well."""
    kernels = [row for row in account if row.bottleneck in KERNELS]
    compute = next((row.change for row in device.parts if row.id == COMPUTE), None)
    if compute is None:
        return True
    pairs = (
        (sum(row.before_ns for row in kernels), compute.before_ns, device.length.before_ns),
        (sum(row.after_ns for row in kernels), compute.after_ns, device.length.after_ns),
    )
    return all(abs(charged - measured) <= ALIKE * length for charged, measured, length in pairs)


def _judged_time(side: Sequence[tuple[Report, DeviceReport]]) -> dict[str, int]:
    """ns by bottleneck in the judged steady phases; nothing where a report has none."""
    found: Counter[str] = Counter()
    for report, device in side:
        if report.diagnosis is None or report.diagnosis.basis not in (*STEADY, "window"):
            return {}
        for each in judged_phases(report, device):
            found.update(each.account)
    return {name: ns for name, ns in found.items() if ns}
