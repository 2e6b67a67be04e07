"""The judged time by bottleneck before and after: of the job, and of devices whose causes divide it otherwise; and why
a step is slower or faster: the largest changes of its parts, with the root causes in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.facts import AccountChange, Change, DeviceComparison, PartChange, Reason
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
        left[_bottleneck_of(row.id)] -= row.change.change_ns
    least = LEAST_OF_LENGTH * max(device.length.before_ns, device.length.after_ns)
    return any(abs(ns) > least for ns in left.values())


def _bottleneck_of(id: str) -> str:
    return OF_WORK.get(id) or (CAUSES[id].bottleneck if id in CAUSES else "")


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


MOST, LEAST = 3, 0.1
"""So many changes are named, and none below this share of the largest one."""
PART = 1.1
"""A cause that changed by more of its bottleneck's change is charged to others as well."""


def reasons(
    account: Sequence[AccountChange], top: Sequence[PartChange], device: DeviceComparison, step: Change
) -> list[Reason]:
    """The largest changes of the account, or where there is none of the parts `top`. `device` is the slowest one."""
    found = [_of_account(row, device) for row in account] or [_of_part(row) for row in top]
    found.sort(key=lambda each: (-abs(each.change_ns), each.bottleneck))
    most = max((abs(each.change_ns) for each in found), default=0)
    least = max(LEAST_OF_LENGTH * max(step.before_ns, step.after_ns), LEAST * most)
    return [each for each in found if abs(each.change_ns) >= least][:MOST]


def _of_account(row: AccountChange, device: DeviceComparison) -> Reason:
    return Reason(
        bottleneck=row.bottleneck,
        cause=None,
        before_ns=row.before_ns,
        after_ns=row.after_ns,
        change_ns=row.change_ns,
        causes=_causes_of(row, device),
    )


def _of_part(row: PartChange) -> Reason:
    return Reason(
        bottleneck=_bottleneck_of(row.id),
        cause=row.id,
        before_ns=row.change.before_ns,
        after_ns=row.change.after_ns,
        change_ns=row.change.change_ns,
        causes=[],
    )


def _causes_of(row: AccountChange, device: DeviceComparison) -> list[PartChange]:
    """The root causes whose time is this bottleneck's and that changed with it, the largest change first."""
    least = LEAST_OF_LENGTH * max(device.length.before_ns, device.length.after_ns)
    sign = 1 if row.change_ns > 0 else -1
    found = [
        each
        for each in device.root_ledger
        if _bottleneck_of(each.id) == row.bottleneck
        and least <= sign * each.change.change_ns <= PART * abs(row.change_ns)
    ]
    return sorted(found, key=lambda each: (-abs(each.change.change_ns), each.id))
