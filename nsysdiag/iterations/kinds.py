"""Steps of several kinds in one loop, as those of a server: most decode, now and then one prefills.

```
steps     |d |d |d |p    |d |d |p    |p    |d |d |d |p    |d |
kinds      1  1  1  2     1  1  2     2     1  1  1  2     1
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.happened import Happened, anchor_of
from nsysdiag.iterations.loop import FEWEST, Called, Loop

FEWEST_TURNS = 3
"""So many times a kind of step comes between others: twice may be two phases around a third."""
MOST_OF_STEPS = 0.5
"""Of all steps: a kind that is more of them is the usual one."""
LONGEST_NAMES, MOST_CELLS = 32, 4_000_000
"""Names that can be the longest of a step, and times of names in steps that are added up: 32 MB."""
AS_OFTEN, REACH = 0.95, 0.8
"""Of the steps of a loop so many exchange data with the host alike. It takes such a share of the time of its device."""
MOST_TRIED = 20


def longest_in(steps: Intervals, spans: Intervals, code: IntArray) -> IntArray:
    """The code that takes most of the time of each step, 0 where none of the longest does, or there are too many steps.
    `code` is that of each span, which belongs to the step that it begins in."""
    total = np.bincount(code, spans.end - spans.start)
    names = min(LONGEST_NAMES, len(total))
    if len(steps) * (names + 1) > MOST_CELLS:
        return np.zeros(len(steps), np.int64)
    longest = np.argsort(-total, kind="stable")[:names]
    place = np.full(len(total), names)
    place[longest] = np.arange(names)
    step = np.searchsorted(steps.start, spans.start, side="right") - 1
    inside = (step >= 0) & (spans.start < steps.end[np.maximum(step, 0)])
    cell = step[inside] * (names + 1) + place[code[inside]]
    time = np.bincount(cell, (spans.end - spans.start)[inside], len(steps) * (names + 1))
    found: IntArray = np.append(longest, 0)[time.reshape(len(steps), names + 1).argmax(axis=1)]
    return found


def take_turns(kinds: IntArray) -> bool:
    """Whether one kind of step, less than half of all, comes again and again between others, and mostly fewer than five
    in a row: so many are a phase."""
    border = np.flatnonzero(np.diff(kinds, prepend=-1, append=-1))
    first, length = border[:-1], np.diff(border)
    for kind in np.unique(kinds).tolist():
        run = length[kinds[first] == kind]
        if len(run) >= FEWEST_TURNS and run.sum() < MOST_OF_STEPS * len(kinds) and np.median(run) < FEWEST:
            return True
    return False


# A step of a server may take any time. It shows by what it exchanges with the host: input goes in, tokens come out.
#
# ```
# copies      |u      d|u      d|u                d|u      d|
# kernels     | g g g s| g g g s| p p p p p p p p s| g g g s|      s is once in each, whatever else there is
# ```


def by_exchange(happened: Happened, whole: Intervals) -> Loop | None:
    """The loop from one of a kernel to the next: each repeat takes input and gives output once, and several kinds take
    turns. None where the program updates weights: its steps may be several such."""
    if happened.updates or not (happened.uploads and happened.downloads):
        return None
    count = len(happened.end)
    time, code = happened.time[:count], happened.code[:count]
    up, down = (time[np.isin(code, list(codes))] for codes in (happened.uploads, happened.downloads))
    if min(len(up), len(down)) < FEWEST:
        return None
    rows = RowsOf(code)
    often = [each for each in sorted(happened.kernels) if FEWEST < len(rows[each]) <= len(down) + 1]
    for kernel in sorted(often, key=lambda each: -len(rows[each]))[:MOST_TRIED]:
        starts = np.unique(time[rows[kernel]])
        if float(np.ptp(starts)) < REACH * whole.total() or not (_alike(up, starts) and _alike(down, starts)):
            continue
        if take_turns(_kinds(starts, happened)):
            return happened.loop_from(Called(anchor=anchor_of(kernel)), starts, int(whole.end[-1]))
    return None


def _alike(copies: IntArray, starts: IntArray) -> bool:
    """Whether nearly all repeats have equally many of the copies, one at least."""
    inside = np.diff(np.searchsorted(copies, starts))
    usual = int(np.median(inside)) if len(inside) else 0
    return usual > 0 and float((inside == usual).mean()) >= AS_OFTEN


def _kinds(starts: IntArray, happened: Happened) -> IntArray:
    count = len(happened.end)
    codes, place = np.unique(happened.code[:count], return_inverse=True)
    kernel = np.isin(codes, list(happened.kernels))
    graph = kernel & (np.array([anchor_of(int(each)) for each in codes]) < 0)
    kind = np.where(graph, int(graph.argmax()), np.arange(len(codes)))[place]
    spans = Intervals(happened.time[:count], happened.end)[kernel[place]]
    return longest_in(Intervals(starts[:-1], starts[1:]), spans, kind[kernel[place]])
