"""The work of a job over time as numbers: launched operations by name, windows, and what the devices did in each."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, equal_edges, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import picked
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.iterations.loop import Loop
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.phases.facts import LEAST_WORK

# Launched operations by name, over all devices of a job: a kernel by its name, a copy by its kind.

MOST_NAMES = 1_000
"""Names that are counted separately. A name beyond the thousand longest takes under a thousandth of the time."""
_MEMSET, _FIRST_COPY, _FIRST_GRAPH = -2, -3, -100
"""Keys of what has no string id: below -1, the id of a kernel without a name."""


class NamedWork(Struct, frozen=True):
    """The launched operations of one device that have a length, by start, and the code of the name of each."""

    spans: Intervals
    name: IntArray


class JobWork(Struct, frozen=True):
    """The work of the devices of a job. By code of the name: whether it is one of kernels (or of graphs), and the time
    of all its operations in ns. Code 0 stands for all other kernels. `kind` is the code itself, but one for all graphs
    that the trace holds as wholes. `keys` are as of `operation_keys`, -1 for code 0."""

    devices: list[NamedWork]
    kernel: BoolArray
    total: FloatArray
    kind: IntArray
    keys: IntArray

    @property
    def most_repeats(self) -> int:
        """How often the most frequent name runs on a device; code 0 means no name."""
        return max((int(np.bincount(device.name)[1:].max(initial=0)) for device in self.devices), default=0)


def job_work(devices: list[DeviceTimeline], lo: int, hi: int) -> JobWork:
    """The operations of `devices` that are at work in [lo, hi). The same name on two devices has the same code."""
    chosen = [picked(launched_in(device, lo, hi)) for device in devices]
    named = [distinct(operation_keys(device)[rows]) for device, rows in zip(devices, chosen, strict=True)]
    keys = distinct_values(np.concatenate([np.empty(0, np.int64), *(keys for keys, _ in named)]))
    spans = [
        Intervals(device.operations.start[rows], device.operations.end[rows])
        for device, rows in zip(devices, chosen, strict=True)
    ]
    total = np.zeros(len(keys))
    codes = [np.searchsorted(keys, its)[name] for its, name in named]
    for work, code in zip(spans, codes, strict=True):
        total += np.bincount(code, weights=work.end - work.start, minlength=len(keys))
    return _longest_names(spans, codes, keys, total)


def _longest_names(spans: list[Intervals], codes: list[IntArray], keys: IntArray, total: FloatArray) -> JobWork:
    """With a code for each of the longest names, and for every kind of copy."""
    kernel = (keys >= -1) | (keys <= _FIRST_GRAPH)
    rank = np.empty(len(keys), np.int64)
    rank[np.lexsort((keys, -total))] = np.arange(len(keys))
    kept = np.flatnonzero((rank < MOST_NAMES) | ~kernel)
    new = np.zeros(len(keys), np.int32)
    new[kept] = np.arange(1, len(kept) + 1)
    devices = [NamedWork(work, new[code]) for work, code in zip(spans, codes, strict=True)]
    sums = np.zeros(len(kept) + 1)
    np.add.at(sums, new, total)
    code = np.arange(len(kept) + 1)
    graphs = np.append(False, keys[kept] <= _FIRST_GRAPH)
    kind = np.where(graphs, graphs.argmax(), code)
    return JobWork(devices, np.append(True, kernel[kept]), sums, kind, np.append(-1, keys[kept]))


def launched_in(device: DeviceTimeline, lo: int, hi: int) -> BoolArray:
    """Page migrations are not launched, and show no step of a program."""
    operations = device.operations
    return device.running & ~operations.migration & (operations.end > lo) & (operations.start < hi)


def operation_keys(device: DeviceTimeline) -> IntArray:
    """What operations of one name have in common: a string id, or a number below all of them."""
    operations = device.operations
    category = operations.category
    keys = operations.name.astype(np.int64)
    kind = np.clip(operations.copy_kind, 0, _FIRST_COPY - _FIRST_GRAPH - 1)
    keys = np.where(category == Category.MEMCPY, _FIRST_COPY - kind, keys)
    keys = np.where(category == Category.MEMSET, _MEMSET, keys)
    return np.where(category == Category.GRAPH, _FIRST_GRAPH - np.maximum(operations.graph, 0), keys)


WINDOWS = 200
"""Of a job. Half as many blur borders, twice as many show the parts of steps; 150 to 300 find the same phases."""
LONGEST = 12
"""Names with a column of their own."""
WORK_FEATURES = LONGEST + 4
"""The first features: names, the rest of them, compute, copies, communication."""
MOST_SCALE = 20.0
"""Of a signal: what works for less than a twentieth of the time shows too little."""
STEPS_OF_A_WINDOW = 2
"""So that differences within a step are not changes between windows."""
IRREGULAR = 4
"""Times the median step: a longer step, longer than a window too, holds a pause or a warm-up."""


class DeviceSignal(Struct, frozen=True):
    """The input of one device for the phases of the job: its operations, its window, how that was spent, and all loops
    found on it. Sets of idle time by root causes of the families `startup`, `memory` and `unknown`."""

    device: DeviceTimeline
    window: AnalysisWindow
    split: WindowSplit
    startup: Intervals
    memory: Intervals
    unknown: Intervals
    loops: tuple[Loop, ...] = ()
    first_call_ns: int | None = None


class Signal(Struct, frozen=True):
    """Window i is [edges[i], edges[i + 1]) in ns. `values[i]` is the share of it that each feature takes, a mean over
    devices, times the `scale` of the feature. `sets` holds the set of time of each device and feature."""

    edges: IntArray
    values: FloatArray
    sets: list[list[Intervals]]
    scale: FloatArray

    @property
    def weights(self) -> FloatArray:
        """The length of each window as a multiple of a WINDOWS-th of all."""
        return np.diff(self.edges) * (WINDOWS / max(int(self.edges[-1] - self.edges[0]), 1))

    def until(self, times: IntArray) -> FloatArray:
        """[time, feature]: ns of each feature from the first edge to each of `times`, a mean over devices, scaled."""
        return _until(self.sets, int(self.edges[0]), times) * self.scale

    def scaled(self) -> Signal:
        """Scales the devices' work to the busiest twentieth of the windows: if devices work little, changes of work are
        small compared with changes of idle time."""
        works = np.arange(self.values.shape[1]) < WORK_FEATURES
        busy = self.values[:, LONGEST + 1 : WORK_FEATURES].sum(axis=1)
        scale = np.where(works, 1 / max(float(np.quantile(busy, 0.95)), 1 / MOST_SCALE), 1.0)
        return Signal(self.edges, self.values * scale, self.sets, self.scale * scale)


def job_window(signals: list[DeviceSignal]) -> tuple[int, int] | None:
    """From the start of the first to the end of the last window of the devices; None if none has one."""
    spans = [signal.window.parts for signal in signals if len(signal.window.parts)]
    if not spans:
        return None
    return min(int(span.start[0]) for span in spans), max(int(span.end[-1]) for span in spans)


def working(signals: list[DeviceSignal]) -> list[DeviceSignal]:
    """The devices that are not merely touched."""
    most = max((signal.split.busy_ns for signal in signals), default=0)
    return [signal for signal in signals if signal.split.busy_ns > 0 and signal.split.busy_ns >= LEAST_WORK * most]


def loops_of(signals: list[DeviceSignal], lo: int, hi: int) -> list[Loop]:
    """Disjoint loops inside [lo, hi), by time. Of overlapping ones: the one that covers most time, then the one with
    fewer steps (the larger period), then that of the device with the lowest number."""
    ordered = sorted(signals, key=lambda each: each.device.number)
    every = [loop.within(lo, hi) for signal in ordered for loop in signal.loops]
    found: list[Loop] = []
    for loop in sorted(every, key=lambda each: (-each.total_ns, len(each))):
        if len(loop) and all(loop.starts[0] >= one.ends[-1] or loop.ends[-1] <= one.starts[0] for one in found):
            found.append(loop)
    return sorted(found, key=lambda each: int(each.starts[0]))


def whole_steps(loops: list[Loop], start: int, end: int, share: float = 0.5) -> tuple[Loop, IntArray] | None:
    """The loop with most time in whole steps inside [start, end], and the borders of these; None if steps take less
    than that share of the time."""
    found = [(loop, loop.borders_in(start, end)) for loop in loops]
    longest = max(found, key=lambda pair: int(pair[1][-1] - pair[1][0]) if len(pair[1]) > 1 else 0, default=None)
    if longest is None or len(longest[1]) < 2:
        return None
    return longest if longest[1][-1] - longest[1][0] >= share * (end - start) else None


def step_borders(loops: list[Loop]) -> IntArray:
    """The borders of the steps of loops that follow each other."""
    return np.concatenate([np.empty(0, np.int64), *(loop.borders for loop in loops)])


def signal_of(signals: list[DeviceSignal], work: JobWork, edges: IntArray) -> Signal:
    """What the devices did in each of the windows between `edges`; `work` is theirs."""
    rank = np.full(len(work.total), LONGEST, np.int8)
    longest = np.argsort(-work.total, kind="stable")[:LONGEST]
    rank[longest] = np.arange(len(longest))
    sets = []
    for signal, its in zip(signals, work.devices, strict=True):
        column = rank[its.name]
        named = [union(its.spans[column == each]) for each in range(LONGEST + 1)]
        compute, communication, copies = signal.split.parts
        sets.append([*named, compute, copies, communication, signal.startup, signal.memory])
    values = np.diff(_until(sets, int(edges[0]), edges), axis=0) / np.diff(edges)[:, None]
    return Signal(edges, values, sets, np.ones(values.shape[1]))


def _until(sets: list[list[Intervals]], lo: int, times: IntArray) -> FloatArray:
    spans = Intervals(np.full(len(times), lo, np.int64), times)
    every = [[coverage(each, spans) for each in of_device] for of_device in sets]
    mean: FloatArray = np.mean(np.array(every, np.float64), axis=0)
    return mean.T


def window_edges(lo: int, hi: int, loops: list[Loop], windows: int = WINDOWS) -> IntArray:
    """The borders of about so many windows of [lo, hi): equal ones, but whole steps, two at least, inside loops.

    ```
    no loop     |    |    |    |    |    |    |    |    |
    steps                  |..|..|..|..|..|..|..|        .   borders of steps
    windows     |    |    | |     |     |     |  |  |    |
    ```
    """
    count = min(windows, hi - lo)
    grid = equal_edges(lo, hi, count)
    for loop in loops:
        grid = _snapped(grid, loop, (hi - lo) // count)
    return distinct_values(np.concatenate([grid, [lo, hi]]))


def _snapped(grid: IntArray, loop: Loop, width: int) -> IntArray:
    """Times inside regular steps of the loop move to the nearest border of every second step; the ends of the loop are
    borders too."""
    step = loop.ends - loop.starts
    borders = loop.borders[::STEPS_OF_A_WINDOW]
    at = np.searchsorted(loop.borders, grid, side="right") - 1
    inside = (at >= 0) & (at < len(step))
    at = np.clip(at, 0, len(step) - 1)
    regular = inside & (step[at] <= max(IRREGULAR * float(np.median(step)), width))
    return np.concatenate([np.where(regular, nearest_of(borders, grid), grid), loop.starts[:1], loop.ends[-1:]])


def nearest_of(borders: IntArray, times: IntArray) -> IntArray:
    """For each time the nearest of the sorted `borders`, of which there is one at least; of two the earlier."""
    behind = np.clip(np.searchsorted(borders, times), 1, max(len(borders) - 1, 1))
    before, after = borders[behind - 1], borders[np.minimum(behind, len(borders) - 1)]
    return np.where(times - before <= after - times, before, after)


# Steps that an end of the trace cuts: the first of a loop may lack work, the last work or the idle time after it.
#
# ```
# trace           |---------------------------------------------|
# steps      |==A==B..|==A==B..|==A==B..|==A==B..|==A==B..|==A==|
# with all work       |        |        |        |        |          four
# ```

SAME_WORK = 0.75
"""Of the operations that the other steps have, and of their time: a step with less of both is cut. A last one that only
lacks what comes right before the next step, such as its upload, is not."""
MISSING = 0.05
"""Of the time of all steps: a last step that ends with its work may be so much shorter than the others and count."""


def with_all_work(borders: IntArray, loop: Loop, signals: list[DeviceSignal]) -> IntArray:
    """The borders of the steps that have all of their work; `borders` are those of steps of `loop`."""
    first, last = _outermost(borders, loop)
    lacks = np.ones(len(borders) - 1, np.bool_)
    for work in (operations_in(borders, signals), _busy_ns(borders, signals)):
        lacks &= work < SAME_WORK * _of_the_others(work, first=first, last=last)
    return borders[int(first and lacks[0]) : len(borders) - int(last and lacks[-1])]


def with_their_end(borders: IntArray, loop: Loop) -> IntArray:
    """The borders of the steps without the last one if the window of the devices ends long before that step does."""
    first, last = _outermost(borders, loop)
    length = np.diff(borders)
    missing = _of_the_others(length, first=first, last=last) - int(length[-1])
    return borders[: len(borders) - int(last and missing > MISSING * int(length.sum()))]


def _outermost(borders: IntArray, loop: Loop) -> tuple[bool, bool]:
    """Whether the first and the last step are those of the loop. Inside it each ends where the next one begins, and a
    single step has no others to be compared with."""
    several = len(borders) > 2
    return several and bool(borders[0] == loop.starts[0]), several and bool(borders[-1] == loop.ends[-1])


def _of_the_others(values: IntArray, *, first: bool, last: bool) -> float:
    """The median of the steps that cannot be cut; of all if there are no such."""
    inside = values[int(first) : len(values) - int(last)]
    return float(np.median(inside if len(inside) else values))


def _busy_ns(borders: IntArray, signals: list[DeviceSignal]) -> IntArray:
    """How long the devices work in each step, a sum over them."""
    steps = Intervals(borders[:-1], borders[1:])
    return np.sum([coverage(signal.split.busy, steps) for signal in signals], axis=0)


def operations_in(borders: IntArray, signals: list[DeviceSignal]) -> IntArray:
    """How many operations of all devices begin in each step."""
    count = np.zeros(len(borders) - 1, np.int64)
    for signal in signals:
        launched = signal.device.running & ~signal.device.operations.migration
        count += np.diff(np.searchsorted(signal.device.operations.start[launched], borders))
    return count
