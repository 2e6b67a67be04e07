"""Regressions that a baseline accepts: a budget that is broken by no more than that does not fail, until a day."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.budgets import Judgement
from nsysdiag.ci.changes import certainly_exceeds
from nsysdiag.ci.expressions import GREW, SHRANK, Expression, parse
from nsysdiag.ci.facts import BudgetResult
from nsysdiag.ci.names import NS, SHARE
from nsysdiag.comparison.facts import Accepted, Comparison
from nsysdiag.epoch import now
from nsysdiag.errors import UsageError
from nsysdiag.units import NS_PER

USED, EXCEEDED, EXPIRED, UNUSED = "used", "exceeded", "expired", "unused"
USUAL_DAYS = 30
"""For how long a regression is accepted by the command that is suggested."""
_DIRECTIONS = {">": GREW, ">=": GREW, GREW: GREW, "<": SHRANK, "<=": SHRANK, SHRANK: SHRANK}


def today() -> date:
    """The day on which this runs, in UTC."""
    return datetime.fromtimestamp(now(), UTC).date()


class Acceptance(Struct, frozen=True):
    """A regression is accepted as long as `expression`, written like a budget, does not hold for certain, up to and
    with the day `until`."""

    expression: Expression
    reason: str
    until: date


def acceptance(what: str, reason: str, until: date, where: str) -> Acceptance:
    """Raises UsageError, with `where` it stands, for what is no expression, or no regression."""
    expression = parse(what, where)
    if expression.operator not in _DIRECTIONS:
        raise UsageError(
            f"{where}: '{what}' says no bound",
            hint="write up to where it is accepted, as 'length:+9%' or 'idle_ns > 5ms'",
        )
    return Acceptance(expression, reason, until)


def accept(
    judged: Judgement, comparison: Comparison, accepted: Sequence[Acceptance], day: date
) -> tuple[Judgement, list[Accepted]]:
    """The judgement without broken budgets that are accepted, and what became of each acceptance."""
    broken = [each for each in judged.results if each.broken and not each.nvtx]
    outcomes = [_outcome(each, broken, comparison, day) for each in accepted]
    covered = [result for status, result in outcomes if status == USED]
    left = [each for each in judged.results if not any(each is one for one in covered)]
    told = [_told(each, *outcome) for each, outcome in zip(accepted, outcomes, strict=True)]
    return replace(judged, results=left), told


def _outcome(
    accepted: Acceptance, broken: Sequence[BudgetResult], comparison: Comparison, day: date
) -> tuple[str, BudgetResult | None]:
    """Its status, and the broken budget that it is about."""
    about = [each for each in broken if _is_about(accepted.expression, parse(each.budget, each.source))]
    if day > accepted.until:
        return EXPIRED, about[0] if about else None
    inside = [each for each in about if not _exceeds(accepted.expression, each, comparison)]
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


def _exceeds(accepted: Expression, result: BudgetResult, comparison: Comparison) -> bool:
    """Is it further than accepted? A change is where that is beyond chance."""
    return certainly_exceeds(comparison, accepted) if accepted.of_change else accepted.holds(result.value)


def _told(accepted: Acceptance, status: str, result: BudgetResult | None) -> Accepted:
    until = accepted.until.isoformat()
    what = accepted.expression.text
    sentence = {
        USED: f"accepted up to {what} until {until}",
        EXCEEDED: f"it was accepted up to {what} until {until}, and is further than that",
        EXPIRED: f"it was accepted up to {what} until {until}, which is over",
        UNUSED: f"accepted up to {what} until {until}: nothing of it is broken",
    }[status]
    said = f"{result.sentence}; {sentence}" if result else sentence
    return Accepted(what=what, reason=accepted.reason, until=until, status=status, sentence=said)


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
