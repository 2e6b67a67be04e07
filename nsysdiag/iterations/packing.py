"""Every steady iteration in a few bytes each: what a comparison needs of them, and the report's rows do not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.codes import to_planes, to_text
from nsysdiag.arrays.intervals import IntArray, Intervals, pieces
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, picked
from nsysdiag.iterations.report import WORK
from nsysdiag.report import IterationsPacked, KernelRow

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

MOST_ENTRIES = 20_000
MOST_KERNELS, MOST_KERNEL_VALUES = 30, 20_000
_EFFORT = 6


class KindsOfGaps(Struct, frozen=True):
    """The gaps of a device, disjoint and in order; each has the index of its group among the `count` rows of the
    report, -1 for none."""

    gaps: Intervals
    place: IntArray
    count: int


def pack_iterations(
    steady: Intervals,
    parts: dict[str, IntArray],
    roots: dict[str, IntArray] | None,
    device: DeviceTimeline,
    kernels: list[KernelRow],
    kinds: KindsOfGaps,
    strings: Strings,
) -> IterationsPacked:
    """The iterations `steady`, disjoint and in order. `parts` is what each is made of, work and causes; `roots` the
    causes after wake-ups were followed, None where they are the same. `kernels` and `kinds` of gaps are the rows of the
    report, those with most time first."""
    each = -(-len(steady) // MOST_ENTRIES)
    count = len(steady) // each
    place = _place(device.operations.start, steady[: count * each]) // each
    category_of, inside = device.operations.category, place >= 0
    most = MOST_KERNEL_VALUES // count
    first = kernels[: min(MOST_KERNELS, most)]

    def column(values: IntArray) -> str:
        return to_text(to_planes(values[: count * each].reshape(count, each).sum(axis=1)), _EFFORT)

    def columns(parts: dict[str, IntArray]) -> dict[str, str]:
        return {name: column(ns) for name, ns in parts.items() if ns.any()}

    ledger = columns({name: ns for name, ns in parts.items() if name not in WORK})
    return IterationsPacked(
        count=count,
        each=each,
        lengths=column(steady.end - steady.start),
        work=columns({name: parts[name] for name in WORK}),
        ledger=ledger,
        root_ledger=ledger if roots is None else columns(roots),
        ops={
            category.name.lower(): to_text(to_planes(counted), _EFFORT)
            for category in Category
            if (counted := np.bincount(place[inside & (category_of == category)], minlength=count)).any()
        },
        kernels=[to_text(to_planes(ns), _EFFORT) for ns in _kernel_times(device, place, count, first, strings)],
        signatures=[column(ns) for ns in _gap_times(kinds, steady, min(kinds.count, most))],
        copied=_copied(device, place, count),
    )


def _place(times: IntArray, spans: Intervals) -> IntArray:
    """The number of the span that holds each time, -1 for none."""
    at = np.searchsorted(spans.start, times, side="right") - 1
    return np.where((at >= 0) & (times < spans.end[np.maximum(at, 0)]), at, -1)


def _copied(device: DeviceTimeline, place: IntArray, count: int) -> str:
    """The bytes that copies move in each entry; empty where no copy says how many."""
    operations = device.operations
    sized = (operations.category == Category.MEMCPY) & ~operations.migration & (operations.size > 0) & (place >= 0)
    if not sized.any():
        return ""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, place[sized], operations.size[sized])
    return to_text(to_planes(found), _EFFORT)


def _kernel_times(
    device: DeviceTimeline, place: IntArray, count: int, kernels: list[KernelRow], strings: Strings
) -> IntArray:
    """The ns of each kernel in each entry; kernels that are of communication and others of the same name are apart."""
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.KERNEL) & (place >= 0))
    names, name = distinct(operations.name[rows])
    number = {(row.name, row.communication): at for at, row in enumerate(kernels)}
    wanted = np.array(
        [[number.get((text, other), -1) for other in (False, True)] for text in strings.whole(names)], dtype=np.int64
    ).reshape(-1, 2)
    kernel = wanted.reshape(-1)[2 * name + device.communication[rows]]
    kept = picked(kernel >= 0)
    rows, kernel = rows[kept], kernel[kept]
    return _added(kernel, place[rows], operations.end[rows] - operations.start[rows], (len(kernels), count))


def _added(row: IntArray, column: IntArray, ns: IntArray, shape: tuple[int, int]) -> IntArray:
    """A table of such a shape: the sum of the ns of each row and column."""
    # In one dimension numpy adds ten times as fast.
    found = np.zeros(shape[0] * shape[1], dtype=np.int64)
    np.add.at(found, joint(row, column, shape[1]), ns)
    return found.reshape(shape)


def _gap_times(kinds: KindsOfGaps, steady: Intervals, most: int) -> IntArray:
    """The ns of each of the first gap groups in each iteration; a gap may reach into several."""
    kept = picked((kinds.place >= 0) & (kinds.place < most))
    gaps, kind = kinds.gaps[kept], kinds.place[kept]
    iteration, piece = pieces(gaps, steady)
    kind = kind[np.searchsorted(gaps.start, piece.start, side="right") - 1]
    return _added(kind, iteration, piece.end - piece.start, (most, len(steady)))
