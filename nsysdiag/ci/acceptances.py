"""Regressions that a baseline accepts: a budget that is broken by no more than that does not fail, until a day."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.budgets import Budget, Judgement, UnjudgedError, called, check
from nsysdiag.ci.expressions import GREW, SHRANK, Expression, change_sentence, parse
from nsysdiag.ci.facts import BudgetResult
from nsysdiag.ci.measuring import ITERATION_LENGTH, NS, SHARE, Measure, UnmeasurableError, require_evidence
from nsysdiag.comparison import facts
from nsysdiag.messages import UsageError
from nsysdiag.process import now
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.units import NS_PER

# Budgets of a comparison: what must not have grown, and what must not be after.

_NO_CHANCE = (
    "what is chance is unknown: capture some steady iterations with NVTX ranges around them, or several captures per "
    "side (--before and --after)"
)
_NONE = facts.Change(before_ns=0, after_ns=0, change_ns=0, low_ns=None, high_ns=None, least_ns=0, verdict="same")


def check_comparison(
    comparison: facts.Comparison, reports: Mapping[str, Report | WhatIf], budgets: Sequence[Budget]
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


def _change(comparison: facts.Comparison, budget: Budget, reports: Mapping[str, Report | WhatIf]) -> BudgetResult:
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


def _devices(comparison: facts.Comparison, budget: Budget) -> list[facts.DeviceComparison]:
    names = [(each.key, f"{each.name_before} {each.name_after}") for each in comparison.devices]
    found = [comparison.devices[at] for at in called(names, budget.device)]
    if not found:
        known = ", ".join(each.key for each in comparison.devices)
        raise UnmeasurableError(f"no device '{budget.device}' is on both sides; those that are: {known}")
    return found


def _of(comparison: facts.Comparison, device: facts.DeviceComparison, measure: Measure) -> facts.Change:
    """The change of a measure. Raises UnmeasurableError if it is not known whether it is chance."""
    change = _change_of(comparison, device, measure)
    if change.verdict == facts.UNKNOWN:
        raise UnmeasurableError(_NO_CHANCE)
    return change


def _change_of(comparison: facts.Comparison, device: facts.DeviceComparison, measure: Measure) -> facts.Change:
    """The change of a measure, whatever is known of chance. Raises UnmeasurableError if a side cannot tell."""
    if measure.cause in comparison.not_compared:
        raise UnmeasurableError(f"not all captures can tell {measure.cause}: capture and analyze both sides alike")
    if device.unit.kind == facts.PHASES and measure.path[0] == "root_ledger":
        raise UnmeasurableError("root causes are not known of steady phases: put NVTX ranges around the steps")
    if measure.name == ITERATION_LENGTH:
        change = device.length
    elif measure.cause is None:
        change = _part(device.parts, measure.name.removesuffix("_ns"))
    else:
        change = _part(device.root_ledger if measure.path[0] == "root_ledger" else device.ledger, measure.cause)
    return change


def certainly_exceeds(comparison: facts.Comparison, accepted: Acceptance) -> bool:
    """Did some device change by more than the limit for certain, with all of its interval? Or is it further than the
    limit from the length for which that was accepted, while the baseline has moved?"""
    expression = accepted.expression
    sign, verdict = (1, facts.REGRESSED) if expression.operator == GREW else (-1, facts.IMPROVED)
    for device in comparison.devices:
        try:
            change = _of(comparison, device, expression.measure)
        except UnmeasurableError:
            continue
        ends = [sign * end for end in (change.low_ns, change.high_ns) if end is not None]
        least = min(ends, default=0)
        anchor = accepted.before_ns.get(device.key, change.before_ns)
        moved = sign * (change.before_ns - anchor)
        if change.verdict == verdict and (
            least > _allowed(expression, change.before_ns) or least + moved > _allowed(expression, anchor)
        ):
            return True
    return False


def _part(rows: Iterable[facts.PartChange], id: str) -> facts.Change:
    """A cause that neither side names took no time on both."""
    return next((row.change for row in rows if row.id == id), _NONE)


def _result(budget: Budget, device: facts.DeviceComparison, change: facts.Change) -> BudgetResult:
    expression = budget.expression
    # The change with its sign, in ns or as a share of what was before; from nothing to something it is all of it.
    value = float(change.change_ns)
    if expression.unit == SHARE:
        value = change.change_ns / change.before_ns if change.before_ns else float(change.change_ns > 0)
    broken = _exceeds_limit(expression, change)
    said = change_sentence(expression, change, device.key, broken=broken)
    return budget.result(device.key, value, said, broken=broken)


def _exceeds_limit(expression: Expression, change: facts.Change) -> bool:
    """Did it grow (shrink) by more than the limit, and is that no chance?"""
    sign, verdict = (1, facts.REGRESSED) if expression.operator == GREW else (-1, facts.IMPROVED)
    return change.verdict == verdict and sign * change.change_ns > _allowed(expression, change.before_ns)


def _allowed(expression: Expression, before_ns: int) -> float:
    return expression.limit * (before_ns if expression.unit == SHARE else 1)


def anchors(comparison: facts.Comparison, expression: Expression) -> dict[str, int]:
    """By device the ns that a change is accepted from: the side before. Nothing if they are not known."""
    if not expression.of_change:
        return {}
    try:
        return {each.key: _change_of(comparison, each, expression.measure).before_ns for each in comparison.devices}
    except UnmeasurableError:
        return {}


USED, EXCEEDED, EXPIRED, UNUSED = "used", "exceeded", "expired", "unused"
USUAL_DAYS = 30
"""For how long a regression is accepted by the command that is suggested."""
_DIRECTIONS = {">": GREW, ">=": GREW, GREW: GREW, "<": SHRANK, "<=": SHRANK, SHRANK: SHRANK}


def today() -> date:
    """The day on which this runs, in UTC."""
    return datetime.fromtimestamp(now(), UTC).date()


class Acceptance(Struct, frozen=True):
    """A regression is accepted as long as `expression`, written like a budget, does not hold for certain, up to and
    with the day `until`. `before_ns` is what a change was accepted from, by device: if the baseline takes longer by
    now, it is not accepted to grow from there once more."""

    expression: Expression
    reason: str
    until: date
    before_ns: dict[str, int] = {}


def acceptance(
    what: str, reason: str, until: date, where: str, before_ns: Mapping[str, int] | None = None
) -> Acceptance:
    """Raises UsageError, with `where` it stands, for what is not an expression, or not a regression."""
    expression = parse(what, where)
    if expression.operator not in _DIRECTIONS:
        raise UsageError(
            f"{where}: '{what}' says no bound",
            hint="write up to where it is accepted, as 'length:+9%' or 'idle_ns > 5ms'",
        )
    return Acceptance(expression, reason, until, dict(before_ns or {}))


def accept(
    judged: Judgement, comparison: facts.Comparison, accepted: Sequence[Acceptance], day: date
) -> tuple[Judgement, list[facts.Accepted]]:
    """The judgement without broken budgets that are accepted, and what became of each acceptance."""
    broken = [each for each in judged.results if each.broken and not each.nvtx]
    outcomes = [_outcome(each, broken, comparison, day) for each in accepted]
    covered = [result for status, result in outcomes if status == USED]
    left = [each for each in judged.results if not any(each is one for one in covered)]
    told = [_told(each, *outcome) for each, outcome in zip(accepted, outcomes, strict=True)]
    return replace(judged, results=left), told


def _outcome(
    accepted: Acceptance, broken: Sequence[BudgetResult], comparison: facts.Comparison, day: date
) -> tuple[str, BudgetResult | None]:
    """Its status, and the broken budget that it is about."""
    about = [each for each in broken if _is_about(accepted.expression, parse(each.budget, each.source))]
    if day > accepted.until:
        return EXPIRED, about[0] if about else None
    inside = [each for each in about if not _exceeds(accepted, each, comparison)]
    if inside:
        return USED, inside[0]
    return (EXCEEDED, about[0]) if about else (UNUSED, None)


def _is_about(accepted: Expression, budget: Expression) -> bool:
    """Are both about the same number, and the same way that it goes?"""
    return (
        accepted.measure == budget.measure
        and accepted.of_change == budget.of_change
        and accepted.per_iteration == budget.per_iteration
        and _DIRECTIONS.get(accepted.operator) == _DIRECTIONS.get(budget.operator, "")
    )


def _exceeds(accepted: Acceptance, result: BudgetResult, comparison: facts.Comparison) -> bool:
    """Is it further than accepted? A change counts only beyond chance."""
    expression = accepted.expression
    return certainly_exceeds(comparison, accepted) if expression.of_change else expression.holds(result.value)


def _told(accepted: Acceptance, status: str, result: BudgetResult | None) -> facts.Accepted:
    until = accepted.until.isoformat()
    what = accepted.expression.text
    sentence = {
        USED: f"accepted up to {what} until {until}",
        EXCEEDED: f"it was accepted up to {what} until {until}, and is further than that",
        EXPIRED: f"it was accepted up to {what} until {until}, which is over",
        UNUSED: f"accepted up to {what} until {until}: nothing of it is broken",
    }[status]
    said = f"{result.sentence}; {sentence}" if result else sentence
    return facts.Accepted(what=what, reason=accepted.reason, until=until, status=status, sentence=said)


def command_to_accept(result: BudgetResult, baseline: str, options: Sequence[str], day: date) -> str | None:
    """The command that accepts a broken budget up to a little more than now, for a month; None for one that cannot be
    accepted."""
    expression = parse(result.budget, result.source)
    direction = _DIRECTIONS.get(expression.operator)
    if direction is None or result.nvtx:
        return None
    operator = f":{expression.operator}" if expression.of_change else f" {expression.operator} "
    value = abs(result.value) if expression.of_change else result.value
    bound = _rounded(value, result.unit, up=expression.of_change or direction == GREW)
    what = f"{expression.measure.name}{operator}{bound}{'/iter' if expression.per_iteration else ''}"
    until = (day + timedelta(days=USUAL_DAYS)).isoformat()
    words = ["nsysdiag", "baseline", "accept", baseline, *options]
    return shlex.join([*words, "--what", what, "--until", until, "--reason", "WHY"])


def _rounded(value: float, unit: str, *, up: bool) -> str:
    """A value with two digits, away from what it bounds."""
    if unit == SHARE:
        return f"{_two_digits(100 * value, up=up)}%"
    if unit == NS:
        name = next((each for each in ("s", "ms", "us") if NS_PER[each] <= abs(value)), "ns")
        return f"{_two_digits(value / NS_PER[name], up=up)}{name}"
    return _two_digits(value, up=up)


def _two_digits(value: float, *, up: bool) -> str:
    """Without an exponent, which no budget has."""
    exact = Decimal(repr(value))
    step = Decimal(1).scaleb(exact.adjusted() - 1)
    return f"{exact.quantize(step, ROUND_CEILING if up else ROUND_FLOOR):f}" if exact else "0"
