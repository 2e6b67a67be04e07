"""Loops found by the NVTX ranges of the program that repeat."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, contains, coverage, union
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline, of_processes
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, picked
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import FEWEST, LAYER, STEP, Called, Inner, Loop, loop_of, pauses, through
from nsysdiag.iterations.named import MOST_LEVELS, Kinds, ThreadRanges, is_epoch, is_step, is_step_of_epochs, stem_of

LEAST_COVER = 0.6
"""Ranges that leave more of the time between them to others are not the loop, but something in it."""
LEAST_SHARE = 0.02
"""Of the device's span; what the program names needs less time than what only looks regular."""
LEAST_WORK = 0.5
"""Of the work that their thread launches from the first range to the last: ranges in which the host waits may cover its
time, and launch little."""
LEAST_PARTS, LEAST_INNER = 0.25, 0.25
"""Shares of time: what ranges of a model's parts cover from the first to the last, so that a step is from one first
part to the next; and what a shorter period fills of each repeat. Ranges that fill less are a detail of a step and no
level of it. The second is that of `by_anchor`."""
MOST_NAMES = 256
"""Names on a level of ranges that are looked at, the most frequent ones. Each costs a look at all work of its thread:
without a limit, time grows with names times work."""
FEWEST_ROUNDS, LONGEST_ROUND = 5, 64
"""So many times ranges count up to no more than that: a model rarely has more layers."""
TIMES = 2
"""Steps that the program counts come so many times as often as ranges next to them."""


class _Launched(Struct, frozen=True):
    """What one thread launched, in the order of its calls: when it was issued, when it started and ended. `main` holds
    that of the stream on which its work takes most time."""

    issued: IntArray
    start: IntArray
    end: IntArray
    main: tuple[IntArray, IntArray]

    @classmethod
    def of(cls, device: DeviceTimeline, calls: CallRows, rows: IntArray) -> _Launched:
        issued = taken(calls.start, taken(device.launch, rows))
        if not ascending(issued):
            order = np.argsort(issued, kind="stable")
            rows, issued = rows[order], issued[order]
        operations, index = device.operations, picked(rows)
        start, end, stream = (taken(each, index) for each in (operations.start, operations.end, device.stream_code))
        computes = taken(operations.category, index) != Category.MEMCPY
        time = np.bincount(stream, weights=np.where(computes, end - start, 0))
        on_main = stream == int(np.argmax(time))
        return cls(issued, start, end, (issued[on_main], start[on_main]))


def named_loops(happened: Happened) -> list[Loop]:
    """The outermost ranges of one name that repeat and cover most of the time from the first to the last of them; loops
    that share no time, the longest first.

    ```
    thread  [train                                   ]     once: not an iteration
             [step 1    ][step 2    ][step 3    ] ...      repeats, covers its own time
    device        |==...     |==...      |==...            each from its first operation to the next one's
    copies       [c]   [c]   [c]                           those of a stream that runs ahead begin no step
    ```
    """
    kinds, rows = happened.kinds, happened.ranges.rows
    chosen = ~taken(kinds.operator, rows.name) & ~rows.communication & ~rows.mpi
    threads = _threads(happened.device, happened.api.rows, rows, chosen, kinds, FEWEST)
    return apart([loop for work, named in threads for loop in _of_thread(work, named, happened.whole)])


def _threads(
    device: DeviceTimeline, calls: CallRows, ranges: RangeRows, chosen: BoolArray, kinds: Kinds, fewest: int
) -> Iterator[tuple[_Launched, ThreadRanges]]:
    """What each thread launched, with the ranges of it that are chosen, if these are not too few."""
    if len(ranges) < fewest:
        return
    launched = np.flatnonzero(device.running & (device.launch >= 0))
    of_thread = RowsOf(ranges.thread, calls.threads_at(device.launch[launched]))
    if not of_thread.values():
        return
    issued_by = RowsOf(taken(calls.thread, taken(device.launch, launched)))
    for thread in issued_by.values():
        mine = of_thread[thread]
        mine = mine[chosen[mine]]
        if len(mine) >= fewest:
            work = _Launched.of(device, calls, launched[issued_by[thread]])
            yield work, ThreadRanges.of(ranges, mine, kinds)


def loop_of_ranges(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, codes: IntArray, name: str, whole: Intervals
) -> Loop | None:
    """The loop of the outermost ranges with the name codes `codes`, on the thread whose ranges take most time; None for
    fewer than two that launch work. If threads with such ranges launch nothing, each holds that of its process."""
    rows, kinds = ranges.rows.take(np.isin(ranges.rows.name, codes)), Kinds.of(ranges)
    found = _loop_of_threads(device, calls, rows, kinds, name, whole)
    return found or _loop_of_threads(device, *of_processes(device, calls, rows), kinds, name, whole)


def _loop_of_threads(
    device: DeviceTimeline, calls: CallRows, ranges: RangeRows, kinds: Kinds, name: str, whole: Intervals
) -> Loop | None:
    threads = _threads(device, calls, ranges, np.ones(len(ranges), np.bool_), kinds, 1)
    loops = (_loop(work, named, _Family(named.at(0), name), whole, 2) for work, named in threads)
    return max(filter(None, loops), key=lambda loop: loop.total_ns, default=None)


def apart(loops: list[Loop]) -> list[Loop]:
    """The longest loops that do not share most of their time with a longer one."""
    kept: list[Loop] = []
    for loop in sorted(loops, key=lambda each: (-each.total_ns, int(each.starts[0]))):
        mine = union(loop.spans)
        if all(2 * int(coverage(union(other.spans), mine).sum()) < mine.total() for other in kept):
            kept.append(loop)
    return kept


class _Family(Struct, frozen=True):
    """Ranges of one name on one level that form a loop: `name` is its name, and `kind` that of its repeats. `alone`:
    the loop is in these ranges, not from each to the next."""

    rows: IntArray
    name: str
    kind: str = STEP
    inner: Inner | None = None
    alone: bool = False


def _of_thread(work: _Launched, named: ThreadRanges, whole: Intervals) -> list[Loop]:
    """The loops of each level in the time that those of outer levels leave."""
    found: list[Loop] = []
    taken = Intervals.empty()
    for level in range(MOST_LEVELS):
        at = named.at(level)
        if len(taken):
            at = at[~contains(taken, named.spans.start[at])]
        for family in _families(named, at):
            if family.alone and _share_of_work(work, named.spans[family.rows]) < LEAST_WORK:
                continue
            if is_epoch(family.name) and _holds_steps(named, family.rows, level):
                continue
            loop = _loop(work, named, family, whole, FEWEST)
            if loop is not None and loop.total_ns >= LEAST_SHARE * whole.total():
                inner = family.inner or (_inner(named, family.rows) if family.kind == STEP else None)
                found.append(_counted_again(replace(loop, inner=inner), named.number(family.rows)))
                spans = named.spans[family.rows]
                taken = union(taken, Intervals(spans.start[:1], spans.end.max(keepdims=True)))
    return found


def _counted_again(loop: Loop, number: IntArray) -> Loop:
    """The loop, in doubt if its ranges count from the first number on again and again, as many each time: these may
    be steps in epochs, or parts of a step, whatever they are called.

    ```
    thread   [step 0][step 1][step 2][step 0][step 1][step 2][step 0][step 1][step 2]
    ```
    """
    again = np.flatnonzero(number == number[0])
    each = int(again[1]) if len(again) >= FEWEST_ROUNDS else 0
    if not 1 < each <= LONGEST_ROUND or number[0] < 0 or len(loop) != len(number) or loop.kind != STEP:
        return loop
    if (number != number[0] + np.arange(len(number)) % each).any():
        return loop
    return loop.in_doubt(through(loop.called, loop.starts[::each], int(loop.ends[-1])), each)


def _holds_steps(named: ThreadRanges, rows: IntArray, level: int) -> bool:
    """Whether ranges of a `level` hold ranges that the program calls steps, several in each: those are the steps.

    ```
    thread   [epoch 0                     ][epoch 1                     ][epoch 2                     ]
             [batch 0][batch 1][batch 2]   [batch 0][batch 1][batch 2]   [batch 0][batch 1][batch 2]
    ```
    """
    whole = union(named.spans[rows])
    for deeper in range(level + 1, MOST_LEVELS):
        at = named.at(deeper)
        of_word = RowsOf(named.code(at[contains(whole, named.spans.start[at])]))
        often = (word for word in of_word.values() if len(of_word[word]) >= TIMES * len(rows))
        if any(is_step_of_epochs(named.kinds.words[word]) for word in often):
            return True
    return False


def _share_of_work(work: _Launched, spans: Intervals) -> float:
    """How much of the device's work that is launched from the first range to the last is launched in one of them."""
    between = (work.issued >= spans.start[0]) & (work.issued < spans.end.max())
    inside = contains(union(spans), work.issued) & between
    length = work.end - work.start
    return int(length[inside].sum()) / max(int(length[between].sum()), 1)


def _families(named: ThreadRanges, at: IntArray) -> list[_Family]:
    """The names that repeat among the ranges `at` of one level and cover their time. If none does alone, equally
    frequent names count together, under the first of them."""
    code = named.code(at)
    count = np.bincount(code, minlength=1)
    repeated = np.flatnonzero(count >= FEWEST)
    # Each costs a look at all work: of more than MOST_NAMES those with most rows.
    words = repeated[np.argsort(-count[repeated], kind="stable")][:MOST_NAMES]
    of_word = RowsOf(code)
    rows = {word: at[of_word[word]] for word in np.sort(words).tolist()}
    covers = {word: _cover(named.spans[mine]) for word, mine in rows.items()}
    each = (_family(named, mine, word, covers[word]) for word, mine in rows.items())
    found = [family for family in each if family is not None]
    found = _counted(named, at, rows, found) or found
    return _of_one_stem(named, at, max(covers.values(), default=0.0)) or found or _together(named, rows, covers)


def _counted(named: ThreadRanges, at: IntArray, rows: dict[int, IntArray], found: list[_Family]) -> list[_Family]:
    """The steps that the program counts from the first to the last, next to longer ranges that come less often: these
    are not steps, however much of the time they cover.

    ```
    thread   [step 0][step 1][step 2][evaluate          ][step 3][step 4][step 5][evaluate          ]
    ```
    """
    steps = [len(each.rows) for each in found if each.kind == STEP]
    if not steps or _cover(named.spans[at]) < LEAST_COVER:
        return []
    often = [
        word for word, mine in rows.items() if len(mine) >= TIMES * min(steps) and is_step(named.kinds.words[word])
    ]
    number = {word: named.number(rows[word]) for word in often}
    return [
        _Family(rows[word], named.kinds.words[word])
        for word, its in number.items()
        if its[0] >= 0 and (np.diff(its) == 1).all()  # one by one, none of them twice
    ]


def _of_one_stem(named: ThreadRanges, at: IntArray, alone: float) -> list[_Family]:
    """The kinds of a step whose ranges have several names, as prefill and decode of an engine: those that cover more
    time together than any does `alone`. Equally many of each name are parts of a step.

    ```
    thread   [step[DECODE bs=8]][step[EXTEND bs=1]      ][step[DECODE bs=9]][step[DECODE bs=9]]
    ```
    """
    stems: dict[str, list[int]] = {}
    for code in distinct_values(named.code(at)).tolist():
        if stem := stem_of(named.kinds.words[code]):
            stems.setdefault(stem, []).append(code)
    for stem, codes in stems.items():
        rows = at[np.isin(named.code(at), codes)]
        unequal = len(codes) > 1 and len(set(np.bincount(named.code(rows))[codes].tolist())) > 1
        if unequal and len(rows) >= FEWEST and (cover := _cover(named.spans[rows])) >= LEAST_COVER and cover > alone:
            return [_Family(rows, stem, alone=True)]
    return []


def _cover(spans: Intervals) -> float:
    """The share of the time from the first to the last range that they cover, without pauses."""
    between = spans.start[1:] - spans.end[:-1]
    reach = int(spans.end.max() - spans.start[0])
    return union(spans).total() / max(reach - int(between[_left(spans)].sum()), 1)


def _left(spans: Intervals) -> BoolArray:
    """Behind which of the ranges, all but the last, their loop is left."""
    usual = float(np.median(np.diff(spans.start)))
    return pauses(spans.start[1:] - spans.end[:-1], usual, int(spans.end.max() - spans.start[0]))


def _family(named: ThreadRanges, rows: IntArray, word: int, cover: float) -> _Family | None:
    """The loop of one name. Names that number the parts of a model are not steps: the step is from one first part to
    the next. If that does not repeat, all of them are in one pass.

    ```
    blocks.0  blocks.1  blocks.2  blocks.0  blocks.1  blocks.2  ...      a step is three blocks
    blocks.3  blocks.4  blocks.5  blocks.6  blocks.7                     five layers, and no step
    ```
    """
    name, part = named.kinds.words[word], named.part(rows)
    if part[0] < 0 or (part == part[0]).all():
        return _Family(rows, name, alone=True) if cover >= LEAST_COVER else None
    first = rows[part == part[0]]
    if len(first) < FEWEST:
        return _Family(rows, name, LAYER) if cover >= LEAST_COVER else None
    if cover < LEAST_PARTS:
        return None
    distance = int(np.median(np.diff(named.spans.start[rows])))
    inner = Inner(Called(name), round(len(rows) / len(first)), distance)
    return _Family(first, named.kinds.parts[int(part[0])], STEP, inner)


def _together(named: ThreadRanges, rows: dict[int, IntArray], covers: dict[int, float]) -> list[_Family]:
    """Phases of a step that has no range of its own: forward and backward, each as often as the other."""
    counts = {len(mine) for mine in rows.values()}
    found = []
    for count in sorted(counts):
        same = [word for word, mine in rows.items() if len(mine) == count and (named.part(mine) < 0).all()]
        if len(same) > 1 and sum(covers[word] for word in same) >= LEAST_COVER:
            first = min(same, key=lambda word: int(named.spans.start[rows[word][0]]))
            found.append(_Family(rows[first], named.kinds.words[first]))
    return found


def _inner(named: ThreadRanges, rows: IntArray) -> Inner | None:
    """The ranges that occur several times in each of `rows`, equally often, and fill a good part: the rarest of the
    outermost level that has any."""
    outer = named.spans[rows]
    whole = union(outer)
    for level in range(int(named.level[rows[0]]) + 1, MOST_LEVELS + 1):
        at = named.at(level)
        at = at[contains(whole, named.spans.start[at])]
        of_word = RowsOf(named.code(at))
        repeated = sorted((len(of_word[word]), word) for word in of_word.values())
        for count, word in repeated:
            times = round(count / len(outer))
            if times <= 1:
                continue
            mine = named.spans[at[of_word[word]]]
            each = np.bincount(np.searchsorted(outer.start, mine.start, side="right") - 1, minlength=len(outer))
            alike = float((each == times).mean()) >= LEAST_COVER
            if alike and mine.total() >= LEAST_INNER * outer.total():
                return Inner(Called(named.kinds.words[word]), times, int(np.median(np.diff(mine.start))))
    return None


def _loop(work: _Launched, named: ThreadRanges, family: _Family, whole: Intervals, fewest: int) -> Loop | None:
    """The start on the device of the work launched inside each range, in order, and its end; None for fewer than two.

    An iteration begins with work on the main stream, unless a range has none there: other streams may run ahead."""
    spans = named.spans[family.rows]
    first, behind = np.searchsorted(work.issued, spans.start), np.searchsorted(work.issued, spans.end)
    held = np.flatnonzero(behind > first)
    spans, first, behind = spans[held], first[held], behind[held]
    if len(spans) < fewest:
        return None
    issued, start = work.main
    on_main = np.searchsorted(issued, spans.start)
    all_on_main = bool((np.searchsorted(issued, spans.end) > on_main).all())
    starts, at = np.unique(start[on_main] if all_on_main else work.start[first], return_inverse=True)
    if len(starts) < fewest:
        return None
    own_end = np.zeros(len(starts), dtype=np.int64)
    last_ends = np.maximum.reduceat(np.append(work.end, 0), np.column_stack((first, behind)).ravel())[::2]
    np.maximum.at(own_end, at, last_ends)
    left = np.zeros(len(starts), dtype=np.bool_)
    left[at[:-1][_left(spans)]] = True
    # A host that ran ahead waits between two ranges while the device still works.
    length = np.diff(starts)
    left[:-1] &= pauses(starts[1:] - own_end[:-1], float(np.median(length)), int(length.sum()))
    loop = loop_of(Called(family.name), starts, left[:-1], own_end, int(whole.end[-1]))
    return loop.of_kind(family.kind)
