"""What two steps, one of each side, differ in, the same difference in several places as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.comparison.step_facts import (
    ALIKE,
    ALONE,
    IDLE,
    ONLY_AFTER,
    ONLY_BEFORE,
    OTHER_LENGTH,
    REPLACED,
    StepDifference,
)
from nsysdiag.comparison.step_matching import Matched
from nsysdiag.comparison.step_rows import StepRows

MOST_DIFFERENCES, MOST_NAMES = 50, 6
Places = list[int]
Key = tuple[Any, ...]
Sides = tuple[StepRows, StepRows]


class FoundDifference(Struct, frozen=True):
    """Things of one side that differ from those of the other: their places there."""

    key: Key
    before: Places
    after: Places


def differences(
    before: StepRows, after: StepRows, found: Matched, names: Sequence[str], causes: Sequence[str]
) -> list[StepDifference]:
    """The largest change first, at most MOST_DIFFERENCES. The numbers of names count from 0, those of causes from 1."""
    sides = before, after
    together: dict[Key, list[FoundDifference]] = {}
    for each in (*_alone(sides, found), *_other_lengths(sides, found), *_idle(sides, found)):
        together.setdefault(each.key, []).append(each)
    made = [_difference(each, sides, names, [None, *causes]) for each in together.values()]
    return sorted(made, key=lambda row: -abs(row.after_ns - row.before_ns))[:MOST_DIFFERENCES]


def _alone(sides: Sides, found: Matched) -> Iterator[FoundDifference]:
    """Operations of one side between the same two operations of both; where both sides have some, they are replaced."""
    ordered = found.operations.before[found.in_order], found.operations.after[found.in_order]
    between: dict[tuple[int, int], tuple[Places, Places]] = {}
    for number, (side, taken) in enumerate(zip(sides, ordered, strict=True)):
        own, kind = np.flatnonzero(found.marks[number] == ALONE), side.operations.kind
        for each in np.unique(kind[own]).tolist():
            mine = own[kind[own] == each]
            behind = np.searchsorted(np.sort(taken[kind[taken] == each]), mine)
            for at, spot in zip(mine.tolist(), behind.tolist(), strict=True):
                between.setdefault((each, spot), ([], []))[number].append(at)
    for one, two in between.values():
        kind_of = REPLACED if one and two else ONLY_BEFORE if one else ONLY_AFTER
        yield FoundDifference(
            (kind_of, *(_codes(side, at) for side, at in zip(sides, (one, two), strict=True))), one, two
        )


def _codes(side: StepRows, places: Places) -> tuple[int, ...]:
    """The names of these operations, each once, in order."""
    return tuple(dict.fromkeys(side.operations.name[places].tolist())) if places else ()


def _other_lengths(sides: Sides, found: Matched) -> Iterator[FoundDifference]:
    pairs = found.operations
    mark = found.marks[0][pairs.before]
    for at in np.flatnonzero(mark != ALIKE).tolist():
        one, two = [int(pairs.before[at])], [int(pairs.after[at])]
        yield FoundDifference((OTHER_LENGTH, _codes(sides[0], one), _codes(sides[1], two), int(mark[at])), one, two)


def _idle(sides: Sides, found: Matched) -> Iterator[FoundDifference]:
    """Idle time that one side has alone, or that is longer on one."""
    before, after = (side.cause.tolist() for side in sides)
    for at in np.flatnonzero(found.idle_marks[0][found.idle.before] != ALIKE).tolist():
        one, two = int(found.idle.before[at]), int(found.idle.after[at])
        yield FoundDifference((IDLE, before[one], after[two]), [one], [two])
    for one in np.flatnonzero(found.idle_marks[0] == ALONE).tolist():
        yield FoundDifference((IDLE, before[one], None), [one], [])
    for two in np.flatnonzero(found.idle_marks[1] == ALONE).tolist():
        yield FoundDifference((IDLE, None, after[two]), [], [two])


def _difference(
    found: list[FoundDifference], sides: Sides, names: Sequence[str], causes: Sequence[str | None]
) -> StepDifference:
    kind, first, second = found[0].key[:3]
    idle = kind == IDLE
    places = [at for each in found for at in each.before], [at for each in found for at in each.after]
    spans = [(side.idle if idle else side.operations.spans)[at] for side, at in zip(sides, places, strict=True)]
    return StepDifference(
        kind=str(kind),
        count=len(found),
        from_before_ns=_first(spans[0]),
        from_after_ns=_first(spans[1]),
        names_before=[] if idle else _named(first, names),
        names_after=[] if idle else _named(second, names),
        cause_before=causes[first or 0] if idle else None,
        cause_after=causes[second or 0] if idle else None,
        before_ns=spans[0].total(),
        after_ns=spans[1].total(),
    )


def _first(spans: Intervals) -> int | None:
    return int(spans.start.min()) if len(spans) else None


def _named(codes: tuple[int, ...], names: Sequence[str]) -> list[str]:
    return [names[code] for code in codes[:MOST_NAMES]]
