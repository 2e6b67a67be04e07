"""Steps of a capture that shows none, from those of another one: the sequences of operations of both are aligned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.comparison.alignment import LEAST_ALIKE, Aligned, LaunchOrder, align, carried
from nsysdiag.comparison.pairing import paired
from nsysdiag.comparison.units import ITERATIONS, in_units
from nsysdiag.config.settings import Settings
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct
from nsysdiag.iterations.chosen import CarriedSteps, whole_of
from nsysdiag.iterations.iterations import main_loop
from nsysdiag.iterations.loop import FEWEST, STEP, Loop
from nsysdiag.messages import NotComparableError
from nsysdiag.pipeline.reading import Reading, read, silent
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.trace.trace import open_trace

Analysis = Callable[[int, CarriedSteps], Report]
"""Analyses the trace of a side, 0 before and 1 after, again with these steps."""


class Given(Struct, frozen=True):
    """A capture: its report, and the trace that it was made of, None for a saved report or a prediction."""

    report: Report | WhatIf
    trace: Path | None


class _Side(Struct, frozen=True):
    """One device of a trace: its operations, its loop, and the places of the first operations of the repeats."""

    operations: LaunchOrder
    loop: Loop | None
    name: str
    borders: IntArray


def cut_alike(
    before: Sequence[Given], after: Sequence[Given], settings: Sequence[Settings], again: Analysis
) -> tuple[list[Report | WhatIf], list[str]]:
    """The reports of all captures, those before first, and notes. If two traces have no unit of work in common, the
    steps of one are found in the other by their operations."""
    reports = [each.report for each in (*before, *after)]
    traces = [each.trace for each in (*before, *after)]
    plain = [each for each in reports if isinstance(each, Report)]
    if len(traces) != 2 or len(plain) != 2 or any(map(_chosen, settings)):
        return reports, []
    if any(_several_loops(each) for each in plain) or _in_common(*plain):
        return reports, []
    if traces[0] is None or traces[1] is None:
        return reports, ["Steps are not aligned by the operations, as this takes both traces, not saved reports."]
    sides = [_sides(path, each) for path, each in zip((traces[0], traces[1]), settings, strict=True)]
    lead = _lead(sides)
    steps = {key: _carried(sides, lead, key) for key in sides[0].keys() & sides[1].keys()}
    found = {key: each for key, each in steps.items() if not isinstance(each, Aligned)}
    if not found:
        return reports, [_why_not(each) for each in steps.values() if isinstance(each, Aligned)][:1]
    made = list(reports)
    for at in (0, 1):
        shown = next(sides[lead][key] for key in found)
        named = shown.loop is not None and bool(shown.loop.name)
        carries = CarriedSteps(shown.name, named, {key: each[at] for key, each in found.items()})
        made[at] = again(at, carries)
    ends = ("before", "after") if lead == 0 else ("after", "before")
    return made, [
        f"The steps of the capture {ends[0]} are found in that {ends[1]}: their operations are aligned by the names of "
        "kernels, then by their families."
    ]


def _chosen(settings: Settings) -> bool:
    """Whether steps or a part of the time were chosen."""
    return any(each is not None for each in (settings.step, settings.nvtx, settings.start_ns, settings.end_ns))


def _several_loops(report: Report) -> bool:
    """Whether there are several loops, of which steps of one would hide the others."""
    return sum(phase.name == "steady" for phase in report.phases) > 1


def _in_common(before: Report, after: Report) -> bool:
    try:
        pairs, _notes = paired([before], [after], across_gpus=True)
        units = [in_units(pair.before, pair.after).unit for pair in pairs]
    except NotComparableError:
        return False
    return all(unit.kind == ITERATIONS and not unit.part_of_step for unit in units)


def _sides(path: Path, settings: Settings) -> dict[str, _Side]:
    """Each device of a trace that is shown, by its key."""
    with open_trace(path, reader=settings.reader, nsys=settings.nsys) as trace, Background() as background:
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
    )


def _borders(made: LaunchOrder, starts: IntArray) -> IntArray:
    """The place of the first kernel of each repeat in the order of the launches."""
    kernels = np.flatnonzero(made.kernel)
    order = np.argsort(made.start[kernels], kind="stable")
    first = np.searchsorted(made.start[kernels][order], starts)
    return np.unique(kernels[order][first[first < len(order)]])


def _lead(sides: Sequence[dict[str, _Side]]) -> int:
    """The side whose steps are used: those that are surely steps, those with a name, the longer ones."""

    def known(at: int) -> tuple[bool, bool, bool, int]:
        loops = [each.loop for each in sides[at].values() if each.loop is not None]
        longest = max(loops, key=lambda loop: loop.total_ns, default=None)
        if longest is None:
            return False, False, False, -(10**9)
        return longest.kind == STEP, longest.certain, bool(longest.name), -len(longest)

    return int(known(1) > known(0))


def _carried(sides: Sequence[dict[str, _Side]], lead: int, key: str) -> tuple[IntArray, IntArray] | Aligned:
    """The starts of the steps on both sides, before first; what was aligned where that is not to be trusted."""
    one, two = sides[lead][key], sides[1 - lead][key]
    found = align(one.operations, two.operations)
    if one.loop is None or not found.trusted:
        return found
    starts = carried(found, two.operations, one.borders)
    if len(starts) < FEWEST:
        return found
    both = (one.operations.start[one.borders], starts)
    return both if lead == 0 else (both[1], both[0])


def _why_not(found: Aligned) -> str:
    """Why the steps of one side are not those of the other."""
    if found.alike < LEAST_ALIKE:
        why = "less than half of the time in kernels is in pairs of the same order"
    elif found.trusted:
        why = "the steps of one side are no even stretches of the other"
    else:
        why = f"{found.left:.0%} of the kernels of one side are more of those that both have"
    return f"The operations of both sides cannot be aligned: {why}."
