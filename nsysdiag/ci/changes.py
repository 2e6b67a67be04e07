"""Budgets of a comparison: what must not have grown, and what must not be after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from nsysdiag.ci.budgets import Budget, UnjudgedError, called, check
from nsysdiag.ci.expressions import GREW, Expression, change_sentence
from nsysdiag.ci.facts import BudgetResult
from nsysdiag.ci.measuring import UnmeasurableError, require_evidence
from nsysdiag.ci.names import LENGTH, SHARE, Measure
from nsysdiag.comparison.facts import Change, Comparison, DeviceComparison, PartChange
from nsysdiag.comparison.units import PHASES
from nsysdiag.comparison.waterfall import IMPROVED, REGRESSED, UNKNOWN
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report

_NO_CHANCE = (
    "what is chance is unknown: capture some steady iterations with NVTX ranges around them, or several captures per "
    "side (--before and --after)"
)
_NONE = Change(before_ns=0, after_ns=0, change_ns=0, low_ns=None, high_ns=None, least_ns=0, verdict="same")


def check_comparison(
    comparison: Comparison, reports: Mapping[str, Report | WhatIf], budgets: Sequence[Budget]
) -> list[BudgetResult]:
    """What becomes of each budget: changes by the comparison, the others by the `reports` after, which are named by
    their paths. Raises UsageError for one on something that they cannot tell."""
    found = []
    for budget in budgets:
        mine = {path: report for path, report in reports.items() if budget.is_about(report, path)}
        if mine and budget.expression.of_change:
            found.append(_change(comparison, budget, mine))
        elif mine:
            found.append(_after(mine, budget))
    return found


def _after(reports: Mapping[str, Report | WhatIf], budget: Budget) -> BudgetResult:
    """By the capture that comes closest to the limit, or breaks it most."""
    found = [(path, result) for path, report in reports.items() for result in _checked(report, budget, path)]
    path, worst = max(found, key=lambda each: budget.expression.distance(each[1].value))
    return worst if len(found) == 1 else replace(worst, sentence=f"{path}: {worst.sentence}")


def _checked(report: Report | WhatIf, budget: Budget, path: str) -> list[BudgetResult]:
    if isinstance(report, WhatIf):
        raise UnjudgedError(budget, path, "a prediction holds changes alone: write it as one, as 'length:+5%'")
    return check(report, [budget], path)


def _change(comparison: Comparison, budget: Budget, reports: Mapping[str, Report | WhatIf]) -> BudgetResult:
    expression = budget.expression
    try:
        for report in reports.values():
            require_evidence(report, expression.measure)
        found = [
            _result(budget, device, _of(comparison, device, expression.measure))
            for device in _devices(comparison, budget)
        ]
    except UnmeasurableError as error:
        raise UnjudgedError(budget, ", ".join(reports), str(error)) from error
    sign = 1 if expression.operator == GREW else -1
    return max(found, key=lambda result: (result.broken, sign * result.value))


def _devices(comparison: Comparison, budget: Budget) -> list[DeviceComparison]:
    names = [(each.key, f"{each.name_before} {each.name_after}") for each in comparison.devices]
    found = [comparison.devices[at] for at in called(names, budget.device)]
    if not found:
        known = ", ".join(each.key for each in comparison.devices)
        raise UnmeasurableError(f"no device '{budget.device}' is on both sides; those that are: {known}")
    return found


def _of(comparison: Comparison, device: DeviceComparison, measure: Measure) -> Change:
    """The change of a measure. Raises UnmeasurableError where it is not known whether it is chance."""
    if measure.cause in comparison.not_compared:
        raise UnmeasurableError(f"not all captures can tell {measure.cause}: capture and analyse both sides alike")
    if device.unit.kind == PHASES and measure.path[0] == "root_ledger":
        raise UnmeasurableError("root causes are not known of steady phases: put NVTX ranges around the steps")
    if measure.name == LENGTH:
        change = device.length
    elif measure.cause is None:
        change = _part(device.parts, measure.name.removesuffix("_ns"))
    else:
        change = _part(device.root_ledger if measure.path[0] == "root_ledger" else device.ledger, measure.cause)
    if change.verdict == UNKNOWN:
        raise UnmeasurableError(_NO_CHANCE)
    return change


def certainly_exceeds(comparison: Comparison, expression: Expression) -> bool:
    """Did some device change by more than the limit for certain, with all of its interval?"""
    sign, verdict = (1, REGRESSED) if expression.operator == GREW else (-1, IMPROVED)
    for device in comparison.devices:
        try:
            change = _of(comparison, device, expression.measure)
        except UnmeasurableError:
            continue
        ends = [sign * end for end in (change.low_ns, change.high_ns) if end is not None]
        if change.verdict == verdict and min(ends, default=0) > _allowed(expression, change):
            return True
    return False


def _part(rows: Iterable[PartChange], id: str) -> Change:
    """A cause that neither side names took no time on both."""
    return next((row.change for row in rows if row.id == id), _NONE)


def _result(budget: Budget, device: DeviceComparison, change: Change) -> BudgetResult:
    expression = budget.expression
    # The change with its sign, in ns or as a share of what was before; from nothing to something it is all of it.
    value = float(change.change_ns)
    if expression.unit == SHARE:
        value = change.change_ns / change.before_ns if change.before_ns else float(change.change_ns > 0)
    broken = _exceeds_limit(expression, change)
    return BudgetResult(
        id=budget.id,
        budget=expression.text,
        source=budget.source,
        level=budget.level,
        device=device.key,
        nvtx="",
        value=value,
        limit=expression.limit,
        unit=expression.unit,
        broken=broken,
        sentence=change_sentence(expression, change, device.key, broken=broken),
    )


def _exceeds_limit(expression: Expression, change: Change) -> bool:
    """Did it grow (shrink) by more than the limit, and is that no chance?"""
    sign, verdict = (1, REGRESSED) if expression.operator == GREW else (-1, IMPROVED)
    return change.verdict == verdict and sign * change.change_ns > _allowed(expression, change)


def _allowed(expression: Expression, change: Change) -> float:
    return expression.limit * (change.before_ns if expression.unit == SHARE else 1)
