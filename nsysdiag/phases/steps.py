"""The steps in a phase, passes in place of them, and parts next to steps that do their work: a step that is cut, an
evaluation, or what the user did not name."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import to_planes, to_text
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, place_in
from nsysdiag.bottlenecks import IN_GRAPHS, noun_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.iterations.by_host import longest_in, take_turns
from nsysdiag.iterations.loop import NVTX, Called, Loop
from nsysdiag.phases.facts import FEWEST_REPEATS, PASS, REPEAT, STEP, PhaseName, PhaseSteps
from nsysdiag.phases.signal import (
    DeviceSignal,
    JobWork,
    job_work,
    launched_in,
    operation_keys,
    operations_in,
    whole_steps,
    with_all_work,
    with_their_end,
)
from nsysdiag.phases.steady import REPEATED_SHARE, busiest, last_busy, same_sequences, without_warm_up
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.enums import CopyKind

# Short parts at the end of a phase, or between two, that do its work: a step that is cut, or an evaluation.
#
# ```
# steps    |==A==B..|==A==B..|==A==B..|==A==B|          the last one is cut: no teardown
# phases   |         steady           | steady |
# ```

SAME_WORK = 0.5
"""Of the busy share of a steady phase: with so much of the same work a part is a phase that repeats."""
FEWEST_NAMES = 2
"""One kernel name alone may be the end of the last step."""

Span = tuple[int, int]
"""From and to, in ns."""


def does_the_work_of(part: Span, steady: Span, signals: list[DeviceSignal]) -> bool:
    """Whether the devices work for about as much of `part` as of `steady`, mostly in operations of the same names.
    About as much of it is in kernels, of several names if there are several: neither a copy of the result nor a
    last collective shows that work goes on."""
    share, usual = (_busy_share(each, signals) for each in (part, steady))
    if not usual or share < SAME_WORK * usual:
        return False
    kernels, same, total, names, known = _in_both(part, steady, signals)
    usually, _, usual_total, _, _ = _in_both(steady, steady, signals)
    several = names >= min(len(signals) * FEWEST_NAMES, known)
    as_much = kernels * usual_total >= SAME_WORK * usually * total
    return bool(total) and several and as_much and same >= REPEATED_SHARE * total


def _busy_share(span: Span, signals: list[DeviceSignal]) -> float:
    """Of the time of all devices in it."""
    length = (span[1] - span[0]) * len(signals)
    return sum(int(coverage(each.split.busy, Intervals.of([span])).sum()) for each in signals) / max(length, 1)


def _in_both(part: Span, steady: Span, signals: list[DeviceSignal]) -> list[int]:
    """The time in `part`, in ns: of kernels whose names are in `steady` as well, of all such operations, and of all.
    Then how many names these kernels have, and those in `steady`."""
    return np.sum([_of_names(part, steady, signal) for signal in signals], axis=0).tolist()


def _of_names(part: Span, steady: Span, signal: DeviceSignal) -> IntArray:
    device = signal.device
    operations, keys, inside = device.operations, operation_keys(device), launched_in(device, *part)
    kernel, usual = np.isin(operations.category, (Category.KERNEL, Category.GRAPH)), launched_in(device, *steady)
    known = distinct_values(keys[kernel & usual])
    time = np.minimum(operations.end[inside], part[1]) - np.maximum(operations.start[inside], part[0])
    named, same = np.isin(keys[inside], known), np.isin(keys[inside], distinct_values(keys[usual]))
    names = len(distinct_values(keys[inside][named])), len(known)
    return np.array([time[named].sum(), time[same].sum(), time.sum(), *names], np.int64)


# If the user names the steps, only these are judged.
#
# ```
# ranges   |iter 1|iter 2|iter 3|iter 4|.......|iter 5|iter 6|      the steps are `iter 3` and `iter 5`
# phases   |   outside   |steady|      outside |steady|outside
# ```

NEARLY_ALL = 0.95
"""Of a phase: if steps take so much of it, what is left is a part of it."""


def is_like(part: Span, steps: list[Span], signals: list[DeviceSignal]) -> bool:
    """Whether the operations in `part` are mostly of names in the steps, and some are kernels. How long the devices are
    idle in it does not count."""
    found = (_in_both(part, each, signals) for each in steps)
    return any(kernels and same >= REPEATED_SHARE * total for kernels, same, total, _, _ in found)


def named_spans(steady: list[Span], loops: list[Loop]) -> list[Span]:
    """The time of the steps that the user named in each steady phase, or of all of them if none holds any: the
    phase itself if they are nearly all of it."""
    found: list[Span] = []
    for start, end in steady:
        inside = [loop.borders_in(start, end) for loop in loops]
        spans = [(int(borders[0]), int(borders[-1])) for borders in inside if len(borders) > 1]
        nearly = sum(behind - begin for begin, behind in spans) >= NEARLY_ALL * (end - start)
        found += [(start, end)] if nearly else spans
    return found or [(int(loop.starts[0]), int(loop.ends[-1])) for loop in loops if len(loop)]


# Loops whose steps of several kinds take turns: each is one phase. Cut by their work, the steps would be as many
# phases as there are changes of kind.

GRAPHS, OTHERS = noun_of(IN_GRAPHS), "no kernel"


def with_kinds(loops: list[Loop], work: JobWork) -> list[Loop]:
    """The loops, each with whether its steps are of several kinds that take turns."""
    return [replace(loop, mixed=not loop.in_one_pass and take_turns(kinds_of(loop.borders, work))) for loop in loops]


def kinds_of(starts: IntArray, work: JobWork) -> IntArray:
    """The kind of each step, from one of `starts` to the next: the code of the kernel that takes most of its time, 0
    if none does. Graphs that a trace holds as wholes are one kind, whichever was launched."""
    name = np.concatenate([device.name for device in work.devices])
    spans = Intervals.concatenate(device.spans for device in work.devices)
    kernel = taken(work.kernel, name)
    return longest_in(Intervals(starts[:-1], starts[1:]), spans[kernel], work.kind[name[kernel]])


def named_kinds(steps: Intervals, device: DeviceTimeline, strings: Strings) -> tuple[IntArray, list[str]] | None:
    """The kinds of steps of a device that take turns: the place of that of each step among the names of all. None if
    all do the same work."""
    work = job_work([device], int(steps.start[0]), int(steps.end[-1]))
    kinds = kinds_of(np.append(steps.start, steps.end[-1:]), work)
    if not take_turns(kinds):
        return None
    codes, place = np.unique(kinds, return_inverse=True)
    return place, [_name(int(key), strings) for key in work.keys[codes]]


def _name(key: int, strings: Strings) -> str:
    if key < -1:
        return GRAPHS
    return strings.text(key) if key >= 0 else OTHERS


# The phases of a capture that holds one step of a program, or a few: the passes, and what is before and after them.

LEAST_SHARE = 0.5
"""Of the time of the passes: loops that take less are not what the passes do."""
SLIVER = 0.001
"""Of the window: less before or after the passes is a part of them."""


class JobPasses(Struct, frozen=True):
    """The passes of all devices: where each begins and ends, and what is known of them."""

    spans: Intervals
    steps: PhaseSteps

    def within(self, lo: int, hi: int) -> tuple[int, int]:
        """Where the first begins and the last ends, in a window."""
        begin, end = int(self.spans.start[0]), int(self.spans.end[-1])
        sliver = SLIVER * (hi - lo)
        return lo if begin - lo <= sliver else begin, hi if hi - end <= sliver else end


def passes_of_job(signals: list[DeviceSignal], loops: list[Loop]) -> JobPasses | None:
    """The passes, where all devices have equally many and no loop of steps takes most of them. In a range that is
    called a step only ranges can be such a loop. Other ranges need layers in them: a loop of steps may be inside."""
    every = [each.window.passes for each in signals if each.window.passes is not None]
    if len(every) < len(signals) or len({len(each.spans) for each in every}) > 1:
        return None
    spans = Intervals(
        np.min([each.spans.start for each in every], axis=0), np.max([each.spans.end for each in every], axis=0)
    )
    if (spans.start[1:] < spans.end[:-1]).any():
        return None
    inside = [loop for loop in loops if loop.starts[0] < spans.end[-1] and loop.ends[-1] > spans.start[0]]
    layers = [loop for loop in inside if loop.kernels or loop.in_one_pass]
    least = LEAST_SHARE * spans.total()
    steps = all(each.steps for each in every)
    others = (loop for loop in inside if loop not in layers and (loop.source == NVTX or not steps))
    if sum(loop.total_ns for loop in others) >= least:
        return None
    if not steps and sum(loop.total_ns for loop in layers if loop.model or loop.in_one_pass) < least:
        return None
    return JobPasses(spans, _steps_of(spans, layers, max(each.layers for each in every)))


def _steps_of(spans: Intervals, layers: list[Loop], named: int) -> PhaseSteps:
    """What is known of the passes: their lengths, and the layers in each: so many as are `named`, if any are."""
    starts: IntArray = np.concatenate([np.empty(0, np.int64), *(loop.starts for loop in layers)])
    starts = starts[place_in(spans, starts) >= 0]
    parts = round(len(starts) / len(spans))
    length = np.diff(np.append(spans.start, spans.end[-1])) if len(spans) > 1 else spans.end - spans.start
    certain = all(loop.in_one_pass for loop in layers)
    parts = named if named and layers and certain else parts
    return PhaseSteps(
        count=len(spans),
        median_ns=max(int(np.median(length)), 1),
        source=NVTX,
        mean_ns=max(int(length.mean()), 1),
        parts=parts or None,
        certain=certain,
        kind=STEP if len(spans) > 1 else PASS,
        kernels=next((loop.kernels for loop in layers if loop.kernels), None),
        model=any(loop.model for loop in layers),
        layers=next((list(loop.layers) for loop in layers if loop.kernels), []),
    )


# The steps in a phase, and phases without a step that is cut.

CUT_SHARE = 0.01
"""Of a phase: with more of it in a step that is cut, its figures are not those of a step."""
MOST_OF_PHASE = 0.9
"""Of a phase: steps that take less of it are in doubt. It does the same work all the time, so the rest has steps, too.
In simulated programs loops that lost steps took 0.57 to 0.83 of their phase, and nearly all others more than 0.9."""
_EFFORT = 6
"""Of zlib, from 1 for fast to 9 for small: its default."""
SEQUENCE = "sequence"
"""What shows the steps: the same operations in the same order."""
AS_EVEN = 2.0
"""The same few operations three or four times may be chance: the steps are sure if none is longer than another by more
than this factor."""

LEAST_PAUSE = 0.1
"""Of a repeat: idle time between a few repeats that is longer is the host's own work of each step."""

Cut = tuple[int, int]
"""Time at the beginning and at the end of a phase, in ns, that is in steps without all of their work."""


class FoundPhase(Struct, frozen=True):
    """A phase [start, end) in ns. `repeats` is how often its work repeats: the number of complete steps if a loop is
    known, else how often the kernels with 60% of the kernel time run. `steps` are whole steps of `loop` inside it."""

    name: PhaseName
    start: int
    end: int
    strong: bool = False
    repeats: int = 0
    steps: PhaseSteps | None = None
    loop: Loop | None = None


def with_steps(phase: FoundPhase, loops: list[Loop], signals: list[DeviceSignal]) -> tuple[FoundPhase, Cut]:
    """The phase with the steps of the loop with most whole steps in it; and its time with cut steps, before and after
    the complete ones."""
    found = whole_steps(loops, phase.start, phase.end)
    if found is None:
        return phase, (0, 0)
    loop, borders = found
    kept = with_all_work(borders, loop, signals)
    length = np.diff(with_their_end(kept, loop))
    steps = replace(
        _measured(length, loop.source),
        parts=None if loop.kernels or loop.inner is None else loop.inner.per_iteration or None,
        group=None if loop.outer is None else loop.outer.per_iteration or None,
        certain=loop.certain and int(kept[-1] - kept[0]) >= MOST_OF_PHASE * (phase.end - phase.start),
        kind=REPEAT if loop.kernels else STEP,
        kernels=loop.kernels or None,
        model=loop.model,
        operations=int(np.median(operations_in(kept, signals))),
        layers=list(loop.layers),
    )
    if len(kept) - 1 <= FEWEST_REPEATS:  # of a few the last one counts, though its idle end is not in the trace
        steps = replace(steps, count=len(kept) - 1)
    before = int(kept[0]) - phase.start if kept[0] > borders[0] else 0
    behind = phase.end - int(kept[-1]) if kept[-1] < borders[-1] else 0
    return replace(phase, repeats=len(kept) - 1, steps=steps, loop=loop), (before, behind)


def with_few_repeats(phase: FoundPhase, since: int, signals: list[DeviceSignal]) -> FoundPhase:
    """The phase with the repeats of the same operations as steps, if it is about those. The first one may begin
    before it, but not before `since`; a phase begins behind a first one that is a warm-up."""
    signal = busiest(signals)
    borders = same_sequences(signal.device, since, phase.end)
    if borders is None or 2 * (borders[-1] - max(borders[0], phase.start)) < phase.end - phase.start:
        return phase
    judged = without_warm_up(borders)
    warm_up = int(judged[0] - borders[0]) or None
    start = max(int(judged[0]) if warm_up else min(int(borders[0]), phase.start), since)
    length = np.diff(judged)
    even = bool(length.max() <= AS_EVEN * length.min())
    steps = replace(_measured(length, SEQUENCE, warm_up), certain=even and _closes(judged, signal))
    loop = Loop(Called(), judged[:-1], judged[1:], np.zeros(len(length), np.bool_))
    return replace(phase, start=start, repeats=len(length), steps=steps, loop=loop)


def _closes(borders: IntArray, signal: DeviceSignal) -> bool:
    """Whether the host comes back in each of a few repeats: for a copy, a graph, or idle time between them. Else they
    may be parts of one step, as layers are."""
    operations, inside = signal.device.operations, launched_in(signal.device, int(borders[0]), int(borders[-1]))
    host = np.isin(operations.copy_kind, (CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST))
    host |= (operations.category == Category.GRAPH) | (operations.graph_node >= 0)
    repeat = np.searchsorted(borders, operations.start[inside & host], side="right")
    idle = borders[1:-1] - last_busy(signal.split.busy, borders[1:-1])
    often = len(distinct_values(repeat)) >= len(borders) - 1
    return often or bool(np.median(idle) >= LEAST_PAUSE * np.median(np.diff(borders)))


def _measured(length: IntArray, source: str, warm_up_ns: int | None = None) -> PhaseSteps:
    median, mean = (max(int(each), 1) for each in (np.median(length), length.mean()))
    found = PhaseSteps(len(length), median, source, warm_up_ns, mean)
    if len(length) < FEWEST_REPEATS:
        return found
    together = length[: len(length) // found.each * found.each].reshape(-1, found.each).sum(axis=1)
    return replace(found, lengths=to_text(to_planes(together), _EFFORT))


def without_cut_steps(phase: FoundPhase, cut: Cut) -> FoundPhase:
    """The phase from the first to the last step that has all of its work, if what is cut takes a good part of it."""
    before, behind = (each if each > CUT_SHARE * (phase.end - phase.start) else 0 for each in cut)
    return replace(phase, start=phase.start + before, end=phase.end - behind)
