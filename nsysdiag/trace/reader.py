"""The bulk reader: columns of a table of the file, by the fast way where it works, by the sure way where not."""

from __future__ import annotations

import ctypes
import sqlite3
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from nsysdiag.arrays.spill import spill
from nsysdiag.limits import TEXT_BYTES, short_name
from nsysdiag.trace.catalog import decode
from nsysdiag.trace.columns import Columns, TextColumn, Values, defaults
from nsysdiag.trace.query import Choice, ChosenPairs, TimeLimit, any_text_sql, count_sql, select_sql
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from nsysdiag.arrays.intervals import FloatArray
    from nsysdiag.trace.catalog import Connections, FoundTable
    from nsysdiag.trace.columns import IntArray
    from nsysdiag.trace.query import LongTexts


# Arrays that are filled batch by batch, of all rows or of each of several pairs of ids.

COMPACT_LIMIT = 1 << 30
"""A column of 32 bits that meets a value beyond this gets 64."""


class Sink(Protocol):
    """Takes what is read, batch by batch."""

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """One array a column, all of the same length."""


class Buffers:
    """One growing array a column. `capacity` is an expected number of rows: a hint, never relied upon."""

    def __init__(self, columns: Sequence[ColumnSpec], capacity: int) -> None:
        self.columns = columns
        self.rows: int = 0
        self._capacity = max(capacity, 1)
        self._arrays: list[npt.NDArray[Any]] = [np.empty(self._capacity, _dtype(column)) for column in columns]

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """Copy a batch in: one array a column, all of the same length."""
        rows = len(batch[0])
        if self.rows + rows > self._capacity:
            self._grow(self.rows + rows)
        for index, part in enumerate(batch):
            narrow = self._arrays[index].dtype == np.int32
            if narrow and rows and not (part.min() >= -COMPACT_LIMIT and part.max() < COMPACT_LIMIT):
                self._arrays[index] = self._arrays[index].astype(np.int64)
            self._arrays[index][self.rows : self.rows + rows] = part
        self.rows += rows

    def _grow(self, needed: int) -> None:
        self._capacity = max(needed, 2 * self._capacity)
        for index, array in enumerate(self._arrays):
            larger = np.empty(self._capacity, array.dtype)
            larger[: self.rows] = array[: self.rows]
            self._arrays[index] = larger

    def finish(self) -> list[IntArray | FloatArray]:
        """The filled columns; NULL of a REAL column becomes NaN. Untouched memory is freed. An integer column with one
        value in all rows takes the memory of one, and is read-only."""
        done: list[IntArray | FloatArray] = []
        for array in self._arrays:
            part = array[: self.rows]
            if array.dtype == np.float64:
                part[np.isneginf(part)] = np.nan
            elif len(part) and part.min() == part.max():
                done.append(np.broadcast_to(part[0], self.rows))
                continue
            # Here and not at the end of a step: what is read ahead waits for its step, and of columns that are copied
            # one at a time those before are in files by then.
            done.append(spill(part if 2 * self.rows >= self._capacity else part.copy()))
        return done


def _dtype(column: ColumnSpec) -> type[np.int32] | type[np.int64] | type[np.float64]:
    if column.compact:
        return np.int32
    return np.float64 if column.type is ColumnType.REAL else np.int64


Pair = tuple[int, int]
FIRST_ROWS = 4096


class SplitBuffers:
    """Takes batches whose first two columns are the ids; rows of other pairs are dropped."""

    def __init__(self, columns: Sequence[ColumnSpec], pairs: Sequence[Pair]) -> None:
        self._columns = columns
        self._pairs = sorted(set(pairs))
        self._first, self._second = (np.unique([pair[side] for pair in self._pairs]) for side in (0, 1))
        self._place = np.full((len(self._first), len(self._second)), -1)
        for number, (first, second) in enumerate(self._pairs):
            self._place[np.searchsorted(self._first, first), np.searchsorted(self._second, second)] = number
        self._parts = [Buffers(columns, FIRST_ROWS) for _ in self._pairs]

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """Copy a batch in: the two ids and one array for each column, all of the same length."""
        first, second = (ids.astype(np.int64, copy=False) for ids in batch[:2])
        row = np.minimum(np.searchsorted(self._first, first), len(self._first) - 1)
        column = np.minimum(np.searchsorted(self._second, second), len(self._second) - 1)
        asked_for = (self._first[row] == first) & (self._second[column] == second)
        place = np.where(asked_for, self._place[row, column], -1)
        order = np.argsort(place, kind="stable")  # within a pair the order of the file stays
        borders = np.searchsorted(place[order], np.arange(len(self._pairs) + 1))
        for number in np.flatnonzero(np.diff(borders)).tolist():
            rows = order[borders[number] : borders[number + 1]]
            self._parts[number].append([values[rows] for values in batch[2:]])

    def finish(self) -> dict[Pair, Columns]:
        """The rows of each pair that has any."""
        names = [column.name for column in self._columns]
        found = {}
        for pair, part in zip(self._pairs, self._parts, strict=True):
            if part.rows:
                found[pair] = Columns(dict(zip(names, part.finish(), strict=True)), names, part.rows)
        return found


# The reader that always works: rows through the standard library, which also reads the text columns.

TEXT_BATCH_ROWS = 8192
_WRAP = 1 << 64
_INT64 = range(-(1 << 63), 1 << 63)


def read_rows(connection: sqlite3.Connection, sql: str, columns: Sequence[ColumnSpec], buffers: Sink) -> dict[str, int]:
    """Read the result of `sql`, numbers only, into the buffers. Returns for each column the number of cells
    that were no number of its type and had to be converted."""
    converted: dict[str, int] = {}
    cursor = connection.execute(sql)
    while rows := cursor.fetchmany(TEXT_BATCH_ROWS):
        cells = zip(*rows, strict=True)
        buffers.append([_column(column, part, converted) for column, part in zip(columns, cells, strict=True)])
    return converted


def _column(spec: ColumnSpec, cells: tuple[Any, ...], converted: dict[str, int]) -> Any:
    """One column of a batch. numpy's own choice of type tells whether all cells are numbers of the right
    one."""
    if spec.type is ColumnType.REAL:
        return np.array(cells, np.float64)
    if set(map(type, cells)) == {int}:
        return np.fromiter(cells, np.int64, len(cells))
    numbers = [to_integer(cell, spec.default) for cell in cells]
    odd = sum(type(cell) is not int for cell in cells)
    converted[spec.name] = converted.get(spec.name, 0) + odd
    return np.array(numbers, np.int64)


def to_integer(cell: object, default: int) -> int:
    """The integer value of a cell with another type: digits are parsed, floats are truncated, an unsigned 64-bit number
    wraps to int64 (ids use the top bits); anything else is `default`."""
    try:
        number = int(cell) if isinstance(cell, int | float) else int(decode(cell))
    except (ValueError, OverflowError):
        return default
    if not -(_WRAP // 2) <= number < _WRAP:
        return default
    return number if number in _INT64 else number - _WRAP


class _Codes(dict[Any, int]):
    """Cell to code, numbering new texts as they come. `text_of` makes the text of a cell, or None."""

    def __init__(self, text_of: Callable[[Any], str | None]) -> None:
        super().__init__({None: -1})
        self.texts: dict[str, int] = {}
        self._text_of = text_of

    def __missing__(self, cell: object) -> int:
        text = self._text_of(cell)
        code = -1 if text is None else self.texts.setdefault(text, len(self.texts))
        if not isinstance(cell, bytes) or len(cell) <= TEXT_BYTES:
            self[cell] = code
        return code


def read_text(
    connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, chosen: Choice | None, long: LongTexts
) -> TextColumn:
    """Read a column of texts or blobs, each as it is mentioned (limits.short_name); a blob is not cut."""
    blob = column.type is ColumnType.BLOB
    try:
        cells = _row_batches(connection.execute(select_sql(table, [column], chosen)))
        return _coded(cells, long.digits if blob else lambda cell: short_name(long.decode(cell)))
    except sqlite3.DataError:
        if table.rowid is None:
            raise
        return _coded([long.cells(connection, table, column, chosen)], str if blob else short_name)


def _row_batches(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(TEXT_BATCH_ROWS):
        (cells,) = zip(*rows, strict=True)
        yield cells


def _coded(batches: Iterable[Iterable[Any]], text_of: Callable[[Any], str | None]) -> TextColumn:
    codes = _Codes(text_of)
    parts = [np.fromiter(map(codes.__getitem__, cells), np.int64) for cells in batches]
    return TextColumn(np.concatenate(parts) if parts else np.empty(0, np.int64), list(codes.texts))


# The fast reader: columns through the ADBC driver of SQLite, as Arrow batches without pyarrow.

BATCH_ROWS = 65536
_FORMATS = {ColumnType.INTEGER: "l", ColumnType.REAL: "g"}


class _Stream(ctypes.Structure):
    """ArrowArrayStream of Arrow's C stream interface."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class NotColumnarError(Exception):
    """The driver cannot read these columns as they are declared; rows have to be read one by one."""


def read_arrow(connections: Connections, sql: str, columns: Sequence[ColumnSpec], buffers: Sink) -> None:
    """Read the result of `sql`, numbers only, into the buffers. Raises NotColumnarError where the driver is
    missing or refuses, such as for text in an integer column."""
    try:
        import adbc_driver_manager
        import nanoarrow
    except ImportError as error:
        raise NotColumnarError(str(error)) from error
    # nanoarrow's own errors are RuntimeErrors.
    refusals = (adbc_driver_manager.Error, RuntimeError, UnicodeDecodeError)
    try:
        with connections.adbc() as connection, adbc_driver_manager.AdbcStatement(connection) as statement:
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            statement.set_sql_query(sql)
            stream, _ = statement.execute_query()
            _drain(nanoarrow.c_array_stream(stream), columns, buffers)
    except refusals as error:
        raise NotColumnarError(str(error)) from error


def _drain(stream: Any, columns: Sequence[ColumnSpec], buffers: Sink) -> None:
    """Types are those of the first batch: a float or a text in an integer column shows here or fails
    later."""
    with stream:
        schema = stream.get_schema()
        formats = [child.format for child in schema.children]
        if formats != [_FORMATS[column.type] for column in columns]:
            raise NotColumnarError(f"columns arrived as {formats}")
        for batch in _batches(stream, schema):
            if len(batch):
                view = batch.view()
                buffers.append([_values(view.child(index)) for index in range(len(columns))])


def _batches(stream: Any, schema: Any) -> Iterator[Any]:
    """The arrays of a stream. nanoarrow's own iteration keeps Python's lock while SQLite works, so that threads would
    read one after the other; ctypes gives it up."""
    from nanoarrow.c_array import allocate_c_array

    address = stream._addr()
    get_next = _Stream.from_address(address).get_next
    while True:
        batch = allocate_c_array(schema)
        if code := get_next(address, batch._addr()):
            raise NotColumnarError(f"the driver stopped with error {code}")
        if not batch.is_valid():
            return
        yield batch


def _values(column: Any) -> Any:
    """The numbers of a column. No NULL can be among them: the statement has put defaults there."""
    if column.null_count:
        raise NotColumnarError("NULL in a column that must not hold any")
    return np.asarray(column.buffer(1))[column.offset : column.offset + len(column)]


READERS = ("adbc", "sqlite3")
AnySink = TypeVar("AnySink", bound=Sink)


class Reader:
    """Reads from a database. Each read has a connection of its own, so threads may read at the same time.

    `warn` gets a sentence about cells that had to be converted; `long` cuts and counts texts that are too long.
    """

    def __init__(self, connections: Connections, kind: str, warn: Callable[[str], None], long: LongTexts) -> None:
        self._connections = connections
        self.kind = kind
        self._warn = warn
        self._long = long

    def read(
        self, table: FoundTable, columns: Sequence[ColumnSpec], capacity: int, chosen: Choice | None = None
    ) -> Columns:
        """The columns, of all rows or of the chosen ones. `capacity` is a guess at the number of rows."""
        found = [column for column in columns if table.holds(column)]
        numbers = [column for column in found if column.type not in TEXTS]
        values: dict[str, Values] = {}
        if numbers:
            sql = select_sql(table, numbers, chosen)
            buffers = self._filled(lambda: Buffers(numbers, capacity), table, sql, numbers)
            values.update(zip((column.name for column in numbers), buffers.finish(), strict=True))
        for column in found:
            if column.type in TEXTS:
                values[column.name] = self._text(table, column, chosen, rows=_rows(values))
        rows = _rows(values)
        if rows is None:
            with self._connections.stdlib() as connection:
                (rows,) = connection.execute(count_sql(table, chosen)).fetchone()
            assert rows is not None
        complete = {column.name: values.get(column.name, defaults(column, rows)) for column in columns}
        return Columns(complete, [column.name for column in found], rows)

    def read_split(
        self, table: FoundTable, columns: Sequence[ColumnSpec], chosen: ChosenPairs, within: TimeLimit | None
    ) -> dict[Pair, Columns]:
        """The rows of each chosen pair of ids; `columns` are the two ids and then numbers, all in the table."""
        sql = select_sql(table, columns, chosen, within)
        return self._filled(lambda: SplitBuffers(columns[2:], chosen.pairs), table, sql, columns).finish()

    def _filled(
        self, make: Callable[[], AnySink], table: FoundTable, sql: str, columns: Sequence[ColumnSpec]
    ) -> AnySink:
        """Buffers with what `sql` reads, numbers only: by the columnar driver where it can, else row by row."""
        buffers = make()
        if self.kind == "adbc":
            try:
                read_arrow(self._connections, sql, columns, buffers)
                return buffers
            except NotColumnarError:
                buffers = make()
        with self._connections.stdlib() as connection:
            converted = read_rows(connection, sql, columns, buffers)
        for name, cells in converted.items():
            self._warn(f"column '{name}' of {table.name}: {cells:,} values are no integers and were converted")
        return buffers

    def _text(self, table: FoundTable, column: ColumnSpec, chosen: Choice | None, rows: int | None) -> TextColumn:
        """Texts come row by row, which takes long; whether there is any at all SQLite finds out by itself."""
        with self._connections.stdlib() as connection:
            if (
                rows is not None
                and chosen is None
                and connection.execute(any_text_sql(table, column)).fetchone() is None
            ):
                return TextColumn(np.broadcast_to(np.int64(-1), rows), [])
            return read_text(connection, table, column, chosen, self._long)


def _rows(values: dict[str, Values]) -> int | None:
    """The number of rows, once a column of them was read."""
    return len(next(iter(values.values()))) if values else None
