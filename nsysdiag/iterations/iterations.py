"""The loops of a program on a device, and its iterations: the repeats of the one that matters most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import RowsOf, distinct_values
from nsysdiag.iterations.by_anchor import Closing, anchored_loops
from nsysdiag.iterations.by_range import apart, named_loops
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import FEWEST, LAYER, NVTX, Called, Loop, loop_of
from nsysdiag.iterations.one_pass import parts_of_one_pass, perhaps_layers
from nsysdiag.iterations.other_work import without_other_work
from nsysdiag.iterations.outer import around, by_sequence, outermost
from nsysdiag.iterations.ranges import Kinds
from nsysdiag.iterations.slow import median_of, spread_of
from nsysdiag.trace.strings import Strings

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
    end, happened = int(whole.end[-1]), Happened.of(device, calls, ranges, kinds, strings, names or ())

    def closes(starts: IntArray, times: int) -> Closing | None:
        inner = loop_of(Called(), starts, np.zeros(len(starts) - 1, np.bool_), None, end)
        every = (each for each in around(inner, happened, end) if each.more and abs(len(each.loop) - times) <= ENDS)
        return next((Closing(not each.steps, each.certain) for each in every), None)

    loops = named_loops(device, calls, ranges, kinds, whole, fewest)
    if sum(loop.total_ns for loop in loops) < ENOUGH_NAMED * whole.total():
        found = anchored_loops(device, whole, loops, fewest, closes)
        loops += [loop for loop in found if not parts_of_one_pass(loop, device, happened, end)]
    loops = [outermost(loop, happened, end) for loop in loops]
    if max((loop.total_ns for loop in loops), default=0) < ENOUGH_REGULAR * whole.total():
        irregular = by_sequence(happened, whole, loops, fewest)
        if irregular is not None and not parts_of_one_pass(irregular, device, happened, end):
            loops = apart([*loops, irregular])
    loops = [without_other_work(loop, happened, end) for loop in loops]
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
