"""The fast reader: columns through the ADBC driver of SQLite, as Arrow batches without pyarrow."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.shortage import has_room, has_spare
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.trace.buffers import Sink
    from nsysdiag.trace.connect import Connections

BATCH_ROWS = 65536
ROOM_BYTES = 64 << 20
"""Memory that must be free before a batch is read: two threads read at once, at most 16 columns of 8 bytes, and buffers
grow by doubling."""
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
    if not has_spare():
        raise NotColumnarError("not enough memory for the columnar driver")
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
        if not has_room(ROOM_BYTES):  # without memory the driver crashes; the other reader says so
            raise NotColumnarError("not enough memory for the columnar driver")
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
