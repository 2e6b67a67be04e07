"""What each kernel name fills of the chip by the shapes in which it was launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import Totals, group_totals
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.launch_shapes import LaunchShapes
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, picked
from nsysdiag.kernels.residency import Residency, limit_name
from nsysdiag.utilization.facts import KernelShape

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

MOST_KERNELS = 200


def kernel_shapes(
    device: DeviceTimeline, inside: BoolArray, shapes: LaunchShapes, found: Residency | None, strings: Strings
) -> list[KernelShape]:
    """One row for each kernel name of those `inside` with a known shape, most time first, at most MOST_KERNELS."""
    operations = device.operations
    rows = picked((operations.category == Category.KERNEL) & inside & (operations.shape >= 0))
    names, name = distinct(operations.name[rows])
    pairs, pair = distinct(name * max(len(shapes), 1) + operations.shape[rows])
    totals = group_totals(pair, operations.end[rows] - operations.start[rows])
    owner, shape = np.divmod(pairs[totals.code], max(len(shapes), 1))
    spent = group_totals(owner, totals.total)
    chosen = spent.code[:MOST_KERNELS]
    short = np.zeros(len(names), dtype=np.int64)
    short[name] = operations.short_name[rows]
    texts, short_texts = strings.texts(names[chosen]), strings.texts(short[chosen])
    kernels = []
    for text, short_text, code in zip(texts, short_texts, chosen.tolist(), strict=True):
        mine = owner == code
        by_shape = Totals(shape[mine], totals.count[mine], totals.total[mine])
        kernels.append(_kernel(text, short_text, by_shape, shapes, found))
    return kernels


def shape_of(
    device: DeviceTimeline, rows: IntArray, shapes: LaunchShapes, found: Residency | None, name: str
) -> KernelShape | None:
    """The same of the kernels at `rows` together; None where none of them has a known shape."""
    operations = device.operations
    rows = rows[operations.shape[rows] >= 0]
    if len(rows) == 0:
        return None
    by_shape = group_totals(operations.shape[rows].astype(np.int64), operations.end[rows] - operations.start[rows])
    return _kernel(name, name, by_shape, shapes, found)


def _kernel(text: str, short: str, by_shape: Totals, shapes: LaunchShapes, found: Residency | None) -> KernelShape:
    """One kernel name by its launches: a row of `by_shape` for each of its shapes, most time first."""
    first = int(by_shape.code[0])
    return KernelShape(
        name=text,
        short_name=short,
        count=int(by_shape.count.sum()),
        total_ns=int(by_shape.total.sum()),
        shapes=len(by_shape.code),
        blocks=_median(shapes.blocks[by_shape.code], by_shape.count),
        threads=int(shapes.threads[first]),
        registers=int(shapes.registers[first]),
        shared_bytes=int(shapes.shared_memory[first]),
        blocks_per_sm=None if found is None else int(found.blocks_per_sm[first]) or None,
        waves=None if found is None else _mean(found.waves, by_shape),
        sm_share=None if found is None else _mean(found.sm_share, by_shape),
        resident_share=None if found is None else _mean(found.resident_share, by_shape),
        limit=None if found is None else limit_name(found, shapes, first),
    )


def _median(values: IntArray, count: IntArray) -> int:
    """The lower median of values that occur so often."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(count[order])
    return int(values[order][np.searchsorted(2 * reached, reached[-1])])


def _mean(values: FloatArray, by_shape: Totals) -> float | None:
    """Weighted by time, or by launches where they took none; None where a value is not known."""
    chosen = values[by_shape.code]
    weight = by_shape.total if by_shape.total.any() else by_shape.count
    mean = float(chosen @ weight / weight.sum())
    return None if np.isnan(mean) else round(mean, 6)
