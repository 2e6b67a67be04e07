"""The memory of Arrow columns as numpy arrays. pyarrow's own way to numpy imports pandas where that is installed, which
takes 70 MiB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.arrays.intervals import BoolArray

_FLOATS = {"halffloat": "f2", "float": "f4", "double": "f8"}


def numbers(column: Any) -> npt.NDArray[Any]:
    """A column of integers, floats or booleans, in its own type; NULL cells hold any value."""
    parts = [_numbers(chunk) for chunk in _chunks(column) if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def nulls(column: Any) -> BoolArray:
    """Which cells of a column are NULL."""
    parts = [_nulls(chunk) for chunk in _chunks(column)]
    found: BoolArray = np.concatenate(parts) if parts else np.empty(0, np.bool_)
    return found


def mask_of(chosen: BoolArray) -> Any:
    """A mask as a boolean Arrow array."""
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(chosen, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(chosen), [None, bits])


def release() -> None:
    """Return the free memory of pyarrow's pool to the system: 30 MiB of 200,000 kernels."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _chunks(column: Any) -> list[Any]:
    """The chunks of a column; an array is the only one."""
    return getattr(column, "chunks", [column])


def _numbers(chunk: Any) -> npt.NDArray[Any]:
    kind = str(chunk.type)
    _, data = chunk.buffers()
    if kind == "bool":
        return _bits(data, chunk)
    dtype = np.dtype(_FLOATS.get(kind, kind))
    return np.frombuffer(data, dtype, len(chunk), chunk.offset * dtype.itemsize)


def _nulls(chunk: Any) -> BoolArray:
    valid = chunk.buffers()[0]
    if not chunk.null_count or valid is None:
        return np.full(len(chunk), bool(chunk.null_count))
    return ~_bits(valid, chunk)


def _bits(data: Any, chunk: Any) -> BoolArray:
    last = chunk.offset + len(chunk)
    found: BoolArray = np.unpackbits(np.frombuffer(data, np.uint8), count=last, bitorder="little")[chunk.offset :] != 0
    return found
