"""A late rank that behaves like the others: its host code and its kernels take as long as on the median rank."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import number_of_each
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, sorted_times, union
from nsysdiag.replay.beside import REGULAR
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.pacing import NORMAL
from nsysdiag.replay.work import Class, keyed, row_of

LATE = 1.02
"""Times the median of all ranks: one that takes longer over all steps is late."""
SURELY = 3
"""Standard errors: a rank that is later by less is so by chance."""
MOST_PARTS = 1 << 22
"""Times of a part on a device in a step: with more of them, only whole steps are compared."""


def like_the_median(changes: Changes) -> bool:
    """Shorten, step by step, what late ranks do for longer than the median; False if there is one rank only. Each
    device is a rank; of two the other one is the median. If all launch as often, host time is compared between
    launches, and each kernel with those at its place; in the view that saves least, steps are as a whole."""
    model = changes.model
    if len(distinct_values(model.work.device)) < 2:
        return False
    _shorten_host(changes)
    _shorten_kernels(changes)
    return True


def _shorten_host(changes: Changes) -> None:
    """The host time of the threads that launch on a device, except for calls of MPI, in which they wait for other
    ranks; and what they wait for other threads."""
    model, pieces = changes.model, changes.model.pieces
    owner = _device_of_thread(model, model.program.thread)[pieces.owner]
    device = np.where(pieces.inside(union(model.host.host.mpi.spans)) > 0, -1, owner)
    step = _step_of(model, device, model.host.host.axis.time(pieces.start))
    part = (
        np.zeros(len(pieces), dtype=np.int64) if changes.view == View.LEAST else _launches_before(model, device, step)
    )
    changes.time[:] *= _factors(model, device, step, part, pieces.length)
    _take_out_waits(changes)


def _take_out_waits(changes: Changes) -> None:
    """The waits for other threads in the steps in which a rank that waits for longer than the median does so: what it
    waits for has a pace of its own, which no rank keeps."""
    model, woken = changes.model, changes.model.threads.woken
    waiting = _device_of_thread(model, woken.thread)
    step = _step_of(model, waiting, woken.begin)
    own, known = _by_step(model, waiting, step, woken.end - woken.begin), waiting >= 0
    usual = np.sort(own, axis=0)[(len(own) - 1) // 2]
    longer = (own > usual) & (own.sum(axis=-1, keepdims=True) > LATE * usual.sum())
    row = np.searchsorted(model.devices, waiting[known])
    gone = np.zeros(len(woken), dtype=np.bool_)
    gone[known] = longer[row, 0, step[known]]
    changes.woken[gone] = False


def _shorten_kernels(changes: Changes) -> None:
    model, work = changes.model, changes.model.work
    device = np.where(work.kind == Class.COMPUTE, work.device, -1)
    step = _step_of(model, work.device, work.issued)
    part = np.zeros(len(work), dtype=np.int64) if changes.view == View.LEAST else _kernels_before(model, device, step)
    factor = _factors(model, device, step, part, work.length)
    changes.length[:] = np.round(changes.length * factor).astype(np.int64)


def _factors(model: Model, device: IntArray, step: IntArray, part: IntArray, ns: IntArray) -> FloatArray:
    """How much of each time stays; `device` is -1 for what belongs to none. Of a late rank, parts are shorter that make
    it late."""
    factor, mine = np.ones(len(ns)), device >= 0
    if (int(part.max(initial=0)) + 1) * len(model.devices) * (len(model.stretch.borders) + 1) > MOST_PARTS:
        part = np.zeros(len(ns), dtype=np.int64)
    total = _by_step(model, device, step, ns, part)
    late = _late(total) & _late(total.sum(axis=1, keepdims=True))
    stays = np.where(late[..., None], np.minimum(_median_rank(total) / np.maximum(total, 1), 1.0), 1.0)
    factor[mine] = stays[np.searchsorted(model.devices, device[mine]), part[mine], step[mine]]
    return factor


def _by_step(model: Model, device: IntArray, step: IntArray, ns: IntArray, part: IntArray | int = 0) -> FloatArray:
    """The times in ns of each rank, of each part, and in each step: three axes; `device` is -1 for what belongs to
    none."""
    mine, part = device >= 0, np.broadcast_to(part, ns.shape)
    shape = (len(model.devices), int(part.max(initial=0)) + 1, len(model.stretch.borders) + 1)
    at = np.ravel_multi_index((np.searchsorted(model.devices, device[mine]), part[mine], step[mine]), shape)
    return np.bincount(at, ns[mine], int(np.prod(shape))).reshape(shape).astype(np.float64)


def _median_rank(ns: FloatArray) -> FloatArray:
    """The times in each step (the last axis) of the rank (the first axis) that is the median over all; of two the
    other rank. What is usual in a step alone would vary less than any rank does."""
    order = np.argsort(ns.sum(axis=-1), axis=0)[(len(ns) - 1) // 2]
    return np.take_along_axis(ns, order[None, :, None], axis=0)


def _late(ns: FloatArray) -> BoolArray:
    """Whether what takes so long in each step (the last axis) takes longer than on other ranks (the first axis), and
    not by chance."""
    usual = _median_rank(ns) if len(ns) == 2 else np.median(ns, axis=0, keepdims=True)
    more = ns - usual
    apart = np.median(np.abs(more - np.median(more, axis=-1, keepdims=True)), axis=-1)
    by_chance = SURELY * NORMAL * apart * np.sqrt(more.shape[-1])
    return more.sum(axis=-1) > np.maximum((LATE - 1) * usual.sum(axis=-1), by_chance)


def _launches_before(model: Model, device: IntArray, step: IntArray) -> IntArray:
    """How many launches its thread has made in the step before each piece of host time; 0 for all if ranks do not
    launch equally often in a step."""
    axis, pieces = model.host.host.axis, model.pieces
    begun = model.host.host.api_calls.rows.start[np.maximum(model.work.launch, 0)]
    if not _as_many(model, model.work.device, _step_of(model, model.work.device, begun)) or not len(pieces):
        return np.zeros(len(step), dtype=np.int64)
    launches, lane = sorted_times(model.launch_spans.start), pieces.start // axis.stride
    own = np.maximum(_borders(model), model.stretch.begin)[np.searchsorted(model.devices, np.maximum(device, 0))]
    borders = np.where(step > 0, own[np.arange(len(step)), step - 1], model.stretch.begin)
    begin = axis.place(lane, Intervals(borders, borders)).start
    return np.maximum(np.searchsorted(launches, pieces.start) - np.searchsorted(launches, begin), 0)


def _kernels_before(model: Model, device: IntArray, step: IntArray) -> IntArray:
    """How many kernels the rank has launched in the step before each one; by their names, if ranks do not launch
    equally many in a step."""
    mine = np.flatnonzero(device >= 0)
    if not _as_many(model, device, step):
        return distinct(model.names.short)[1]
    order, place = mine[np.argsort(model.work.issued[mine], kind="stable")], np.zeros_like(device)
    place[order] = number_of_each(*keyed((device[order], step[order])))
    return place


def _as_many(model: Model, device: IntArray, step: IntArray) -> bool:
    """Whether all ranks do as many things in a step, which are on a `device` in a `step` each."""
    count = _by_step(model, device, step, np.ones(len(device), dtype=np.int64))[:, 0]
    return count.shape[1] > 2 and len(np.unique(np.median(count[:, 1:-1], axis=1))) == 1


def _step_of(model: Model, device: IntArray, time: IntArray) -> IntArray:
    """The step of the rank of a device at each time, counted from 1; of what belongs to none (-1), that of all."""
    step = model.stretch.step(time) + 1
    for each, borders in zip(model.devices, _borders(model), strict=True):
        mine = device == each
        step[mine] = np.searchsorted(borders, time[mine], side="right")
    return step


# The steps of a rank that is ahead of another, or behind it, are not those of the other.
#
# ```
# rank 0   |a b c    |a b c    |a b c    |
# rank 1       |a     b c  |a     b c   |a     b c
# ```


@once
def _borders(model: Model) -> IntArray:
    """When the steps of each rank begin, in ns: a row for each device. If all ranks launch the same in each of the
    steps, these are the steps of all; else each rank's begin with the launch of what the steps of the first regular
    rank begin with. Ranks that do not repeat the same launches have the steps of all."""
    work, common = model.work, model.stretch.borders
    ranks = [np.flatnonzero((work.device == each) & (work.launch >= 0)) for each in model.devices]
    ranks = [rows[np.argsort(work.issued[rows], kind="stable")] for rows in ranks]
    names = [model.names.short[rows] for rows in ranks]
    shared = np.tile(common, (len(ranks), 1))
    windows = [np.searchsorted(work.issued[rows], common) for rows in ranks]
    usual = [_same(np.diff(window)) for window in windows]
    first = next((at for at, count in enumerate(usual) if count), None)
    if first is None:
        return shared
    begin, count = int(windows[first][len(common) // 2]), usual[first]
    said = names[first][begin : begin + count]
    if all(
        each == count and np.array_equal(name[window[len(common) // 2] :][:count], said)
        for each, name, window in zip(usual, names, windows, strict=True)
    ):
        return shared
    found = [_own_borders(work.issued[rows], name, said, common) for rows, name in zip(ranks, names, strict=True)]
    return np.stack([each for each in found if each is not None]) if all(each is not None for each in found) else shared


def _same(count: IntArray) -> int:
    """How many launches most steps hold, 0 if they differ."""
    usual = int(np.median(count)) if len(count) else 0
    return usual if np.mean(count == usual) >= REGULAR else 0


def _own_borders(issued: IntArray, names: IntArray, said: IntArray, common: IntArray) -> IntArray | None:
    """When each of the steps begins for a rank that launches `names` at `issued`: with the first of the names `said`.
    Of several places that fit it is the one that is nearest to the `common` borders. None if it does not repeat
    these."""
    count = len(said)
    fits = [at for at in range(min(count, len(names) - count)) if np.array_equal(names[at : at + count], said)]
    if not fits or not np.array_equal(names[count:], names[:-count]):
        return None
    apart = [float(np.median(_to_nearest(issued[at::count], common))) for at in fits]
    begins = issued[fits[int(np.argmin(apart))] :: count]
    place = np.arange(len(begins))
    place += round(float(np.median(np.searchsorted(common, begins, side="right") - 1 - place)))
    never = np.iinfo(np.int64).max
    borders = np.where(np.arange(len(common)) < place[0], int(common[0]) - 1, never)
    inside = (place >= 0) & (place < len(common))
    borders[place[inside]] = begins[inside]
    return borders


def _to_nearest(times: IntArray, borders: IntArray) -> IntArray:
    after = np.clip(np.searchsorted(borders, times), 1, len(borders) - 1)
    return np.minimum(np.abs(borders[after] - times), np.abs(times - borders[after - 1]))


def _device_of_thread(model: Model, thread: IntArray) -> IntArray:
    """The device that a thread launches most on, -1 for one that launches nothing."""
    rows = np.flatnonzero(model.launched_by >= 0)
    threads, place = distinct(model.launched_by[rows])
    count = np.zeros((len(threads), len(model.names.keys)), dtype=np.int64)
    np.add.at(count, (place, model.work.device[rows]), 1)
    return np.append(count.argmax(axis=1), -1)[row_of(thread, threads)]
