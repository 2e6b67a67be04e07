"""The bulk reader: columns of a table of the file, by the fast way where it works, by the sure way where not."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nsysdiag.trace.buffers import Buffers, Pair, Sink, SplitBuffers
from nsysdiag.trace.columns import Columns, TextColumn, Values, defaults
from nsysdiag.trace.query import Choice, ChosenPairs, TimeLimit, any_text_sql, count_sql, select_sql
from nsysdiag.trace.rows import read_rows, read_text
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsysdiag.trace.catalog import Connections, FoundTable
    from nsysdiag.trace.query import LongTexts


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
