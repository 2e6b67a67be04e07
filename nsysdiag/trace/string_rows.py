"""The texts of chosen ids out of the table StringIds of an SQLite file."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from nsysdiag.trace.query import Chosen, select_sql
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.long_texts import LongTexts

IDS_PER_QUERY = 500
FULL_READ_FROM = 20_000


def string_rows(
    connection: sqlite3.Connection, table: FoundTable, missing: list[int], long: LongTexts
) -> Iterator[tuple[int, str]]:
    """Ids and texts, of the requested ids that exist."""
    wanted = frozenset(missing)
    if len(missing) >= FULL_READ_FROM or (len(missing) > IDS_PER_QUERY and not table.is_keyed_by("id")):
        queries: list[Chosen | None] = [None]  # the whole table: quicker for many ids, or without a key
    else:
        starts = range(0, len(missing), IDS_PER_QUERY)
        queries = [Chosen("id", missing[start : start + IDS_PER_QUERY]) for start in starts]
    for chosen in queries:
        for string_id, value in _chosen(connection, table, chosen, long):
            if string_id in wanted and value is not None:
                yield string_id, long.decode(value)


def _chosen(
    connection: sqlite3.Connection, table: FoundTable, chosen: Chosen | None, long: LongTexts
) -> Iterator[tuple[int, object]]:
    """Ids and cells; some may come twice."""
    number, text = table_spec("StringIds").columns
    try:
        yield from connection.execute(select_sql(table, (number, text), chosen))
    except sqlite3.DataError:
        if table.rowid is None:
            raise
        ids = connection.execute(select_sql(table, (number,), chosen)).fetchall()
        yield from zip((each for (each,) in ids), long.cells(connection, table, text, chosen), strict=True)
