"""An SQLite file: columns of its tables, by the fast way where it works, by the sure way where not."""

from __future__ import annotations

import ctypes
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nsysdiag.limits import CELL_BYTES, TEXT_BYTES, short_name
from nsysdiag.messages import printable
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.catalog import FoundTable, Schema, decode, read_schema
from nsysdiag.trace.columns import Buffers, Columns, Pair, Place, Sink, SplitBuffers, TextColumn, Values, completed
from nsysdiag.trace.format import EXPORT_HINT, refused
from nsysdiag.trace.query import Choice, Chosen, RowPart, any_text_sql, count_sql, row_bound_sql, select_sql
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType, table_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsysdiag.arrays.intervals import IntArray
    from nsysdiag.trace.catalog import Connections
    from nsysdiag.trace.query import LongTexts


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


class Codes(dict[Any, int]):
    """The code of each cell of a column of texts or blobs, numbering new texts as they come; -1 for NULL and for a blob
    that is too long. Texts are as they are mentioned (limits.short_name); a blob is not cut."""

    def __init__(self, column: ColumnSpec, long: LongTexts) -> None:
        super().__init__({None: -1})
        self._texts: dict[str, int] = {}
        self._text_of = long.digits if column.type is ColumnType.BLOB else lambda cell: short_name(long.decode(cell))

    def code(self, cell: object) -> int:
        """The same without remembering the cell, for cells that differ already."""
        text = None if cell is None else self._text_of(cell)
        return -1 if text is None else self._texts.setdefault(text, len(self._texts))

    def __missing__(self, cell: object) -> int:
        code = self.code(cell)
        if not isinstance(cell, bytes) or len(cell) <= TEXT_BYTES:
            self[cell] = code
        return code

    def column(self, parts: Sequence[IntArray]) -> TextColumn:
        """The column of these codes."""
        if not self._texts:
            return TextColumn(np.broadcast_to(np.int64(-1), sum(map(len, parts))), [])
        return TextColumn(np.concatenate(parts), list(self._texts))


def read_text(
    connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, chosen: Sequence[Choice], long: LongTexts
) -> TextColumn:
    """Read a column of texts or blobs."""
    codes = Codes(column, long)
    parts: list[IntArray] = []
    try:
        cursor = connection.execute(select_sql(table, [column], *chosen))
        while rows := cursor.fetchmany(TEXT_BATCH_ROWS):
            (cells,) = zip(*rows, strict=True)
            parts.append(np.fromiter(map(codes.__getitem__, cells), np.int64, len(cells)))
    except sqlite3.DataError:
        if table.rowid is None:
            raise
        codes = Codes(column, long)
        parts = [np.fromiter(map(codes.__getitem__, long.cells(connection, table, column, chosen)), np.int64)]
    return codes.column(parts)


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
    """Read the result of `sql`, numbers only, into the buffers. Raises NotColumnarError if the driver is
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
IDS_PER_QUERY = 500
FULL_READ_FROM = 20_000
AnySink = TypeVar("AnySink", bound=Sink)


class SqliteDatabase:
    """The tables of an SQLite file; `ParquetDatabase` has the same methods. Reads may run in several threads at once,
    as each has a connection of its own. They raise InputError if the file is damaged.

    `reader` is one of READERS. `warn` gets a sentence about cells that had to be converted; `long` cuts and counts
    texts that are too long.
    """

    def __init__(
        self, path: Path, connections: Connections, reader: str, warn: Callable[[str], None], long: LongTexts
    ) -> None:
        self._path = path
        self._connections = connections
        self._reader = reader
        self._warn = warn
        self._long = long

    def schema(self) -> Schema:
        """The tables that are looked at."""
        with self._reading() as connection:
            return read_schema(connection)

    def row_bounds(self, tables: Mapping[str, FoundTable]) -> dict[str, int]:
        """The largest rowid of every table that holds rows; their number if it has no rowids."""
        with self._reading() as connection:
            bounds = {name: connection.execute(row_bound_sql(table)).fetchone()[0] for name, table in tables.items()}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    def read(
        self,
        table: FoundTable,
        columns: Sequence[ColumnSpec],
        capacity: int,
        *chosen: Choice,
        place: Place | None = None,
    ) -> Columns:
        """The columns, of all rows or of the chosen ones. `capacity` is a guess at the number of rows; `place` has
        arrays of so many for a part. Raises NotColumnarError for a part if the driver cannot read it: a table is
        converted, and warned of, as a whole."""
        is_part = any(isinstance(each, RowPart) for each in chosen)
        found = [column for column in columns if table.sources(column)]
        numbers = [column for column in found if column.type not in TEXTS]
        values: dict[str, Values] = {}
        with self._reading() as connection:
            if numbers:
                sql = select_sql(table, numbers, *chosen)
                buffers = Buffers(numbers, capacity, place)
                if is_part:
                    read_arrow(self._connections, sql, numbers, buffers)
                else:
                    buffers = self._filled(connection, lambda: Buffers(numbers, capacity), table, sql, numbers)
                values.update(zip((column.name for column in numbers), buffers.finish(), strict=True))
            for column in found:
                if column.type in TEXTS:
                    # Texts come row by row, which takes long; whether there is any at all SQLite finds out by itself.
                    known = (not chosen or is_part) and len(values) > 0
                    if known and connection.execute(any_text_sql(table, column, *chosen)).fetchone() is None:
                        none = np.broadcast_to(np.int64(-1), len(next(iter(values.values()))))
                        values[column.name] = TextColumn(none, [])
                    else:
                        values[column.name] = read_text(connection, table, column, chosen, self._long)
            if values:
                return completed(columns, values, len(next(iter(values.values()))))
            return completed(columns, values, connection.execute(count_sql(table, *chosen)).fetchone()[0])

    def read_split(
        self, table: FoundTable, columns: Sequence[ColumnSpec], pairs: Sequence[Pair], *chosen: Choice
    ) -> dict[Pair, Columns]:
        """The rows of each of the pairs of ids; `columns` are the two ids and then numbers, all in the table."""
        sql = select_sql(table, columns, *chosen)
        with self._reading() as connection:
            return self._filled(connection, lambda: SplitBuffers(columns[2:], pairs), table, sql, columns).finish()

    def strings(self, table: FoundTable, ids: list[int]) -> Iterator[tuple[int, str]]:
        """The ids and texts of a table of strings that are among `ids`; some may come twice."""
        wanted = frozenset(ids)
        if len(ids) >= FULL_READ_FROM or (len(ids) > IDS_PER_QUERY and not table.is_keyed_by("id")):
            queries: list[tuple[Choice, ...]] = [()]  # the whole table: quicker for many ids, or without a key
        else:
            starts = range(0, len(ids), IDS_PER_QUERY)
            queries = [(Chosen("id", ids[start : start + IDS_PER_QUERY]),) for start in starts]
        with self._reading() as connection:
            for chosen in queries:
                for string_id, value in _strings(connection, table, chosen, self._long):
                    if string_id in wanted and value is not None:
                        yield string_id, self._long.decode(value)

    def _filled(
        self,
        connection: sqlite3.Connection,
        make: Callable[[], AnySink],
        table: FoundTable,
        sql: str,
        columns: Sequence[ColumnSpec],
    ) -> AnySink:
        """Buffers with what `sql` reads, numbers only: by the columnar driver where it can, else row by row."""
        buffers = make()
        if self._reader == "adbc":
            try:
                read_arrow(self._connections, sql, columns, buffers)
                return buffers
            except NotColumnarError:
                buffers = make()
        for name, cells in read_rows(connection, sql, columns, buffers).items():
            self._warn(f"column '{name}' of {table.name}: {cells:,} values are not integers and were converted")
        return buffers

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection of the standard library; errors of the file as errors for the user."""
        try:
            with self._connections.stdlib() as connection:
                yield connection
        except sqlite3.DataError as error:  # SQLITE_TOOBIG
            large = f"it has a text or an SQL statement of more than {CELL_BYTES:,} bytes, which no export has"
            raise refused(self._path, f"is not read: {large}") from error
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for a message that quotes broken text
            if is_shortage(error):
                raise memory_short(error, f"read '{printable(self._path)}'") from error
            what = f"cannot be read, it may be corrupt: {printable(error)}"
            raise refused(self._path, what, f"copy it again, or {EXPORT_HINT}") from error


def _strings(
    connection: sqlite3.Connection, table: FoundTable, chosen: Sequence[Choice], long: LongTexts
) -> Iterator[tuple[int, object]]:
    """Ids and cells; some may come twice."""
    number, text = table_spec("StringIds").columns
    try:
        yield from connection.execute(select_sql(table, (number, text), *chosen))
    except sqlite3.DataError:
        if table.rowid is None:
            raise
        ids = connection.execute(select_sql(table, (number,), *chosen)).fetchall()
        yield from zip((each for (each,) in ids), long.cells(connection, table, text, chosen), strict=True)
