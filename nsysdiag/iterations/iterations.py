"""The loops of a program on a device, and its iterations: the repeats of the one that matters most."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import median_of
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.arrays.spill import laid
from nsysdiag.events.calls import ApiCalls
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.begins import Sequence, before_other_work, from_the_first
from nsysdiag.iterations.by_anchor import anchored_loops
from nsysdiag.iterations.by_host import by_exchange, by_wait
from nsysdiag.iterations.by_range import TIMES, apart, named_loops
from nsysdiag.iterations.counts import RepeatCounts
from nsysdiag.iterations.doubts import FEW, as_shown, by_chance, parts_of_one_pass, perhaps_layers, perhaps_several
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.host_pauses import perhaps_between_pauses
from nsysdiag.iterations.loop import FEWEST, LAYER, NVTX, Inner, Loop, spread_of, through
from nsysdiag.iterations.named import is_epoch, is_step
from nsysdiag.iterations.outer import LIGHT_KERNELS, REGULAR, by_sequence, outermost
from nsysdiag.trace.columns import Strings

FEWEST_LAYERS, MOST_KINDS = 4, 3
"""Attentions in a step at least, and kinds of layers at most, if layers are counted by kind. With fewer attentions or
more kinds, any difference between parts of a step would be a kind of layer."""
OF_NEXT = 3
"""Of the operations from one attention to the next, a third at most are of the next layer."""

Kernels = tuple[int, ...]


def with_layers(loop: Loop, happened: Happened) -> Loop:
    """The loop with the number of layers of each kind in a step, if there are several."""
    found = Sequence.of(loop, happened) if loop.closed and happened.names.attention.any() else None
    return loop if found is None else replace(loop, layers=_by_kind(found.usual, found.attends(happened)))


def _by_kind(usual: IntArray, first: IntArray) -> tuple[int, ...]:
    """How many layers are of each kind, in the order of the first of each; empty if all are of one kind, or not all
    are layers of one pass. What has the kernels of another kind and more is the end of a pass, such as a head."""
    if len(first) < FEWEST_LAYERS:
        return ()
    before, *layers, last = (tuple(each.tolist()) for each in np.split(usual, first))
    own = [each[: len(each) - min(len(before), len(each) // OF_NEXT)] for each in layers]
    kinds, whole = Counter(own), dict(zip(own, map(Counter, layers), strict=True))
    kinds[max(kinds, key=lambda each: _common(each, last))] += 1
    ends = any(one <= other for one, other in permutations(whole.values(), 2))
    return tuple(kinds.values()) if 1 < len(kinds) <= MOST_KINDS and not ends else ()


def _common(one: Kernels, other: Kernels) -> int:
    """How many are equal from the first on."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


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
SHORTEST_RUN, MOST_PARTS, FEWEST_RUNS = 2, 0.5, 2
"""Repeats in the usual run of evaluations at least, their share of all repeats at most, and such runs at least. A
single one may be the end of a longer step. If they are more than half, what is between them does more than a step. One
run has no length that comes again."""


def without_other_work(loop: Loop, happened: Happened) -> Loop:
    """The loop without repeats that are an evaluation between its steps: the step before them lasts until the next.
    What the program itself calls its steps are all of them. In doubt, if some repeats update no weights, and are not
    in runs as an evaluation is: a step may skip its update, or belong to the next one."""
    if len(loop) < FEWEST or (loop.source == NVTX and is_step(loop.name)):
        return loop
    found = RepeatCounts.of(happened, loop.starts)
    part, updates = _parts(found), found.names_in(found.names.update) > 0
    update_only = bool((updates != part)[:-1].all())  # all whole repeats update weights, and no others
    if not part.any() or not (update_only or _in_regular_runs(part)):
        return loop
    whole = through(loop.called, loop.starts[~part], happened.last)
    if not _in_like_runs(part):
        return loop.in_doubt(whole) if loop.certain else loop
    return replace(whole, inner=loop.inner, certain=loop.certain, kind=loop.kind)


def _parts(found: RepeatCounts) -> BoolArray:
    """Which repeats do only a part of what the others do; none if some are neither a part nor whole. The last one is
    like the one before: it may be cut."""
    kernel = found.names.kernel
    often = kernel & (found.share >= OFTEN_ENOUGH)
    share = found.names_in(often) / max(int(often.sum()), 1)
    share[-1] = share[-2]
    whole, part = share >= WHOLE, share <= PART
    both = found.repeats_with(whole[found.repeat]) > 0
    apart = bool((whole | part).all()) and np.count_nonzero(whole) >= FEWEST
    few = found.names_in(kernel & ~both)[part]
    return part if apart and (few <= LIGHT_KERNELS).all() else np.zeros_like(part)


def _in_regular_runs(part: BoolArray) -> bool:
    """Whether they come in runs of one length at one distance, two whole ones at least, and are no more than half of
    the repeats: else those between them do more than a step."""
    first, length = _runs(part)
    several = len(length) >= FEWEST_RUNS and part.mean() <= MOST_PARTS
    return several and _one_value(np.diff(first)) and _in_like_runs(part)


def _in_like_runs(part: BoolArray) -> bool:
    """Whether they come in runs of one length, and not one by one."""
    length = _runs(part)[1]
    return len(length) > 0 and int(np.median(length)) >= SHORTEST_RUN and _one_value(length)


def _runs(part: BoolArray) -> tuple[IntArray, IntArray]:
    """Where each run of them begins, and the lengths of those that no end of the trace cuts."""
    first = np.flatnonzero(part & ~np.append(False, part[:-1]))
    behind = np.flatnonzero(part & ~np.append(part[1:], False)) + 1
    return first, (behind - first)[: len(first) - int(behind[-1] == len(part))]


def _one_value(values: IntArray) -> bool:
    return float((values == np.median(values)).mean()) >= REGULAR


ENOUGH_NAMED = 0.8
"""Of the device's span in named loops: the rest is not searched for others."""
ENOUGH_REGULAR = 0.5
"""Of the device's span in one loop: else repeats that take any time are looked for."""
NAMED_WEIGHT = 4
"""A range that the program names a step is preferred to a longer stretch that only repeats, such as a start-up."""
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
    device: DeviceTimeline, api_calls: ApiCalls, ranges: NvtxRanges, strings: Strings, whole: Intervals
) -> list[Loop]:
    """All loops inside the span `whole`: by repeating ranges or, in the time without such, by a repeating operation.
    Most time first, and no two over the same time."""
    if len(whole) == 0:
        return []
    happened = laid(Happened.of(device, api_calls, ranges, strings, whole))
    loops = _perhaps_epochs(named_loops(happened), happened)
    if sum(loop.total_ns for loop in loops) < ENOUGH_NAMED * whole.total():
        loops += [loop for loop in anchored_loops(happened, loops) if not parts_of_one_pass(loop, happened)]
    outers = [(loop, outermost(loop, happened)) for loop in loops]
    every = [(outer, len(outer) == len(loop) and by_chance(loop, happened)) for loop, outer in outers]
    chance, loops = ([loop for loop, doubted in every if doubted is each] for each in (True, False))
    if not any(loop.source == NVTX for loop in loops) and (server := by_exchange(happened, loops)) is not None:
        loops = [server, *(loop for loop in loops if loop.starts[-1] <= server.starts[0])]
    if max((loop.total_ns for loop in loops), default=0) < ENOUGH_REGULAR * whole.total():
        irregular = _irregular(loops, chance, happened)
        if irregular is not None and not parts_of_one_pass(irregular, happened):
            loops = apart([*loops, irregular])
    judged = [_judged(loop, happened) for loop in loops]
    return sorted(judged, key=lambda loop: (-loop.total_ns, int(loop.starts[0])))


def _perhaps_epochs(loops: list[Loop], happened: Happened) -> list[Loop]:
    """The named loops. One whose ranges are called epochs is in doubt if work repeats in each: that may be steps."""
    epochs = [loop for loop in loops if is_epoch(loop.name)]
    if not epochs:
        return loops
    others = anchored_loops(happened, [loop for loop in loops if not is_epoch(loop.name)])
    every = [_judged(outermost(loop, happened), happened) for loop in others]
    return [_in_doubt(loop, every) if loop in epochs else loop for loop in loops]


def _in_doubt(epochs: Loop, every: list[Loop]) -> Loop:
    """The epochs, with the repeats of the loops found in them as their parts."""
    mine = [loop for loop in every if epochs.starts[0] <= loop.starts[0] < epochs.ends[-1]]
    times = round(sum(len(loop) for loop in mine) / len(epochs))
    if times < TIMES:
        return epochs
    longest = max(mine, key=lambda loop: loop.total_ns)
    inner = Inner(longest.called, times, median_of(longest.ends - longest.starts))
    return replace(epochs, inner=inner, certain=False)


def _judged(found: Loop, happened: Happened) -> Loop:
    """The loop from the first operation of a step on, with what the trace shows of its repeats."""
    loop = without_other_work(found, happened)
    evaluates = loop is not found
    loop = before_other_work(from_the_first(loop, happened), happened)
    loop = with_layers(perhaps_several(loop, happened), happened)
    loop = as_shown(perhaps_layers(loop, happened), happened, evaluates=evaluates)
    loop = perhaps_between_pauses(loop, happened)
    return loop.of_kind(LAYER) if _are_layers(loop, happened) else loop


def _irregular(loops: list[Loop], chance: list[Loop], happened: Happened) -> Loop | None:
    """The loop whose repeats take any time. What may be one by chance is used if no wait of the host shows more, and if
    its repeats are many. Waits are not asked if regular `loops` after each other take most of the time."""
    found = by_sequence(happened, loops)
    if found is not None and (found.inner is not None or not by_chance(found, happened)):
        return found
    many = [loop for loop in chance if len(loop) >= FEW]
    regular = sum(loop.total_ns for loop in loops) >= ENOUGH_REGULAR * happened.whole.total()
    waits = None if regular else by_wait(happened)
    return waits or found or max(many, key=lambda loop: loop.total_ns, default=None)


def _are_layers(loop: Loop, happened: Happened) -> bool:
    """Whether each layer of a model repeats less often than `loop` does: its repeats are then layers, not steps.

    ```
    thread   [blocks.3  ][blocks.4  ][blocks.5  ][blocks.6  ]      each part once: repeats are layers of one pass
    device      [repeat    )[repeat    )[repeat    )[repeat    )

    thread   [blocks.0][blocks.1][blocks.0][blocks.1]              each part in every repeat: repeats are steps
    device      [repeat             )[repeat            )
    ```
    """
    device, calls, kinds, rows = happened.device, happened.api.rows, happened.kinds, happened.ranges.rows
    if not (kinds.part >= 0).any():
        return False
    launch = device.launch[np.searchsorted(device.operations.start, loop.starts)]
    launch = launch[launch >= 0]
    if len(launch) == 0:
        return False
    begin, end = int(calls.start[launch].min()), int(calls.start[launch].max())
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
