"""Steps of any length and any work, from one wait of the host to the next.

```
thread    |launch a a b|wait  |launch c a|wait |launch b b c a|wait      |
device         |a a b|          |c a|            |b b c a|
steps          |----------------|----------------|-----------------------|
```

Nothing that runs on the device comes once in each of them. That the host waits is all that shows where one ends.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import median_of, sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before, stretches
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.counts import RepeatCounts
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import FEWEST, Called, Inner, Loop
from nsysdiag.iterations.outer import REGULAR

FEWEST_WAITS = 20
"""Fewer waits may come for any reason."""
LEAST_REACH = 0.5
"""Of the time: waits over less of it are not those of its loop."""
FEWEST_KERNELS = 2
"""In a repeat: who waits for each kernel makes no steps of them."""
OFTEN, MOSTLY = 0.1, 0.8
"""Kernels come again if so many repeats have them; such are so many of all kernels, at least."""
BOTH = 0.8
"""Of the repeats: so many take input and give results if they are those of requests."""
MOST_WAITS_OF_A_STEP = 4
"""Waits of several kinds in turn, such as for a flag and a result, that are one step. If a step has more of them, each
wait begins a repeat of its own."""
SIZES = 16
"""Times the bytes of another one: a copy of another kind, such as a result and no flag."""
HOST_WAIT, READ_BACK = "host wait", "read-back"


class _HostWaits(Struct, frozen=True):
    """Waits of the host between kernels: where the next operation starts, and what kind of wait it was: a number of a
    call, or of a size of copies to the host, which are below 0."""

    starts: IntArray
    kind: IntArray

    @classmethod
    def of(cls, happened: Happened, issued: IntArray) -> _HostWaits:
        """Those without a kernel between them are one, of the kind of the last."""
        order, names = np.argsort(issued, kind="stable"), happened.names
        code = happened.code[order]
        waits = np.flatnonzero(names.wait[happened.host_code])
        downloads = np.flatnonzero(names.download[code])
        size = happened.device.operations.size[happened.operations[order[downloads]]]
        behind = np.append(np.searchsorted(issued[order], happened.host_time[waits]), downloads + 1)
        kind = np.append(happened.host_code[waits], -1 - np.floor(np.log(np.maximum(size, 1)) / np.log(SIZES)))
        by_time = np.lexsort((kind, behind))
        behind, kind = behind[by_time], kind[by_time].astype(np.int64)
        kernels = np.append(0, np.cumsum(names.kernel[code]))[behind]
        kept = np.append(np.diff(kernels) > 0, True)[: len(kernels)] & (behind < len(order)) & (kernels > 0)
        starts, first = np.unique(happened.start[order[behind[kept]]], return_index=True)
        return cls(starts, kind[kept][first])

    def period(self) -> int:
        """After how many waits the kinds come again, 1 if all are alike, or nothing shows a longer period."""
        for each in range(2, MOST_WAITS_OF_A_STEP + 1):
            same = float((self.kind[each:] == self.kind[:-each]).mean())
            if same >= REGULAR and float((self.kind[1:] == self.kind[:-1]).mean()) < 1 - REGULAR / each:
                return each
        return 1


def by_wait(happened: Happened) -> Loop | None:
    """The loop, in doubt unless its repeats take input and give results: several may be a step. None if the host
    hardly waits, or the repeats have nothing in common."""
    issued = happened.issued_at(slice(None))
    if not len(issued) or (issued < 0).any():
        return None
    waits = _HostWaits.of(happened, issued)
    if len(waits.starts) < FEWEST_WAITS or happened.last - int(waits.starts[0]) < LEAST_REACH * happened.whole.total():
        return None
    each = waits.period()
    first = _first(waits, each, happened)
    starts = waits.starts[first::each]
    if first == each - 1:
        starts = np.append(happened.start[int(np.argmin(issued))], starts)
    found = RepeatCounts.of(happened, starts)
    if not _repeats(found):
        return None
    read = _in_most(found, found.names.download)
    loop = happened.loop_from(Called(label=READ_BACK if read else HOST_WAIT), starts)
    if each > 1:
        return replace(loop, inner=Inner(loop.called, each, median_of(np.diff(waits.starts))))
    return loop if read and _in_most(found, found.names.upload) else replace(loop, certain=False)


def _first(waits: _HostWaits, each: int, happened: Happened) -> int:
    """Behind which wait of a period a step begins: where the device is idle for longest."""
    before = np.searchsorted(happened.start, waits.starts)
    idle = waits.starts - np.maximum.accumulate(happened.end)[np.maximum(before - 1, 0)]
    return int(np.argmax([np.median(idle[at::each]) for at in range(each)]))


def _repeats(found: RepeatCounts) -> bool:
    """Whether repeats have several kernels, mostly such as others have too."""
    kernels = found.total(found.names.kernel)
    again = found.total(found.names.kernel & (found.share >= OFTEN))
    return float(np.median(kernels)) >= FEWEST_KERNELS and int(again.sum()) >= MOSTLY * int(kernels.sum())


def _in_most(found: RepeatCounts, names: BoolArray) -> bool:
    """Whether some of these are in most repeats."""
    return float((found.names_in(names) > 0).mean()) >= BOTH


# Steps of several kinds in one loop, as those of a server: most decode, now and then one prefills.
#
# ```
# steps     |d |d |d |p    |d |d |p    |p    |d |d |d |p    |d |
# kinds      1  1  1  2     1  1  2     2     1  1  1  2     1
# ```

FEWEST_TURNS = 3
"""So many times a kind of step comes between others: twice may be two phases around a third."""
LONGEST_NAMES, MOST_CELLS = 32, 4_000_000
"""Names that can be the longest of a step, and times of names in steps that are added up: 32 MB."""
AS_OFTEN, REACH = 0.95, 0.8
"""Of the steps of a loop so many exchange data with the host alike. It takes such a share of the time of its device."""
MOST_TRIED = 20
"""Kernels, the most frequent first, that are tried as the start of steps that exchange data with the host. Each costs a
look at all its launches: a limit on time."""


def longest_in(steps: Intervals, spans: Intervals, code: IntArray) -> IntArray:
    """The code that takes most of the time of each step, 0 if none of the longest does, or there are too many steps.
    `code` is that of each span, which belongs to the step that it begins in."""
    total = sum_of_each(code, spans.end - spans.start, int(code.max(initial=-1)) + 1)
    names = min(LONGEST_NAMES, len(total))
    if len(steps) * (names + 1) > MOST_CELLS:
        return np.zeros(len(steps), np.int64)
    longest = np.argsort(-total, kind="stable")[:names]
    place = np.full(len(total), names)
    place[longest] = np.arange(names)
    time = np.zeros(len(steps) * (names + 1), dtype=np.int64)
    for part in stretches(len(spans)):
        some = spans[part]
        step = nearest_before(steps.start, some.start)
        inside = np.flatnonzero((step >= 0) & (some.start < steps.end[np.maximum(step, 0)]))
        cell = joint(step[inside], place[code[part][inside]], names + 1)
        np.add.at(time, cell, some.end[inside] - some.start[inside])
    return np.append(longest, 0)[time.reshape(len(steps), names + 1).argmax(axis=1)]


def take_turns(kinds: IntArray) -> bool:
    """Whether one kind of step comes again and again between others, and mostly fewer than five in a row: so many are a
    phase. Not if it is half of all steps: one of each kind may be a step then."""
    border = np.flatnonzero(np.diff(kinds, prepend=-1, append=-1))
    first, length = border[:-1], np.diff(border)
    for kind in distinct_values(kinds).tolist():
        run = length[kinds[first] == kind]
        if len(run) >= FEWEST_TURNS and 2 * run.sum() != len(kinds) and np.median(run) < FEWEST:
            return True
    return False


# A step of a server may take any time. It shows by what it exchanges with the host: input goes in, tokens come out.
#
# ```
# copies      |u      d|u      d|u                d|u      d|
# kernels     | g g g s| g g g s| p p p p p p p p s| g g g s|      s is once in each, whatever else there is
# ```


def by_exchange(happened: Happened, others: list[Loop]) -> Loop | None:
    """The loop from one of a kernel to the next: each repeat takes input and gives output once, and several kinds take
    turns. They need not if none of the `others` exchanges data so for most of the time. None if the program updates
    weights: its steps may be several such."""
    names, time, code = happened.names, happened.start, happened.code
    up, down = time[names.upload[code]], time[names.download[code]]
    if names.update.any() or min(len(up), len(down)) < FEWEST:
        return None
    rows, least = RowsOf(code), REACH * happened.whole.total()
    known = any(each.total_ns >= least and _alike(up, each.starts) and _alike(down, each.starts) for each in others)
    often = [each for each in np.flatnonzero(names.kernel).tolist() if FEWEST < len(rows[each]) <= len(down) + 1]
    for kernel in sorted(often, key=lambda each: -len(rows[each]))[:MOST_TRIED]:
        starts = distinct_values(time[rows[kernel]])
        if float(np.ptp(starts)) < least or not (_alike(up, starts) and _alike(down, starts)):
            continue
        kinds = _kinds(starts, happened)
        if take_turns(kinds) or (not known and len(distinct_values(kinds)) > 1):
            return happened.loop_from(happened.called(kernel), starts)
    return None


def _alike(copies: IntArray, starts: IntArray) -> bool:
    """Whether nearly all repeats have equally many of the copies, one at least."""
    inside = np.diff(np.searchsorted(copies, starts))
    usual = int(np.median(inside)) if len(inside) else 0
    return usual > 0 and float((inside == usual).mean()) >= AS_OFTEN


def _kinds(starts: IntArray, happened: Happened) -> IntArray:
    """The kernel that takes most of the time of each repeat; all graphs are one."""
    names, kernel = happened.names, happened.names.kernel[happened.code]
    graph = names.kernel & (names.anchor < 0)
    kind = np.where(graph, int(graph.argmax()), np.arange(len(graph)))[happened.code[kernel]]
    spans = Intervals(happened.start, happened.end)[kernel]
    return longest_in(Intervals(starts[:-1], starts[1:]), spans, kind)
