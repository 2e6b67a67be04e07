"""The fast reader: columns through the ADBC driver of SQLite, as Arrow batches without pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.trace.connect import adbc_connection
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.trace.buffers import Sink

BATCH_ROWS = 65536
_FORMATS = {ColumnType.INTEGER: "l", ColumnType.REAL: "g"}


class NotColumnarError(Exception):
    """The driver cannot read these columns as they are declared; rows have to be read one by one."""


def read_arrow(uri: str, sql: str, columns: Sequence[ColumnSpec], buffers: Sink) -> None:
    """Read the result of `sql`, numbers only, into the buffers. Raises NotColumnarError where the driver is
    missing or refuses, such as for text in an integer column."""
    try:
        import adbc_driver_manager
        import nanoarrow
    except ImportError as error:
        raise NotColumnarError(str(error)) from error
    # nanoarrow's own error, raised for a cell that breaks the type of its column, is a RuntimeError.
    refusals = (adbc_driver_manager.Error, RuntimeError, UnicodeDecodeError)
    try:
        with adbc_connection(uri) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": BATCH_ROWS})
            cursor.execute(sql)
            _drain(nanoarrow.c_array_stream(cursor.fetch_arrow()), columns, buffers)
    except refusals as error:
        raise NotColumnarError(str(error)) from error


def _drain(stream: Any, columns: Sequence[ColumnSpec], buffers: Sink) -> None:
    """Types are those of the first batch: a float or a text in an integer column shows here or fails
    later."""
    with stream:
        formats = [child.format for child in stream.get_schema().children]
        if formats != [_FORMATS[column.type] for column in columns]:
            raise NotColumnarError(f"columns arrived as {formats}")
        for batch in stream:
            if len(batch):
                view = batch.view()
                buffers.append([_values(view.child(index)) for index in range(len(columns))])


def _values(column: Any) -> Any:
    """The numbers of a column. No NULL can be among them: the statement has put defaults there."""
    if column.null_count:
        raise NotColumnarError("NULL in a column that must not hold any")
    return np.asarray(column.buffer(1))[column.offset : column.offset + len(column)]
