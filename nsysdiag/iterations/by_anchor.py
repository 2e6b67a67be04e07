"""Loops found by an operation that comes at a regular distance, once in each repeat."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import median_of, medians
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, contains, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import Rows, narrowed
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import FEWEST, Called, Inner, Loop, loop_of, pauses, spread_of
from nsysdiag.iterations.outer import OuterLoop, around

LEAST_SHARE = 0.05
"""Of the device's span: a shorter loop says nothing about the program."""
MOST_VARYING, MOST_VARYING_OF_FEW, MANY = 0.35, 0.25, 20
"""The median deviation by the median: 0.34 if distances deviate by half of their mean (standard deviation). A few at
random distances are easily that alike."""
SAME_TIME, AS_LONG = 0.8, 0.8
"""Two cover the same time if they share this part of the longer one; one explains about as much as another if it
explains this part of it."""
MAX_JITTER_RATIO, MAX_JITTER_SHARE = 1.5, 0.02
"""One is about as regular as the best if it deviates by so many times as much, or by no more than this share."""
ALIKE_WORK, ALIKE_TIME = 0.02, 0.1
"""Repeats are alike if the numbers of their operations, and their lengths, differ by no more."""
MOST_INNER_DEVIATION = 0.2
"""Share of its span: repeats that deviate by more are not merely grouped by a rarer operation."""
MOST_LOOKS = 4
"""Shorter periods that are looked at for each loop."""
LEAST_INNER, MOST_INNER = 0.25, 1.1
"""Of the time of a loop, and of one repeat: what a shorter period in it fills at least and at most."""
ENDS = 2
"""Repeats that may be missing at the ends of a loop, so that another one that is the same has more or fewer."""
MOST_LOOPS, MOST_WARM_UP, ALIKE_WARM_UP = 8, 10, 0.1
"""Loops of a device that are looked for this way, one after the other: a limit on time. Repeats before the regular ones
are a warm-up if they have about as many operations: by this share more or less than usual."""


class _AnchorWork(Struct, frozen=True):
    """Kernels and graph launches by name: `row` is the place in time among them, `names` the string id of each code."""

    start: IntArray
    row: IntArray
    code: IntArray
    names: IntArray
    end: int

    @classmethod
    def of(cls, happened: Happened) -> _AnchorWork:
        device, operations = happened.device, happened.device.operations
        category = operations.category
        anchors = (category == Category.KERNEL) | (category == Category.GRAPH)
        name, others = happened.replays.called(np.where(category == Category.GRAPH, -2, operations.name))
        anchors[others] = False
        chosen = np.flatnonzero(device.running & anchors)
        names, code = distinct(name[chosen])
        order = np.argsort(narrowed(code), kind="stable")  # the operations of a device are in order of time
        order = order[_once_a_launch(code, device, chosen)[order]]
        return cls(operations.start[chosen][order], order, code[order], names, happened.last)


def _once_a_launch(code: IntArray, device: DeviceTimeline, rows: IntArray) -> BoolArray:
    """Which of the operations `rows` come first of their name in one launch of a graph, whose nodes come with it: the
    launch is what repeats. All others are launched by themselves."""
    operations = device.operations
    result = operations.graph_node[rows] < 0
    nodes = np.flatnonzero(~result)
    number = distinct(operations.correlation[rows[nodes]])[1]
    result[nodes[np.unique(joint(number, code[nodes], len(rows)), return_index=True)[1]]] = True
    return result


def anchored_loops(happened: Happened, known: list[Loop]) -> list[Loop]:
    """The loops outside those that are `known`, each by the operation that shows best where it closes.

    ```
    stream  |A|b|b|b|c|....|A|b|b|b|c|....|A|b|b|b|c|      A or c: once a step; b: three times, then a long way
    ```
    """
    work = _AnchorWork.of(happened)
    if len(work.start) < FEWEST:
        return []
    pool = stretches(work.start, work.code, FEWEST, LEAST_SHARE * happened.whole.total())
    every = pool.take(_steadily(work, pool))
    free = ~_known(work, every, known)
    found: list[Loop] = []
    while free.any() and len(found) < MOST_LOOPS:
        pick, certain = _pick(work, every, np.flatnonzero(free), happened)
        loop = _loop(work, every, pick)
        found.append(replace(loop, certain=certain or loop.inner is None))
        free &= 2 * every.shared(pick) < every.end - every.begin
    return sorted(_joined(found, happened), key=lambda loop: -loop.total_ns)


def _joined(loops: list[Loop], happened: Happened) -> list[Loop]:
    """The loops; those of one operation that follow each other, and do as much in each repeat, are one: all repeats
    take longer from a time on.

    ```
    starts      |  |  |  |  |  |  |  |      |      |      |      |      |
    stretches   [          1            )[                2             )
    ```
    """
    found: list[Loop] = []
    for loop in sorted(loops, key=lambda each: (each.called.anchor, int(each.starts[0]))):
        goes_on = bool(found) and _goes_on(found[-1], loop, happened)
        found.append(_both(found.pop(), loop, happened.last) if goes_on else loop)
    return found


def _both(before: Loop, loop: Loop, end: int) -> Loop:
    starts = np.union1d(before.starts, loop.starts)
    left = [each.starts[:-1][each.open[:-1]] for each in (before, loop)]
    whole = loop_of(loop.called, starts, np.isin(starts[:-1], np.concatenate(left)), None, end)
    longer = max(before, loop, key=lambda each: each.total_ns)
    return replace(whole, inner=longer.inner, certain=before.certain and loop.certain)


def _goes_on(before: Loop, loop: Loop, happened: Happened) -> bool:
    """Whether a loop begins with the last repeat of another one, or right behind it, and has the same repeats."""
    sizes = [float(np.median(np.diff(np.searchsorted(happened.start, each.starts)))) for each in (before, loop)]
    follows = before.called == loop.called and before.starts[0] < loop.starts[0] <= before.ends[-1] < loop.ends[-1]
    return follows and max(sizes) <= (1 + ALIKE_WORK) * min(sizes)


def _known(work: _AnchorWork, pool: RegularStretches, loops: list[Loop]) -> BoolArray:
    """Those that begin in known loops at least every second time."""
    inside = contains(union(*(loop.spans for loop in loops)), work.start) if loops else np.zeros(len(work.start))
    before = np.append(0, np.cumsum(inside))
    return 2 * (before[pool.first + pool.count] - before[pool.first]) >= pool.count


def _steadily(work: _AnchorWork, pool: RegularStretches) -> BoolArray:
    """Those whose distances vary little, apart from slow ones, and that are not in groups: if usual distances fill less
    than half of the time, the others hold the same work.

    ```
    A |x.y.....|x.y.....|x.y...............|x.y.....|      a slow repeat does what the others do
    B |b|b|b a.......|b|b|b a.......|b|b|b a.......|       three repeats of b, then something else
    ```
    """
    result = np.zeros(len(pool), dtype=np.bool_)
    for at in range(len(pool)):
        mine, median = pool.rows_of(at), int(pool.median[at])
        length = np.diff(work.start[mine])
        varies = spread_of(length, median) / max(median, 1)
        fills = 2 * int(pool.explained[at]) >= pool.end[at] - pool.begin[at]
        most = MOST_VARYING if len(length) >= MANY else MOST_VARYING_OF_FEW
        result[at] = varies <= most and (fills or _same_work(length > 2 * median, np.diff(work.row[mine])))
    return result


def _same_work(slow: BoolArray, operations: IntArray) -> bool:
    if not slow.any() or slow.all():
        return True
    usual = float(np.median(operations[~slow]))
    return abs(float(np.median(operations[slow])) - usual) <= ALIKE_WORK * usual


def _pick(work: _AnchorWork, pool: RegularStretches, free: IntArray, happened: Happened) -> tuple[int, bool]:
    """Of those that explain most time, or about as much over the same time: the rarest that is about as regular as the
    best, as the others occur several times an iteration. A rarer one that only groups whole repeats is not used. Also
    whether the trace shows which of the levels is the step."""
    lead = int(free[np.argmax(pool.explained[free])])
    rivals = free[pool.same_time(lead)[free] & (pool.explained[free] >= AS_LONG * pool.explained[lead])]
    irregular = pool.irregular[rivals]
    good = rivals[irregular <= max(float(irregular.min()) * MAX_JITTER_RATIO, MAX_JITTER_SHARE)]
    names = work.names[pool.name[good]]
    pick = int(good[np.lexsort((names, pool.irregular[good], pool.count[good]))[0]])
    same = np.flatnonzero(pool.same_time(pick) & (pool.count > pool.count[pick]))
    finer = same[np.argsort(pool.count[same], kind="stable")]
    looked: set[int] = set()
    certain = True
    for at in finer.tolist():
        times = _times(pool, at, pick)
        regular = pool.irregular[at] <= MOST_INNER_DEVIATION
        if times and times not in looked and len(looked) < MOST_LOOKS:
            looked.add(times)
            told = _outer(work.start[pool.rows_of(at)], int(pool.count[pick]), happened)
            certain &= told is None or told.certain
            if not told.steps if told is not None else regular and _closes_in(work, pool, at, pick):
                pick, looked, certain = at, set(), True
    return pick, certain


def _outer(starts: IntArray, times: int, happened: Happened) -> OuterLoop | None:
    """The loop around the repeats with these starts, in which something comes about so many times at a regular
    distance; None if nothing does."""
    inner = loop_of(Called(), starts, np.zeros(len(starts) - 1, np.bool_), None, happened.last)
    return next((each for each in around(inner, happened) if each.more and abs(len(each.loop) - times) <= ENDS), None)


def _times(pool: RegularStretches, inner: int, outer: int) -> int:
    """How often one occurs for each of the other; 0 if that is not a whole number."""
    many, few = int(pool.count[inner]), int(pool.count[outer])
    times = round(many / few)
    return times if times > 1 and abs(many - times * few) <= times else 0


def _closes_in(work: _AnchorWork, pool: RegularStretches, inner: int, outer: int) -> bool:
    """Whether the repeats with the rarer operation are like the others: then it only distinguishes every second step,
    or every tenth, from the rest.

    ```
    A |x x x y|x x x z|x x x y|x x x z|      y every second step: the step is A to A
    B |b b b b c|b b b b c|                  the fifth repeat of b is longer: the step is c to c
    ```
    """
    mine = pool.rows_of(inner)
    row, length = work.row[mine], np.diff(work.start[mine])
    at = np.searchsorted(row, work.row[pool.rows_of(outer)], side="right") - 1
    border = np.isin(np.arange(len(length)), at)
    if border.all() or not border.any():
        return False
    work_in, work_out = (float(np.median(np.diff(row)[each])) for each in (border, ~border))
    time_in, time_out = (float(np.median(length[each])) for each in (border, ~border))
    return abs(work_in - work_out) <= ALIKE_WORK * work_out and abs(time_in - time_out) <= ALIKE_TIME * time_out


def _loop(work: _AnchorWork, rows: RegularStretches, pick: int) -> Loop:
    """The loop of one candidate, with warm-up repeats before it that do the same work."""
    first, behind = int(rows.first[pick]), int(rows.first[pick] + rows.count[pick])
    before = rows.first + rows.count
    taken = before[(rows.name == rows.name[pick]) & (rows.first < first)]
    lowest = min(int(taken.max()), first) if len(taken) else int(np.searchsorted(work.code, rows.name[pick]))
    low, high = core(np.diff(work.start[first:behind]), int(rows.median[pick]))
    # Which repeats have about as many operations as those of the core usually have.
    begin, end = first - lowest + low, first - lowest + high
    operations = np.diff(work.row[lowest:behind])
    usual = float(np.median(operations[begin:end]))
    alike = np.abs(operations - usual) <= ALIKE_WARM_UP * usual
    warm = _run_of(alike[:begin][::-1], max(low, min((high - low) // 4, MOST_WARM_UP)))
    more = _run_of(alike[end:], behind)
    starts = work.start[first + low - warm : first + high + more + 1]
    length = np.diff(starts)
    left = pauses(length, float(rows.median[pick]), int(length[warm:].sum()))
    left[:warm] = False
    called = Called(anchor=int(work.names[rows.name[pick]]))
    return replace(loop_of(called, starts, left, None, work.end), inner=_inner(work, rows, pick))


def _run_of(alike: BoolArray, most: int) -> int:
    """How many are alike from the first on."""
    return int(np.argmin(np.append(alike[:most], False)))


def _inner(work: _AnchorWork, rows: RegularStretches, pick: int) -> Inner | None:
    """The rarest operation that comes several times in each repeat, at a distance that fills a good part of it."""
    fills = rows.explained >= LEAST_INNER * float(rows.end[pick] - rows.begin[pick])
    finer = np.flatnonzero(rows.same_time(pick) & (rows.count > rows.count[pick]) & fills)
    for at in finer[np.lexsort((rows.deviation[finer], rows.count[finer]))].tolist():
        times = _times(rows, at, pick)
        if times and times * rows.median[at] <= MOST_INNER * rows.median[pick]:
            inside = np.diff(np.searchsorted(work.start[rows.rows_of(at)], work.start[rows.rows_of(pick)]))
            return Inner(Called(anchor=int(work.names[rows.name[at]])), median_of(inside), int(rows.median[at]))
    return None


# Stretches of time in which operations of one name come at a regular distance.
#
# ```
# starts     | | ||  | |    |     |     |     |     |         |     |     |      | || |
# distance                  [usual][     ][    ][    ][ slow   ][    ][    ]
# stretch                   [--------------------------------------------)       from the first usual one to the last
# ```
#
# The usual distance is the median one, and a stretch may hold others: a checkpoint now and then hides no loop.
# Operations that repeat at one distance and later at another one make two stretches.

MOST_LEVELS = 4
"""Rounds over the distances of each name. Each takes the best stretch, or the usual distances if these make none, and
leaves the rest to the next. With one round, repeats at a second distance would not be found."""
UNUSUAL = 0.8
"""What an unusual distance costs a stretch, where a usual one brings 1: half of them usual is enough to go on."""
LEAST_USUAL, LEAST_USUAL_OF_FEW, FEW = 0.6, 0.75, 10
"""Of the distances in a stretch: so many are usual, and more if they are fewer than `FEW`. Arrivals at random times
(exponential distances) are within a factor of two of their median in 46% of all cases."""
LEAST_ALTERNATING, ALIKE, MOST_ALTERNATING = 0.8, 0.25, 64
"""Distances alternate if this share of them is like the one two or three before. `ALIKE` is by how much these may
differ, as a share of the longer of the earlier one and the median. With a smaller share, random distances alternate,
too. So many doubtful stretches are judged in each round: a limit on time."""

MOST_SPREADS, LEAST_BAND = 5, 0.1
"""Times the median deviation, and of the median distance: what deviates by more than both is cut off the ends of a
stretch. With less, slow repeats at the ends are lost. With more, distances are kept that fit by chance."""


class RegularStretches(Rows, frozen=True):
    """Stretches of regular starts: `count` starts from row `first` of the sorted rows on; the median distance, the time
    in usual distances, and the summed deviations from the median, in ns; and the time that each spans, one usual
    distance after its last start included."""

    name: IntArray
    first: IntArray
    count: IntArray
    median: IntArray
    explained: IntArray
    deviation: IntArray
    begin: IntArray
    end: IntArray

    @property
    def irregular(self) -> FloatArray:
        """The share of the span by which distances deviate from the usual one."""
        return self.deviation / np.maximum(self.end - self.begin, 1)

    def rows_of(self, at: int) -> slice:
        """The sorted rows of one of them."""
        return slice(int(self.first[at]), int(self.first[at] + self.count[at]))

    def shared(self, at: int) -> IntArray:
        """The time in ns that each has in common with one of them."""
        common: IntArray = np.minimum(self.end, self.end[at]) - np.maximum(self.begin, self.begin[at])
        return np.maximum(common, 0)

    def same_time(self, at: int) -> BoolArray:
        """Those over about the same time as one of them."""
        longer = np.maximum(self.end - self.begin, self.end[at] - self.begin[at])
        return self.shared(at) >= SAME_TIME * longer


def stretches(start: IntArray, name: IntArray, fewest: int, least_ns: float) -> RegularStretches:
    """The regular stretches of each name with `fewest` starts and usual distances of `least_ns` in all; rows are sorted
    by name, then by start."""
    rows = np.flatnonzero(name[1:] == name[:-1])
    distance = start[rows + 1] - start[rows]
    code = name[rows]
    found: list[RegularStretches] = []
    for _ in range(MOST_LEVELS):
        kept = _worth_a_look(code, distance, fewest - 1, least_ns)
        if not kept.all():
            rows, distance, code = rows[kept], distance[kept], code[kept]
        if len(rows) == 0:
            break
        level, taken = _level(start, rows, distance, code, fewest, least_ns)
        found.append(level)
        rows, distance, code = rows[~taken], distance[~taken], code[~taken]
    return RegularStretches.concatenate(found or [RegularStretches.empty()])


def _worth_a_look(code: IntArray, distance: IntArray, fewest: int, least_ns: float) -> BoolArray:
    """The distances of names that have enough of them, in number and in time."""
    if len(code) == 0:
        return np.zeros(0, dtype=np.bool_)
    total = np.bincount(code, weights=distance)
    good: BoolArray = (np.bincount(code) >= fewest) & (total >= least_ns)
    return good[code]


def _level(
    start: IntArray, rows: IntArray, distance: IntArray, code: IntArray, fewest: int, least_ns: float
) -> tuple[RegularStretches, BoolArray]:
    """The best stretch of each name at its median distance, and the distances that are done: those in a stretch, and
    the usual ones of names without any."""
    begin = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    size = np.diff(np.append(begin, len(code)))
    each = np.repeat(np.arange(len(begin)), size)
    median = medians(each, distance, len(begin))
    typical = median[each]
    usual = (2 * distance >= typical) & (distance <= 2 * typical)
    low, high = _best_runs(rows, usual, begin, size)
    usual_before = np.append(0, np.cumsum(usual))
    usually = usual_before[high + 1] - usual_before[low]
    length = rows[high] + 1 - rows[low]
    needed = np.where(length < FEW, LEAST_USUAL_OF_FEW, LEAST_USUAL)
    good = usually >= needed * length
    explained = _sums(np.where(usual, distance, 0), low, high)
    enough = (length >= fewest - 1) & (explained >= least_ns)
    good = enough & (good | _alternating(distance, typical, low, high, enough & ~good & (2 * usually >= length - 1)))
    taken = start[rows[high] + 1] - start[rows[low]] - _sums(distance, low, high)
    deviation = _sums(np.abs(distance - typical), low, high) + taken
    begins, ends = start[rows[low]], start[rows[high] + 1] + median
    found = RegularStretches(code[begin], rows[low], length + 1, median, explained, deviation, begins, ends)
    place = np.arange(len(code))
    inside = good[each] & (place >= low[each]) & (place <= high[each])
    return found.take(good), inside | (usual & ~good[each])


def _best_runs(rows: IntArray, usual: BoolArray, begin: IntArray, size: IntArray) -> tuple[IntArray, IntArray]:
    """For each name the run, first to last index, with most usual and fewest other distances: the largest sum of a
    slice. Distances used before count as unusual."""
    skipped = np.diff(rows, prepend=rows[:1] - 1) - 1
    skipped[begin] = 0
    gain = np.where(usual, 1.0, -UNUSUAL)
    fall = 2.0 * len(rows) + float(skipped.sum()) + 2.0
    loss = UNUSUAL * skipped
    loss[begin] = fall  # no run reaches over the border of two names
    after = np.cumsum(gain - loss)
    before = after - gain
    lowest = np.minimum.accumulate(before)
    rise = after - lowest
    best = np.maximum.reduceat(rise, begin)
    at_best = np.flatnonzero(rise == np.repeat(best, size))
    high = at_best[np.searchsorted(at_best, begin)]
    fresh = np.flatnonzero(before <= lowest)  # where a run may begin
    low = fresh[np.searchsorted(fresh, high, side="right") - 1]
    return low, high


def _sums(values: IntArray, low: IntArray, high: IntArray) -> IntArray:
    total = np.append(0, np.cumsum(values))
    return total[high + 1] - total[low]


def _alternating(distance: IntArray, typical: IntArray, low: IntArray, high: IntArray, doubted: BoolArray) -> BoolArray:
    """Whether every second or every third distance is another one, always: slow repeats at a fixed period."""
    result = np.zeros(len(low), dtype=np.bool_)
    for at in np.flatnonzero(doubted)[:MOST_ALTERNATING].tolist():
        mine = distance[low[at] : high[at] + 1]
        limit = ALIKE * float(typical[low[at]])
        result[at] = any(
            len(mine) > 2 * lag
            and float((np.abs(mine[lag:] - mine[:-lag]) <= np.maximum(limit, ALIKE * mine[:-lag])).mean())
            >= LEAST_ALTERNATING
            for lag in (2, 3)
        )
    return result


def core(distance: IntArray, median: int) -> tuple[int, int]:
    """The part of a stretch, from its first to after its last distance, without distances that fit by chance at its
    ends: a distance is usual if it deviates by little more than others do."""
    most = max(MOST_SPREADS * spread_of(distance, median), int(LEAST_BAND * median))
    usual = np.abs(distance - median) <= most
    one = np.zeros(1, dtype=np.int64)
    low, high = _best_runs(np.arange(len(distance)), usual, one, np.array([len(distance)]))
    return int(low[0]), int(high[0]) + 1
