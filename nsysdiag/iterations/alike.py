"""What the work of repeats shows: several steps in each, a longer loop around them, or no loop at all.

Steps take turns with kernels of other names, as those of a solver with two buffers: a repeat may be several.

```
launches    |graph A   |graph B   |graph A   |graph B   |
found       |                     |                     |       two steps, or four
```
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, distinct, distinct_values
from nsysdiag.iterations.begins import REGULAR
from nsysdiag.iterations.happened import HOST, Happened, category_of
from nsysdiag.iterations.loop import NVTX, STEP, Inner, Loop, loop_of, median_of
from nsysdiag.iterations.outer import LONGEST_EVEN, MOST_TOKENS, RepeatCounts, Special, judged
from nsysdiag.iterations.replays import Replays

MOST_PARTS = 4
AS_LONG = 1.25
"""Parts are alike where none takes so many times as long as another."""
_KERNEL, _LAUNCH = -1, -2


def perhaps_several(loop: Loop, replays: Replays, happened: Happened) -> Loop:
    """The loop, in doubt where each repeat has several parts alike, but for the names of their kernels. Each part
    launches a graph, or reads something back: kernels in a row are no steps without either."""
    if loop.source == NVTX or not loop.certain or loop.inner is not None:
        return loop
    time = happened.time[: len(happened.end)]
    borders = np.searchsorted(time, loop.starts)
    size = np.diff(borders)
    usual = int(np.median(size)) if len(size) else 0
    same = np.flatnonzero(size == usual)
    if not usual or len(same) < REGULAR * len(size):
        return loop
    first = borders[same]
    kinds = _kinds(first[len(first) // 2] + np.arange(usual), replays, happened)
    for parts in (parts for parts in range(2, MOST_PARTS + 1) if usual % parts == 0):
        each = kinds.reshape(parts, -1)
        if (each != each[0]).any() or not np.isin(each[0], [_LAUNCH, *happened.downloads]).any():
            continue
        begins = time[first[:, None] + each.shape[1] * np.arange(parts)]
        length = np.median(np.diff(np.column_stack((begins, loop.starts[same + 1]))), axis=0)
        if length.max() <= AS_LONG * length.min():
            return replace(loop, inner=Inner(loop.called, parts, int(np.median(length))), certain=False)
    return loop


def _kinds(rows: IntArray, replays: Replays, happened: Happened) -> IntArray:
    """What operations are, whatever their names: kernels, launches of graphs, or copies by their direction."""
    code = happened.code[rows]
    begins = np.isin(happened.operations[rows], replays.rows[replays.first]) | (category_of(code) == Category.GRAPH)
    kernel = np.isin(code, list(happened.kernels))
    return np.where(begins, _LAUNCH, np.where(kernel, _KERNEL, code))


# What the trace shows of the device alone: repeats do the same work, or what they do comes again by chance. What comes
# in some of them only, from time to time, may be the end of a longer step.
#
# ```
# repeats     |a b c|a b c|a b c|a b c C|a b c|a b c|a b c|a b c|a b c C|     C is a `c` of a larger launch
# ```

SAME, IN_MOST = 0.8, 0.8
"""Repeats are alike if so many of their operations are the usual ones, and if so many repeats are that."""
FEWEST_REGULAR, FEW = 3, 10
"""Kernels that come equally often in most repeats: so many show a loop, whatever else varies; not of few repeats."""
FEWEST_OUTER, LEAST_EACH = 3, 4
"""So many times something comes at every fourth repeat or less often."""
MOST_CELLS = 8_000_000
"""Counts of operations by repeat: of more, those of the most frequent operations are looked at."""


def as_shown(loop: Loop, happened: Happened, device: DeviceTimeline, *, evaluates: bool) -> Loop:
    """The loop, in doubt where its repeats may be one by chance, or parts of longer steps. Those from one wait of the
    host to the next have been judged by these waits. `evaluates`: some steps are longer by an evaluation, which shows
    where steps take input or update weights."""
    if loop.source == NVTX or loop.called.label or loop.kind != STEP or not loop.certain or len(loop) < 2:
        return loop
    found = RepeatCounts.in_loop(loop, happened, int(loop.ends[-1]))
    if not _shown(found, happened):
        return replace(loop, certain=False)
    if evaluates and any(found.usual.get(code) for code in happened.uploads | happened.updates):
        return loop
    longer = _longer(loop, found, happened, device)
    return loop if longer is None else loop.in_doubt(max(round(len(loop) / len(longer)), 2), longer)


def _shown(found: RepeatCounts, happened: Happened) -> bool:
    """Whether repeats exchange data with the host, or update weights, or do the same, several operations: else they may
    be one by chance."""
    whole = slice(found.size - (found.size > FEWEST_OUTER))  # the last one may be cut
    often = {code for code, usual in found.usual.items() if usual and _regular(found.count[code][whole], usual)}
    if often & (happened.uploads | happened.downloads | happened.updates):
        return True
    if found.size >= FEW and len(often & happened.kernels) >= FEWEST_REGULAR:
        return True
    several = float(np.median(found.operations())) > 1
    return several and float(_same(found)[whole].mean()) >= IN_MOST


def _regular(count: IntArray, usual: int) -> bool:
    return float((count == usual).mean()) >= IN_MOST


def _same(found: RepeatCounts) -> BoolArray:
    """Which repeats have mostly the usual operations, as often."""
    held, every = np.zeros(found.size), np.zeros(found.size)
    for code, count in found.count.items():
        if code < HOST:
            held += np.minimum(count, found.usual[code])
            every += np.maximum(count, found.usual[code])
    same: BoolArray = held >= SAME * every
    return same


def _longer(loop: Loop, found: RepeatCounts, happened: Happened, device: DeviceTimeline) -> Loop | None:
    """The loop from behind one repeat with more work to the next such, where the trace does not show that these repeats
    are the steps."""
    rarer = (special for special in _rarer(loop, happened, device) if not _is_step(special, found, happened))
    special = min(rarer, key=lambda each: (not each.exact, len(each.at)), default=None)
    if special is None:
        return None
    starts = np.append(loop.starts[:1], loop.starts[special.at + 1])
    return loop_of(loop.called, starts, np.zeros(len(starts) - 1, np.bool_), None, int(loop.ends[-1]))


def _is_step(special: Special, found: RepeatCounts, happened: Happened) -> bool:
    return judged(special, found, happened) == (False, True)


def _rarer(loop: Loop, happened: Happened, device: DeviceTimeline) -> list[Special]:
    """What comes more often than usual in some repeats, all over the time of the loop: operations of one name and one
    size of the launch; and -1 where there are fewer operations."""
    count = len(happened.end)
    place = np.searchsorted(loop.starts, happened.time[:count], side="right") - 1
    rows = np.flatnonzero((place >= 0) & (place < len(loop) - 1) & ~loop.open[place])
    code, shape = happened.code[rows], device.operations.shape[happened.operations[rows]]
    of_key = RowsOf(joint(distinct(code)[1], distinct(shape)[1], len(rows) + 1))
    streams = len(distinct_values(device.stream_code[happened.operations[rows]]))

    def special(mine: IntArray, sign: int, code: int) -> Special | None:
        count = sign * np.bincount(place[rows[mine]], minlength=len(loop) - 1)
        return _at_times(_more_than_usual(count, shifts=streams > 1), len(count), code)

    most = min(MOST_TOKENS, MOST_CELLS // len(loop))
    longest = sorted(of_key.values(), key=lambda each: -len(of_key[each]))[:most]
    found = [special(of_key[key], 1, int(code[of_key[key][0]])) for key in longest]
    return [each for each in (special(np.arange(len(rows)), -1, -1), *found) if each is not None]


def _more_than_usual(count: IntArray, *, shifts: bool) -> IntArray:
    """The first of each run of repeats that have more of something than usual. Of several streams, a repeat next to
    one that lacks it has not: operations `shifts` a little, and begin earlier or later."""
    more = count - median_of(count)
    lack = np.minimum(more, 0) if shifts else np.zeros_like(more)
    extra: BoolArray = more + np.append(0, lack[:-1]) + np.append(lack[1:], 0) > 0
    return np.flatnonzero(extra & ~np.append(False, extra[:-1]))


def _at_times(at: IntArray, size: int, code: int) -> Special | None:
    """None where they are few, or often, or not all over the time."""
    if len(at) < FEWEST_OUTER or LEAST_EACH * len(at) > size:
        return None
    distance = np.diff(at)
    each = int(np.median(distance))
    longest = LONGEST_EVEN * each
    if max(int(at[0]), int(distance.max()), size - 1 - int(at[-1])) > longest:
        return None
    return Special(at, each, float((distance == each).mean()) >= REGULAR, {code: 1})
