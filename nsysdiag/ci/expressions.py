"""Budgets as they are written: `NAME OP VALUE[%|ns|us|ms|s][/iter]`, and `NAME:+VALUE` for what grew.

```
idle_share > 20%              any device that is idle for more breaks it
ledger.sync >= 2ms/iter       as a mean over the steady iterations
idle_ns > 5000000             a bare number is in the unit of the name: ns, share or count
idle_ns:+10%                  in a comparison: grew by more, and that is not chance
```

An expression says what is wrong: it is broken if it is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

from msgspec import Struct

from nsysdiag.ci.measuring import COUNT, FINDINGS, ITERATION_LENGTH, NS, SHARE, Measure, measures, nearest
from nsysdiag.comparison.facts import Change
from nsysdiag.messages import UsageError, printable
from nsysdiag.units import NS_PER, format_ns, format_signed_share

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}
GREW, SHRANK = "+", "-"
PER_CENT = "%"
LONGEST = 200
_NAMES = (
    "the numbers of a device in the JSON: idle_ns, idle_share, ledger.CAUSE, exposed_copy_ns, gap_count, "
    f"iterations.p95_ns, ...; and {FINDINGS}.high"
)
_PARTS = re.compile(
    r"""
    [ \t]* (?P<name> (?a: [A-Za-z_]\w*(\.\w+)* )? )
    [ \t]* (?: (?P<change>:) [ \t]* (?P<sign>[+-]?) | (?P<operator> (?:[><=!]=|[><])? ) (?P<doubled>[><=!]?) )
    [ \t]* (?P<number> (?a: -?\d+(\.\d+)? )? )
    [ \t]* (?P<unit> (?:%|[A-Za-zµ]+)? )
    [ \t]* (?P<iter> (?:/\s*iter\b)? )
    [ \t]* (?P<rest> .* )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Fits every text: a part that is missing is empty, and begins where it would stand."""
_LENGTH = Measure(ITERATION_LENGTH, (ITERATION_LENGTH,), NS, True)
_COMPARED = ("idle_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns")


class Expression(Struct, frozen=True):
    """`text` as it was written. `operator` is one of OPERATORS or, of a change, GREW or SHRANK by more than `limit`.
    The limit is in `unit`: ns, share or count, of a change also a share of what was before."""

    text: str
    measure: Measure
    operator: str
    limit: float
    unit: str
    per_iteration: bool

    @property
    def of_change(self) -> bool:
        """Is it about the change between two captures?"""
        return self.operator in (GREW, SHRANK)

    def holds(self, value: float) -> bool:
        """Is it true of this value? Not for changes."""
        return OPERATORS[self.operator](value, self.limit)

    def distance(self, value: float) -> float:
        """How true it is of this value, or how near to true: the larger, the more."""
        return {">": value, "<": -value, "=": -abs(value - self.limit), "!": abs(value - self.limit)}[self.operator[0]]


class _MistakeError(Exception):
    """One of _PARTS is wrong."""

    def __init__(self, part: str, expected: str, hint: str | None = None) -> None:
        super().__init__()
        self.part, self.expected, self.hint = part, expected, hint


def parse(text: str, where: str) -> Expression:
    """The expression. Raises UsageError with `where` it stands, what was expected, and a mark below the place."""
    if len(text) > LONGEST:
        raise UsageError(f"{where}: a budget has {LONGEST} characters at most")
    parts = _PARTS.fullmatch(text)
    assert parts is not None
    try:
        return _expression(parts)
    except _MistakeError as mistake:
        mark = " " * len(printable(text[: parts.start(mistake.part)])) + "^"
        raise UsageError(f"{where}: {mistake.expected}", hint=mistake.hint, shown=(text, mark)) from None


def _expression(parts: re.Match[str]) -> Expression:
    """The parts are checked from left to right."""
    of_change, per_iteration = bool(parts["change"]), bool(parts["iter"])
    measure = _changing(parts["name"]) if of_change else _measure(parts["name"])
    if of_change and not parts["sign"]:
        raise _MistakeError("sign", "expected + or -, as in :+10%")
    if not of_change and parts["operator"] not in OPERATORS:
        raise _MistakeError("operator", "expected one of > >= < <= == !=, or :+ before a change")
    if parts["doubled"]:
        raise _MistakeError("doubled", "expected a value")
    if not parts["number"] or (of_change and parts["number"].startswith("-")):
        raise _MistakeError("number", "expected a value, as 20% or 1.5ms")
    limit, unit = _limit(measure, parts["number"], parts["unit"], of_change=of_change)
    divides = measure.adds_up and not (of_change and unit == SHARE)
    if per_iteration and not divides:
        raise _MistakeError(
            "iter", "expected nothing more" if of_change else f"{measure.name} has no value for each iteration"
        )
    if parts["rest"]:
        may_follow = measure.adds_up and unit != SHARE and not per_iteration
        raise _MistakeError("rest", "expected /iter or nothing more" if may_follow else "expected nothing more")
    operator = parts["sign"] if of_change else parts["operator"]
    return Expression(parts.string.strip(), measure, operator, limit, unit, per_iteration)


def _measure(name: str) -> Measure:
    if not name:
        raise _MistakeError("name", "expected a name, as idle_share", _NAMES)
    if name in measures():
        return measures()[name]
    if name == ITERATION_LENGTH:
        hint = f"write '{ITERATION_LENGTH}:+5%', or 'iterations.p50_ns > 10ms'"
        raise _MistakeError("name", f"{ITERATION_LENGTH} is for changes alone", hint)
    near = nearest(name)
    meant = f"; did you mean '{near}'?" if near else ""
    raise _MistakeError("name", f"there is no '{name}'{meant}", _NAMES)


def _changing(name: str) -> Measure:
    """What a comparison can distinguish from chance: the length of a unit of work, its parts, and causes."""
    if name == ITERATION_LENGTH:
        return _LENGTH
    measure = _measure(name)
    if measure.name in _COMPARED or (measure.in_ledger and not measure.of_window):
        return measure
    near = measure.name.replace("_share", "" if measure.in_ledger else "_ns")
    instead = f"; write '{near}:+10%'" if near != name and near in measures() else ""
    raise _MistakeError(
        "name",
        f"a change of {name} cannot be distinguished from chance{instead}",
        f"these can: {ITERATION_LENGTH} (of an iteration), {', '.join(_COMPARED)}, ledger.CAUSE, root_ledger.CAUSE",
    )


def _limit(measure: Measure, number: str, written: str, *, of_change: bool) -> tuple[float, str]:
    """The limit and its unit."""
    limit = Fraction(number)
    if written == PER_CENT and (of_change or measure.unit == SHARE):
        return float(limit / 100), SHARE
    if written in NS_PER and measure.unit == NS:
        return float(limit * NS_PER[written]), NS
    if written:
        raise _MistakeError("unit", _wrong_unit(measure, written))
    if of_change and limit:
        raise _MistakeError("unit", "expected a unit: % of what was, ns, us, ms or s")
    if measure.unit == SHARE and limit > 1:
        raise _MistakeError("number", "a share is from 0 to 1", f"write {number}%")
    return float(limit), SHARE if of_change and not limit else measure.unit


def _wrong_unit(measure: Measure, written: str) -> str:
    known = written == PER_CENT or written in NS_PER
    said = f"{measure.name} is {_WHAT[measure.unit]}" if known else f"there is no unit '{written}'"
    share = f"{measure.name.removesuffix('_ns')}_share"
    instead = f", and {share} a share" if written == PER_CENT and share in measures() else ""
    return f"{said}{instead}: expected {_UNITS[measure.unit]}"


_WHAT = {NS: "a time", SHARE: "a share", COUNT: "a number"}
_UNITS = {NS: "ns, us, ms or s", SHARE: "% or nothing", COUNT: "no unit"}


# What became of a budget, in words.


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
        return f"{name} went {size}, which is not a change beyond chance"
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
