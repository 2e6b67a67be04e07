"""The loops of a program on a device, and its iterations: the repeats of the one that matters most."""

from __future__ import annotations

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.iterations.by_anchor import anchored_loops
from nsysdiag.iterations.by_range import named_loops
from nsysdiag.iterations.layers import are_layers
from nsysdiag.iterations.loop import FEWEST, LAYER, NVTX, Loop
from nsysdiag.iterations.ranges import Kinds
from nsysdiag.iterations.slow import median_of, spread_of

ENOUGH_NAMED = 0.8
"""Of the device's span in named loops: the rest is not searched for others."""
NAMED_WEIGHT = 4
"""What the program itself names a step counts as one beside a longer stretch that only repeats, such as a start-up."""


def find_iterations(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals) -> Loop | None:
    """The loop inside the span `whole` of a device's work that takes most time, steps before layers."""
    return main_loop(find_loops(device, calls, ranges, whole))


def main_loop(loops: list[Loop]) -> Loop | None:
    """The one whose repeats are the iterations of the program; None without loops."""
    return max(loops, key=_weight, default=None)


def _weight(loop: Loop) -> tuple[bool, float]:
    """Steps before layers, then the time: what is named counts more, what varies less."""
    length = loop.ends - loop.starts
    median = median_of(length)
    varies = min(spread_of(length, median) / max(median, 1), 1.0)
    return loop.closed, loop.total_ns * (NAMED_WEIGHT if loop.source == NVTX else 1.0 - varies)


def find_loops(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals, fewest: int = FEWEST
) -> list[Loop]:
    """All loops with at least `fewest` repeats inside the span `whole`, by ranges that repeat or, in the time without
    such, by an operation that does; those that take most time first, and no two over the same time."""
    if len(whole) == 0:
        return []
    kinds = Kinds.of(ranges)
    loops = named_loops(device, calls, ranges, kinds, whole, fewest)
    if sum(loop.total_ns for loop in loops) < ENOUGH_NAMED * whole.total():
        loops += anchored_loops(device, whole, loops, fewest)
    judged = [loop.of_kind(LAYER) if are_layers(loop, device, calls, ranges, kinds) else loop for loop in loops]
    return sorted(judged, key=lambda loop: (-loop.total_ns, int(loop.starts[0])))
