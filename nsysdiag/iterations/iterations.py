"""The loops of a program on a device, and its iterations: the repeats of the one that matters most."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, distinct_values
from nsysdiag.iterations.alike import perhaps_several
from nsysdiag.iterations.begins import before_other_work, from_the_first
from nsysdiag.iterations.by_anchor import Closing, anchored_loops
from nsysdiag.iterations.by_range import apart, named_loops
from nsysdiag.iterations.by_wait import by_wait
from nsysdiag.iterations.happened import Happened, Kinds, anchor_of
from nsysdiag.iterations.kinds import by_exchange
from nsysdiag.iterations.layers import with_layers
from nsysdiag.iterations.loop import FEWEST, LAYER, NVTX, STEP, Called, Loop, loop_of, median_of, pauses, spread_of
from nsysdiag.iterations.outer import LIGHT_KERNELS, REGULAR, RepeatCounts, around, by_sequence, outermost
from nsysdiag.iterations.replays import Replays
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.enums import CopyKind

# Repeats that do a part of what others do, in runs between these: evaluations between the steps of a training.
#
# Here six steps are followed, each third one, by three evaluations:
#
# ```
# repeats   |f b u |f b u |f b u |f |f |f |f b u |f b u |f b u |f |f |f |
# steps     |      |      |               |      |      |
# ```

OFTEN_ENOUGH = 0.2
"""Of the repeats: kernels of so many belong to what the loop does."""
WHOLE, PART = 0.8, 0.7
"""Of the kernel names of the loop: a whole repeat has so many at least, a part of one so many at most."""
SHORTEST_RUN, MOST_PARTS = 2, 0.5


class _KernelSets(Struct, frozen=True):
    """Which kernels are in which repeats: `present[name, repeat]`; `often`: those of the loop, `updates`: those that
    update weights."""

    present: BoolArray
    often: BoolArray
    updates: BoolArray

    @classmethod
    def of(cls, found: RepeatCounts, happened: Happened) -> _KernelSets:
        codes = [code for code in found.count if code in happened.kernels]
        present = np.array([found.count[code] > 0 for code in codes], np.bool_).reshape(len(codes), found.size)
        updates = np.array([code in happened.updates for code in codes], np.bool_)
        return cls(present, present.mean(axis=1) >= OFTEN_ENOUGH, updates)

    def parts(self) -> BoolArray:
        """Which repeats do only a part of what the others do; none where some are neither a part nor whole. The last
        one is like the one before: it may be cut."""
        share = self.present[self.often].sum(axis=0) / max(int(self.often.sum()), 1)
        share[-1] = share[-2]
        whole, part = share >= WHOLE, share <= PART
        both = (self.present & whole).any(axis=1)
        apart = bool((whole | part).all()) and np.count_nonzero(whole) >= FEWEST
        few = self.present[~both][:, part].sum(axis=0)
        return part if apart and (few <= LIGHT_KERNELS).all() else np.zeros_like(part)

    def update_only(self, whole: BoolArray) -> bool:
        """Whether all of these repeats update weights, and no other does."""
        updated = (self.present & self.updates[:, None]).any(axis=0)
        return bool((updated == whole)[:-1].all())


def without_other_work(loop: Loop, happened: Happened, end: int) -> Loop:
    """The loop without repeats that are an evaluation between its steps: the step before them lasts until the next."""
    if len(loop) < FEWEST:
        return loop
    names = _KernelSets.of(RepeatCounts.of(happened, loop.starts, None, end), happened)
    part = names.parts()
    if not part.any() or not (names.update_only(~part) or _in_regular_runs(part)):
        return loop
    starts = loop.starts[~part]
    length = np.diff(starts)
    left = pauses(length, float(np.median(length)), int(length.sum()))
    made = loop_of(loop.called, starts, left, None, end)
    return replace(made, inner=loop.inner, certain=loop.certain, kind=loop.kind)


def _in_regular_runs(part: BoolArray) -> bool:
    """Whether they come in runs of one length at one distance, and are no more than half of the repeats: else those
    between them do more than a step. An end of the trace may cut a run."""
    if part.mean() > MOST_PARTS:
        return False
    first = np.flatnonzero(part & ~np.append(False, part[:-1]))
    behind = np.flatnonzero(part & ~np.append(part[1:], False)) + 1
    length, distance = behind - first, np.diff(first)
    inside = length[: len(length) - int(behind[-1] == len(part))]
    if not len(distance) or not len(inside) or int(np.median(inside)) < SHORTEST_RUN:
        return False
    return _one_value(inside) and _one_value(distance)


def _one_value(values: IntArray) -> bool:
    return float((values == np.median(values)).mean()) >= REGULAR


# Repeats that are the layers of one pass, or may be: nothing in them shows that the program's loop closes.
#
# ```
# a loop       |copy a b c      |copy a b c      |copy a b c      |      each repeat takes input, waits or updates
# a pass       |copy|a b c|a b c|a b c|a b c|a b c|a b c|head|copy|      what repeats is of the device alone
# ```
#
# A solver that checks nothing looks like the second: a trace does not tell them apart, and none of both is assumed.

FEW, FEWEST_SIZES = 20, 3
"""Fewer repeats are few. The stages of a network have so many sizes of launches."""
MOST_EXCHANGES = 4
"""A pass takes its input once and gives its result once, each in a few copies."""
MOST_LAYERS = 200
"""The deepest models have some 120 layers in a pass; a solver takes thousands of steps."""
FEWEST_OTHERS = 4
"""Kernels in a repeat, of which none is in the others."""
FEWEST_KERNELS, FEWEST_LAYERS = 2, 4
"""A layer has several kernels. So many repeats of several kernels in one are its layers; fewer may be a layer's own."""
OFTEN = 0.8
"""Of the repeats: what comes in so many of them belongs to the loop."""
CLEARED = 1 << 20
"""Bytes that are set: gradients are as large as their weights, the counters of a split product far smaller."""
LEAST_PAUSE, PAUSES = 0.1, 3
"""Of the length of a repeat, and times the next longer one: idle time at one place that is longer is the host's own
work of each step. A host that is slower than the device leaves it idle before each kernel."""
ALIKE = 0.5
"""Of the repeats have equally many operations, so that their places can be compared."""

_TOUCHES = re.compile(r"Synchronize|Memcpy(?!\w*Peer)")
_ATTENTION = re.compile(r"flash|fmha|attention|attn|sdpa|softmax", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|gemv|nvjet|matmul|cutlass|triton_(tem|mm)", re.IGNORECASE)
_NORM = re.compile(r"(layer|group|rms)_?norm|RowwiseMoments|^ln_", re.IGNORECASE)


def parts_of_one_pass(loop: Loop, device: DeviceTimeline, happened: Happened, end: int) -> bool:
    """Whether a few repeats begin with launches of several sizes, each size in a row, and have no copies from and to
    the host: the stages of a network, not its passes."""
    if loop.called.range or len(loop) >= FEW:
        return False
    shape = device.operations.shape[np.searchsorted(device.operations.start, loop.starts)]
    sizes = len(np.unique(shape))
    if sizes < FEWEST_SIZES or np.count_nonzero(np.diff(shape)) >= sizes:
        return False
    usual = RepeatCounts.of(happened, loop.starts, None, end).usual
    return not any(usual.get(code) for code in happened.uploads | happened.downloads)


def by_chance(loop: Loop, happened: Happened, end: int) -> bool:
    """Whether a few repeats have nothing in common but the kernel that they begin with, though each has many others:
    one of many names may well come at about the same distance."""
    if len(loop) >= FEW:
        return False
    found = RepeatCounts.of(happened, loop.starts, None, end)
    common = sum(usual for code, usual in found.usual.items() if code in happened.kernels)
    kernels = sum((found.count[code] for code in found.count if code in happened.kernels), start=0 * found.operations())
    return common < FEWEST_KERNELS and float(np.median(kernels)) >= FEWEST_OTHERS


def perhaps_layers(
    loop: Loop,
    device: DeviceTimeline,
    happened: Happened,
    calls: CallRows,
    names: Sequence[str],
    strings: Strings,
) -> Loop:
    """The loop as repeats that may be layers of one pass, where they touch nothing of the host and update nothing;
    `names` are those of the calls."""
    if loop.called.range or loop.kind != STEP or not loop.certain or len(loop) >= MOST_LAYERS:
        return loop
    if _exchanges(loop, device) > MOST_EXCHANGES:
        return loop
    usual = RepeatCounts.of(happened, loop.starts, None, int(loop.ends[-1])).usual
    inside = {code: count for code, count in usual.items() if count}
    kernels = {code: count for code, count in inside.items() if code in happened.kernels}
    count = sum(kernels.values())
    parts = 0 if loop.inner is None else loop.inner.per_iteration
    if parts >= FEWEST_LAYERS and count >= parts * FEWEST_KERNELS:
        return loop
    if len(kernels) < FEWEST_KERNELS or inside.keys() & (happened.uploads | happened.downloads | happened.updates):
        return loop
    if _clears(loop, device) or _replays(loop, device) or _calls(loop, device, calls, names) or _pauses(loop, happened):
        return loop
    return loop.in_doubt_of_all(count, model=_of_a_model([strings.text(anchor_of(code)) for code in kernels]))


def _of_a_model(kernels: list[str]) -> bool:
    """Whether these are the kernels of a transformer's layer."""
    attention, product, norm = (any(map(each.search, kernels)) for each in (_ATTENTION, _PRODUCT, _NORM))
    return attention or (product and norm)


def _exchanges(loop: Loop, device: DeviceTimeline) -> int:
    """How many copies from or to the host begin while the loop runs."""
    return int(np.count_nonzero(_with_host(device) & (_place(loop, device.operations.start) >= 0)))


def _with_host(device: DeviceTimeline) -> BoolArray:
    """Which operations are copies from or to the host."""
    return np.isin(device.operations.copy_kind, (CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST))


def _in_most(loop: Loop, place: IntArray) -> bool:
    """Whether most repeats are among the places in the loop."""
    within = place[(place >= 0) & (place < len(loop))]
    return len(np.unique(within)) >= OFTEN * len(loop)


def _place(loop: Loop, start: IntArray) -> IntArray:
    """In which repeat each time is."""
    place = np.searchsorted(loop.starts, start, side="right") - 1
    return np.where(start < loop.ends[-1], place, -1)


def _clears(loop: Loop, device: DeviceTimeline) -> bool:
    """Whether much memory is set in most repeats, as gradients are."""
    operations = device.operations
    return _in_most(
        loop, _place(loop, operations.start[(operations.category == Category.MEMSET) & (operations.size >= CLEARED)])
    )


def _replays(loop: Loop, device: DeviceTimeline) -> bool:
    """Whether all kernels are in graphs, launched in each repeat: what the program captured is its step."""
    operations = device.operations
    category, place = operations.category, _place(loop, operations.start)
    work = (place >= 0) & device.running & ((category == Category.KERNEL) | (category == Category.GRAPH))
    in_graph = work & ((category == Category.GRAPH) | (operations.graph_node >= 0))
    if np.count_nonzero(in_graph) < np.count_nonzero(work):
        return False
    _, first = np.unique(operations.correlation[in_graph], return_index=True)
    return _in_most(loop, place[in_graph][first])


def _calls(loop: Loop, device: DeviceTimeline, calls: CallRows, names: Sequence[str]) -> bool:
    """Whether the launching threads copy from or to the host in most repeats, for this device or another, or wait. Or
    they record an event that no stream waits for, as a timer does. Copies may run long before the repeat that needs
    them."""
    issued = device.launch[np.searchsorted(device.operations.start, loop.starts)]
    if not len(calls) or (issued < 0).any():
        return False
    launched = device.launch[device.launch >= 0]
    mine = np.isin(calls.thread, distinct_values(calls.thread[issued]))
    mine[launched] = False
    mine &= ~np.isin(calls.correlation, calls.correlation[launched])  # the driver's rows of these launches
    starts = np.maximum.accumulate(calls.start[issued])

    def in_most(times: IntArray) -> bool:
        return _in_most(loop, np.searchsorted(starts, times, side="right") - 1)

    def often(wanted: Sequence[bool]) -> bool:
        return in_most(calls.start[mine & np.array(wanted, np.bool_)[calls.name]])

    if in_most(calls.start[device.launch[_with_host(device) & (device.launch >= 0)]]):
        return True
    if often([bool(_TOUCHES.search(name)) for name in names]):
        return True
    return often(["EventRecord" in name for name in names]) and not often(["WaitEvent" in name for name in names])


def _pauses(loop: Loop, happened: Happened) -> bool:
    """Whether a device is idle at one place of each repeat for long, and hardly at others."""
    start, end = happened.time[: len(happened.end)], happened.end
    borders = np.searchsorted(start, loop.starts)
    size = np.diff(borders)
    usual = int(np.median(size))
    same: BoolArray = size == usual
    if usual < FEWEST_KERNELS or np.count_nonzero(same) < ALIKE * len(size):
        return False
    until = np.maximum.accumulate(end)
    rows = borders[:-1][same][:, None] + 1 + np.arange(usual)
    idle = np.sort(np.median(np.maximum(start[rows] - until[rows - 1], 0), axis=0))
    length = float(np.median(np.diff(loop.starts)))
    return bool(idle[-1] >= LEAST_PAUSE * length and idle[-1] >= PAUSES * idle[-2])


ENOUGH_NAMED = 0.8
"""Of the device's span in named loops: the rest is not searched for others."""
ENOUGH_REGULAR = 0.5
"""Of the device's span in one loop: else repeats that take any time are looked for."""
NAMED_WEIGHT = 4
"""A range that the program names a step is preferred to a longer stretch that only repeats, such as a start-up."""
ENDS = 2
"""Repeats that may be missing at the ends of a loop, so that another one that is the same has more or fewer."""
LEAST_REACH, LEAST_NUMBERED, FEWEST_PARTS = 0.5, 0.5, 3
"""Layers are numbered over so much of a loop's time, so many for each repeat, and so many different ones, at least."""


def main_loop(loops: list[Loop]) -> Loop | None:
    """The one whose repeats are the iterations of the program; None without loops."""
    return max(loops, key=_weight, default=None)


def _weight(loop: Loop) -> tuple[bool, float]:
    """Steps before layers, then the time: what is named counts more, what varies less."""
    length = loop.ends - loop.starts
    median = median_of(length)
    varies = min(spread_of(length, median) / max(median, 1), 1.0)
    return loop.kind != LAYER, loop.total_ns * (NAMED_WEIGHT if loop.source == NVTX else 1.0 - varies)


def find_loops(
    device: DeviceTimeline,
    calls: CallRows,
    ranges: NvtxRanges,
    strings: Strings,
    whole: Intervals,
    fewest: int = FEWEST,
    names: Sequence[str] | None = None,
) -> list[Loop]:
    """All loops with at least `fewest` repeats inside the span `whole`: by repeating ranges or, in the time without
    such, by a repeating operation. Most time first, and no two over the same time. Without the `names` of the calls
    repeats are not distinguished from layers of one pass."""
    if len(whole) == 0:
        return []
    kinds = Kinds.of(ranges)
    end, replays = int(whole.end[-1]), Replays.of(device)
    happened = Happened.of(device, calls, ranges, kinds, strings, replays, names or ())

    def closes(starts: IntArray, times: int) -> Closing | None:
        inner = loop_of(Called(), starts, np.zeros(len(starts) - 1, np.bool_), None, end)
        every = (each for each in around(inner, happened, end) if each.more and abs(len(each.loop) - times) <= ENDS)
        return next((Closing(not each.steps, each.certain) for each in every), None)

    loops = named_loops(device, calls, ranges, kinds, whole, fewest)
    if sum(loop.total_ns for loop in loops) < ENOUGH_NAMED * whole.total():
        found = anchored_loops(device, replays, whole, loops, fewest, closes)
        found = [loop for loop in found if not parts_of_one_pass(loop, device, happened, end)]
        loops += [loop for loop in found if not by_chance(loop, happened, end)]
    loops = [outermost(loop, happened, end) for loop in loops]
    if not any(loop.source == NVTX for loop in loops) and (server := by_exchange(happened, whole)) is not None:
        loops = [server, *(loop for loop in loops if loop.starts[-1] <= server.starts[0])]
    if max((loop.total_ns for loop in loops), default=0) < ENOUGH_REGULAR * whole.total():
        irregular = by_sequence(happened, whole, loops, fewest) or by_wait(happened, device, whole)
        if irregular is not None and not parts_of_one_pass(irregular, device, happened, end):
            loops = apart([*loops, irregular])
    loops = [from_the_first(without_other_work(loop, happened, end), happened) for loop in loops]
    loops = [before_other_work(loop, happened) for loop in loops]
    loops = [with_layers(perhaps_several(loop, replays, happened), happened) for loop in loops]
    if names is not None:
        loops = [perhaps_layers(loop, device, happened, calls, names, strings) for loop in loops]
    judged = [loop.of_kind(LAYER) if _are_layers(loop, device, calls, ranges, kinds) else loop for loop in loops]
    return sorted(judged, key=lambda loop: (-loop.total_ns, int(loop.starts[0])))


def _are_layers(loop: Loop, device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, kinds: Kinds) -> bool:
    """Whether each layer of a model repeats less often than `loop` does: its repeats are then layers, not steps.

    ```
    thread   [blocks.3  ][blocks.4  ][blocks.5  ][blocks.6  ]      each part once: repeats are layers of one pass
    device      [repeat    )[repeat    )[repeat    )[repeat    )

    thread   [blocks.0][blocks.1][blocks.0][blocks.1]              each part in every repeat: repeats are steps
    device      [repeat             )[repeat            )
    ```
    """
    if not (kinds.part >= 0).any():
        return False
    launch = device.launch[np.searchsorted(device.operations.start, loop.starts)]
    launch = launch[launch >= 0]
    if len(launch) == 0:
        return False
    begin, end = int(calls.start[launch].min()), int(calls.start[launch].max())
    rows = ranges.rows
    numbered = np.flatnonzero((kinds.part[rows.name] >= 0) & (rows.start >= begin) & (rows.start <= end))
    numbered = numbered[np.isin(rows.thread[numbered], distinct_values(calls.thread[launch]))]
    word, part, start = kinds.code[rows.name[numbered]], kinds.part[rows.name[numbered]], rows.start[numbered]
    of_word = RowsOf(word)
    return any(_slower(part[of_word[each]], start[of_word[each]], len(loop), end - begin) for each in of_word.values())


def _slower(part: IntArray, start: IntArray, repeats: int, reach: int) -> bool:
    """Whether parts that are numbered all over the time of the repeats come at most half as often as these."""
    times = np.unique(part, return_counts=True)[1]
    everywhere = int(start.max() - start.min()) >= LEAST_REACH * reach and len(part) >= LEAST_NUMBERED * repeats
    return everywhere and len(times) >= FEWEST_PARTS and 2 * float(np.median(times)) <= repeats
