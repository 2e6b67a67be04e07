"""StringIds, resolved lazily: only the ids that are asked for are ever fetched."""

from __future__ import annotations

import sqlite3
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.limits import short_name
from nsysdiag.trace.query import Chosen, select_sql
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.columns import IntArray
    from nsysdiag.trace.long_texts import LongTexts

IDS_PER_QUERY = 500
FULL_READ_FROM = 20_000


class Strings:
    """The texts behind the ids of names. An id that the file does not know reads as `<string 17>`."""

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[sqlite3.Connection]],
        table: FoundTable | None,
        long: LongTexts,
    ) -> None:
        self._connect = connect
        self._table = table
        self._long = long
        self._known: dict[int, str | None] = {}
        self._lock = Lock()

    def text(self, string_id: int) -> str:
        """The text of one id, as it is mentioned (limits.short_name)."""
        self._fetch([int(string_id)])
        return short_name(self._name(int(string_id)))

    def known(self, string_id: int) -> bool:
        """Whether the file has a text for this id."""
        self._fetch([int(string_id)])
        return self._known.get(int(string_id)) is not None

    def texts(self, ids: npt.ArrayLike) -> list[str]:
        """The text of every id as it is mentioned (limits.short_name), in the order given."""
        return [short_name(text) for text in self.whole(ids)]

    def whole(self, ids: npt.ArrayLike) -> list[str]:
        """The text of every id as far as it is read (limits.TEXT_BYTES), in the order given: for lists that hold each
        name once."""
        distinct, inverse = np.unique(np.asarray(ids, np.int64), return_inverse=True)
        self._fetch(distinct.tolist())
        names = [self._name(string_id) for string_id in distinct.tolist()]
        return [names[index] for index in inverse.tolist()]

    def ids_where(self, predicate: Callable[[str], bool], among: IntArray) -> IntArray:
        """Those of the ids, distinct and sorted, whose text fulfils the predicate. Unknown ids never do."""
        distinct = np.unique(np.asarray(among, np.int64))
        self._fetch(distinct.tolist())
        chosen = [predicate(text) if text is not None else False for text in map(self._known.get, distinct.tolist())]
        found: IntArray = distinct[np.array(chosen, np.bool_)]
        return found

    def _name(self, string_id: int) -> str:
        text = self._known.get(string_id)
        return f"<string {string_id}>" if text is None else text

    def _fetch(self, ids: Sequence[int]) -> None:
        """Make these ids known, or known to be absent."""
        with self._lock:
            missing = [string_id for string_id in ids if string_id not in self._known]
            if not missing:
                return
            found = dict.fromkeys(missing)
            if self._table is not None:
                with self._connect() as connection:
                    found.update(self._rows(connection, self._table, missing))
            self._known.update(found)

    def _rows(self, connection: sqlite3.Connection, table: FoundTable, missing: list[int]) -> Iterator[tuple[int, str]]:
        wanted = frozenset(missing)
        if len(missing) >= FULL_READ_FROM or (len(missing) > IDS_PER_QUERY and not table.is_keyed_by("id")):
            queries: list[Chosen | None] = [None]  # the whole table: quicker for many ids, or without a key
        else:
            starts = range(0, len(missing), IDS_PER_QUERY)
            queries = [Chosen("id", missing[start : start + IDS_PER_QUERY]) for start in starts]
        for chosen in queries:
            for string_id, value in self._chosen(connection, table, chosen):
                if string_id in wanted and value is not None:
                    yield string_id, self._long.decode(value)

    def _chosen(
        self, connection: sqlite3.Connection, table: FoundTable, chosen: Chosen | None
    ) -> Iterator[tuple[int, object]]:
        """Ids and cells; some may come twice."""
        number, text = table_spec("StringIds").columns
        try:
            yield from connection.execute(select_sql(table, (number, text), chosen))
        except sqlite3.DataError:
            if table.rowid is None:
                raise
            ids = connection.execute(select_sql(table, (number,), chosen)).fetchall()
            yield from zip((each for (each,) in ids), self._long.cells(connection, table, text, chosen), strict=True)
