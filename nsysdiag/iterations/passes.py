"""The passes of a capture that holds one step of a program, or a few: too few for a loop.

```
thread    [ProfilerStep#6                             ]       one range around the launches: one pass
device        [L][L][L][L][L][L][L][L][head]                  what repeats are its layers
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, contains, union
from nsysdiag.arrays.nesting import levels
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.happened import Kinds, is_step
from nsysdiag.iterations.loop import FEWEST, Loop

LEAST_LAUNCHED = 0.8
"""Of the launches in the file: ranges that hold less are not the passes."""
MOST_LEVELS = 4
_STEP = re.compile(r"profilerstep|execute_|step\[")
"""What PyTorch, vLLM and SGLang call their steps."""
_MODULE = re.compile(r"nn\.Module: (\w*(?:Layer|Block))_(\d{1,6})")
_LONGER = re.compile(r"epoch|request")
"""What holds many steps."""


class Passes(Struct, frozen=True):
    """The time of each pass on the device, from its first operation to its last one. `steps`: the ranges around them
    are called steps. `layers` is how many the model has in each, 0 where nothing names them."""

    spans: Intervals
    steps: bool
    layers: int = 0

    def of_layers(self, loop: Loop) -> bool:
        """Whether a loop comes as often in each pass as the model has layers, or pairs of two kinds of these. The first
        and the last may be another one's."""
        at = np.searchsorted(self.spans.start, loop.starts, side="right") - 1
        inside = int(((at >= 0) & (loop.starts < self.spans.end[at])).sum()) / len(self.spans)
        return self.layers > 0 and any(abs(inside - self.layers / each) <= 1 for each in (1, 2))


def layers_named(names: Iterable[str]) -> int:
    """How many instances of one class of layers the names of Python functions number: `nn.Module: DecoderLayer_23`."""
    found: dict[str, set[int]] = {}
    for name in names:
        if (match := _MODULE.fullmatch(name)) is not None:
            found.setdefault(match[1], set()).add(int(match[2]))
    return max((len(numbers) for numbers in found.values()), default=0)


class _Ranges(Struct, frozen=True):
    """Ranges of one name on one level of a thread, and the rank of the choice: the lowest is used."""

    spans: Intervals
    steps: bool
    level: int


def passes_of(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals) -> Passes | None:
    """Those of the outermost ranges that hold nearly all launches, called steps if any are. None without such, or where
    they are not few."""
    launched = device.running & (device.launch >= 0) & contains(whole, device.operations.start)
    if not launched.any():
        return None
    issued = calls.start[device.launch[launched]]
    found = [each for each in _families(ranges) if contains(union(each.spans), issued).mean() >= LEAST_LAUNCHED]
    best = min(found, key=lambda each: (not each.steps, each.level), default=None)
    if best is None or len(best.spans) >= FEWEST:
        return None
    return passes_in(device, calls, best.spans, whole, steps=best.steps)


def passes_in(
    device: DeviceTimeline, calls: CallRows, spans: Intervals, whole: Intervals, *, steps: bool
) -> Passes | None:
    """Those of ranges, where these do not overlap: each from the first operation that is launched in it to the last."""
    rows = np.flatnonzero(device.running & (device.launch >= 0) & contains(whole, device.operations.start))
    issued = calls.start[device.launch[rows]]
    found = []
    for begin, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
        mine = rows[(issued >= begin) & (issued < end)]
        if len(mine):
            found.append((int(device.operations.start[mine].min()), int(device.operations.end[mine].max())))
    made = Intervals.of(found)
    apart = len(found) > 0 and bool((made.end[:-1] <= made.start[1:]).all())
    return Passes(made, steps=steps) if apart else None


def _families(ranges: NvtxRanges) -> list[_Ranges]:
    """The ranges of one name, counters aside, on one of the outer levels of a thread. Operators, parts of a model and
    calls of libraries are left out."""
    kinds, rows = Kinds.of(ranges), ranges.rows
    mine = ~kinds.operator[rows.name] & (kinds.part[rows.name] < 0) & ~rows.communication & ~rows.mpi
    rows = rows.take(mine & (rows.end > rows.start))
    of_thread = RowsOf(rows.thread)
    found: list[_Ranges] = []
    for thread in of_thread.values():
        its = of_thread[thread]
        its = its[np.argsort(rows.start[its], kind="stable")]
        found += _of_thread(Intervals(rows.start[its], rows.end[its]), kinds.code[rows.name[its]], kinds.words)
    return found


def _of_thread(spans: Intervals, code: IntArray, words: list[str]) -> list[_Ranges]:
    level = levels(spans, MOST_LEVELS + 1)
    found = []
    for depth in range(MOST_LEVELS):
        at = np.flatnonzero(level == depth)
        of_word = RowsOf(code[at])
        found += [_Ranges(spans[at[of_word[word]]], _is_step(words[word]), depth) for word in of_word.values()]
    return found


def _is_step(name: str) -> bool:
    lower = name.lower()
    return _STEP.search(lower) is not None or (is_step(name) and _LONGER.search(lower) is None)
