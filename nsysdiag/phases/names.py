"""Launched operations by name, over all devices of a job: a kernel by its name, a copy by its kind."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, picked

MOST_NAMES = 1_000
"""Names that are counted separately. A name beyond the thousand longest takes under a thousandth of the time."""
_MEMSET, _FIRST_COPY, _FIRST_GRAPH = -2, -3, -100
"""Keys of what has no string id: below -1, the id of a kernel without a name."""


class NamedWork(Struct, frozen=True):
    """The launched operations of one device that have a length, by start, and the code of the name of each."""

    spans: Intervals
    name: IntArray


class JobWork(Struct, frozen=True):
    """The work of the devices of a job. By code of the name: whether it is one of kernels (or of graphs), and the time
    of all its operations in ns. Code 0 stands for all other kernels."""

    devices: list[NamedWork]
    kernel: BoolArray
    total: FloatArray

    @property
    def most_repeats(self) -> int:
        """How often the most frequent name runs on a device; code 0 means no name."""
        return max((int(np.bincount(device.name)[1:].max(initial=0)) for device in self.devices), default=0)


def job_work(devices: list[DeviceTimeline], lo: int, hi: int) -> JobWork:
    """The operations of `devices` that are at work in [lo, hi). The same name on two devices has the same code."""
    chosen = [picked(launched_in(device, lo, hi)) for device in devices]
    named = [distinct(operation_keys(device)[rows]) for device, rows in zip(devices, chosen, strict=True)]
    keys = np.unique(np.concatenate([np.empty(0, np.int64), *(keys for keys, _ in named)]))
    spans = [
        Intervals(device.operations.start[rows], device.operations.end[rows])
        for device, rows in zip(devices, chosen, strict=True)
    ]
    total = np.zeros(len(keys))
    codes = [np.searchsorted(keys, its)[name] for its, name in named]
    for work, code in zip(spans, codes, strict=True):
        total += np.bincount(code, weights=work.end - work.start, minlength=len(keys))
    return _longest_names(spans, codes, keys, total)


def _longest_names(spans: list[Intervals], codes: list[IntArray], keys: IntArray, total: FloatArray) -> JobWork:
    """With a code for each of the longest names, and for every kind of copy."""
    kernel = (keys >= -1) | (keys <= _FIRST_GRAPH)
    rank = np.empty(len(keys), np.int64)
    rank[np.lexsort((keys, -total))] = np.arange(len(keys))
    kept = np.flatnonzero((rank < MOST_NAMES) | ~kernel)
    new = np.zeros(len(keys), np.int32)
    new[kept] = np.arange(1, len(kept) + 1)
    devices = [NamedWork(work, new[code]) for work, code in zip(spans, codes, strict=True)]
    sums = np.zeros(len(kept) + 1)
    np.add.at(sums, new, total)
    return JobWork(devices, np.append(True, kernel[kept]), sums)


def launched_in(device: DeviceTimeline, lo: int, hi: int) -> BoolArray:
    """Page migrations are not launched, and show no step of a program."""
    operations = device.operations
    return device.running & ~operations.migration & (operations.end > lo) & (operations.start < hi)


def operation_keys(device: DeviceTimeline) -> IntArray:
    """What operations of one name have in common: a string id, or a number below all of them."""
    operations = device.operations
    category = operations.category
    keys = operations.name.astype(np.int64)
    kind = np.clip(operations.copy_kind, 0, _FIRST_COPY - _FIRST_GRAPH - 1)
    keys = np.where(category == Category.MEMCPY, _FIRST_COPY - kind, keys)
    keys = np.where(category == Category.MEMSET, _MEMSET, keys)
    return np.where(category == Category.GRAPH, _FIRST_GRAPH - np.maximum(operations.graph, 0), keys)
