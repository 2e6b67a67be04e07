"""Arrow columns as numpy arrays, with the values that the SQLite export of the same capture has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.trace.reader import to_integer

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
    from nsysdiag.trace.tables import ColumnSpec


# The memory of Arrow columns as numpy arrays. pyarrow's own way to numpy imports pandas where that is installed, which
# takes 70 MiB.


def _array(column: Any, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """A column of numbers as wide as these; NULL cells hold any value."""
    width = np.dtype(dtype).itemsize
    chunks = getattr(column, "chunks", [column])
    parts = [np.frombuffer(each.buffers()[1], dtype, len(each), each.offset * width) for each in chunks if len(each)]
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def nulls(column: Any) -> BoolArray:
    """Which cells of a column are NULL."""
    import pyarrow as pa

    return _array(column.is_null().cast(pa.uint8()), np.uint8) != 0


def filtered(columns: dict[str, Any], chosen: BoolArray) -> dict[str, Any]:
    """The chosen rows of each column."""
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(chosen, bitorder="little"))
    mask = pa.Array.from_buffers(pa.bool_(), len(chosen), [None, bits])
    return {name: column.filter(mask) for name, column in columns.items()}


def release() -> None:
    """Return the free memory of pyarrow's pool to the system: 30 MiB of 200,000 kernels."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


LARGEST = np.iinfo(np.int64).max


def integers(column: Any, default: int) -> tuple[IntArray, int]:
    """A column of whole numbers, `default` where it is NULL, and how many cells were none and had to be converted.

    An unsigned number of 64 bits beyond those of int64 wraps, as it does in SQLite."""
    import pyarrow as pa

    column = plain(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), default, np.int64), 0
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _filled(column, pa.int64(), np.int64, default), 0
    cells = column.to_pylist()
    if pa.types.is_decimal(kind):
        cells = [None if cell is None else int(cell) for cell in cells]
    found = np.fromiter(
        (default if cell is None else to_integer(cell, default) for cell in cells), np.int64, len(cells)
    )
    return found, len(cells) - column.null_count


def _filled(column: Any, kind: Any, dtype: type[np.generic], default: float) -> npt.NDArray[Any]:
    """A column of numbers as those of another type, `default` where it is NULL."""
    values = _array(column.cast(kind, safe=False), dtype)
    return np.where(nulls(column), default, values) if column.null_count else values


def reals(column: Any) -> FloatArray:
    """A column of numbers, NaN if it is NULL or no number."""
    import pyarrow as pa

    column = plain(column)
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return _filled(column, pa.float64(), np.float64, np.nan)
    return np.array([_real(cell) for cell in column.to_pylist()], np.float64)


def _real(cell: object) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def combined(parts: list[IntArray], spec: ColumnSpec) -> IntArray:
    """The product, or the sum, of columns. What does not fit into 64 bits is the largest or the least number."""
    with np.errstate(over="ignore"):
        exact, about = parts[0].copy(), parts[0].astype(np.float64)
        for part in parts[1:]:
            exact, about = (exact + part, about + part) if spec.operator == "+" else (exact * part, about * part)
    limit = np.where(about > 0, LARGEST, -LARGEST - 1)
    return np.where(np.abs(about) >= float(LARGEST), limit, exact)


def cells(column: Any, *, blob: bool) -> tuple[IntArray, list[object]]:
    """A column of texts, or of bytes as hexadecimal digits: the code of each cell, -1 for NULL, and the texts of the
    codes, in order of appearance. Text is bytes, as it may be broken; empty bytes are NULL, as in a blob of SQLite."""
    import pyarrow as pa

    column = plain(column)
    if not is_bytes(column.type):
        column = pa.chunked_array([pa.array([_digits(cell) for cell in column.to_pylist()], pa.binary())])
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    codes, _ = integers(coded.indices, -1)
    found: list[object] = coded.dictionary.to_pylist()
    return codes, [each.hex().upper().encode() or None for each in found] if blob else found  # type: ignore[attr-defined]


def _digits(cell: object) -> bytes | None:
    """A number as text; SQLite has 1 and 0 for truths."""
    return None if cell is None else str(int(cell) if isinstance(cell, bool) else cell).encode()


def plain(column: Any) -> Any:
    """The column without a dictionary, and texts as bytes: pyarrow makes nothing of broken ones."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_large_string(kind):
        kind = pa.large_binary()
    elif kind in (pa.string(), pa.string_view(), pa.binary_view()) or pa.types.is_fixed_size_binary(kind):
        kind = pa.binary()
    return column if kind == column.type else column.cast(kind)


def is_bytes(kind: Any) -> bool:
    """Whether it is the type of bytes, which texts are too once they are plain."""
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def is_foreign(kind: Any) -> bool:
    """Whether no export has columns of this type: lists, structures, times with a zone."""
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    found = pa.types.is_nested(inner) or pa.types.is_temporal(inner) or isinstance(inner, pa.BaseExtensionType)
    return bool(found)
