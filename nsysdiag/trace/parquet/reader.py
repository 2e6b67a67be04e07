"""Reads the tables of a folder of Parquet files: the same values as from the SQLite export of the same capture."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.arrays.intervals import places_among
from nsysdiag.trace.catalog import FoundColumn, FoundTable, Schema, looked_at
from nsysdiag.trace.columns import Buffers, Columns, Pair, SplitBuffers, Values, completed
from nsysdiag.trace.query import Choice, Chosen, ChosenRows, TimeLimit
from nsysdiag.trace.reader import Codes, to_integer
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType, table_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
    from nsysdiag.trace.parquet.folder import TableFile
    from nsysdiag.trace.query import LongTexts


# The primary keys that tables have in SQLite exports: Parquet files tell none.

KEYED = ("ENUM_", "StringIds", "COMPOSITE_EVENTS")
"""Tables of one id for each row, which is the number of the row as well."""
CALL_CHAINS = "_CALLCHAINS"
"""Tables of a row for each frame."""


def key_of(table: str) -> tuple[str, ...]:
    """The columns of the primary key of a table; none for one without."""
    if table.startswith(KEYED):
        return ("id",)
    return ("id", "stackDepth") if table.endswith(CALL_CHAINS) else ()


MOST_EXPECTED = 1 << 26
"""Rows for which room is made at first: a damaged footer may tell any number."""
_RESERVED = "sqlite_"
"""Tables of SQLite itself begin so, and are not looked at."""
ROWID = "rowid"
"""Rows are known by their number, from 1, as those of SQLite are."""


_Odd = Counter[str]
"""How many cells of which column had to be converted."""


class ParquetDatabase:
    """As `SqliteDatabase`. `files` are those of the folder by the names of their tables; `warn` gets sentences on cells
    that had to be converted."""

    def __init__(self, files: Mapping[str, TableFile], warn: Callable[[str], None], long: LongTexts) -> None:
        self._files = files
        self._warn = warn
        self._long = long
        self._lock = Lock()
        self._strings: tuple[IntArray, list[Any]] | None = None

    def schema(self) -> Schema:
        """As `SqliteDatabase.schema`."""
        tables = found_tables(self._files)
        return Schema(tables, len(self._files) - len(tables), "")

    def row_bounds(self, tables: Mapping[str, FoundTable]) -> dict[str, int]:
        """As `SqliteDatabase.row_bounds`: numbers of rows, or the largest id where SQLite has ids as row numbers."""
        return {name: _bound(name, self._files[name]) for name in tables if self._files[name].rows}

    def read(self, table: FoundTable, columns: Sequence[ColumnSpec], capacity: int, *chosen: Choice) -> Columns:
        """As `SqliteDatabase.read`."""
        found = [column for column in columns if table.sources(column)]
        numbers = [column for column in found if column.type not in TEXTS]
        texts = [(column, Codes(column, self._long)) for column in found if column.type in TEXTS]
        parts: list[list[IntArray]] = [[] for _ in texts]
        buffers, rows, odd = Buffers(numbers, min(capacity, MOST_EXPECTED)), 0, _Odd()
        for part, count in self._parts(table, found, chosen):
            if numbers:
                buffers.append([_numbers(table, column, part, odd) for column in numbers])
            for (column, codes), own in zip(texts, parts, strict=True):
                place, different = cells(part[table.sources(column)[0].name], blob=column.type is ColumnType.BLOB)
                # One place more than there are texts: code -1, NULL, picks the last.
                own.append(np.array([*map(codes.code, different), -1], np.int64)[place])
            rows += count
        self._note(table, odd)
        values: dict[str, Values] = dict(zip((column.name for column in numbers), buffers.finish(), strict=True))
        values |= {column.name: codes.column(own) for (column, codes), own in zip(texts, parts, strict=True)}
        return completed(columns, values, rows)

    def read_split(
        self, table: FoundTable, columns: Sequence[ColumnSpec], pairs: Sequence[Pair], *chosen: Choice
    ) -> dict[Pair, Columns]:
        """As `SqliteDatabase.read_split`."""
        buffers, odd = SplitBuffers(columns[2:], pairs), _Odd()
        for part, count in self._parts(table, columns, chosen):
            if count:
                buffers.append([_numbers(table, column, part, odd) for column in columns])
        self._note(table, odd)
        return buffers.finish()

    def strings(self, table: FoundTable, ids: list[int]) -> Iterator[tuple[int, str]]:
        """As `SqliteDatabase.strings`. The first call reads the whole table."""
        with self._lock:
            if self._strings is None:
                self._strings = self._all_strings(table)
        known, texts = self._strings
        for each, place in zip(ids, places_among(known, np.array(ids, np.int64)).tolist(), strict=True):
            if place >= 0 and texts[place] is not None:
                yield each, self._long.decode(texts[place])

    def _all_strings(self, table: FoundTable) -> tuple[IntArray, list[Any]]:
        number, text = table_spec("StringIds").columns
        ids: list[IntArray] = []
        texts: list[Any] = []
        for part, _ in self._parts(table, [number, text], []):
            ids.append(_numbers(table, number, part, _Odd()))
            codes, values = cells(part[table.sources(text)[0].name], blob=False)
            texts += [*(values[code] if code >= 0 else None for code in codes.tolist())]
        every = np.concatenate(ids) if ids else np.empty(0, np.int64)
        order = np.argsort(every, kind="stable")
        return every[order], [texts[at] for at in order.tolist()]

    def _parts(
        self, table: FoundTable, columns: Sequence[ColumnSpec], choices: Sequence[Choice]
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """The columns of the file, by name, of some row groups at a time, chosen rows only, and how many these are."""
        wanted = list(dict.fromkeys(each.name for column in columns for each in table.sources(column)))
        keys = list(dict.fromkeys(name for choice in choices for name in choice.columns))

        def chosen(known: dict[str, Any], first: int, rows: int) -> BoolArray:
            return np.logical_and.reduce([_chosen(choice, known, first, rows) for choice in choices])

        return self._files[table.name].parts(wanted, keys, chosen if choices else None)

    def _note(self, table: FoundTable, odd: _Odd) -> None:
        for name, count in odd.items():
            self._warn(f"column '{name}' of {table.name}: {count:,} values are not integers and were converted")


def _numbers(table: FoundTable, column: ColumnSpec, part: Mapping[str, Any], odd: _Odd) -> Any:
    sources = [part[each.name] for each in table.sources(column)]
    if column.type is ColumnType.REAL:
        return reals(sources[0])
    if column.parts:
        missing = np.logical_or.reduce([nulls(source) for source in sources])
        values = combined([integers(source, 0)[0] for source in sources], column)
        return np.where(missing, column.default, values)
    values, converted = integers(sources[0], column.default)
    if converted:
        odd[column.name] += converted
    return values


def found_tables(files: Mapping[str, TableFile]) -> dict[str, FoundTable]:
    """The tables that are looked at, by name."""
    names = [name for name in files if not name.startswith(_RESERVED)]
    return {name: _found_table(name, files[name]) for name in sorted(looked_at(names))}


def _found_table(name: str, file: TableFile) -> FoundTable:
    columns = {each.name.casefold(): FoundColumn(each.name, not each.nullable, 0) for each in file.schema}
    return FoundTable(name, columns, ROWID)


def _bound(name: str, file: TableFile) -> int:
    """The number of rows, or the largest id of a table that is keyed by it."""
    import pyarrow as pa

    key, *others = key_of(name) or ("",)
    if others or key not in file.schema.names or not pa.types.is_integer(file.schema.field(key).type):
        return file.rows
    largest = max(int(integers(part[key], 0)[0].max(initial=0)) for part, _ in file.parts([key]))
    return largest or file.rows


def _chosen(choice: Choice, columns: Mapping[str, Any], first: int, rows: int) -> BoolArray:
    """Which of `rows` rows, from the row `first` of the table on, are chosen. `columns` holds those of the choice."""
    if isinstance(choice, ChosenRows):
        return np.isin(np.arange(first + 1, first + rows + 1), choice.ids)
    values = [integers(columns[name], 0)[0] for name in choice.columns]
    known = [~nulls(columns[name]) for name in choice.columns]
    if isinstance(choice, TimeLimit):
        start, end = values[0], values[-1]
        begun: BoolArray = known[0] & (start < choice.high)
        # A row whose end is unknown may last.
        return begun & ((start >= choice.low) if len(values) == 1 else (end > choice.low) | ~known[-1])
    assert isinstance(choice, Chosen)  # halves are of SQLite files alone
    return known[0] & np.isin(values[0], np.asarray(choice.ids))


# Arrow columns as numpy arrays, with the values that the SQLite export of the same capture has.
#
# pyarrow's own way to numpy imports pandas where that is installed, which takes 70 MiB.


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
