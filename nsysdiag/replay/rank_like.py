"""A late rank that behaves like the others: its host code and its kernels take as long as on the median rank."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import FloatArray, IntArray
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.work import Class

LATE = 1.02
"""Times the median of all ranks: one that takes longer over all steps is late."""


def like_the_median(changes: Changes) -> bool:
    """Shorten, step by step, what late ranks do for longer than the median; False where there is one rank only. Each
    device is a rank; of two the other one is the median."""
    model = changes.model
    if len(np.unique(model.work.device)) < 2:
        return False
    _shorten_host(changes)
    _shorten_kernels(changes)
    return True


def _shorten_host(changes: Changes) -> None:
    """The host time of the threads that launch on a device, and what they wait for others."""
    model, pieces = changes.model, changes.model.pieces
    device = _device_of_piece(model)
    step = _step_of(model, model.host.host.axis.time(pieces.start))
    factor = _factors(model, device, step, pieces.end - pieces.start)
    mine = device >= 0
    changes.time[mine] *= factor[device[mine], step[mine]]
    woken = model.threads.woken
    waiting = _device_of_thread(model, woken.thread)
    step = _step_of(model, woken.begin)
    waits = _factors(model, waiting, step, woken.end - woken.begin)
    own = waiting >= 0
    shorter = np.zeros(len(woken), dtype=np.bool_)
    shorter[own] = waits[waiting[own], step[own]] < 1
    changes.woken[shorter] = False


def _shorten_kernels(changes: Changes) -> None:
    model, work = changes.model, changes.model.work
    device = np.where(work.kind == Class.COMPUTE, work.device, -1)
    step = _step_of(model, work.start)
    factor = _factors(model, device, step, work.length)
    mine = device >= 0
    changes.length[mine] = np.round(changes.length[mine] * factor[device[mine], step[mine]]).astype(np.int64)


def _factors(model: Model, device: IntArray, step: IntArray, ns: IntArray) -> FloatArray:
    """By device and step how much of the time stays; `device` is -1 for what belongs to none."""
    devices, steps = len(model.names.keys), len(model.stretch.borders) + 1
    mine = device >= 0
    total = np.bincount(device[mine] * steps + step[mine], ns[mine], devices * steps).reshape(devices, steps)
    present = np.unique(model.work.device)
    # Of two the lower one: the other rank.
    usual = np.sort(total[present], axis=0)[(len(present) - 1) // 2]
    late = total.sum(axis=1) > LATE * usual.sum()
    factor: FloatArray = np.minimum(usual / np.maximum(total, 1), 1.0)
    factor[~late] = 1.0
    return factor


def _step_of(model: Model, time: IntArray) -> IntArray:
    return np.searchsorted(model.stretch.borders, time, side="right")


def _device_of_thread(model: Model, thread: IntArray) -> IntArray:
    """The device that a thread launches most on, -1 for one that launches nothing."""
    calls, rows = model.host.host.api_calls.rows, np.flatnonzero(model.work.launch >= 0)
    launching = calls.thread[model.work.launch[rows]]
    threads = np.unique(launching)
    if len(threads) == 0:
        return np.full(len(thread), -1)
    count = np.zeros((len(threads), len(model.names.keys)), dtype=np.int64)
    np.add.at(count, (np.searchsorted(threads, launching), model.work.device[rows]), 1)
    at = np.minimum(np.searchsorted(threads, thread), len(threads) - 1)
    return np.where(threads[at] == thread, count.argmax(axis=1)[at], -1)


def _device_of_piece(model: Model) -> IntArray:
    return _device_of_thread(model, model.program.thread)[model.pieces.owner]
