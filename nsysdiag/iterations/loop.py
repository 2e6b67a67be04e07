"""What a loop is: work of a device that repeats, in time."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import median_of
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


FEWEST = 5
"""Fewer repeats are not a loop: by chance alone some kernel comes three or four times at about the same distance."""
PAUSE_STEPS, PAUSE_SHARE = 20, 0.1
"""A time between two repeats that is longer than this many of them and than this share of all is not a slow repeat: the
loop was left and entered again."""
NVTX, ANCHOR = "nvtx", "anchor"
STEP, LAYER, REPEAT = "step", "layer", "repeat"


class Called(Struct, frozen=True):
    """The repeating item: the `range` of the program, with its counters as `#`, or the string id of an operation's
    name, below 0 for graph launches; `label` is the name of an operation that another trace has."""

    range: str = ""
    anchor: int = -1
    label: str = ""

    @property
    def source(self) -> str:
        """How it was found: `nvtx` or `anchor`."""
        return NVTX if self.range else ANCHOR

    def text(self, strings: Strings) -> str:
        """Its name."""
        return self.range or self.label or (strings.text(self.anchor) if self.anchor >= 0 else "graph launch")


class Inner(Struct, frozen=True):
    """The shorter period of a loop: it comes `per_iteration` times in each repeat, `median_ns` from one to the next.
    `inner` is the next shorter one."""

    called: Called
    per_iteration: int
    median_ns: int
    inner: Inner | None = None


class Loop(Struct, frozen=True, eq=False, dict=True):
    """Repeats of a loop on the device: repeat i is [starts[i], ends[i]), int64 ns, in order and disjoint.

    `ends[i]` is `starts[i + 1]` unless the loop is left there: such a repeat is `open` and ends with its own work or,
    if that is unknown, after the usual time. A repeat with little work after it ends with all work and is not open.
    `kind` is `step`, or `layer` if the repeats are parts of a model inside one pass of the program's loop. If
    they may be that, it is `repeat`, each of so many `kernels`; `model`: these are those of a layer.

    `certain` is False if the trace does not show which are the steps: these, those of `inner`, or those of `outer`,
    a longer period. `per_iteration` of that is the number of repeats in each, `median_ns` its length. `layers` is how
    many of each kind are in a repeat, if a model has several kinds. `mixed`: repeats of several kinds take turns.
    """

    called: Called
    starts: IntArray
    ends: IntArray
    open: BoolArray
    kind: str = STEP
    inner: Inner | None = None
    outer: Inner | None = None
    certain: bool = True
    kernels: int = 0
    model: bool = False
    layers: tuple[int, ...] = ()
    mixed: bool = False

    @property
    def source(self) -> str:
        """How the loop was found: `nvtx` or `anchor`."""
        return self.called.source

    @property
    def name(self) -> str:
        """The range that repeats; empty for an anchor, whose name the strings of the trace hold."""
        return self.called.range

    @property
    def closed(self) -> bool:
        """Whether the program's own loop surely closes in each repeat."""
        return self.kind == STEP

    @property
    def in_one_pass(self) -> bool:
        """Whether the repeats are known to be parts of a step, such as layers of a model in a sliced trace."""
        return self.kind == LAYER

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def borders(self) -> IntArray:
        """The starts of the repeats, and the end of the last, of a loop that is not left before."""
        return np.append(self.starts, self.ends[-1:])

    def borders_in(self, start: int, end: int) -> IntArray:
        """Those in [start, end]."""
        return self.borders[(self.borders >= start) & (self.borders <= end)]

    @property
    def spans(self) -> Intervals:
        """The repeats as intervals."""
        return Intervals(self.starts, self.ends)

    @property
    def runs(self) -> list[Self]:
        """The loop from each time that it is entered until it is left."""
        behind = (np.flatnonzero(self.open[:-1]) + 1).tolist()
        return [self.at(slice(*part)) for part in pairwise([0, *behind, len(self)])]

    @property
    def total_ns(self) -> int:
        """The time that the repeats take, without the pauses between them."""
        return int((self.ends - self.starts).sum())

    @property
    def has_slow(self) -> bool:
        """Whether some repeats take far longer than usual."""
        return len(slow_ones(self.ends - self.starts, ~self.open).index) > 0

    def at(self, chosen: slice | BoolArray) -> Self:
        """Some of the repeats."""
        return replace(self, starts=self.starts[chosen], ends=self.ends[chosen], open=self.open[chosen])

    def within(self, lo: int, hi: int) -> Self:
        """The repeats in [lo, hi), the outermost ones cut there."""
        made = replace(self, starts=np.clip(self.starts, lo, hi), ends=np.clip(self.ends, lo, hi))
        return made.at(made.ends > made.starts)

    def inside(self, parts: Intervals) -> Self:
        """The repeats that are whole inside a set of time; the loop is left if one is not."""
        rows = np.flatnonzero(coverage(parts, self.spans) == self.ends - self.starts)
        left = self.open[rows] | np.append(np.diff(rows) > 1, True)[: len(rows)]
        return replace(self, starts=self.starts[rows], ends=self.ends[rows], open=left)

    def left_at(self, times: IntArray, slower: float = 0.0) -> Self:
        """The same repeats; the loop is left in those that hold one of these times and are so many times slower than
        usual: there another pass begins or ends."""
        at = np.searchsorted(self.starts, times) - 1
        at = at[(at >= 0) & (times < self.ends[at])]
        usual = median_of(self.ends - self.starts)
        at = at[(self.ends - self.starts)[at] >= slower * usual]
        ends, left = self.ends.copy(), self.open.copy()
        left[at] = True
        ends[at] = np.minimum(ends[at], self.starts[at] + usual)
        return replace(self, ends=ends, open=left)

    def of_kind(self, kind: str) -> Self:
        """The same repeats, judged again; layers have no shorter period."""
        return replace(self, kind=kind, inner=self.inner if kind == STEP else None)

    def in_doubt(self, outer: Loop, each: int | None = None) -> Self:
        """The same repeats, of which `each` make one of a longer period that may be the step: two at least, in the mean
        if their number varies (None)."""
        mean = max(round(len(self) / len(outer)), 2)
        longer = Inner(outer.called, each or mean, int(np.median(np.diff(outer.starts))))
        return replace(self, outer=longer, certain=False)


def pauses(between: IntArray, usual: float, reach: int) -> BoolArray:
    """Which of the times between repeats are pauses, for repeats that begin `usual` ns apart over `reach` ns."""
    return between > max(PAUSE_STEPS * usual, PAUSE_SHARE * reach)


def loop_of(called: Called, starts: IntArray, left: BoolArray, own_end: IntArray | None, end: int) -> Loop:
    """The loop whose repeats begin at `starts`, in order, on a device whose work ends at `end`. `left` tells behind
    which of them, without the last, it is left; `own_end` is where the work of each ends, None if not known.

    ```
    starts   |   |   |   |                   |   |   |
    repeats  [--)[--)[--)[--)                [--)[--)[--)      the fourth and the last are open
    ```
    """
    usual = int(np.median(np.diff(starts))) if len(starts) > 1 else end - int(starts[0])
    left = np.append(left, end - int(starts[-1]) > 2 * usual)
    ends = np.append(starts[1:], end)
    ended = starts + usual if own_end is None else np.maximum(own_end, starts + 1)
    return Loop(called, starts, np.where(left, np.minimum(ended, ends), ends), left)


def through(called: Called, starts: IntArray, end: int) -> Loop:
    """The loop of repeats that take any time, from the first of `starts` to the `end`; it is left in pauses alone."""
    length = np.diff(starts)
    left = pauses(length, float(np.median(length)), int(length.sum())) if len(length) else np.zeros(0, np.bool_)
    return loop_of(called, starts, left, None, end)


# Slow iterations: which they are, what all of them cost, and at which distance they come.

SPREADS = 3
"""Times the median deviation: a repeat that is longer than the median by more is slow. For normally distributed lengths
that is two standard deviations, which 2% exceed. A warm-up ends with the first repeat that is within them."""
LEAST_SPREAD = 0.05
"""Of the median: a slow repeat is longer by more than this, too. Without it, a very regular loop would have slow
repeats that cost next to nothing."""
LEAST_MULTIPLES, LEAST_EQUAL = 0.8, 0.5
"""Of the distances between slow repeats, at least: multiples of the most frequent distance, and those that equal it.
With 1, one repeat that is slow for another reason hides the period. With far less, slow repeats at random have one."""
FEWEST_SLOW = 3
"""Slow repeats at least, if they have a period. Three have two distances, which can agree; two have one, which always
does."""


class SlowOnes(Struct, frozen=True):
    """The slow ones of `count` iterations, longest first, with the time by which each exceeds the median (ns)."""

    index: IntArray
    extra: IntArray
    count: int

    @property
    def period(self) -> int | None:
        """Their distance in iterations, None if irregular."""
        return slow_period(np.sort(self.index), self.count)


def spread_of(values: IntArray, middle: int) -> int:
    """The lower median of the deviations from `middle`."""
    return median_of(np.abs(values - middle))


def slow_ones(length: IntArray, steady: BoolArray) -> SlowOnes:
    """Steady iterations longer than the median by three times the usual deviation and 5%; none of a few."""
    inside = np.flatnonzero(steady)
    if len(inside) < FEWEST:
        return SlowOnes(inside[:0], length[:0], len(length))
    median = median_of(length[inside])
    limit = median + max(SPREADS * spread_of(length[inside], median), LEAST_SPREAD * median)
    slow = inside[length[inside] > limit]
    slow = slow[np.argsort(-length[slow], kind="stable")]
    return SlowOnes(slow, length[slow] - median, len(length))


def slow_period(slow: IntArray, count: int) -> int | None:
    """The number of iterations from one slow one to the next, if most of the distances are that or a multiple of it.
    Others may be slow for another reason, and some may not be slow. `slow` are indices among `count` iterations, in
    order; consecutive slow ones count as one.

    ```
    ....S....S....S....S....      every 5th
    ....S....S.........S.S..      every 5th: one is missing, one is of another kind
    .S.S....S.......S..S....      None
    ```
    """
    first = slow[np.diff(slow, prepend=-2) > 1]
    if len(first) < FEWEST_SLOW:
        return None
    distance = np.diff(first)
    values, times = np.unique(distance, return_counts=True)
    period = int(values[np.argmax(times)])
    regular = float((distance == period).mean()) >= LEAST_EQUAL
    multiples = float((distance % period == 0).mean()) >= LEAST_MULTIPLES
    few = len(distance) < FEWEST_SLOW and (distance != period).any()
    reaches = int(first[-1] - first[0]) + 2 * period >= count // 2
    return period if regular and multiples and reaches and not few else None
