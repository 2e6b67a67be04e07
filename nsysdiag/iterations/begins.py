"""Where the repeats of a loop begin, by the order of their operations.

```
trace     |i i|e a b a b h|e a b a b h|e a b a b h|s|     what repeats begins behind `i` and ends before `s`
found     |       b a b h|e a b a b h|e a b a b h|       from a `b` to the next: a repeat begins in its middle
```

A capture of whole repeats shows where these begin: from the first operation of what repeats to the last one, their
number is whole. If one end of the capture cuts a repeat, the other end shows it: it is next to an operation that is
of no layer, here `e` or `h`. An end between two layers alike shows nothing.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import median_of, number_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.iterations.counts import LEAST_HELD, RepeatCounts
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import FEWEST, NVTX, Loop

REGULAR = 0.9
"""Of the repeats: so many have the same operations in the same order."""
FEWEST_OPERATIONS = 8
"""In each repeat: of fewer, two cut ends fit together by chance."""
MOSTLY = 0.5
"""Of what is behind the first operation that is one too many: so much is of a kind that no other repeat has, or more
than twice as often. Else it is of the last repeat: of others it ran while the next one did."""


class Sequence(Struct, frozen=True):
    """The operations of a device by code, those with which repeats begin, and the usual repeat, a cycle. `layer` is how
    many operations are from one layer in it to the next, 0 if none is known."""

    code: IntArray
    borders: IntArray
    usual: IntArray
    layer: int

    @classmethod
    def of(cls, loop: Loop, happened: Happened) -> Sequence | None:
        """None if most repeats do not have the same operations, several."""
        code, borders = happened.code, np.searchsorted(happened.start, loop.starts)
        size = np.diff(borders)
        period = median_of(size)
        same = borders[:-1][size == period]
        if period < FEWEST_OPERATIONS or len(same) < REGULAR * len(size):
            return None
        usual = code[same[len(same) // 2] + np.arange(period)]
        alike = (code[same[:, None] + np.arange(period)] == usual).all(axis=1)
        if np.count_nonzero(alike) < REGULAR * len(size):
            return None
        return cls(code, borders, usual, _layer(loop, usual, happened))

    @property
    def period(self) -> int:
        """The operations of a repeat."""
        return len(self.usual)

    def attends(self, happened: Happened) -> IntArray:
        """Where attention begins in the usual repeat, once for each layer: its operations in one follow each other."""
        at = np.flatnonzero(happened.names.attention[self.usual])
        return at[np.diff(at, prepend=-2) > 1]

    def begins(self) -> IntArray | None:
        """The operations with which the repeats begin that are whole at their start; None if the ends of the trace
        show none, or other operations come between."""
        earlier = self.code[: self.borders[0]][::-1]
        before = _alike(earlier, np.resize(self.usual[::-1], len(earlier)))
        first, last = before % self.period, -self._behind() % self.period
        shown = {back for back in (first, last) if self._shows(back, whole=first == last)}
        if len(shown) != 1:
            return None
        (back,) = shown
        borders = self.borders[int(before < back) :]
        between = self.code[(borders - back)[:, None] + np.arange(back)]
        return borders - back if (between == self.usual[self.period - back :]).all() else None

    def _behind(self) -> int:
        """How many operations from the start of the last repeat on are in the order of the usual one."""
        later = self.code[self.borders[-1] :]
        return _alike(later, np.resize(self.usual, len(later)))

    def goes_on(self) -> bool:
        """Whether that order goes on to the end of the trace, which may cut the last repeat."""
        return self._behind() == len(self.code) - int(self.borders[-1])

    def _shows(self, back: int, *, whole: bool) -> bool:
        """Whether a repeat may begin there: not between two layers alike, and, if the trace does not hold `whole`
        repeats, next to what is of no layer."""
        if not self.layer:
            return whole
        next_is_alike = self.usual == np.roll(self.usual, -self.layer)
        before = np.roll(next_is_alike, back)[-self.layer :]
        other: BoolArray = ~(next_is_alike | np.roll(next_is_alike, self.layer))
        return bool(not before.all() and (whole or other[-back - 1] or other[-back]))


def _layer(loop: Loop, usual: IntArray, happened: Happened) -> int:
    """How many operations are from one repeat of a shorter loop to the next; 0 if it is not known."""
    if loop.inner is None or loop.inner.called.anchor < 0:
        return 0
    at = np.flatnonzero(happened.names.anchor[usual] == loop.inner.called.anchor)
    each = round(len(at) / loop.inner.per_iteration)
    return median_of(at[each:] - at[:-each]) if 0 < each < len(at) else 0


def _alike(one: IntArray, other: IntArray) -> int:
    """How many are equal from the first on."""
    return int(np.argmin(np.append(one == other, False)))


def from_the_first(loop: Loop, happened: Happened) -> Loop:
    """The loop with repeats that begin where the ends of the trace show it; as it is where they do not."""
    found = None if loop.source == NVTX or len(loop) < 2 else Sequence.of(loop, happened)
    first = None if found is None else found.begins()
    if found is None or first is None or len(first) < 2:
        return loop
    kept = slice(len(loop) - len(first), None)
    left, ends = loop.open[kept], loop.ends[kept]
    if len(found.code) - first[-1] > found.period and found.goes_on():
        first, left, ends = (
            np.append(first, first[-1] + found.period),
            np.append(left, False),
            np.append(ends, ends[-1:]),
        )
    starts, behind = happened.start[first], int(first[-1]) + found.period
    until = np.append(starts[1:], _before(starts, int(first[-1]), behind, int(ends[-1]), happened))
    return replace(loop, starts=starts, ends=np.where(left, np.minimum(ends, until), until), open=left)


def with_the_first(loop: Loop, happened: Happened) -> Loop:
    """The loop with one more repeat before the first, if that only lacks the operation that the others begin with.

    ```
    operations   i b c d|a b c d|a b c d|a b c d|h      the first layer of a model has no `a`
    ```
    """
    found = Sequence.of(loop, happened)
    if found is None or found.borders[0] < found.period - 1:
        return loop
    first = int(found.borders[0]) - found.period + 1
    if (found.code[first : found.borders[0]] != found.usual[1:]).any():
        return loop
    starts, ends = np.append(happened.start[first], loop.starts), np.append(loop.starts[0], loop.ends)
    return replace(loop, starts=starts, ends=ends, open=np.append(False, loop.open))


def _before(starts: IntArray, first: int, behind: int, end: int, happened: Happened) -> int:
    """Where the last of these repeats ends, of the operations from `first` to before `behind`: after the usual time,
    or with what comes next, but with its own work at the earliest. With `end` if nothing comes next."""
    if behind >= len(happened.end):
        return end
    next_one = min(int(starts[-1]) + median_of(np.diff(starts)), int(happened.start[behind]))
    return max(int(happened.end[first:behind].max()), next_one)


def before_other_work(loop: Loop, happened: Happened) -> Loop:
    """The loop whose last repeat ends before what no other repeat does, such as the closing summary of a program.

    ```
    repeats   |a b a c|a b a c|a b a c s a s|       the last one ends before `s`; the `a` behind it is one too many
    ```
    """
    if len(loop) < FEWEST:
        return loop
    first, behind = np.searchsorted(happened.start, (loop.starts[-1], loop.ends[-1])).tolist()
    found = RepeatCounts.of(happened, loop.starts, int(loop.ends[-1]))
    code = happened.code[first:behind]
    most = np.full(len(happened.names), len(code))
    most[found.names.code] = found.most
    number, usual = number_of_each(code), most[code]
    at, other = int(np.argmax(np.append(number >= usual, True))), number >= 2 * usual
    whole = found.usually(~found.names.host)
    if at in (0, len(code)) or at < LEAST_HELD * whole or other[at:].mean() <= MOSTLY:
        return loop
    end = _before(loop.starts, first, first + at, int(loop.ends[-1]), happened)
    usual_end = int(loop.starts[-1]) + median_of(np.diff(loop.starts))
    # What comes next may begin before the usual end of a step, and end with it: then it is of the step.
    if abs(end - usual_end) >= abs(int(loop.ends[-1]) - usual_end):
        return loop
    return replace(loop, ends=np.append(loop.ends[:-1], end))
