"""Kernels by name: how many, how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import group_durations
from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct
from nsysdiag.report import KernelRow

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings


def kernel_rows(device: DeviceTimeline, inside: BoolArray, strings: Strings) -> list[KernelRow]:
    """One row a kernel name among the operations `inside`, largest total first. Zero-length kernels count."""
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.KERNEL) & inside)
    names, name = distinct(operations.name[rows])
    shorts, short = distinct(operations.short_name[rows])
    groups = group_durations(name * 2 + device.communication[rows], operations.end[rows] - operations.start[rows])
    short_of = np.zeros(len(names), dtype=np.int64)
    short_of[name] = short
    mean = groups.mean
    texts, short_texts = strings.whole(names), strings.texts(shorts)
    return [
        KernelRow(
            name=texts[code // 2],
            short_name=short_texts[int(short_of[code // 2])],
            count=int(groups.count[at]),
            total_ns=int(groups.total[at]),
            mean_ns=int(mean[at]),
            median_ns=int(groups.median[at]),
            min_ns=int(groups.shortest[at]),
            max_ns=int(groups.longest[at]),
            communication=bool(code % 2),
        )
        for at, code in enumerate(groups.code.tolist())
    ]
