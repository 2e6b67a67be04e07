"""What one side did for what the other did: iterations, or the runs of the kernels that both share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.intervals import FloatArray
from nsysdiag.comparison import facts
from nsysdiag.comparison.sides import Capture, by_iterations, by_phase, by_window, scaled
from nsysdiag.fields import Sentence
from nsysdiag.iterations.named import is_step
from nsysdiag.limits import short_name
from nsysdiag.messages import NotComparableError
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report
from nsysdiag.typed import joined, say

LEAST_SHARED = 0.5
"""Of the time in kernels: sides with less of it in shared kernels are not of one program, so a smaller share compares
strangers. Also of that time: from so much in graphs recorded as wholes on, it is not known what runs in iterations.
Also the mean number of copies from which on an iteration has one."""
WHOLE_NUMBER = 0.1
"""Ratios of counts this close to each other, or to a whole number, are equal. If larger, more work passes for the same
work; if smaller, a few added kernels make iterations incomparable."""
MOST_FOLD = 16
"""Iterations of one side that may be one of the other. Larger ratios are not believed."""
PARTS_OF_STEPS = "Parts of steps are compared, not whole steps: the traces may show different parts."
FEW_STEPS = (
    "There are too few steps for an interval, but both sides did the same operations in them. What exceeds 5%, and "
    "what pieces of the steps differ by chance, counts."
)
SAME_WORK = (
    "No steps were found on both sides, but both did the same operations: their total time is compared. One run a side "
    "has no interval: what exceeds 5%, and what pieces of the run differ by chance, counts."
)
MORE_OR_LARGER = (
    "Nothing shows that the units are whole steps, and one side has more of them: it may have more steps, or larger "
    "ones. --step says what a step is."
)
OTHER_LAYERS = (
    "Layers of one pass are compared, and most of their time is in other kernels. They may do other work, as prefill "
    "and decode do. --step says what a step is."
)
On = tuple[Report, DeviceReport]


class RunOf(NamedTuple):
    """What runs: a kernel, or a graph that the trace holds as a whole, by its name."""

    name: str
    is_graph: bool = False


Counts = dict[RunOf, tuple[int, int]]
"""How often each ran, and its ns."""


class OneRun(Struct, frozen=True):
    """A device that did the same operations once on both sides, from first to last or in its few `steps`. Chance may
    change a `share` of the time before."""

    share: float
    steps: bool = False


class CutAlike(Struct, frozen=True):
    """The reports of all captures, those before first, and notes. `same_work` are devices, by key, that did the same
    operations, and have no steps in common or too few for an interval."""

    reports: list[Report | WhatIf]
    notes: list[str]
    same_work: dict[str, OneRun] = {}


class DeviceSides(Struct, frozen=True):
    """One device's captures before and after, all in the same unit of work."""

    before: list[Capture]
    after: list[Capture]
    unit: facts.Unit
    notes: list[Sentence]
    chance: float | None = None


def in_units(before: Sequence[On], after: Sequence[On], run: OneRun | None = None) -> DeviceSides:
    """Bring all captures of a device to one unit of work. With a `run` all did the same work: the unit is its few
    steps, or all of it. Raises NotComparableError if there is none in common."""
    reports, many = [*before, *after], len(before)
    if run is not None and not run.steps:
        unit = facts.Unit(facts.KERNELS, "", "", many, len(after), 1.0, same_work=True)
        both = [by_window(*each, 1.0) for each in reports]
        return DeviceSides(both[:many], both[many:], unit, [SAME_WORK], run.share)
    found = [each for on in reports if (each := by_iterations(*on)) is not None]
    if len(found) < len(reports):
        sides = _by_kernels(reports, many)
    elif why := _other_loops(found):
        sides = _by_kernels(reports, many, why, whole=True)
    else:
        why = "Iterations begin with different operations on each side, so they are not the same step"
        sides = _by_iterations(found, many) or _by_kernels(reports, many, why)
    if run is None:
        return sides
    return replace(sides, unit=replace(sides.unit, same_work=True), notes=[*sides.notes, FEW_STEPS], chance=run.share)


def _by_iterations(captures: list[Capture], many: int) -> DeviceSides | None:
    """So `many` captures are before. None if the iterations of captures are not the same step, nor several of it."""
    first, *others = captures
    for other in others:
        if not _alike(first, other):
            raise _nothing_in_common(first, other)
    folds = [fold for each in captures if (fold := _fold(first, each)) is not None]
    if len(folds) < len(captures):
        return None
    scale, names = folds[many], [_iteration_name(captures[at]) for at in (0, many)]
    both = [scaled(each, fold) for each, fold in zip(captures, folds, strict=True)]
    notes: list[Sentence] = []
    if names[0] != names[1]:
        work = _work_in_each(scale) if _runs(first, captures[many]) is not None else "; the work in each is unknown."
        notes.append(say("Iterations begin with {} before and with {} after{}", *names, work))
    layers = any(_other_layers(both[0], each) for each in both[many:])
    counted = any(_perhaps_parts(both[0], each) for each in both[many:])
    unit = facts.Unit(
        kind=facts.ITERATIONS,
        name_before=names[0],
        name_after=names[1],
        count_before=sum(each.entries for each in captures[:many]),
        count_after=sum(each.entries for each in captures[many:]),
        scale=1 / scale,
        part_of_step=layers or counted,
    )
    notes += [OTHER_LAYERS] if layers else [MORE_OR_LARGER] if counted else []
    return DeviceSides(both[:many], both[many:], unit, notes)


def _work_in_each(scale: float) -> str:
    """How many iterations after do the work of one before, `scale` of them."""
    if scale == 1:
        return ", with as much work in each."
    if scale < 1:
        return f"; {1 / scale:.0f} iterations after do the work of one before."
    parts = {2: "half an iteration", 3: "one third of an iteration"}
    one = parts.get(round(scale), f"one {scale:.0f}th of an iteration")
    return f"; {one} after does the work of one before."


def _other_layers(one: Capture, other: Capture) -> bool:
    """Are these layers of a pass on either side, whose time is mostly in kernels that the other side does not run?"""
    passes = [phase.steps for each in (one, other) for phase in each.report.phases if phase.judged and phase.steps]
    if all(each.of_the_program for each in passes):
        return False
    return _shared(one.device, other.device) < LEAST_SHARED


def _perhaps_parts(one: Capture, other: Capture) -> bool:
    """Does a side have more of these units, and may they be layers of steps, which have more or fewer of them?"""
    more = abs(other.units / one.units - 1) > WHOLE_NUMBER
    return more and not (_are_steps(one) and _are_steps(other))


def _are_steps(capture: Capture) -> bool:
    """Are these iterations surely those of the program: named, with shorter ones in them, of a single kernel as no
    layer is, or with copies, which layers do not have?"""
    found = capture.device.iterations
    if found is None or found.source == "nvtx" or found.inner is not None or _in_graphs(capture):
        return True
    ran = [row for row in capture.device.kernels if 2 * row.count >= capture.units / capture.fold]
    copies = capture.table.get("ops.memcpy", np.zeros(1))
    return len(ran) < 2 or float(copies.mean()) * capture.fold >= LEAST_SHARED


def _parts_of_steps(reports: Sequence[On]) -> bool:
    """Does a side have no whole steps: what repeats are layers, or it is a slice?"""
    devices = [device for _report, device in reports]
    if any(each.iterations is not None and not each.iterations.closed for each in devices):
        return True
    return any(device.sliced for device in devices)


def _alike(first: Capture, other: Capture) -> bool:
    """Are these iterations of the same program: by their name, or by what they run? Of graphs that a trace holds as
    wholes it is not known what runs in them."""
    named = _same_name(first, other)
    return named or _shared(first.device, other.device) >= LEAST_SHARED or _in_graphs(first) or _in_graphs(other)


def _same_name(first: Capture, other: Capture) -> bool:
    one, two = first.device.iterations, other.device.iterations
    return one is not None and two is not None and (one.source, one.name) == (two.source, two.name)


def _other_loops(captures: list[Capture]) -> Sentence:
    """Why the iterations are not of the same loop: the program runs most of its kernels on both sides, but in the
    iterations run others. Empty if they may be of the same one."""
    first, *others = captures
    for other in others:
        if not _same_name(first, other) and _shared(first.device, other.device) >= LEAST_SHARED:
            sides = _inside(first), _inside(other)
            if all(any(ns for _count, ns in side.values()) for side in sides) and _part_shared(*sides) < LEAST_SHARED:
                names = joined(" and ", map(_iteration_name, (first, other)))
                return say(
                    "The iterations are of two loops of the program, {}; --step chooses one for both sides", names
                )
    return ""


def _inside(capture: Capture) -> Counts:
    """The ns of each kernel in the iterations, as far as the report holds them; their counts are not known."""
    names = [row.name for row in capture.device.kernels]
    held = [capture.table.get(f"kernel.{number}") for number in range(len(names))]
    return {RunOf(name): (0, round(float(ns.sum()))) for name, ns in zip(names, held, strict=True) if ns is not None}


def _in_graphs(capture: Capture) -> bool:
    """Is most of what ran in graphs that the trace holds as wholes?"""
    counts = _counts(capture.device)
    inside = sum(ns for run, (_count, ns) in counts.items() if run.is_graph)
    return inside >= LEAST_SHARED * max(sum(ns for _count, ns in counts.values()), 1)


def _iteration_name(capture: Capture) -> Sentence:
    """The typed name of the iterations' range or operation; a kernel by its short name."""
    device = capture.device
    assert device.iterations is not None
    name = device.iterations.name
    if device.iterations.source == "nvtx":
        return typed.nvtx(name)
    return typed.kernel(next((row.short_name for row in device.kernels if short_name(row.name) == name), name))


def _fold(first: Capture, other: Capture) -> float | None:
    """How many iterations of the first are in one of the other: 1 if both use the same NVTX range, or if both are steps
    of which one does more. None if their names differ, and the common kernels give no whole number."""
    one, two = first.device.iterations, other.device.iterations
    if one is None or two is None or (one.source == "nvtx" and _same_name(first, other)):
        return 1.0
    ratio = _runs(first, other)
    if ratio is None or _more_in_each(first, other, ratio):
        return 1.0
    whole = round(ratio) if ratio >= 1 else 1 / round(1 / ratio)
    if abs(ratio / whole - 1) <= WHOLE_NUMBER and 1 / MOST_FOLD <= whole <= MOST_FOLD:
        return float(whole)
    return 1.0 if _same_name(first, other) or _shared(first.device, other.device) < LEAST_SHARED else None


def _more_in_each(first: Capture, other: Capture, ratio: float) -> bool:
    """Are the iterations of both sides whole steps, though the shared kernels run `ratio` times as often in one of
    them: as there are as many more parts in it, layers for example, or as both have equally many copies, or come as
    often?"""
    one, two = first.device.iterations, other.device.iterations
    if one is None or two is None:
        return False
    if one.source == two.source == "nvtx":
        return is_step(one.name) and is_step(two.name)
    if one.inner is not None and two.inner is not None:
        return abs(two.inner.per_iteration / one.inner.per_iteration / ratio - 1) <= WHOLE_NUMBER
    as_many = abs(other.units / first.units - 1) <= WHOLE_NUMBER
    copies = [float(each.table.get("ops.memcpy", np.zeros(1)).mean()) for each in (first, other)]
    same_input = min(copies) >= LEAST_SHARED and abs(copies[1] / copies[0] - 1) <= WHOLE_NUMBER
    return same_input or (as_many and _are_steps(first) and _are_steps(other))


def _runs(first: Capture, other: Capture) -> float | None:
    """How often the shared kernels run in a unit of `other` for each run in a unit of `first`: the median, weighted by
    time."""
    counts = _counts(first.device), _counts(other.device)
    shared = sorted(counts[0].keys() & counts[1].keys())
    if not shared:
        return None
    ratio = np.array([counts[1][name][0] / other.units / (counts[0][name][0] / first.units) for name in shared])
    weight = np.array([min(counts[0][name][1], counts[1][name][1]) for name in shared], dtype=np.float64)
    return weighted_median(ratio, np.maximum(weight, 1.0))


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The smallest value up to which half of the weight is reached. At least one value, and no weight is 0 or less."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(reached, reached[-1] / 2))])


def _counts(device: DeviceReport) -> Counts:
    """How often each kernel ran and how long in all; graphs that the trace holds as wholes count as their launches."""
    found = {RunOf(row.name): (row.count, row.total_ns) for row in device.kernels if row.count}
    graphs = device.launch.graphs
    for row in graphs.rows if graphs is not None else ():
        if row.nodes is None and row.launches:
            run = RunOf(row.name, is_graph=True)
            count, ns = found.get(run, (0, 0))
            found[run] = (count + row.launches, ns + row.work_ns)
    return found


def _by_kernels(reports: Sequence[On], many: int, why: Sentence = "", *, whole: bool = False) -> DeviceSides:
    """The judged steady phases of all captures, or else their whole windows, in units of as many runs of the kernels
    that they share. So `many` captures are before. `why` says why no iterations are compared, if it is not that there
    are none. `whole`: windows, even if there are phases. Raises NotComparableError if less than half of the time is in
    shared kernels."""
    first, *others = (by_window(*each, 1.0) for each in reports)
    units = [1.0]
    for other in others:
        runs = _runs(first, other)
        if runs is None or _shared(first.device, other.device) < LEAST_SHARED:
            raise _nothing_in_common(first, other)
        units.append(runs)
    captures = [each for on, unit in zip(reports, units, strict=True) if (each := by_phase(*on, unit)) is not None]
    some_phases, in_phases = bool(captures), len(captures) == len(reports) and not whole
    if not in_phases:
        captures = [by_window(*each, unit) for each, unit in zip(reports, units, strict=True)]
    ratio = units[many]
    unit = facts.Unit(
        kind=facts.PHASES if in_phases else facts.KERNELS,
        name_before="",
        name_after="",
        count_before=many,
        count_after=len(reports) - many,
        scale=1 / ratio,
        part_of_step=_parts_of_steps(reports),
    )
    compared = "the steady phases are compared" if in_phases else "whole windows are compared"
    notes: list[Sentence] = [_why_windows(reports, why, compared)]
    if unit.part_of_step:
        notes.append(PARTS_OF_STEPS)
    if in_phases:
        notes.append(
            "Kernels, gap groups, copies and launches are those of the whole windows. Root causes are known only for "
            "whole windows."
        )
    elif some_phases and not whole:
        notes.append("Not every report judges a steady phase: start-up counts in the windows.")
    if abs(ratio - 1) > 0.02:
        notes.append(
            f"The window after holds {ratio:.3g} times the work of the one before, by the kernels that both ran."
        )
    return DeviceSides(captures[:many], captures[many:], unit, notes)


def _why_windows(reports: Sequence[On], why: Sentence, compared: str) -> Sentence:
    """Which sides have no iterations, or a saved report that does not hold them one by one, and what is `compared`."""
    if why:
        return say("{}: {}.", why, compared)
    unpacked = [
        report.trace.file
        for report, device in reports
        if (found := device.iterations) is not None and found.closed and found.steady and found.packed is None
    ]
    if unpacked:
        return (
            f"The report of {' and '.join(dict.fromkeys(unpacked))} does not hold its iterations one by one: "
            f"{compared}. Analyze the trace again."
        )
    return f"No steps were found on both sides: {compared}."


def _shared(one: DeviceReport, two: DeviceReport) -> float:
    """The share of the time in kernels that is in kernels which both ran, on the side where it is larger."""
    return _part_shared(_counts(one), _counts(two))


def _part_shared(one: Counts, two: Counts) -> float:
    names = {name for name in one.keys() & two.keys() if one[name][1] and two[name][1]}
    shares = [
        sum(each[name][1] for name in names) / total if (total := sum(ns for _count, ns in each.values())) else 0.0
        for each in (one, two)
    ]
    return max(shares)


def _nothing_in_common(first: Capture, other: Capture) -> NotComparableError:
    share = _shared(first.device, other.device)
    files = f"{first.report.trace.file} and {other.report.trace.file}"
    return NotComparableError(
        f"{files} have no unit of work in common. They share no iterations, and kernels of the same names make up "
        f"{share:.0%} of the time in kernels, less than half",
        hint="compare two captures of the same program, with NVTX ranges around its steps",
    )
