"""Why a step is slower or faster: the largest changes of its parts, by bottleneck, with the root causes in them."""

from __future__ import annotations

from collections.abc import Sequence

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.facts import AccountChange, Change, DeviceComparison, PartChange, Reason
from nsysdiag.comparison.waterfall import LEAST_OF_LENGTH

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


def _bottleneck_of(id: str) -> str:
    return OF_WORK.get(id) or (CAUSES[id].bottleneck if id in CAUSES else "")


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
