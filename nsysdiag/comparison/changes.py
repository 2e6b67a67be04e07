"""The change of each part of a unit of work, with its interval and what may be said of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsysdiag.comparison.evidence import NOT_COMPARED
from nsysdiag.comparison.facts import Change, PartChange
from nsysdiag.comparison.side import IDLE, LENGTH, WORK, Capture, Quantity, column
from nsysdiag.comparison.significance import Values, drawn_means, drift, freedom, interval
from nsysdiag.comparison.whole_numbers import adding_up

LEAST_CHANGE = 0.02
LEAST_OF_LENGTH = 0.005
IMPROVED, REGRESSED, SAME, UNKNOWN = "improved", "regressed", "same", "unknown"
LEDGERS = ("ledger", "root")


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one device; `own` are those of kernels and gaps. `noise` is a share of the length, `freedom` are
    the degrees of freedom behind the intervals, None where there are none."""

    length: Change
    parts: list[PartChange]
    ledgers: dict[str, list[PartChange]]
    own: dict[Hashable, Change]
    noise: float
    freedom: float | None


@dataclass(frozen=True, slots=True)
class _Measured:
    """Means and interval of every quantity, in the order of `names`."""

    names: list[str]
    before: Values
    after: Values
    bounds: tuple[Values, Values] | None
    noise: float


def changes(
    before: Sequence[Capture], after: Sequence[Capture], pooled: Sequence[str], further: Mapping[Hashable, Quantity]
) -> Changes:
    """All of them, in one draw. Causes in `pooled` are compared as one; `further` are times of kernels and gaps."""
    names = [LENGTH, *WORK, IDLE, *_causes([*before, *after], pooled)]
    times = list(further.values())
    left = [_values(each, names, pooled, [time.before[at] for time in times]) for at, each in enumerate(before)]
    right = [_values(each, names, pooled, [time.after[at] for time in times]) for at, each in enumerate(after)]
    longer = _mean_length(left) > _mean_length(right)  # the same draws whichever side is called before
    one, two = drawn_means(left, int(longer)), drawn_means(right, int(not longer))
    noise = max(drift(left, one), drift(right, two))
    found = _Measured(names, one.mean, two.mean, interval(one, two), noise)
    whole = _whole_numbers(found)
    length = _change(found, 0, whole)
    parts = [
        PartChange(id=name, change=_change(found, at, whole)) for at, name in enumerate(names) if name in (*WORK, IDLE)
    ]
    ledgers = {
        ledger: [
            PartChange(id=name.partition(".")[2], change=_change(found, at, whole))
            for at, name in enumerate(names)
            if name.startswith(f"{ledger}.")
        ]
        for ledger in LEDGERS
    }
    own = {key: _change(found, at, None) for at, key in enumerate(further, len(names))}
    ledgers = {name: _by_size(rows) for name, rows in ledgers.items()}
    return Changes(length, parts, ledgers, own, noise, freedom(one, two))


def _mean_length(captures: Sequence[Values]) -> float:
    return float(np.concatenate([values[:, 0] for values in captures]).mean())


def _by_size(rows: list[PartChange]) -> list[PartChange]:
    return sorted(rows, key=lambda row: (-max(row.change.before_ns, row.change.after_ns), row.id))


def _causes(captures: Sequence[Capture], pooled: Sequence[str]) -> list[str]:
    """The columns of both ledgers, those of pooled causes as one."""
    found: dict[str, None] = {}
    for capture in captures:
        for name in capture.table:
            ledger, _dot, cause = name.partition(".")
            if ledger in LEDGERS:
                found[f"{ledger}.{NOT_COMPARED if cause in pooled else cause}"] = None
    return sorted(found)


def _values(capture: Capture, names: Sequence[str], pooled: Sequence[str], further: Sequence[list[str]]) -> Values:
    return np.stack(
        [
            *(_column(capture, name, pooled) for name in names),
            *(_sum(capture, columns) for columns in further),
        ],
        axis=1,
    )


def _column(capture: Capture, name: str, pooled: Sequence[str]) -> Values:
    ledger, _dot, cause = name.partition(".")
    if cause != NOT_COMPARED:
        return column([capture], name)[0]
    return _sum(capture, [f"{ledger}.{each}" for each in pooled])


def _sum(capture: Capture, names: Sequence[str]) -> Values:
    zero = np.zeros(len(capture.table[LENGTH]))
    return sum((column([capture], name)[0] for name in names), start=zero)


@dataclass(frozen=True, slots=True)
class _Whole:
    """The means as whole numbers that add up as the means do."""

    before: list[int]
    after: list[int]


def _whole_numbers(found: _Measured) -> _Whole:
    return _Whole(_rounded(found.names, found.before), _rounded(found.names, found.after))


def _rounded(names: Sequence[str], means: Values) -> list[int]:
    """Length, its parts, and the ledgers of the idle part, each level adding up to the one above."""
    whole = [0] * len(names)
    whole[0] = round(float(means[0]))
    parts = [at for at, name in enumerate(names) if name in (*WORK, IDLE)]
    for at, ns in zip(parts, adding_up(means[parts], whole[0]), strict=True):
        whole[at] = ns
    idle = whole[names.index(IDLE)]
    for ledger in LEDGERS:
        rows = [at for at, name in enumerate(names) if name.startswith(f"{ledger}.")]
        for at, ns in zip(rows, adding_up(means[rows], idle), strict=True):
            whole[at] = ns
    return whole


def _change(found: _Measured, at: int, whole: _Whole | None) -> Change:
    before = whole.before[at] if whole is not None else round(float(found.before[at]))
    after = whole.after[at] if whole is not None else round(float(found.after[at]))
    low = high = None
    if found.bounds is not None:
        low, high = (int(np.floor(found.bounds[0][at])), int(np.ceil(found.bounds[1][at])))
    least = _least(before, after, float(found.before[0]), found.noise, whole=at == 0)
    return _made(before, after, low, high, least)


def change_of_means(found: Changes, before: int, after: int) -> Change:
    """The change of a time of which only both means are known."""
    least = _least(before, after, float(found.length.before_ns), found.noise)
    return _made(before, after, None, None, least)


def _made(before: int, after: int, low: int | None, high: int | None, least: int) -> Change:
    return Change(
        before_ns=before,
        after_ns=after,
        change_ns=after - before,
        low_ns=low,
        high_ns=high,
        least_ns=least,
        verdict=_verdict(after - before, low, high, least),
    )


def _least(before: int, after: int, length: float, noise: float, *, whole: bool = False) -> int:
    """What a change must exceed to count: 2 % of the larger side or the noise of that side; of a part of a unit of work
    also half a percent of the whole unit."""
    own = max(LEAST_CHANGE, noise) * (before if whole else max(before, after))
    return int(np.ceil(own if whole else max(own, LEAST_OF_LENGTH * length)))


def _verdict(change: int, low: int | None, high: int | None, least: int) -> str:
    if low is None or high is None:
        return UNKNOWN
    if low <= 0 <= high or abs(change) <= least:
        return SAME
    return REGRESSED if change > 0 else IMPROVED


def outweighed(change: Change) -> bool:
    """Would it count, were its device the only one?"""
    alone = _verdict(change.change_ns, change.low_ns, change.high_ns, change.least_ns)
    return change.verdict == SAME != alone
