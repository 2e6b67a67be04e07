"""The loop around a loop: what comes only at every n-th repeat shows that the repeats are parts of a step.

```
repeats     |a b |a b |a b e|a b |a b |a b e|a b |a b |a b e|       every third has e as well
outer       |               |               |               |       three steps of three
```

Whether the outer repeats are the steps, or the inner ones and `e` is occasional, shows in what each has: the kernels
that update weights and the copies from the host come once in each step; a read-back alone may be a log.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.happened import HOST, Happened, anchor_of, is_step
from nsysdiag.iterations.loop import Called, Inner, Loop, loop_of, pauses
from nsysdiag.iterations.segments import RepeatCounts
from nsysdiag.iterations.specials import LEAST_TOGETHER, REGULAR, Special, specials
from nsysdiag.iterations.which_step import goes_on, judged

MOST_LEVELS = 6
ALIKE, MOST_TRIED = 0.8, 6
"""Of repeats so many have the same operations. A loop is looked for from so many names of kernels."""


class OuterLoop(Struct, frozen=True):
    """A loop around another one: `steps` says whether its repeats are the steps. `certain` is False where the trace
    does not show that. `more`: each n-th repeat has more work, not only another kind of it."""

    loop: Loop
    each: int
    steps: bool
    certain: bool = True
    more: bool = True


def around(loop: Loop, happened: Happened, whole_end: int) -> Iterator[OuterLoop]:
    """The loops around a loop, those with the fewest repeats of it first."""
    if len(loop) < 4:
        return
    first = np.searchsorted(happened.time[: len(happened.end)], loop.starts)
    issued = happened.issued_at[happened.operations[np.minimum(first, len(happened.operations) - 1)]]
    found = RepeatCounts.of(
        happened, loop.starts, None if (issued < 0).any() else np.maximum.accumulate(issued), whole_end
    )
    for special in specials(found):
        outer = _outer(loop, special, found, happened, whole_end)
        if outer is not None:
            steps, certain = judged(special, found, happened)
            yield OuterLoop(outer, special.each, steps, certain)
        elif goes_on(special, found, happened) and (cycle := _cycle(loop, special, whole_end)) is not None:
            yield OuterLoop(cycle, special.each, steps=True, certain=False, more=False)


def outermost(loop: Loop, happened: Happened, end: int) -> Loop:
    """The loop whose repeats are steps: `loop`, or one around it. What the program calls steps are steps."""
    if is_step(loop.name):
        return loop
    for _ in range(MOST_LEVELS):
        every = list(around(loop, happened, end))
        steps = next((each for each in every if each.steps), None)
        if steps is None:
            doubted = next((each for each in every if not each.certain), None)
            return loop if doubted is None else loop.in_doubt(_in_each(loop, doubted), doubted.loop)
        loop = replace(steps.loop, certain=steps.certain)
    return loop


def _in_each(loop: Loop, outer: OuterLoop) -> int:
    """How many repeats are in each of a longer loop, two at least: the mean, as their number may vary."""
    return max(round(len(loop) / len(outer.loop)), 2)


def by_sequence(happened: Happened, whole: Intervals, known: list[Loop], fewest: int) -> Loop | None:
    """A loop by the order of the operations alone, for repeats that take any time: from one of a kernel to the next, or
    what is around such. None where what is between them differs, or is nothing, and where a `known` loop repeats in
    most of them."""
    end, count = int(whole.end[-1]), len(happened.end)
    of_code = RowsOf(happened.code[:count])
    often = [code for code in sorted(happened.kernels) if len(of_code[code]) >= fewest]
    reach = {code: int(np.ptp(happened.time[of_code[code]])) for code in often if len(of_code[code])}
    often = [code for code in often if 2 * reach[code] >= whole.total()]
    for code in sorted(often, key=lambda each: (-reach[each] // (whole.total() // 10), -len(of_code[each])))[
        :MOST_TRIED
    ]:
        base = _between(code, happened.time[of_code[code]], end)
        loop = outermost(base, happened, end)
        if loop is base:
            starts = _with_same_operations(base, happened, end)
            if len(starts) < fewest:
                continue
            loop = _between(code, starts, end)
        if len(loop) >= fewest and 2 * loop.total_ns >= whole.total():
            starts = np.concatenate([np.empty(0, np.int64), *(each.starts for each in known)])
            held = np.unique(np.searchsorted(loop.starts, starts, side="right"))
            return loop if 2 * len(held) < len(loop) else None
    return None


def _between(code: int, starts: IntArray, end: int) -> Loop:
    return loop_of(Called(anchor=anchor_of(code)), starts, np.zeros(len(starts) - 1, np.bool_), None, end)


def _with_same_operations(loop: Loop, happened: Happened, end: int) -> IntArray:
    """The starts from the first to the last repeat that does what is usual, several operations; none where many in
    between do not."""
    found = RepeatCounts.of(happened, loop.starts, None, end)
    several = sum(usual for code, usual in found.usual.items() if code < HOST) >= LEAST_TOGETHER
    same = np.flatnonzero(found.alike())
    if not several or not len(same) or len(same) < ALIKE * (same[-1] + 1 - same[0]):
        return loop.starts[:0]
    return loop.starts[same[0] : same[-1] + 2]


def _outer(loop: Loop, special: Special, found: RepeatCounts, happened: Happened, end: int) -> Loop | None:
    """The repeats around a loop, each from the longest idle time in a special repeat on; None where these only do other
    work than the rest."""
    operations = happened.time[: len(happened.end)]
    borders = np.append(np.searchsorted(operations, loop.starts), np.searchsorted(operations, end))
    size = np.diff(borders)
    usual = float(np.median(np.delete(size, special.at)))
    lacks = bool(found.lacks()[special.at].all())
    if any(code < HOST for code in special.more) and not lacks and float(np.median(size[special.at])) <= usual:
        return None
    back = _from_idle(borders, special.at, operations, happened.end)
    starts = borders[special.at + 1] - back
    count = found.size
    whole_first = int(special.at[0]) + 1 >= special.each
    if whole_first or not special.exact:
        starts = np.append(max(int(borders[0]) - back, 0), starts)
    left = count - 1 - int(special.at[-1])
    if 2 * left < special.each:
        starts = starts[:-1]
    starts = np.unique(operations[np.minimum(starts, len(operations) - 1)])
    if len(starts) < 2:
        return None
    length = np.diff(starts)
    away = pauses(length, float(np.median(length)), int(length.sum()))
    inner = Inner(loop.called, special.each - lacks, int(np.median(np.diff(loop.starts))), loop.inner)
    made = loop_of(_called(loop, special, happened), starts, away, None, end)
    return made.with_inner(inner)


def _cycle(loop: Loop, special: Special, end: int) -> Loop | None:
    """The repeats from behind one special repeat to the end of the next one; None for fewer than two."""
    behind = special.at[special.at + 1 < len(loop)] + 1
    starts = loop.starts[np.append(0, behind) if int(special.at[0]) + 1 == special.each else behind]
    if len(starts) < 2:
        return None
    inner = Inner(loop.called, special.each, int(np.median(np.diff(loop.starts))), loop.inner)
    return loop_of(loop.called, starts, np.zeros(len(starts) - 1, np.bool_), None, end).with_inner(inner)


def _called(loop: Loop, special: Special, happened: Happened) -> Called:
    """By the kernel that comes once in each outer repeat; by the inner loop where there is none."""
    once = [code for code, more in special.more.items() if more == 1 and code in happened.kernels]
    if not once or loop.called.range:
        return loop.called
    return Called(anchor=anchor_of(min(once)))


def _from_idle(borders: IntArray, at: IntArray, start: IntArray, end: IntArray) -> int:
    """How many operations before the end of special repeats most of them are idle for longest."""
    inside = at[at + 2 < len(borders)]
    size = borders[inside + 1] - borders[inside]
    if not len(inside) or float((size == np.median(size)).mean()) < REGULAR:
        return 0
    inside, length = inside[size == np.median(size)], int(np.median(size))
    until = np.maximum.accumulate(end)
    rows = borders[inside + 1][:, None] - np.arange(length)
    idle = np.median(np.maximum(start[rows] - until[rows - 1], 0), axis=0)
    return int(np.argmax(idle))
