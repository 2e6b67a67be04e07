"""Display names of operations: kernels by name, copies by kind, the rest by category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, copy_name
from nsysdiag.events.rows import distinct, taken
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.report import Operation

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

_BASE = {Category.MEMSET: "memset", Category.GRAPH: "graph"}


def operation_names(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str]]:
    """The code of each row's name and the names. Kernels have their short name."""
    return _coded(device, rows, strings, device.operations.short_name[rows])[:2]


def whole_names(device: DeviceTimeline, rows: IntArray) -> IntArray:
    """The string id of each kernel's whole name, of its short name where the export has no other."""
    operations = device.operations
    name = taken(operations.name, rows)
    unknown = name < 0
    return np.where(unknown, operations.short_name[rows], name) if unknown.any() else name


def normal_operation_names(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str]]:
    """The same with kernels by their whole name without counters and template arguments that change nothing; two codes
    never mean the same name."""
    code, names, kernels = _coded(device, rows, strings, whole_names(device, rows))
    normal = [*names[:kernels], *(normal_kernel(name) for name in names[kernels:])]
    known = {name: at for at, name in enumerate(sorted(set(normal)))}
    recode = np.array([known[name] for name in normal], dtype=np.int32)
    return (recode[code] if len(code) else code), list(known)


def _coded(
    device: DeviceTimeline, rows: IntArray, strings: Strings, kernel_name: IntArray
) -> tuple[IntArray, list[str], int]:
    """The code of each row's name, the names, and the place of the first of a kernel: those of others come before."""
    operations = device.operations
    other = np.flatnonzero(operations.category[rows] != Category.KERNEL)
    if len(other):
        # Kernels by string id; everything else by a number below zero made of category and kind.
        category, kind = operations.category[rows[other]], operations.copy_kind[rows[other]]
        kernel_name = kernel_name.astype(np.int64)
        kernel_name[other] = -(category.astype(np.int64) * 100 + np.clip(kind, -1, 90) + 2)
    values, code = distinct(kernel_name)
    others = [_other_name(value) for value in values[values < 0].tolist()]
    return code, [*others, *strings.texts(values[values >= 0])], len(others)


def _other_name(value: int) -> str:
    category, kind = divmod(-value, 100)
    if category == Category.MEMCPY:
        return copy_name(kind - 2)
    return _BASE.get(Category(category), "kernel") if category in list(Category) else "kernel"


def describe_operations(device: DeviceTimeline, rows: IntArray, strings: Strings) -> list[Operation]:
    """The operations at `rows` for the report."""
    code, names = operation_names(device, rows, strings)
    operations = device.operations.take(rows)
    columns = zip(
        code.tolist(),
        operations.category.tolist(),
        operations.start.tolist(),
        operations.end.tolist(),
        operations.stream.tolist(),
        strict=True,
    )
    return [
        Operation(name=names[name], category=Category(kind).name.lower(), start_ns=start, end_ns=end, stream=stream)
        for name, kind, start, end, stream in columns
    ]
