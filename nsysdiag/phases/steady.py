"""Which parts of a job repeat."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    complement,
    coverage,
    nearest_before,
    shared,
)
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.rows import picked
from nsysdiag.iterations.loop import Loop
from nsysdiag.phases.facts import FEWEST_REPEATS
from nsysdiag.phases.signal import (
    DeviceSignal,
    JobWork,
    NamedWork,
    launched_in,
    nearest_of,
    operation_keys,
    step_borders,
    whole_steps,
)

REPEATED = 3
"""A name that occurs so often repeats."""
REPEATED_SHARE = 0.6
"""Of the kernel time of a steady part: what repeated names take at least."""
ALIKE_HALVES, STRONG_HALVES = 0.7, 0.95
"""Cosine of the kernel mixes of both halves. A part with other kernels in its second half does not repeat."""
LEAST_BUSY = 0.02
"""Of a part: if devices work for less of it, nothing repeats in it, unless steps fill it, and it may be a pause between
loops. Set with the first form of these rules, on 41 real traces that an expert had read."""
LOOP_SHARE = 0.8
"""Of a part whose devices work less: what whole steps of a loop take at least, if it is steady."""
MOST_STARTUP, MANY_STEPS = 0.15, 20
"""Share of a part that start-up causes take at most. In so many steps, none a layer of one pass, they are what each
step does: building a graph, for example."""
COPIES_FOR_KERNELS = 3
"""If copies take so many times as long as kernels, copies are the work that repeats."""
STRONG_OPERATIONS = 200
"""Operations on the busiest device. A part with so many, and with halves alike, is always judged, however short it is.
If fewer were enough, a part of one step could be a phase. Set on the same 41 traces."""
ALIKE, ALIKE_BUSY = 0.8, 0.15
"""Cosine of the kernel mixes, and difference of the busy shares, of parts that are one."""
WARM_UP_REPEATS, WARM_UP_SLOWER = 0.2, 1.5
"""Repeats of a warm-up, and the time of each, as a multiple of those of the loop that it is for."""
TWO_STEPS = 2
"""Borders: two steps have three."""


class JobParts(Struct, frozen=True):
    """Parts of the job's window: part i is [borders[i], borders[i + 1]) in ns.

    `mix` is the work by device and name in ns: the kernels, or all if copies count as kernels. `account` is the
    share of the devices' time by what they did: compute, communication, copies, and idle by start-up, memory and the
    rest. `kernel_ns` and `busy_ns` are sums over devices. `repeats` is how often the names occur that carry 60% of the
    kernel time; `operations` is the count on the busiest device; `steady` and `strong` are what follows. `loops` are
    those of the job."""

    borders: IntArray
    mix: FloatArray
    account: FloatArray
    kernel_ns: FloatArray
    busy_ns: FloatArray
    repeats: IntArray
    operations: IntArray
    steady: BoolArray
    strong: BoolArray
    loops: list[Loop]

    def __len__(self) -> int:
        return len(self.borders) - 1

    def span(self, at: int) -> tuple[int, int]:
        """From and to, of one part."""
        return int(self.borders[at]), int(self.borders[at + 1])

    def steps(self, at: int, share: float = 0.5) -> tuple[Loop, IntArray] | None:
        """The whole steps in one part, as `whole_steps`."""
        return whole_steps(self.loops, *self.span(at), share)

    @property
    def lengths(self) -> IntArray:
        """In ns."""
        return np.diff(self.borders)

    @property
    def busy(self) -> FloatArray:
        """The share of time with any work, a mean over devices."""
        return self.account[:, :3].sum(axis=1)

    def like(self, one: int, other: int) -> bool:
        """Whether two parts do the same work, as often."""
        same_work = cosine(self.mix[one], self.mix[other]) > ALIKE
        return same_work and abs(float(self.busy[one] - self.busy[other])) <= ALIKE_BUSY

    def like_account(self, one: int, other: int) -> bool:
        """Whether two parts spend their time alike: in the same work, or both in none, and idle for the same."""
        idle = max(float(self.busy[one]), float(self.busy[other])) < LEAST_BUSY
        near = float(np.abs(self.account[one] - self.account[other]).max()) <= ALIKE_BUSY
        return near and (idle or cosine(self.mix[one], self.mix[other]) > ALIKE)


def cosine(one: FloatArray, other: FloatArray) -> float:
    """Cosine similarity of two work mixes, 0 to 1; 0 if either is empty."""
    norm = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / norm if norm else 0.0


def mostly_copies(busy_ns: IntArray | FloatArray, kernel_ns: IntArray | FloatArray) -> BoolArray:
    """Whether copies are the work of each part that is so long busy, and so long with kernels."""
    return busy_ns - kernel_ns >= COPIES_FOR_KERNELS * kernel_ns


def segments_of(borders: IntArray, loops: list[Loop], signals: list[DeviceSignal], work: JobWork) -> JobParts:
    """The parts between `borders`. Halves meet between steps of `loops` if there are any; `work` is that of the
    devices of `signals`."""
    halves = _halves(borders, step_borders(loops))
    table = [_by_name(device, halves, len(work.kernel)) for device in work.devices]
    time = np.concatenate([each[0] for each in table], axis=1)
    count = np.stack([each[1][::2] + each[1][1::2] for each in table], axis=1)
    kernel = np.tile(work.kernel, len(work.devices))
    in_kernels, of_all = time[:, kernel].sum(axis=1), time.sum(axis=1)
    kernel_ns = in_kernels[::2] + in_kernels[1::2]
    by_copies = mostly_copies(of_all[::2] + of_all[1::2], kernel_ns)
    time = np.where(kernel[None, :] | np.repeat(by_copies, 2)[:, None], time, 0.0)
    mix = time[::2] + time[1::2]
    flat = np.where(np.arange(count.shape[2]) > 0, count, 0).reshape(len(count), -1)  # code 0: kernels of many names
    # Copies are many in a step: if there are kernels at all, those say how often it repeats.
    judged = np.where(kernel[None, :] | (kernel_ns == 0)[:, None], mix, 0.0)
    repeats = np.array([_repeats(*each) for each in zip(judged, flat, strict=True)], np.int64)
    repeated = np.where(flat >= REPEATED, mix, 0.0).sum(axis=1) >= REPEATED_SHARE * np.maximum(mix.sum(axis=1), 1)
    alike = np.array([cosine(*pair) for pair in zip(time[::2], time[1::2], strict=True)])
    account, busy_ns = _accounts(borders, signals)
    operations = count.sum(axis=2).max(axis=1)
    works = (account[:, :3].sum(axis=1) >= LEAST_BUSY) | ((kernel_ns > 0) & _full_of_steps(borders, loops))
    works &= (account[:, 3] <= MOST_STARTUP) | _full_of_steps(
        borders, [loop for loop in loops if loop.certain and len(loop) >= MANY_STEPS]
    )
    mixed = _full_of_steps(borders, [loop for loop in loops if loop.mixed])
    many = ((alike >= STRONG_HALVES) | mixed) & (operations >= STRONG_OPERATIONS)
    steady = (repeated & (alike >= ALIKE_HALVES)) | mixed
    steady &= works & (many | ~_within_steps(borders, loops))
    computes = steady & (kernel_ns > 0) & (repeats > 1)
    # Copies alone repeat too if a large upload is made of many: a phase only if no kernel repeats.
    steady = computes if computes.any() else steady
    steady &= ~_warm_ups(borders, mix, repeats, steady, loops)
    return JobParts(borders, mix, account, kernel_ns, busy_ns, repeats, operations, steady, steady & many, loops)


def _halves(borders: IntArray, steps: IntArray) -> IntArray:
    """The borders, and between any two their middle, or the border of a step next to it."""
    middle = borders[:-1] + np.diff(borders) // 2
    if len(steps):
        nearest = nearest_of(steps, middle)
        middle = np.where((nearest > borders[:-1]) & (nearest < borders[1:]), nearest, middle)
    return np.append(np.stack([borders[:-1], middle], axis=1).ravel(), borders[-1])


def _within_steps(borders: IntArray, loops: list[Loop]) -> BoolArray:
    """Whether at least half of each part is in a loop of which the part has fewer than two whole steps: then nothing
    repeats in it."""
    start, end = borders[:-1], borders[1:]
    within = np.zeros(len(start), np.bool_)
    for loop in loops:
        inside = np.searchsorted(loop.borders, end, side="right") - np.searchsorted(loop.borders, start)
        shared = np.minimum(end, loop.ends[-1]) - np.maximum(start, loop.starts[0])
        within |= (2 * shared >= end - start) & (inside <= TWO_STEPS)
    return within


def _full_of_steps(borders: IntArray, loops: list[Loop]) -> BoolArray:
    """Whether whole steps of a loop, five or more, fill each part: the devices of a job that hardly works wait in each
    of its steps."""
    found = np.zeros(len(borders) - 1, np.bool_)
    for loop in (each for each in loops if not each.in_one_pass):
        first, last = np.searchsorted(loop.borders, borders[:-1]), nearest_before(loop.borders, borders[1:])
        whole = np.maximum(loop.borders[last] - loop.borders[np.minimum(first, len(loop))], 0)
        found |= (last - first >= FEWEST_REPEATS) & (whole >= LOOP_SHARE * np.diff(borders))
    return found


def _warm_ups(borders: IntArray, mix: FloatArray, repeats: IntArray, steady: BoolArray, loops: list[Loop]) -> BoolArray:
    """The steady parts that are a warm-up of the next one that is none: most of their kernels are the same, but run far
    less often in the warm-up, and take longer each time. Of one loop a warm-up has far fewer steps."""
    found = np.zeros(len(steady), np.bool_)
    slowness = np.diff(borders) / np.maximum(repeats, 1)
    after = -1
    for at in np.flatnonzero(steady).tolist()[::-1]:
        shared = max(_share_in(mix[after], mix[at]), _share_in(mix[at], mix[after])) >= REPEATED_SHARE
        few = repeats[at] <= WARM_UP_REPEATS * repeats[after]
        slow = after >= 0 and shared and few and slowness[at] >= WARM_UP_SLOWER * slowness[after]
        found[at] = slow and not _many_steps(borders, loops, at, after)
        after = after if found[at] else at
    return found


def _many_steps(borders: IntArray, loops: list[Loop], at: int, after: int) -> bool:
    """Whether two parts are steps of one loop, and the first has so many that it is no warm-up: a server that takes
    other work for a while runs fewer kernels in each step, which take longer."""
    first, second = (whole_steps(loops, *borders[part : part + 2].tolist()) for part in (at, after))
    if first is None or second is None or first[0] is not second[0]:
        return False
    return len(first[1]) - 1 > WARM_UP_REPEATS * (len(second[1]) - 1)


def _share_in(one: FloatArray, other: FloatArray) -> float:
    """The share of a mix that is in names of another one."""
    total = float(one.sum())
    return float(one[other > 0].sum()) / total if total else 0.0


def _by_name(work: NamedWork, borders: IntArray, names: int) -> tuple[FloatArray, IntArray]:
    """[part, name]: ns of the operations inside each part, and how many begin in it."""
    start, end = work.spans.start, work.spans.end
    parts = len(borders) - 1
    begin = np.searchsorted(start, borders)
    size = np.diff(begin, prepend=0, append=len(start))
    # Operations are in order of start: those before all parts, of each part, and behind them.
    key = np.repeat(np.arange(-1, parts + 1) * names, size) + work.name
    whole = end <= np.repeat(np.concatenate(([np.iinfo(np.int64).min], borders[1:], borders[-1:])), size)
    time = np.zeros(parts * names)
    rows = picked(whole)
    time += np.bincount(key[rows], (end - start)[rows], parts * names)
    crossing = np.flatnonzero(~whole)
    query, part, ns = shared(Intervals(borders[:-1], borders[1:]), work.spans[crossing])
    time += np.bincount(part * names + work.name[crossing[query]], ns, parts * names)
    count = np.bincount(key[begin[0] : begin[-1]], minlength=parts * names)
    return time.reshape(parts, names), count.reshape(parts, names)


def _repeats(time: FloatArray, count: IntArray) -> int:
    """The largest number so that names that occur at least as often carry 60% of the time; 0 if there is none."""
    order = np.argsort(-count, kind="stable")
    until = np.cumsum(time[order])
    total = float(until[-1]) if len(until) else 0.0
    return int(count[order[np.searchsorted(until, REPEATED_SHARE * total)]]) if total > 0 else 0


def _accounts(borders: IntArray, signals: list[DeviceSignal]) -> tuple[FloatArray, FloatArray]:
    """[part, kind]: the share of time by what the devices did; [part]: ns with any work, a sum over devices."""
    parts = Intervals(borders[:-1], borders[1:])
    table = np.zeros((len(signals), len(parts), 6))
    for row, each in zip(table, signals, strict=True):
        sets = (*each.split.parts, each.startup, each.memory)
        row[:, :5] = np.stack([coverage(one, parts) for one in sets], axis=1)
    length = np.maximum(np.diff(borders), 1)
    shares: FloatArray = table.mean(axis=0) / length[:, None]
    shares[:, 5] = np.maximum(1 - shares[:, :5].sum(axis=1), 0.0)
    return shares, table[:, :, :3].sum(axis=(0, 2))


# Three or four repeats of the same operations: too few for a loop, but enough to find the start of each, and a warm-up
# step.
#
# ```
# operations   u u a b c d . . . a b c d a b c d
# repeats          |--warm-up----|-------|-------|
# judged                         |---------------|
# ```


def same_sequences(device: DeviceTimeline, lo: int, hi: int) -> IntArray | None:
    """The borders in ns of three or four repeats with the same operations in the same order, among those of `device` in
    [lo, hi): the start of each, and the end of the last operation of the last one. None without such repeats."""
    rows = np.flatnonzero(launched_in(device, lo, hi))
    rows = rows[np.argsort(device.operations.start[rows], kind="stable")]
    start, end = device.operations.start[rows], device.operations.end[rows]
    keys = operation_keys(device)[rows]
    at = _once_a_repeat(keys, end - start)
    if not len(at):
        return None
    period = int(at[1] - at[0])
    first, behind = _run_around(int(at[0]), keys[:-period] == keys[period:])
    repeats = (behind - first + period) // period
    if not REPEATED <= repeats < FEWEST_REPEATS:
        return None
    first += _after_most_idle(start, end, first, period, repeats, (behind - first) % period)
    last = first + repeats * period
    return np.append(start[first:last:period], end[first:last].max())


def busiest(signals: list[DeviceSignal]) -> DeviceSignal:
    """The device that works most."""
    return max(signals, key=lambda signal: (signal.split.busy_ns, -signal.device.number))


def last_busy(work: Intervals, times: IntArray) -> IntArray:
    """Until when a set of work lasts that begins before each of the times, at most to that time."""
    return np.minimum(work.end[np.searchsorted(work.start, times) - 1], times)


def few_repeats(signal: DeviceSignal, lo: int, hi: int) -> Intervals:
    """Three or four repeats of the same operations in [lo, hi), if most of the device's work is in them: each up to the
    end of its last operation. What is inside one is no phase. Of a first one that is a warm-up, that is what comes
    after its longest idle time.

    ```
    device    [f).............[f)[f)[b)[b)[b)[u)..[f)[f)[f)[b)[b)[b)[u)..[f)[f)[f)[b)[b)[b)[u)
    repeats                   |----------------|  |-------------------|  |-------------------|
    ```
    """
    borders, work = same_sequences(signal.device, lo, hi), signal.split.busy
    inside = borders is not None and int(coverage(work, Intervals.of([(borders[0], borders[-1])]))[0])
    if borders is None or 2 * inside < signal.split.busy_ns:
        return Intervals.empty()
    ends = last_busy(work, borders[1:])
    starts = borders[:-1].copy()
    if len(without_warm_up(borders)) < len(borders):
        idle = complement(work, int(starts[0]), int(ends[0]))
        starts[0] = idle.end[np.argmax(idle.end - idle.start)] if len(idle) else starts[0]
    return Intervals(starts, ends)


def without_warm_up(borders: IntArray) -> IntArray:
    """The borders of repeats without the first one if it takes 1.5 times as long as the others, which are alike."""
    first, *others = np.diff(borders).tolist()
    warm = max(others) <= WARM_UP_SLOWER * min(others) and first >= WARM_UP_SLOWER * float(np.median(others))
    return borders[1:] if warm else borders


def _once_a_repeat(keys: IntArray, length: IntArray) -> IntArray:
    """Where the name is that takes most time of those that come three or four times, always as many operations apart;
    empty without such."""
    _, code = distinct(keys)
    order, count = np.argsort(code, kind="stable"), np.bincount(code)
    few = np.flatnonzero((count >= REPEATED) & (count < FEWEST_REPEATS))
    behind = np.cumsum(count)
    changes = np.cumsum(np.append(0, np.diff(order, 2) != 0))  # of the distance, up to each place in the order
    even = few[changes[behind[few] - 2] == changes[behind[few] - count[few]]]
    if not len(even):
        return order[:0]
    name = even[np.bincount(code, length)[even].argmax()]
    return order[behind[name] - count[name] : behind[name]]


def _run_around(at: int, same: BoolArray) -> tuple[int, int]:
    """The run of True values around one of them: [first, behind)."""
    others = np.flatnonzero(~same)
    place = int(np.searchsorted(others, at))
    return int(others[place - 1]) + 1 if place else 0, int(others[place]) if place < len(others) else len(same)


def _after_most_idle(start: IntArray, end: IntArray, first: int, period: int, repeats: int, spare: int) -> int:
    """The number of `spare` operations by which the first repeat begins later, so that most idle time is between
    repeats."""
    until = np.maximum.accumulate(end)
    idle = np.append(0, np.maximum(start[1:] - until[:-1], 0))
    shifts = first + np.arange(spare + 1)
    between = idle[shifts[:, None] + period * np.arange(1, repeats)].sum(axis=1)
    return int(np.argmax(between))
