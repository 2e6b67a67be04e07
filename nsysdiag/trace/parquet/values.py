"""Arrow columns as numpy arrays, with the values that the SQLite export of the same capture has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.messages import InputError, printable
from nsysdiag.shortage import has_room
from nsysdiag.trace.parquet.file import AGAIN_HINT
from nsysdiag.trace.query import Choice, Chosen, ChosenPairs, ChosenRows, TimeLimit
from nsysdiag.trace.reader import to_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.parquet.file import Statistics, TableFile
    from nsysdiag.trace.tables import ColumnSpec


# The memory of Arrow columns as numpy arrays. pyarrow's own way to numpy imports pandas where that is installed, which
# takes 70 MiB.

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
        return _filled(column, default), 0
    cells = column.to_pylist()
    if pa.types.is_decimal(kind):
        cells = [None if cell is None else int(cell) for cell in cells]
    found = np.fromiter(
        (default if cell is None else to_integer(cell, default) for cell in cells), np.int64, len(cells)
    )
    return found, len(cells) - column.null_count


def _filled(column: Any, default: int) -> IntArray:
    values = numbers(column)
    wide: IntArray = values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
    return np.where(nulls(column), default, wide) if column.null_count else wide


def reals(column: Any) -> FloatArray:
    """A column of numbers, NaN where it is NULL or no number."""
    import pyarrow as pa

    column = plain(column)
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        found: FloatArray = np.where(nulls(column), np.nan, numbers(column).astype(np.float64))
        return found
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
    found: IntArray = np.where(np.abs(about) >= float(LARGEST), limit, exact)
    return found


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
    codes: IntArray = np.where(nulls(coded.indices), -1, numbers(coded.indices).astype(np.int64))
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


def refuse_foreign(table: str, schema: Any, names: Iterable[str]) -> None:
    """Raise InputError where a column is foreign."""
    for name in names:
        kind = schema.field(name).type
        if is_foreign(kind):
            raise InputError(
                f"table {table}: column '{printable(name)}' holds values of type {printable(str(kind))[:64]}, "
                "which no export has",
                hint=AGAIN_HINT,
            )


# Which rows of a Parquet table are read: row groups whose statistics rule them out are not looked at.

GROUP_ROWS = 1 << 16
"""So many rows are read at once: nsys writes groups of 2,048, and each read has its price. Four times as many left the
cache of a core: 4,000,000 rows took 0.31 instead of 0.23 s of CPU time."""
CELL_BYTES = 16
"""A number as it is read, and as it is kept."""
UNSIGNED = 1 << 63
"""From here on an unsigned number of the file is a negative one here."""


def columns_of(table: FoundTable, choice: Choice) -> list[str]:
    """The columns of the file that tell whether a row is chosen."""
    if isinstance(choice, ChosenRows):
        return []
    if isinstance(choice, Chosen):
        names = [choice.column]
    elif isinstance(choice, ChosenPairs):
        names = list(choice.columns)
    else:
        names = [choice.start] if choice.start == choice.end else [choice.start, choice.end]
    return [found.name for name in names if (found := table.column(name)) is not None]


def chosen_in(columns: dict[str, Any], table: FoundTable, choice: Choice, first: int, rows: int) -> BoolArray:
    """Which of `rows` rows are chosen: those from the row `first` of the table on, of which `columns` holds what
    `columns_of` names."""
    if isinstance(choice, ChosenRows):
        found = np.zeros(rows, np.bool_)
        at = np.asarray(choice.ids, np.int64) - 1 - first
        found[at[(at >= 0) & (at < rows)]] = True
        return found
    names = columns_of(table, choice)
    values = [integers(columns[name], 0)[0] for name in names]
    known = [~nulls(columns[name]) for name in names]
    if isinstance(choice, TimeLimit):
        return _within(choice, values, known)
    ids = [choice.ids] if isinstance(choice, Chosen) else list(zip(*choice.pairs, strict=True))
    sides = [np.isin(value, np.asarray(each)) & there for value, each, there in zip(values, ids, known, strict=True)]
    chosen: BoolArray = np.logical_and.reduce(sides)
    return chosen


def _within(choice: TimeLimit, values: list[IntArray], known: list[BoolArray]) -> BoolArray:
    """A row whose end is unknown may last."""
    start, end = values[0], values[-1]
    found: BoolArray = known[0] & (start < choice.high)
    if choice.start == choice.end:
        return found & (start >= choice.low)
    return found & ((end > choice.low) | ~known[-1])


def groups(file: TableFile, table: FoundTable, choices: Sequence[Choice]) -> Iterator[tuple[list[int], int, int]]:
    """The row groups that may hold chosen rows, in batches of consecutive ones: their indices, their first row, and
    their number of rows."""
    possible = np.ones(file.metadata.num_row_groups, np.bool_)
    for choice in choices:
        possible &= _possible(file, table, choice)
    places: list[int] = []
    first = rows = at = 0
    for place, is_possible in enumerate(possible.tolist()):
        group_rows = file.metadata.row_group(place).num_rows
        if places and (not is_possible or rows >= GROUP_ROWS):
            yield places, first, rows
            places, rows = [], 0
        if is_possible:
            first = at if not places else first
            places.append(place)
            rows += group_rows
        at += group_rows
    if places:
        yield places, first, rows


def _possible(file: TableFile, table: FoundTable, choice: Choice) -> list[bool]:
    """For each row group whether it may hold chosen rows, as far as its statistics tell."""
    if isinstance(choice, TimeLimit):
        starts, ends = (_statistics(file, table, name) for name in (choice.start, choice.end))
        return [_reaches(choice, start, end) for start, end in zip(starts, ends, strict=True)]
    if isinstance(choice, Chosen):
        ids = np.asarray(choice.ids, np.int64)
        found = _statistics(file, table, choice.column)
        return [each is None or bool(np.any((ids >= each.low) & (ids <= each.high))) for each in found]
    return [True] * file.metadata.num_row_groups


def _reaches(choice: TimeLimit, start: Statistics | None, end: Statistics | None) -> bool:
    """Whether rows with these starts and ends may reach into the time; a row whose end is unknown may last."""
    if start is not None and start.low >= choice.high:
        return False
    if end is None:
        return True
    return end.high >= choice.low if choice.start == choice.end else end.high > choice.low or end.nulls > 0


def _statistics(file: TableFile, table: FoundTable, name: str) -> list[Statistics | None]:
    """See TableFile.statistics; None too where values are so large that they are negative ones here."""
    column = table.column(name)
    if column is None:
        return [None] * file.metadata.num_row_groups
    return [None if each is None or each.high >= UNSIGNED else each for each in file.statistics(column.name)]


def read_groups(opened: Any, places: list[int], names: list[str]) -> dict[str, Any]:
    """Columns of consecutive row groups. Raises MemoryError if memory is short, ValueError if the number of rows is not
    that of the footer."""
    if not names:
        return {}
    rows = sum(opened.metadata.row_group(place).num_rows for place in places)
    if not has_room(rows * len(names) * CELL_BYTES):  # a small file may list any number of rows
        raise MemoryError(f"Unable to allocate {rows * len(names) * CELL_BYTES} bytes")
    read = opened.read_row_groups(places, columns=names, use_threads=False)
    if read.num_rows != rows:
        raise ValueError(f"its footer lists {rows:,} rows, its pages hold {read.num_rows:,}")
    return {name: read.column(name) for name in names}
