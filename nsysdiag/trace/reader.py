"""The bulk reader: columns of a table of the file, by the fast way where it works, by the sure way where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from nsysdiag.trace.arrow import NotColumnarError, read_arrow
from nsysdiag.trace.buffers import Buffers, Pair, Sink, SplitBuffers
from nsysdiag.trace.columns import Columns, Text, Values, defaults
from nsysdiag.trace.query import Choice, ChosenPairs, Within, any_text_sql, count_sql, select_sql
from nsysdiag.trace.rows import read_rows, read_text
from nsysdiag.trace.tables import TEXTS, ColumnSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.connect import Connections
    from nsysdiag.trace.long_texts import LongTexts

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
        self, table: FoundTable, columns: Sequence[ColumnSpec], chosen: ChosenPairs, within: Within | None
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

    def _text(self, table: FoundTable, column: ColumnSpec, chosen: Choice | None, rows: int | None) -> Text:
        """Texts come row by row, which takes long; whether there is any at all SQLite finds out by itself."""
        with self._connections.stdlib() as connection:
            if (
                rows is not None
                and chosen is None
                and connection.execute(any_text_sql(table, column)).fetchone() is None
            ):
                return Text(np.broadcast_to(np.int64(-1), rows), [])
            return read_text(connection, table, column, chosen, self._long)


def _rows(values: dict[str, Values]) -> int | None:
    """The number of rows, once a column of them was read."""
    return len(next(iter(values.values()))) if values else None
