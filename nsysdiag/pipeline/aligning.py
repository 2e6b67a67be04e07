"""Steps of a capture that shows none, from those of another one: the sequences of operations of both are aligned.

Also the parts of a capture that a comparison asks for: a phase by its name, and the steps of the whole capture inside
a part."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.comparison.alignment import LEAST_ALIKE, Aligned, LaunchOrder, align, carried, chance_in, chance_of_total
from nsysdiag.comparison.facts import ITERATIONS, Unit
from nsysdiag.comparison.sides import paired
from nsysdiag.comparison.significance import FEWEST_ENTRIES
from nsysdiag.comparison.units import CutAlike, OneRun, in_units
from nsysdiag.config.settings import Settings
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.iterations.chosen import CarriedSteps, whole_of
from nsysdiag.iterations.iterations import main_loop
from nsysdiag.iterations.loop import FEWEST, STEP, Loop
from nsysdiag.iterations.report import steady_steps
from nsysdiag.messages import NotComparableError, UsageError, printable
from nsysdiag.phases.facts import Phase, numbered, repeating
from nsysdiag.pipeline.reading import Reading, read, silent, working
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report
from nsysdiag.trace.trace import open_trace

SAVED = (
    "The steps of one side are not looked for in the other: that takes all operations, which a saved report does not "
    "hold. Compare the traces themselves, or analyze both with the same --step."
)
FEW_STEPS = (
    "The sides have too few steps for an interval. Whether both did the same operations in them is not in a saved "
    "report: compare the traces themselves."
)
SEVERAL_LOOPS = (
    "The steps of one side are not looked for in the other, as one has several loops: --phase or --step chooses one."
)
Analysis = Callable[[Path, Settings, CarriedSteps], Report]
"""Analyzes a trace again with these steps."""


class Given(Struct, frozen=True):
    """A capture: its report; the trace that it was made of, None for a saved report or a prediction; and the name of
    the file that it was read from, None if it was not read from a file."""

    report: Report | WhatIf
    trace: Path | None = None
    file: str | None = None


class _Side(Struct, frozen=True):
    """One device of a trace: its operations, its loop, and the places of the first operations of the repeats."""

    operations: LaunchOrder
    loop: Loop | None
    name: str
    borders: IntArray


def cut_alike(
    before: Sequence[Given], after: Sequence[Given], settings: Sequence[Settings], again: Analysis
) -> CutAlike:
    """The reports, cut into the same steps on both sides if these are found. If traces have no unit of work in common,
    the steps of one are looked for in the others by their operations. Else two may have done the same work, once or in
    a few steps that they have in common."""
    given = [*before, *after]
    reports = [each.report for each in given if isinstance(each.report, Report)]
    plain = CutAlike([each.report for each in given], [])
    if len(reports) < len(given):
        return plain
    units = _in_common(reports, len(before))
    if len(given) > 2 or not _few(units) if units else any(map(_chosen, settings)):
        return plain
    traces = [each.trace for each in given if each.trace is not None]
    if len(traces) < len(given):
        return replace(plain, notes=[FEW_STEPS if units else SAVED])
    sides = [_sides(path, each) for path, each in zip(traces, settings, strict=True)]
    if units:
        return replace(plain, same_work=_in_steps(units, sides, reports))
    return _by_operations(sides, len(before), reports, lambda at, steps: again(traces[at], settings[at], steps))


def _by_operations(
    sides: Sequence[dict[str, _Side]],
    before: int,
    reports: Sequence[Report],
    again: Callable[[int, CarriedSteps], Report],
) -> CutAlike:
    """The steps of one capture carried to all others, or what two did once."""
    lead = max(range(len(sides)), key=lambda at: _known(sides[at]))
    keys = sorted(set.intersection(*(set(side) for side in sides)))
    aligned = {key: [align(sides[lead][key].operations, side[key].operations) for side in sides] for key in keys}
    several = any(map(_several_loops, reports))
    steps = {key: None if several else _carried(sides, lead, key, aligned[key]) for key in keys}
    found = {key: starts for key, starts in steps.items() if starts is not None}
    if not found:
        same = _once(aligned, lead, sides, reports)
        why = [SEVERAL_LOOPS] if several else [_why_not(aligned[key]) for key in keys[:1]]
        return CutAlike([*reports], [] if same else why, same)
    shown = next(sides[lead][key] for key in found)
    named = shown.loop is not None and bool(shown.loop.name)
    made = [
        again(at, CarriedSteps(shown.name, named, {key: starts[at] for key, starts in found.items()}))
        for at in range(len(sides))
    ]
    side, more = "before" if lead < before else "after", len(sides) > 2
    return CutAlike(
        [*made],
        [
            f"The steps of {'a' if more else 'the'} capture {side} are found in the other{'s' if more else ''}: "
            "their operations are aligned by the names of kernels, then by their families."
        ],
        _in_steps(_in_common(made, before), sides, made),
    )


def _once(
    aligned: dict[str, list[Aligned]], lead: int, sides: Sequence[dict[str, _Side]], reports: Sequence[Report]
) -> dict[str, OneRun]:
    """The devices, if two captures did the same operations from first to last."""
    if len(sides) > 2 or any(device.sliced for each in reports for device in each.devices):
        return {}
    chances = {}
    for key, both in aligned.items():
        one, two = (side[key].operations for side in sides)
        found = align(one, two) if lead else both[1]
        chances[key] = chance_of_total(found, one, two) if found.same else None
    return _known_of(chances)


def _in_steps(
    units: dict[str, Unit], sides: Sequence[dict[str, _Side]], reports: Sequence[Report]
) -> dict[str, OneRun]:
    """Those of the devices with few steps, if two captures did the same operations in them."""
    few = _few(units)
    if not few or len(sides) > 2:
        return {}
    one, two = sides
    left, right = ({device.key: _steady(device) for device in each.devices} for each in reports)
    if not set(few) <= one.keys() & two.keys() & right.keys():
        return {}
    return _known_of({key: _chance(one[key], two[key], left[key], right[key]) for key in few}, steps=True)


def _chance(one: _Side, two: _Side, left: Intervals, right: Intervals) -> float | None:
    """How much chance may change as many steps of both sides as the one with fewer has."""
    steps = min(len(left), len(right))
    spans = union(left[:steps]), union(right[:steps])
    return chance_in(one.operations, two.operations, spans) if steps else None


def _steady(device: DeviceReport) -> Intervals:
    """The steps of a device that are compared, in order; none if the report does not hold the time of each."""
    steps = None if device.iterations is None else steady_steps(device.iterations)
    return Intervals.empty() if steps is None else steps.spans


def _known_of(shares: dict[str, float | None], *, steps: bool = False) -> dict[str, OneRun]:
    """All devices with what chance may change; none if it is not known of one of them."""
    known = {key: OneRun(share, steps) for key, share in shares.items() if share is not None}
    return known if len(known) == len(shares) else {}


def _chosen(settings: Settings) -> bool:
    """Whether steps or a part of the time were chosen."""
    return any(each is not None for each in (settings.step, settings.nvtx, settings.start_ns, settings.end_ns))


def _several_loops(report: Report) -> bool:
    """Whether there are several loops, of which steps of one would hide the others."""
    return sum(phase.name == "steady" for phase in report.phases) > 1


def _in_common(reports: Sequence[Report], before: int) -> dict[str, Unit]:
    """The steps that each device has in common, by its key before; nothing if one of them has none."""
    try:
        pairs, _notes = paired(reports[:before], reports[before:], across_gpus=True)
        units = {pair.before[0][1].key: in_units(pair.before, pair.after).unit for pair in pairs}
    except NotComparableError:
        return {}
    whole = all(unit.kind == ITERATIONS and not unit.part_of_step for unit in units.values())
    return units if whole else {}


def _few(units: dict[str, Unit]) -> list[str]:
    """The devices with too few steps for an interval, one capture a side."""
    return [key for key, each in units.items() if min(each.count_before, each.count_after) < FEWEST_ENTRIES]


def _sides(path: Path, settings: Settings) -> dict[str, _Side]:
    """Each device of a trace that is shown, by its key."""
    with open_trace(path, reader=settings.reader, nsys=settings.nsys) as trace, working(trace) as background:
        reading = read(trace, settings, background, silent)
        return {each.key: _side(each, reading) for each in reading.devices if each.key in reading.shown}


def _side(device: DeviceTimeline, reading: Reading) -> _Side:
    calls, operations = reading.activity.api_calls, device.operations
    loop = main_loop([each for each in reading.loops(device, whole_of(device)) if len(each) >= FEWEST])
    rows = np.flatnonzero(device.running & ~operations.migration)
    launched = device.launch[rows]
    time = np.where(launched >= 0, calls.rows.start[launched], operations.start[rows]) if len(calls.rows) else rows
    rows = rows[np.argsort(time, kind="stable")]
    made = _operations(device, rows, reading)
    if loop is None:
        return _Side(made, None, "", np.empty(0, np.int64))
    return _Side(made, loop, loop.called.text(reading.strings), _borders(made, loop.starts))


def _operations(device: DeviceTimeline, rows: IntArray, reading: Reading) -> LaunchOrder:
    operations = device.operations
    category = operations.category[rows]
    kernel = category == Category.KERNEL
    # Names of kernels are ids of strings; all others are of a kind.
    own = np.where(kernel, operations.name[rows], -2 - 16 * category.astype(np.int64) - operations.copy_kind[rows])
    ids, code = distinct(own)
    texts = iter(reading.strings.texts(ids[ids >= 0]))
    names = [next(texts) if each >= 0 else f"operation {-each}" for each in ids.tolist()]
    return LaunchOrder(
        start=operations.start[rows],
        ns=operations.end[rows] - operations.start[rows],
        code=code,
        kernel=kernel | (category == Category.GRAPH),
        names=names,
        until=int(operations.end[rows].max(initial=0)),
    )


def _borders(made: LaunchOrder, starts: IntArray) -> IntArray:
    """The place of the first kernel of each repeat in the order of the launches."""
    kernels = np.flatnonzero(made.kernel)
    order = np.argsort(made.start[kernels], kind="stable")
    first = np.searchsorted(made.start[kernels][order], starts)
    return distinct_values(kernels[order][first[first < len(order)]])


def _known(side: dict[str, _Side]) -> tuple[bool, bool, bool, int]:
    """The side whose steps are used: those that are surely steps, those with a name, the longer ones."""
    loops = [each.loop for each in side.values() if each.loop is not None]
    longest = max(loops, key=lambda loop: loop.total_ns, default=None)
    if longest is None:
        return False, False, False, -(10**9)
    return longest.kind == STEP, longest.certain, bool(longest.name), -len(longest)


def _carried(
    sides: Sequence[dict[str, _Side]], lead: int, key: str, aligned: Sequence[Aligned]
) -> list[IntArray] | None:
    """The starts of the steps in each capture; None if what was aligned is not to be trusted."""
    one = sides[lead][key]
    if one.loop is None or not all(each.trusted for each in aligned):
        return None
    starts = [
        one.operations.start[one.borders] if at == lead else carried(found, side[key].operations, one.borders)
        for at, (found, side) in enumerate(zip(aligned, sides, strict=True))
    ]
    return starts if all(len(each) >= FEWEST for each in starts) else None


def _why_not(found: Sequence[Aligned]) -> str:
    """Why the steps of one capture are not those of the others."""
    alike, left = min(each.alike for each in found), max(each.left for each in found)
    if alike < LEAST_ALIKE:
        why = "less than half of the time in kernels is in pairs of the same order"
    elif all(each.same for each in found):
        return "Both sides did the same operations, but too few to show how far chance goes."
    elif all(each.trusted for each in found):
        why = "the steps of one side are not even stretches of the other"
    else:
        why = f"{left:.0%} of the kernels of one side are more of those that both have"
    return f"The operations of both sides cannot be aligned: {why}."


# Parts of a capture for a comparison: a phase by its name, and the steps of the whole capture inside a part.

_PHASE = re.compile(r"\s*(start-up|steady|pause|teardown)(?:\s+([1-9]\d{0,5}))?\s*")


def phase_named(report: Report, wanted: str) -> Phase:
    """The phase of this name, as it is shown or as the report holds it: `start-up`, or `steady 2` for the second one of
    several. Raises UsageError."""
    basis = report.diagnosis.basis if report.diagnosis else "steady"
    shown = numbered(
        [repeating(each.steps, basis) if each.name == "steady" else str(each.name) for each in report.phases]
    )
    if (name := wanted.strip()) in shown:
        return report.phases[shown.index(name)]
    held: dict[str, list[Phase]] = {}
    for phase in report.phases:
        held.setdefault(phase.name, []).append(phase)
    match = _PHASE.fullmatch(wanted)
    found, number = (held.get(match[1], []), int(match[2] or 1)) if match else ([], 1)
    if number > len(found):
        known = ", ".join(f"{name} (1 to {len(its)})" if len(its) > 1 else name for name, its in held.items())
        raise UsageError(
            f"the trace has no phase '{printable(wanted)}'",
            hint=f"its phases: {known}" if known else "it has no phases",
        )
    return found[number - 1]


def steps_inside(path: Path, settings: Settings) -> CarriedSteps | None:
    """The steps of the whole trace that are inside the time from `start_ns` to `end_ns` of the settings; None if these
    are too few."""
    plain = replace(settings, start_ns=None, end_ns=None)
    low = np.iinfo(np.int64).min // 2 if settings.start_ns is None else settings.start_ns
    high = np.iinfo(np.int64).max // 2 if settings.end_ns is None else settings.end_ns
    with open_trace(path, reader=settings.reader, nsys=settings.nsys) as trace, working(trace) as background:
        reading = read(trace, plain, background, silent)
        part = Intervals.of([(low, high)])
        loops = {each.key: loop for each in reading.devices if (loop := _inside(each, reading, part)) is not None}
        if not loops:
            return None
        first = max(loops.values(), key=lambda loop: loop.total_ns)
        name = first.called.text(reading.strings)
    return CarriedSteps(name, bool(first.name), {key: loop.starts for key, loop in loops.items()})


def _inside(device: DeviceTimeline, reading: Reading, part: Intervals) -> Loop | None:
    """The loop of the device that takes most of the part."""
    inside = [loop.inside(part) for loop in reading.loops(device, whole_of(device)) if loop.closed]
    return max((loop for loop in inside if len(loop) >= FEWEST), key=lambda loop: loop.total_ns, default=None)
