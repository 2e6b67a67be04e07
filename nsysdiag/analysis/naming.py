"""Names of operations for people: kernels by name, copies by kind, the rest by what it is."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.operations import Category, copy_name
from nsysdiag.activity.streams import distinct
from nsysdiag.model import Operation
from nsysdiag.trace.strings import Strings

_BASE = {Category.MEMSET: "memset", Category.GRAPH: "graph"}


def operation_names(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str]]:
    """The code of each row's name and the names. Kernels go by their short name."""
    operations = device.operations
    category = operations.category[rows]
    # Kernels by string id; everything else by a number below zero made of category and kind.
    other = -(category * 100 + np.clip(operations.copy_kind[rows], -1, 90) + 2)
    values, code = distinct(np.where(category == Category.KERNEL, operations.short_name[rows], other))
    texts = strings.texts(values[values >= 0])
    named = iter(texts)
    return code, [next(named) if value >= 0 else _other_name(value) for value in values.tolist()]


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
