"""Waits that end at a time or from outside, whatever the program did before: they grow by what is saved elsewhere.

```
as it was    [work ....][waits ...][work ....][waits ...]
fixed        [work][waits ........][work][waits ........]     paced: as often as before
             [work][waits ...][work][waits ...]               a wait as long as ever
```

Which of the two a wait is shows when the work before it varies: either it is shorter by what the work is longer, or it
does not care.
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, nearest_before, union
from nsysdiag.causes import FALLBACK, HOST_CODE, IN_MPI, PLACE, PREEMPTION, SYNCHRONIZATION, THREAD_WAIT, places
from nsysdiag.causes.input_output import IO_WAIT
from nsysdiag.causes.thread_states import untraced_code
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, RowsOf, ThreadAxis
from nsysdiag.replay.device_waits import DeviceWaits
from nsysdiag.replay.work import LEAST_ERROR, HostNames, HostTime, Stretch, row_of

WAITED_NS = 20_000
"""A shorter wait was none: its time had come before."""
LEAST_PART = 0.02
"""Of a step: shorter time in which a thread may have worked is not a wait."""
NONE_SHARE, MANY = 0.1, 0.9
"""Of one of the longest: so short a wait was none, but the return of its call."""
NOISE_NS, FEWEST = 2_000, 8
"""Work that differs by less, and fewer waits, say nothing."""
MOST_PAIRED = 200
"""So many waits of a kind are compared with each other."""
HALFWAY = -0.5
"""Between a wait that makes up for all of the work before it (-1), and one that does not care (0)."""
DEVIATIONS = 2
"""Standard deviations of Kendall's statistic, on both sides: the slopes between these are Sen's interval of about 95%.
A larger number makes it wider, and leaves more waits undecided."""
NORMAL = 1.4826
"""The standard deviation of normal values whose median distance from the median is 1."""
REGULAR, MOST_REGULAR, FIXED = 0.05, 0.8, 4
"""Of a period: if most differ by less from the median, they are one. Two kinds of waits that alternate have no
period. So many times less than the work in them: they are kept on purpose."""

VARIES = 0.05
"""Of its length. Of 8 ms of computing under a lock in a captured program it is 0.02, as regular as the loop."""

OUTLIVED, JOINED = -1, -2
"""Values of `Timed.sure` for waits of which neither 0 nor 1 holds: those that outlast what they wait for, and those
with work in them."""
NEXT, QUOTA = 1, 2
"""Values of `Timed.grid`: of waits for the next of equal distances, and of stops of which less work may spare some."""


class Timed(Rows, frozen=True):
    """Waits [begin, end) in ns of `thread` that may end at a time of their own. `sure` is 1 if waits of this kind
    make up for what the thread does before them, and 0 if the trace cannot tell. It is OUTLIVED if they outlast
    what they are known to wait for, and JOINED if a part of each is work. `grid` is NEXT if they end with the next
    of equal distances: then a shorter step may save a whole one. It is QUOTA for stops that less work may spare.
    `period` is the usual time from end to end in ns, 0 if it is not regular. `outside` is 1 if no thread of the program
    is waited for, as for a lock."""

    thread: IntArray
    begin: IntArray
    end: IntArray
    sure: IntArray
    period: IntArray
    outside: IntArray
    grid: IntArray

    def pace(self, stretch: Stretch) -> int:
        """The usual step in ns of a loop in which most steps surely wait for a time, or for something outside of the
        program; 0 for other loops."""
        sure = self.take((self.sure > 0) & (self.period > 0) & (self.outside > 0))
        if 2 * len(sure) < stretch.count or len(sure) == 0:
            return 0
        periods, code = distinct(sure.period)
        return int(periods[np.bincount(code, sure.end - sure.begin).argmax()])


MAY_WAIT = places(lambda cause: cause.unresolved or cause.follows_wakeups)
MAY_WORK = (PLACE[HOST_CODE], PLACE[IN_MPI], PLACE[FALLBACK])
ON_CPU = (PLACE[HOST_CODE], PLACE[IN_MPI])
"""MPI libraries poll: a thread inside a call may be on a CPU, and waits all the same."""
FROM_OUTSIDE = (PLACE[IO_WAIT.id], PLACE[SLEEP.id])
"""Waits that no thread of the program ends: workers that take turns have one each in some steps, and all keep one
pace."""
_OFF_CPU = PLACE[PREEMPTION]
_HELD = re.compile(r"_*(readv?|recv\w*|p?poll|p?select6?|epoll_p?wait2?|accept4?|ioctl|mq_\w*receive|msgrcv)(_chk)?")
"""Calls that wait until another process, a device or a peer has something."""
FOR_ROOM = re.compile(r"_*(writev?|send\w*|mq_\w*send|msgsnd)(_chk)?")
"""Calls that wait until there is room for more, as in a full pipe: no clock ends them."""
UNTIL_TIME = re.compile(r"clock_nanosleep")
"""Calls that may sleep until a time. If it has passed, they are as short as their return: a faster loop would sleep."""
BACK_NS = 80_000
"""The longest return of a sleep that was none."""
MESSAGES = re.compile(r"_*(recv\w*|p?poll|p?select6?|epoll_p?wait2?|mq_\w*receive|msgrcv)(_chk)?")
"""Calls that wait for others, and never read a file."""


def timed_waits(
    pieces: HostTime, names: HostNames, axis: ThreadAxis, stretch: Stretch, *, unseen_ranks: bool = False
) -> Timed:
    """Those among pieces of host time that are not known work; what surely is as long as ever is left out. With
    `unseen_ranks`, any wait but a sleep may be one for other ranks."""
    waits = _joined(pieces, names)
    length, lane = waits.length, waits.start // axis.stride
    least = LEAST_PART * (stretch.end - stretch.begin) / stretch.count if stretch.stepwise else 5 * WAITED_NS
    kind, before = _kinds(waits, lane, len(names.calls), stretch), _before(pieces, waits)
    total = np.bincount(kind, length)
    much = total >= LEAST_ERROR * (stretch.end - stretch.begin)
    found = [Timed.empty()]
    of_kind = RowsOf(kind, among=np.flatnonzero(much))
    by_message, until_times, for_room = map(names.calls_like, (MESSAGES, UNTIL_TIME, FOR_ROOM))
    for each in of_kind.values():
        rows = of_kind[each][np.argsort(axis.time(waits.start[of_kind[each]]), kind="stable")]
        cause, call = int(waits.cause[rows[0]]), int(waits.call[rows[0]])
        rows = rows[length[rows] >= least] if cause in MAY_WORK else rows
        outside, on_cpu, mpi = cause != PLACE[THREAD_WAIT], cause == PLACE[HOST_CODE], cause == PLACE[IN_MPI]
        # Other ranks run the same program: what is fixed here is fixed there, too.
        ranks = mpi or (unseen_ranks and cause != PLACE[SLEEP.id])
        for mine in _in_turns(rows, before, length, stretch):
            begin, end = axis.time(waits.start[mine]), axis.time(waits.start[mine]) + length[mine]
            step = np.searchsorted(stretch.borders, begin)
            # What is seen in few steps, or a few times in a window without steps, paces no loop. A call that returned
            # at once had what it read, or was not a wait at all.
            waited = step if cause != PLACE[IO_WAIT.id] else step[length[mine] >= WAITED_NS]
            seldom = len(distinct_values(waited) if stretch.stepwise else waited) < _often(stretch)
            if seldom and len(mine) <= FEWEST_BEATS // 2:
                continue  # so few show no grid either
            sure, period = _judged(begin, end, step, by_clock=cause == PLACE[SLEEP.id])
            if sure is None and until_times[call] and float(np.quantile(end - begin, MANY)) <= BACK_NS:
                sure = False
            # A message comes when it was sent: nothing else makes the wait for it as long as ever.
            sure = bool(sure) if by_message[call] else sure
            spins = bool(sure) and _varies(end - begin, np.diff(end))
            joined = on_cpu and not spins and not seldom and keeps_beat(begin, end)
            real = _is_wait(end - begin)
            missed = sure is not None and may_miss_each(begin[real], end[real])
            grid = missed or on_grid(end[end - begin >= WAITED_NS])
            grid &= outside and not (on_cpu or ranks or bool(for_room[call]))
            if not joined and not grid and (sure is None or seldom or (on_cpu and not spins)):
                continue
            same, thread = np.ones(len(mine), dtype=np.int64), axis.threads[lane[mine]]
            known = JOINED if joined else int(bool(sure) and not ranks)
            every = Timed(thread, begin, end, same * known, same * period, same * outside, same * (NEXT * grid))
            found.append(every.take(real))
    return Timed.concatenate(found)


def _kinds(waits: HostTime, lane: IntArray, calls: int, stretch: Stretch) -> IntArray:
    """A number for the waits of each thread, by cause and call. Of a kind that each thread has in few steps, all are
    one: workers that take turns may wait for the same source."""
    of_all = waits.cause * (calls + 1) + waits.call + 1
    long = waits.length >= WAITED_NS
    kind = distinct(lane * len(PLACE) * (calls + 1) + of_all)[1]
    seldom = np.bincount(kind, long)[kind] < _often(stretch) if len(kind) else kind > 0
    shared = np.where(seldom & np.isin(waits.cause, FROM_OUTSIDE), -1, lane) + 1
    return distinct(shared * len(PLACE) * (calls + 1) + of_all)[1]


def _often(stretch: Stretch) -> int:
    """How many waits of a kind there are at least: fewer pace no loop."""
    return (stretch.count + 1) // 2 if stretch.stepwise else FEWEST + 1


def _joined(pieces: HostTime, names: HostNames) -> HostTime:
    """Pieces that follow each other, of one cause and call, as one."""
    waits = np.isin(pieces.cause, MAY_WAIT) | np.isin(pieces.cause, ON_CPU)
    waits |= (pieces.cause == _OFF_CPU) & (pieces.label == untraced_code(names.labels))
    # No source outside of the program holds a read of a file.
    other_end = names.calls_like(_HELD, without=True) | names.calls_like(FOR_ROOM)
    waits &= (pieces.cause != PLACE[IO_WAIT.id]) | other_end[pieces.call]
    rows = np.flatnonzero(waits)
    found = pieces.take(rows[np.argsort(pieces.start[rows], kind="stable")])
    again = (found.start[1:] == found.end[:-1]) & (found.cause[1:] == found.cause[:-1])
    again &= found.call[1:] == found.call[:-1]
    first = np.flatnonzero(np.append(True, ~again)[: len(rows)])
    last = np.append(first[1:] - 1, len(rows) - 1)[: len(first)]
    found = replace(found.take(first), end=found.end[last])
    # Who asks for the time again and again goes on with the program; a time slice of a busy CPU just ends.
    off = pieces.cause == _OFF_CPU
    slices = np.isin(found.start, pieces.end[off]) | np.isin(found.end, pieces.start[off])
    return found.take(~slices | ~np.isin(found.cause, ON_CPU))


def _before(pieces: HostTime, waits: HostTime) -> IntArray:
    """A number for what the thread did before each of the waits: the cause and the call, -1 for nothing known."""
    row = row_of(waits.start, pieces.end)
    return np.where(row >= 0, joint(pieces.cause, pieces.call + 1, pieces.call.max(initial=0) + 2)[row], -1)


def _in_turns(rows: IntArray, before: IntArray, length: IntArray, stretch: Stretch) -> list[IntArray]:
    """The waits of a thread by their turn in the step, if it has several: by what is `before` each of them, and by
    their order if each step has as many of these. A step that lacks one does not shift the others. In a window without
    steps it is by what is `before` those that come often, and by what repeats in their `length`."""
    if not len(rows):
        return []
    if stretch.stepwise and round(len(rows) / stretch.count) <= 1:
        return [rows]
    same = RowsOf(before[rows])
    groups = [rows[same[each]] for each in same.values()]
    if not stretch.stepwise:
        groups = [each for each in groups if len(each) > FEWEST] or [rows]
        turn = [_turn_of_each(length[each]) for each in groups]
    else:
        turn = [np.arange(len(each)) % _in_each(len(each), stretch.count) for each in groups]
    return [each[mine == at] for each, mine in zip(groups, turn, strict=True) for at in range(int(mine.max()) + 1)]


def _turn_of_each(length: IntArray) -> IntArray:
    """The turn of each of some stretches of a window, in order, of these lengths. One that is missing, or one more,
    shifts those behind it: then they are far nearer to what is usual of other turns.

    ```
    lengths   1  5  1  5  1  5  5  1  5  1  5  1
    turn      0  1  0  1  0  1  1  0  1  0  1  0
    ```
    """
    turns, place = _repeats(length), np.arange(len(length))
    if turns == 1:
        return np.zeros(len(length), dtype=np.int64)
    usual = np.array([np.median(length[at::turns]) for at in range(turns)])
    apart = np.stack([np.abs(length - usual[(place + late) % turns]) for late in range(turns)])
    near = np.array([np.convolve(each, np.ones(2 * turns + 1), "same") for each in apart])
    late = np.where(ALIKE_TURNS * near.min(axis=0) < near[0], near.argmin(axis=0), 0)
    return (place + late) % turns


def _repeats(length: IntArray) -> int:
    """After how many stretches of these lengths, in order, they repeat; 1 if they do not. Those of one turn differ
    less from each other than those of turns that follow each other."""
    turns = range(1, max(min(LONGEST_TURN, len(length) // (FEWEST + 1)), 1) + 1)
    if len(turns) < 2:
        return 1
    apart = [float(np.median(np.abs(length[turn:] - length[:-turn]))) for turn in turns]
    return turns[int(np.argmin(apart))] if ALIKE_TURNS * min(apart) < apart[0] else 1


def _in_each(count: int, steps: int) -> int:
    """How many of so many waits each step has; 1 if steps differ."""
    turns = round(count / steps)
    # The borders of the replayed time may cut one of each turn.
    return turns if turns > 1 and abs(count - turns * steps) <= max(turns, steps // 10) else 1


def _judged(begin: IntArray, end: IntArray, step: IntArray, *, by_clock: bool = False) -> tuple[bool | None, int]:
    """Whether waits in order, with the number of the step of each, make up for what was done before each; None if
    they do not, False if that is not known. And the usual time of a step from end to end, 0 if that is not
    regular. What waits for the clock alone, and not for others, ends regularly."""
    real = _is_wait(end - begin)
    if np.count_nonzero(real) <= FEWEST:
        return False, 0
    # In a step without a wait its time had come before.
    steps = np.maximum(np.diff(step[real]), 1)
    begun, period = np.diff(begin[real]) / steps, np.diff(end[real]) / steps
    usual = float(np.median(period))
    regular = round(usual) if np.quantile(np.abs(period - usual), MOST_REGULAR) <= REGULAR * usual else 0
    # If work behind the waits makes up for them, such as a wait for kernels, they begin as regularly, not end.
    paced = bool(np.abs(period - usual).sum() < np.abs(begun - np.median(begun)).sum())
    # Over more steps at once there is more work in each for one wait less: that is no difference of the work.
    apart = int(np.bincount(steps).argmax())
    busy = (begin[real][1:] - end[real][:-1])[steps == apart] / apart
    if paced and regular and max(FIXED * _spread(period), NOISE_NS) <= _spread(busy):
        return True, regular
    follows = real[1:] & real[:-1]
    low, high = slopes((begin[1:] - end[:-1])[follows], (end - begin)[1:][follows])
    return None if low > HALFWAY else paced and high < HALFWAY, regular


def _spread(values: FloatArray | IntArray) -> float:
    """The standard deviation that the median distance from the median stands for."""
    return NORMAL * float(np.median(np.abs(values - np.median(values))))


def _is_wait(length: IntArray) -> BoolArray:
    return length >= max(WAITED_NS, NONE_SHARE * float(np.quantile(length, MANY)))


def _varies(length: IntArray, period: IntArray) -> bool:
    """Whether time on a CPU differs enough for one that ends at a time of its own: work takes about as long each time.
    Or its ends, a `period` apart, are that much more regular. Who polls for a time after steady work may take as long
    each time as well: the trace cannot tell."""
    real = length[_is_wait(length)]
    least = min(VARIES * float(np.median(real)), FIXED * max(_spread(period), NOISE_NS))
    return _spread(real) >= least


def slopes(work: IntArray, wait: IntArray) -> tuple[float, float]:
    """Between which slopes the line of waits over the work before them is: Sen's confidence interval."""
    count = min(len(work), MOST_PAIRED)
    every = np.linspace(0, len(work) - 1, count).astype(np.int64)
    first, second = np.triu_indices(count, 1)
    more = work[every[second]] - work[every[first]]
    telling = np.abs(more) >= NOISE_NS
    slope = np.sort((wait[every[second]] - wait[every[first]])[telling] / more[telling])
    apart = int(DEVIATIONS * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)) + 1
    below = (len(slope) - apart) // 2
    if count < FEWEST or below < 0 or 2 * len(slope) < len(telling):
        return -np.inf, np.inf
    return float(slope[below]), float(slope[-1 - below])


def owned(pieces: HostTime, row: IntArray, spans: Intervals) -> HostTime:
    """Pieces with other owners: the row of the stretch on the axis of threads that each is in."""
    order = np.lexsort((spans.end, spans.start))
    at = nearest_before(spans.start[order], pieces.start)
    return replace(pieces, owner=row[order[at]])


# Synchronizations that last longer than all that they are known to wait for: kernels without rows, another process.
#
# ```
# known     [== kernel ==)
# thread  [ sync ........|- return -|...... what else? ......)
# ```

RETURN_NS = 100_000
"""The longest return of a wait: a thread that slept for a device in captured programs was back in up to 70 µs."""


class Outlived(Struct, frozen=True):
    """How much longer each wait for a device lasts, in ns. `share` is the part of the replayed time that this, and
    waits for nothing known, take on the thread that has most of it."""

    ns: IntArray
    share: float


def outlived(
    held: DeviceWaits, lag: IntArray, pieces: HostTime, axis: ThreadAxis, stretch: Stretch
) -> tuple[Outlived, Timed]:
    """The waits of `held`, which return `lag` ns after what they are for has ended, and those among `pieces`, which are
    for nothing known. What is little is nothing."""
    ns = np.where((held.cause == PLACE[SYNCHRONIZATION]) & (lag > RETURN_NS), lag - RETURN_NS, 0)
    rows = np.flatnonzero(ns)
    length = pieces.length
    known = union(axis.place(axis.lane(held.thread), Intervals(held.begin, held.end)))
    alone = (pieces.cause == PLACE[SYNCHRONIZATION]) & (length > RETURN_NS)
    # A thread that wakes another at the very end of a wait has that wait before it.
    unknown = np.flatnonzero(alone & (coverage(known, pieces.spans) == 0))
    begin = axis.time(pieces.start[unknown])
    thread = np.concatenate((held.thread[rows], axis.threads[pieces.start[unknown] // axis.stride]))
    total = np.bincount(distinct(thread)[1], np.concatenate((ns[rows], length[unknown])))
    share = float(total.max(initial=0)) / max(stretch.end - stretch.begin, 1)
    # A thread that was late now and then had no CPU.
    if share < LEAST_ERROR or 2 * len(thread) < stretch.count:
        return Outlived(np.zeros(len(held), dtype=np.int64), 0.0), Timed.empty()
    start = np.concatenate((held.end[rows] - ns[rows], begin))
    end = np.concatenate((held.end[rows], begin + length[unknown]))
    no = np.zeros(len(thread), dtype=np.int64)
    return Outlived(ns, share), Timed(thread, start, end, no + OUTLIVED, no, no + 1, no)


# Ends of waits that keep a beat: the work before them differs, and they come when it is time all the same.
#
# ```
# beat       |         |         |         |
# thread   [work ][spins, prepares)[work ....][prepares)[work ..][spins, prepares)
#                                 )          )                                  )   late by what was prepared, no more
# ```
#
# Without a beat each end is late by all that took longer before it. With one it is late by its own work alone.

FEWEST_BEATS = 30
"""Waits, of which fewer keep no beat; half as many show a grid. In the simulations of TURNS_BACK fewer steps would give
more wrong results. A larger number leaves the waits of short loops as long as they were."""
TURNS_BACK = 1.1
"""The mean square of differences, as a share of the variance: 2 of values that do not depend on each other, and 0.4 of
sums of 39 such values. Of 1,500 simulated loops of 39 steps without a beat at most 0.6% were taken for one with a beat.
Of those with one 98.8% were found. Of fewer than FEWEST_BEATS steps more would be wrong."""
LONGEST_TURN = 13
"""Patterns that repeat after so many values are taken out first: every tenth step may take longer, and none waits."""
ALIKE_TURNS = 2
"""So many times less do stretches of one turn differ than those that follow each other, in the median. Values that do
not depend on each other differ as much at any distance."""
MOST_TURNS = 4
"""A thread that waits for a time only in each second step, or up to each fourth one, is found. More would leave fewer
than seven of FEWEST_BEATS waits to fit a line to."""
MAKES_UP, ERRORS = -0.4, 4
"""A wait is shorter by as much of what it begins later, or more; and by so many standard errors at least."""
ON_GRID, MOST_ON_GRID, MOST_CELLS, OTHERS = 0.08, 0.9, 4, 3
"""How far from the grid an end may be, as a share of the distance; the share of the ends that are that near; how many
distances the shortest step spans at most; and how many steps span another number than most do."""
RETURNS_APART_NS, MOST_OFF_GRID = 60_000, 0.2
"""By how much the returns of two waits differ in captured programs, and how far from the grid that may lead."""


def keeps_beat(begin: IntArray, end: IntArray) -> bool:
    """Whether stretches in order, which `begin` and `end` at these times in ns, end by a clock: what begins later is
    shorter, and no end is later for what was late before."""
    if len(end) < FEWEST_BEATS:
        return False
    late, began = _late(end), _late(begin)
    if np.sqrt(np.mean(late**2)) < NOISE_NS or np.sqrt(np.mean(began**2)) < NOISE_NS:
        return False
    turns = range(1, min(LONGEST_TURN, len(end) // 3) + 1)
    if min(_turning(late, turn) for turn in turns) < TURNS_BACK:
        return False
    # Who waits in each second step or third one makes up for what is late in these.
    length = (end - begin).astype(np.float64)
    every = ((first, turn) for turn in range(1, MOST_TURNS + 1) for first in range(turn))
    return any(_makes_up(began[first::turn], length[first::turn]) for first, turn in every)


def _late(times: IntArray) -> FloatArray:
    """By how many ns each of these times is late, if they should come at equal distances."""
    number = np.arange(len(times)) - (len(times) - 1) / 2
    centered = (times - times[0]).astype(np.float64)
    centered -= centered.mean()
    return centered - number * (number @ centered) / (number @ number)


def _turning(late: FloatArray, turn: int) -> float:
    """How soon values turn back, without what repeats after `turn` of them."""
    place = np.arange(len(late)) % turn
    left = late - (np.bincount(place, late) / np.bincount(place))[place]
    return float(np.mean(np.diff(left) ** 2)) / max(float(np.mean(left**2)), 1.0)


def _makes_up(began: FloatArray, length: FloatArray) -> bool:
    """Whether what begins later is shorter, by a line of least squares."""
    began, other = began - began.mean(), length - length.mean()
    slope = (began @ other) / (began @ began)
    error = np.sqrt(np.mean((other - slope * began) ** 2) / (began @ began))
    return bool(slope <= MAKES_UP and slope <= -ERRORS * error)


def on_grid(end: IntArray) -> bool:
    """Whether waits in order end at multiples of one time, and not always as many apart: they end with the next one,
    as those for the picture on a screen."""
    apart = np.diff(end)
    if len(apart) < FEWEST_BEATS // 2 or apart.min() <= NOISE_NS:
        return False
    shortest = float(np.median(apart[apart <= 1.3 * apart.min()]))
    return any(_fits(apart, shortest / cells) for cells in range(1, MOST_CELLS + 1))


def may_miss_each(begin: IntArray, end: IntArray) -> bool:
    """Whether waits in order may end at each second one of equal distances, or a later one. They end as far apart each
    time, and the work between them is always too long for those between. A shorter step may be on time for these.

    ```
    distances    |       |       |       |       |
    thread     ..)[works      ][waits )[works     ][waits )
    ```
    """
    apart, busy = np.diff(end), begin[1:] - end[:-1]
    if len(apart) < FEWEST_BEATS // 2:
        return False
    usual = float(np.median(apart))
    return bool(_near(apart - usual, usual).mean() >= MOST_ON_GRID and 2 * (busy.min() + RETURNS_APART_NS) > usual)


def _near(off: FloatArray, cell: float) -> BoolArray:
    """Which ends are near a grid of this distance that are `off` by so much. Threads take their time to go on."""
    return np.abs(off) <= min(max(ON_GRID * cell, RETURNS_APART_NS), MOST_OFF_GRID * cell)


def _fits(apart: IntArray, cell: float) -> bool:
    """Whether these distances are different multiples of about this one."""
    cells = np.round(apart / cell)
    exact = apart.sum() / cells.sum()
    near = _near(apart - cells * exact, exact)
    _, number = distinct(cells.astype(np.int64))
    others = len(cells) - np.bincount(number).max()
    return bool(near.mean() >= MOST_ON_GRID and others >= OTHERS)
