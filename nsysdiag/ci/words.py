"""What became of a budget, in words."""

from __future__ import annotations

from nsysdiag.ci.expressions import SHRANK, Expression
from nsysdiag.ci.names import NS, SHARE
from nsysdiag.comparison.facts import Change
from nsysdiag.units import format_ns, format_signed_share


def sentence(expression: Expression, value: float, device: str, nvtx: str, *, broken: bool) -> str:
    """`idle_share on gpu0 is 51.6%, which is > 20%`."""
    found, limit = in_words(value, expression.limit, expression.unit)
    each = " per iteration" if expression.per_iteration else ""
    verb = "is" if broken else "is not"
    return (
        f"{expression.measure.name}{place(device, nvtx)} is {found}{each}, which {verb} {expression.operator} {limit}"
    )


def change_sentence(expression: Expression, change: Change, device: str, *, broken: bool) -> str:
    """`idle_ns on gpu0 grew by 31.2%, from 1.20 ms to 1.57 ms, which is more than 10% and no chance`."""
    more = change.change_ns > 0
    verb = "grew" if more else "shrank"
    wanted = "shrunk" if expression.operator == SHRANK else "grown"
    times = f"from {format_ns(change.before_ns)} to {format_ns(change.after_ns)}"
    share = f" ({format_signed_share(change.change_ns, change.before_ns)})" if change.before_ns else ""
    size = f"{times} a unit of work{share}"
    limit = in_words(expression.limit, expression.limit, expression.unit)[0]
    name = f"{expression.measure.name}{place(device, '')}"
    if broken:
        return f"{name} {verb} {size}, by more than {limit} and not by chance"
    if change.verdict == "same":
        return f"{name} went {size}, which is no change beyond chance"
    return f"{name} {verb} {size}, and must not have {wanted} by more than {limit}"


def place(device: str, nvtx: str) -> str:
    """` in 'forward' on gpu0`."""
    return (f" in '{nvtx}'" if nvtx else "") + (f" on {device}" if device else "")


def in_words(value: float, limit: float, unit: str) -> tuple[str, str]:
    """Both with as many digits as make them differ."""
    for digits in (3, 6, 9, 17):
        found, other = _in_words(value, unit, digits), _in_words(limit, unit, digits)
        if found != other or value == limit:
            break
    return found, other


def _in_words(value: float, unit: str, digits: int) -> str:
    if unit == SHARE:
        return f"{_number(100 * value, digits)}%"
    if unit == NS:
        return format_ns(round(value)) if digits == 3 else f"{_number(value, digits)} ns"
    return _number(value, max(digits, 6))


def _number(value: float, digits: int) -> str:
    """With so many digits, all those of a whole number; thousands are separated."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"
