"""Which steps of both sides are compared one by one, what they differ in, and all about them as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.groups import to_planes, to_text
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.comparison import step_facts
from nsysdiag.comparison.facts import ITERATIONS, Unit
from nsysdiag.comparison.sides import Capture
from nsysdiag.comparison.step_matching import KINDS, HeldSteps, Matched, StepRows, held_steps, matched, rows_of_step
from nsysdiag.units import format_ns

MOST_DIFFERENCES, MOST_NAMES = 50, 6
Places = list[int]
Key = tuple[Any, ...]
Sides = tuple[StepRows, StepRows]


Difference = tuple[Key, Places, Places]
"""What differs: its kind with its names or causes, and its places on both sides."""


def differences(
    before: StepRows, after: StepRows, found: Matched, names: Sequence[str], causes: Sequence[str]
) -> list[step_facts.StepDifference]:
    """The largest change first, at most MOST_DIFFERENCES. The numbers of names count from 0, those of causes from 1."""
    sides = before, after
    together: dict[Key, list[tuple[Places, Places]]] = {}
    for key, one, two in (*_alone(sides, found), *_other_lengths(sides, found), *_idle(sides, found)):
        together.setdefault(key, []).append((one, two))
    made = [_difference(key, places, sides, names, [None, *causes]) for key, places in together.items()]
    return sorted(made, key=lambda row: -abs(row.after_ns - row.before_ns))[:MOST_DIFFERENCES]


def _alone(sides: Sides, found: Matched) -> Iterator[Difference]:
    """Operations of one side between the same two operations of both; if both sides have some, they are replaced."""
    ordered = found.operations.before[found.in_order], found.operations.after[found.in_order]
    between: dict[tuple[int, int], tuple[Places, Places]] = {}
    for number, (side, taken) in enumerate(zip(sides, ordered, strict=True)):
        own, kind = np.flatnonzero(found.marks[number] == step_facts.ALONE), side.operations.kind
        for each in np.unique(kind[own]).tolist():
            mine = own[kind[own] == each]
            behind = np.searchsorted(np.sort(taken[kind[taken] == each]), mine)
            for at, spot in zip(mine.tolist(), behind.tolist(), strict=True):
                between.setdefault((each, spot), ([], []))[number].append(at)
    for one, two in between.values():
        kind_of = step_facts.REPLACED if one and two else step_facts.ONLY_BEFORE if one else step_facts.ONLY_AFTER
        yield (kind_of, _codes(sides[0], one), _codes(sides[1], two)), one, two


def _codes(side: StepRows, places: Places) -> tuple[int, ...]:
    """The names of these operations, each once, in order."""
    return tuple(dict.fromkeys(side.operations.name[places].tolist())) if places else ()


def _other_lengths(sides: Sides, found: Matched) -> Iterator[Difference]:
    pairs = found.operations
    mark = found.marks[0][pairs.before]
    for at in np.flatnonzero(mark != step_facts.ALIKE).tolist():
        one, two = [int(pairs.before[at])], [int(pairs.after[at])]
        yield (step_facts.OTHER_LENGTH, _codes(sides[0], one), _codes(sides[1], two), int(mark[at])), one, two


def _idle(sides: Sides, found: Matched) -> Iterator[Difference]:
    """Idle time that one side has alone, or that is longer on one."""
    before, after = (side.cause.tolist() for side in sides)
    for at in np.flatnonzero(found.idle_marks[0][found.idle.before] != step_facts.ALIKE).tolist():
        one, two = int(found.idle.before[at]), int(found.idle.after[at])
        yield (step_facts.IDLE, before[one], after[two]), [one], [two]
    for one in np.flatnonzero(found.idle_marks[0] == step_facts.ALONE).tolist():
        yield (step_facts.IDLE, before[one], None), [one], []
    for two in np.flatnonzero(found.idle_marks[1] == step_facts.ALONE).tolist():
        yield (step_facts.IDLE, None, after[two]), [], [two]


def _difference(
    key: Key,
    found: list[tuple[Places, Places]],
    sides: Sides,
    names: Sequence[str],
    causes: Sequence[str | None],
) -> step_facts.StepDifference:
    kind, first, second = key[:3]
    idle = kind == step_facts.IDLE
    places = [at for one, _two in found for at in one], [at for _one, two in found for at in two]
    spans = [(side.idle if idle else side.operations.spans)[at] for side, at in zip(sides, places, strict=True)]
    return step_facts.StepDifference(
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


# Which steps of both sides are compared one by one.

MOST_OF_PAIR, MOST_MORE = 12_000, 1_200
"""Operations of the typical steps, both together, and of all further ones over all devices."""
NEAR = 0.05
"""A step is typical up to this share of the median one."""
_EFFORT = 9
OTHER_UNITS = "No single steps are compared, so none are drawn below each other."
OTHER_WORK = "A step after does other work than one before, so none are drawn below each other."
NOT_HELD = "A report does not hold the operations of its typical step: analyze the trace itself to see both steps."
TOO_MANY = "The typical steps have more operations than a page can draw: see them in Nsight Systems."


def aligned_steps(unit: Unit, before: Capture, after: Capture, devices: int) -> step_facts.AlignedSteps | str:
    """The steps of one of so many devices, or the sentence that says why there are none. Raises InputError if a
    report is damaged."""
    if unit.kind != ITERATIONS:
        return OTHER_UNITS
    if unit.scale != 1.0:
        return OTHER_WORK
    held = [held_steps(each.report, each.device) for each in (before, after)]
    one, two = held
    if one is None or two is None or not len(one.steps.number) or not len(two.steps.number):
        return NOT_HELD
    return _aligned(one, two, MOST_MORE // devices)


def _aligned(one: HeldSteps, two: HeldSteps, room: int) -> step_facts.AlignedSteps | str:
    typical = [rows_of_step(each, each.steps.nearest(each.median_ns)) for each in (one, two)]
    if sum(len(rows.operations.name) for rows in typical) > MOST_OF_PAIR:
        return TOO_MANY
    shared = _Shared()
    pairs = [
        (shared.rows(one, before), shared.rows(two, after))
        for before, after in ((typical[0], typical[1]), *_of_same_number(one, two, typical[0].number, room))
    ]
    names, cause_ids = [name for name, _kind in shared.names], list(shared.causes)
    found = [matched(*each) for each in pairs]
    before, after = (
        _side(
            [pair[at] for pair in pairs],
            [each.marks[at] for each in found],
            [each.idle_marks[at] for each in found],
            held.streams,
        )
        for at, held in enumerate((one, two))
    )
    operations, idle = [each.operations for each in found], [each.idle for each in found]
    return step_facts.AlignedSteps(
        before=before,
        after=after,
        names=names,
        kinds=[kind for _name, kind in shared.names],
        cause_ids=cause_ids,
        median_before_ns=one.median_ns,
        median_after_ns=two.median_ns,
        matched=[len(each) for each in operations],
        places_before=_column([_places(each.before) for each in operations]),
        places_after=_column([_places(each.after) for each in operations]),
        front=_column([each.front.astype(np.int64) for each in found]),
        idle_matched=[len(each) for each in idle],
        idle_before=_column([_places(each.before) for each in idle]),
        idle_after=_column([_places(each.after) for each in idle]),
        differences=differences(*pairs[0], found[0], names, cause_ids),
        note=_note(one, two, typical),
    )


def _of_same_number(one: HeldSteps, two: HeldSteps, around: int, room: int) -> list[tuple[StepRows, StepRows]]:
    """Steps that both sides hold, in order: those nearest the number `around`, as long as there is room."""
    numbers, *places = np.intersect1d(one.steps.number, two.steps.number, return_indices=True)
    near = np.argsort(np.abs(numbers - around), kind="stable")
    size = sum(of.counts()[place[near]] for of, place in zip((one, two), places, strict=True))
    kept = np.sort(near[np.cumsum(size) <= room])
    return [
        (rows_of_step(one, at), rows_of_step(two, to))
        for at, to in zip(*(each[kept].tolist() for each in places), strict=True)
    ]


def _note(one: HeldSteps, two: HeldSteps, typical: list[StepRows]) -> str:
    """A note if the drawn step is not that of the median length: its operations are not held."""
    sides = [
        f"{side} {format_ns(rows.length)}, the median one {format_ns(of.median_ns)}"
        for side, of, rows in zip(("before", "after"), (one, two), typical, strict=True)
        if abs(rows.length - of.median_ns) > NEAR * of.median_ns
    ]
    return (
        f"The report does not hold the operations of a typical step: the one drawn takes {' and '.join(sides)}."
        if sides
        else ""
    )


class _Shared:
    """The numbers that names and causes have on both sides, as they come: those of `names`, each with its kind of work,
    from 0, those of `causes` from 1, with 0 for an unknown one."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, int], int] = {}
        self.causes: dict[str, int] = {}

    def rows(self, of: HeldSteps, rows: StepRows) -> StepRows:
        """A step with these numbers."""
        own = rows.operations
        pairs, place = np.unique(own.name * KINDS + own.kind, return_inverse=True)
        named = ((of.names[at // KINDS], at % KINDS) for at in pairs.tolist())
        number = np.array([self.names.setdefault(each, len(self.names)) for each in named], dtype=np.int64)
        present, kind = np.unique(rows.cause, return_inverse=True)
        causes = (of.cause_ids[at] if at >= 0 else "" for at in present.tolist())
        cause = np.array(
            [self.causes.setdefault(each, len(self.causes) + 1) if each else 0 for each in causes], dtype=np.int64
        )
        return replace(rows, operations=replace(own, name=number[place]), cause=cause[kind])


def _side(
    steps: list[StepRows], marks: list[IntArray], idle_marks: list[IntArray], streams: list[str]
) -> step_facts.SideSteps:
    rows = [each.operations for each in steps]
    return step_facts.SideSteps(
        numbers=[each.number for each in steps],
        start_ns=[each.start for each in steps],
        length_ns=[each.length for each in steps],
        carried_ns=[each.carried for each in steps],
        counts=[len(each.spans) for each in rows],
        idle=[len(each.idle) for each in steps],
        streams=streams,
        apart=_column([_signed(each.spans.start - _behind(each.spans)) for each in rows]),
        lengths=_column([each.spans.end - each.spans.start for each in rows]),
        names=_column([each.name for each in rows]),
        stream=_column([each.stream for each in rows]),
        marks=_column(marks),
        causes=_column([each.cause for each in steps]),
        idle_marks=_column(idle_marks),
    )


def _behind(spans: Intervals) -> IntArray:
    """The end of the one before each; 0 for the first."""
    return np.concatenate([[np.int64(0)], spans.end[:-1]]) if len(spans) else spans.start


def _places(places: IntArray) -> IntArray:
    """Each less the one before it."""
    return _signed(np.diff(places, prepend=np.int64(0)))


def _signed(values: IntArray) -> IntArray:
    """2n for n from 0 up, 2n - 1 for -n."""
    return np.where(values < 0, -2 * values - 1, 2 * values)


def _column(parts: list[IntArray]) -> str:
    """One after another; empty if all are zero."""
    values = np.concatenate(parts)
    return to_text(to_planes(values), _EFFORT) if values.any() else ""
