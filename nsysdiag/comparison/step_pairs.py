"""Which steps of both sides are compared one by one, what they differ in, and all about them as records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nsysdiag.arrays.claim import CodeTable
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import to_planes, to_text
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.comparison import step_facts
from nsysdiag.comparison.facts import ITERATIONS, Unit
from nsysdiag.comparison.sides import Capture
from nsysdiag.comparison.step_matching import (
    CODE,
    END,
    KIND,
    KINDS,
    MARK,
    START,
    STREAM,
    HeldSteps,
    Matched,
    StepRows,
    held_steps,
    match,
    rows_of_step,
)
from nsysdiag.units import format_ns

MOST_DIFFERENCES, MOST_NAMES = 50, 6
"""Differences between two steps that are kept, the largest changes first, and names of operations in each. They bound
the size of a comparison; operations are marked in the steps all the same."""
Places = tuple[list[int], list[int]]
"""Places in the tables of both sides."""
Codes = tuple[int, ...]
"""Of one side: the names of operations, each once, or the cause of idle time."""
Steps = tuple[StepRows, StepRows]


class _What(NamedTuple):
    """What differs: differences that are equal in this are one."""

    kind: str
    before: Codes
    after: Codes
    mark: int = 0


Differences = Iterator[tuple[_What, Places]]


def differences(
    sides: Steps, found: Matched, names: Sequence[str], causes: Sequence[str]
) -> list[step_facts.StepDifference]:
    """The largest change first, at most MOST_DIFFERENCES. The numbers of names count from 0, those of causes from 1."""
    together: dict[_What, list[Places]] = {}
    for what, places in (*_alone(sides, found), *_other_lengths(sides, found), *_idle(sides, found)):
        together.setdefault(what, []).append(places)
    made = [_difference(what, places, sides, names, [None, *causes]) for what, places in together.items()]
    return sorted(made, key=lambda row: -abs(row.after_ns - row.before_ns))[:MOST_DIFFERENCES]


def _difference(
    what: _What, found: Sequence[Places], sides: Steps, names: Sequence[str], causes: Sequence[str | None]
) -> step_facts.StepDifference:
    kind, before, after, _mark = what
    idle = kind == step_facts.IDLE
    one, two = (
        (side.idle if idle else side.operations)[:, [at for places in found for at in places[number]]]
        for number, side in enumerate(sides)
    )
    return step_facts.StepDifference(
        kind=kind,
        count=len(found),
        from_before_ns=int(one[START].min()) if one.size else None,
        from_after_ns=int(two[START].min()) if two.size else None,
        names_before=[] if idle else [names[code] for code in before[:MOST_NAMES]],
        names_after=[] if idle else [names[code] for code in after[:MOST_NAMES]],
        cause_before=causes[max(before, default=0)] if idle else None,
        cause_after=causes[max(after, default=0)] if idle else None,
        before_ns=int((one[END] - one[START]).sum()),
        after_ns=int((two[END] - two[START]).sum()),
    )


def _alone(sides: Steps, found: Matched) -> Differences:
    """Operations of one side between the same two operations of both; if both sides have some, they are replaced."""
    between: dict[tuple[int, int], Places] = {}
    for number, side in enumerate(sides):
        taken, kind = found.operations[number, found.in_order], side.operations[KIND]
        own = np.flatnonzero(side.operations[MARK] == step_facts.ALONE)
        for each in distinct_values(kind[own]).tolist():
            mine = own[kind[own] == each]
            behind = np.searchsorted(np.sort(taken[kind[taken] == each]), mine)
            for at, spot in zip(mine.tolist(), behind.tolist(), strict=True):
                between.setdefault((each, spot), ([], []))[number].append(at)
    for one, two in between.values():
        kind_of = step_facts.REPLACED if one and two else step_facts.ONLY_BEFORE if one else step_facts.ONLY_AFTER
        yield _What(kind_of, *_codes(sides, one, two)), (one, two)


def _codes(sides: Steps, before: list[int], after: list[int]) -> tuple[Codes, Codes]:
    """The names of these operations of each side."""
    one, two = (side.operations[CODE, at].tolist() for side, at in zip(sides, (before, after), strict=True))
    return tuple(dict.fromkeys(one)), tuple(dict.fromkeys(two))


def _other_lengths(sides: Steps, found: Matched) -> Differences:
    mark = sides[0].operations[MARK, found.operations[0]]
    unlike = np.flatnonzero(mark != step_facts.ALIKE)
    for one, two, its in zip(*found.operations[:, unlike].tolist(), mark[unlike].tolist(), strict=True):
        yield _What(step_facts.OTHER_LENGTH, *_codes(sides, [one], [two]), its), ([one], [two])


def _idle(sides: Steps, found: Matched) -> Differences:
    """Idle time that is longer on one side, or that one side has alone."""
    unlike = sides[0].idle[MARK, found.idle[0]] != step_facts.ALIKE
    rows = [([one], [two]) for one, two in found.idle[:, unlike].T.tolist()]
    lone = [np.flatnonzero(side.idle[MARK] == step_facts.ALONE).tolist() for side in sides]
    rows += [([one], []) for one in lone[0]] + [([], [two]) for two in lone[1]]
    for places in rows:
        one, two = (tuple(side.idle[CODE, at].tolist()) for side, at in zip(sides, places, strict=True))
        yield _What(step_facts.IDLE, one, two), places


# Which steps of both sides are compared one by one.

MOST_OF_PAIR, MOST_MORE = 12_000, 1_200
"""Operations of the typical steps, both together, and of all further ones over all devices."""
NEAR = 0.05
"""A step is typical up to this share of the median one."""
_EFFORT = 9
"""The effort of zlib, from 1 to 9. Small is preferred to fast: the columns are part of a comparison and of its page."""
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
    one, two = (held_steps(each.report, each.device) for each in (before, after))
    if one is None or two is None or not len(one.steps.number) or not len(two.steps.number):
        return NOT_HELD
    typical = [each.steps.nearest(each.median_ns) for each in (one, two)]
    if one.counts()[typical[0]] + two.counts()[typical[1]] > MOST_OF_PAIR:
        return TOO_MANY
    around = int(one.steps.number[typical[0]])
    places = np.column_stack([typical, _of_same_number(one, two, around, MOST_MORE // devices)])
    return _aligned((one, two), places, _note(one, two, typical))


def _of_same_number(one: HeldSteps, two: HeldSteps, around: int, room: int) -> IntArray:
    """The places of steps that both sides hold, in order: those nearest the number `around`, as long as there is
    room."""
    numbers, *places = np.intersect1d(one.steps.number, two.steps.number, return_indices=True)
    near = np.argsort(np.abs(numbers - around), kind="stable")
    size = one.counts()[places[0][near]] + two.counts()[places[1][near]]
    return np.stack(places)[:, np.sort(near[np.cumsum(size) <= room])]


def _note(one: HeldSteps, two: HeldSteps, typical: list[int]) -> str:
    """A note if the drawn step is not that of the median length: its operations are not held."""
    lengths = [int(of.steps.length[at]) for of, at in zip((one, two), typical, strict=True)]
    sides = [
        f"{side} {format_ns(length)}, the median one {format_ns(of.median_ns)}"
        for side, of, length in zip(("before", "after"), (one, two), lengths, strict=True)
        if abs(length - of.median_ns) > NEAR * of.median_ns
    ]
    said = f"The report does not hold the operations of a typical step: the one drawn takes {' and '.join(sides)}."
    return said if sides else ""


def _aligned(held: tuple[HeldSteps, HeldSteps], places: IntArray, note: str) -> step_facts.AlignedSteps:
    """The steps at these places of both sides, a pair in each column."""
    names, causes = CodeTable[tuple[str, int]](), CodeTable[str]()
    causes.code("")  # an unknown cause is 0
    pairs = [
        (_numbered(held[0], one, names, causes), _numbered(held[1], two, names, causes))
        for one, two in places.T.tolist()
    ]
    found = [match(*each) for each in pairs]
    before, after = (_side(of.streams, steps) for of, steps in zip(held, zip(*pairs, strict=True), strict=True))
    operations, idle = [each.operations for each in found], [each.idle for each in found]
    texts, cause_ids = [name for name, _kind in names.known], list(causes.known)[1:]
    return step_facts.AlignedSteps(
        before=before,
        after=after,
        names=texts,
        kinds=[kind for _name, kind in names.known],
        cause_ids=cause_ids,
        median_before_ns=held[0].median_ns,
        median_after_ns=held[1].median_ns,
        matched=[each.shape[1] for each in operations],
        places_before=_column(_apart(each[0]) for each in operations),
        places_after=_column(_apart(each[1]) for each in operations),
        front=_column(each.front.astype(np.int64) for each in found),
        idle_matched=[each.shape[1] for each in idle],
        idle_before=_column(_apart(each[0]) for each in idle),
        idle_after=_column(_apart(each[1]) for each in idle),
        differences=differences(pairs[0], found[0], texts, cause_ids),
        note=note,
    )


def _numbered(of: HeldSteps, place: int, names: CodeTable[tuple[str, int]], causes: CodeTable[str]) -> StepRows:
    """The step at a place with the numbers that names, each with its kind of work, and causes have on both sides, as
    they come. An unknown cause is 0."""
    rows = rows_of_step(of, place)
    pairs, name = np.unique(rows.operations[CODE] * KINDS + rows.operations[KIND], return_inverse=True)
    present, cause = np.unique(rows.idle[CODE], return_inverse=True)
    rows.operations[CODE] = names.codes((of.names[at // KINDS], at % KINDS) for at in pairs.tolist())[name]
    rows.idle[CODE] = causes.codes(of.cause_ids[at] if at >= 0 else "" for at in present.tolist())[cause]
    return rows


def _side(streams: list[str], steps: Sequence[StepRows]) -> step_facts.SideSteps:
    rows, idle = [each.operations for each in steps], [each.idle for each in steps]
    return step_facts.SideSteps(
        numbers=[each.number for each in steps],
        start_ns=[each.start for each in steps],
        length_ns=[each.length for each in steps],
        carried_ns=[each.carried for each in steps],
        counts=[each.shape[1] for each in rows],
        idle=[each.shape[1] for each in idle],
        streams=streams,
        apart=_column(_apart(each[START], each[END]) for each in rows),
        lengths=_column(each[END] - each[START] for each in rows),
        names=_column(each[CODE] for each in rows),
        stream=_column(each[STREAM] for each in rows),
        marks=_column(each[MARK] for each in rows),
        causes=_column(each[CODE] for each in idle),
        idle_marks=_column(each[MARK] for each in idle),
    )


def _apart(values: IntArray, behind: IntArray | None = None) -> IntArray:
    """Each less the one before it, or less what is `behind` that one; of the first it is 0. 2n stands for n from 0 up,
    2n - 1 for -n."""
    apart = values - np.append(0, values if behind is None else behind)[: len(values)]
    return np.where(apart < 0, -2 * apart - 1, 2 * apart)


def _column(parts: Iterable[IntArray]) -> str:
    """One after another; empty if all are zero."""
    values = np.concatenate([*parts])
    return to_text(to_planes(values), _EFFORT) if values.any() else ""
