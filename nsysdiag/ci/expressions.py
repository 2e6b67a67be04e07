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
from typing import NoReturn

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
_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)
_SIGNED = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_WORD = re.compile(r"%|[A-Za-zµ]+")
_ITER = re.compile(r"/\s*iter\b")
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


def parse(text: str, where: str) -> Expression:
    """The expression. Raises UsageError with `where` it stands, what was expected, and a mark below the place."""
    return _Parser(text, where).expression()


class _Parser:
    """Reads one expression from left to right."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.at = text, where, 0

    def expression(self) -> Expression:
        if len(self.text) > LONGEST:
            raise UsageError(f"{self.where}: a budget has {LONGEST} characters at most")
        self._blanks()
        start = self.at
        name = self._taken(_NAME) or self._fail("expected a name, as idle_share", _NAMES)
        self._blanks()
        of_change = self.text.startswith(":", self.at)
        measure = self._change_of(name, start) if of_change else self._measure(name, start)
        operator = self._sign() if of_change else self._operator()
        self._blanks()
        limit, unit = self._value(measure, of_change=of_change)
        per_iteration = self._per_iteration(measure, unit, of_change=of_change)
        if self.at < len(self.text):
            may_follow = measure.adds_up and unit != SHARE and not per_iteration
            self._fail("expected /iter or nothing more" if may_follow else "expected nothing more")
        return Expression(self.text.strip(), measure, operator, limit, unit, per_iteration)

    def _measure(self, name: str, start: int) -> Measure:
        found = measures().get(name)
        if found is not None:
            return found
        self.at = start
        if name == ITERATION_LENGTH:
            self._fail(
                f"{ITERATION_LENGTH} is for changes alone",
                f"write '{ITERATION_LENGTH}:+5%', or 'iterations.p50_ns > 10ms'",
            )
        near = nearest(name)
        meant = f"; did you mean '{near}'?" if near else ""
        return self._fail(f"there is no '{name}'{meant}", _NAMES)

    def _change_of(self, name: str, start: int) -> Measure:
        """What a comparison can distinguish from chance: the length of a unit of work, its parts, and causes."""
        measure = _LENGTH if name == ITERATION_LENGTH else self._measure(name, start)
        if measure.name in (ITERATION_LENGTH, *_COMPARED) or (measure.in_ledger and not measure.of_window):
            return measure
        self.at = start
        near = measure.name.replace("_share", "" if measure.in_ledger else "_ns")
        instead = f"; write '{near}:+10%'" if near != name and near in measures() else ""
        return self._fail(
            f"a change of {name} cannot be distinguished from chance{instead}",
            f"these can: {ITERATION_LENGTH} (of an iteration), {', '.join(_COMPARED)}, ledger.CAUSE, root_ledger.CAUSE",
        )

    def _operator(self) -> str:
        found = next((each for each in OPERATORS if self.text.startswith(each, self.at)), None)
        if found is None:
            self._fail("expected one of > >= < <= == !=, or :+ before a change")
        self.at += len(found)
        if self.at < len(self.text) and self.text[self.at] in "<>=!":
            self._fail("expected a value")
        return found

    def _sign(self) -> str:
        self.at += 1
        self._blanks()
        sign = self.text[self.at : self.at + 1]
        if sign not in (GREW, SHRANK):
            self._fail("expected + or -, as in :+10%")
        self.at += 1
        return sign

    def _value(self, measure: Measure, *, of_change: bool) -> tuple[float, str]:
        start = self.at
        number = self._taken(_NUMBER if of_change else _SIGNED) or self._fail("expected a value, as 20% or 1.5ms")
        self._blanks()
        place, written = self.at, self._taken(_WORD) or ""
        self._blanks()
        limit = Fraction(number)
        if written == PER_CENT and (of_change or measure.unit == SHARE):
            return float(limit / 100), SHARE
        if written in NS_PER and measure.unit == NS:
            return float(limit * NS_PER[written]), NS
        if written:
            self.at = place
            self._fail(_wrong_unit(measure, written))
        if of_change and limit:
            self.at = place
            self._fail("expected a unit: % of what was, ns, us, ms or s")
        if measure.unit == SHARE and limit > 1:
            self.at = start
            self._fail("a share is from 0 to 1", f"write {number}%")
        return float(limit), SHARE if of_change and not limit else measure.unit

    def _per_iteration(self, measure: Measure, unit: str, *, of_change: bool) -> bool:
        start = self.at
        if self._taken(_ITER) is None:
            return False
        if not measure.adds_up or (of_change and unit == SHARE):
            self.at = start
            self._fail(f"{measure.name} has no value for each iteration" if not of_change else "expected nothing more")
        self._blanks()
        return True

    def _taken(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def _blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def _fail(self, expected: str, hint: str | None = None) -> NoReturn:
        mark = " " * len(printable(self.text[: self.at])) + "^"
        raise UsageError(f"{self.where}: {expected}", hint=hint, shown=(self.text, mark))


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
