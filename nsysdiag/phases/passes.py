"""The phases of a capture that holds one step of a program, or a few: the passes, and what is before and after them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.iterations.loop import NVTX
from nsysdiag.phases.facts import PASS, STEP, PhaseSteps
from nsysdiag.phases.signal import DeviceSignal, StepLoop

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


def passes_of_job(signals: list[DeviceSignal], loops: list[StepLoop]) -> JobPasses | None:
    """The passes, where all devices have equally many and no loop of steps takes most of them. In a range that is
    called a step only ranges can be such a loop. Other ranges need layers in them: a loop of steps may be inside."""
    every = [each.passes for each in signals if each.passes is not None]
    if len(every) < len(signals) or len({len(each.spans) for each in every}) > 1:
        return None
    spans = Intervals(
        np.min([each.spans.start for each in every], axis=0), np.max([each.spans.end for each in every], axis=0)
    )
    if (spans.start[1:] < spans.end[:-1]).any():
        return None
    inside = [loop for loop in loops if loop.starts[0] < spans.end[-1] and loop.starts[-1] > spans.start[0]]
    layers = [loop for loop in inside if loop.kernels or not loop.closed]
    least = LEAST_SHARE * spans.total()
    steps = all(each.steps for each in every)
    others = (loop for loop in inside if loop not in layers and (loop.source == NVTX or not steps))
    if sum(loop.length for loop in others) >= least:
        return None
    if not steps and sum(loop.length for loop in layers if loop.model or not loop.closed) < least:
        return None
    return JobPasses(spans, _steps_of(spans, layers, max(each.layers for each in every)))


def _steps_of(spans: Intervals, layers: list[StepLoop], named: int) -> PhaseSteps:
    """What is known of the passes: their lengths, and the layers in each: so many as are `named`, if any are."""
    starts: IntArray = np.concatenate([np.empty(0, np.int64), *(_own_starts(loop, spans) for loop in layers)])
    parts = round(len(starts) / len(spans))
    length = np.diff(np.append(spans.start, spans.end[-1])) if len(spans) > 1 else spans.end - spans.start
    certain = all(not loop.closed for loop in layers)
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


def _own_starts(loop: StepLoop, spans: Intervals) -> IntArray:
    """Where the layers of a loop begin that are in the passes."""
    starts = loop.starts[:-1]
    at = np.searchsorted(spans.start, starts, side="right") - 1
    return starts[(at >= 0) & (starts < spans.end[at])]
