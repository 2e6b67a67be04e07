"""Reads the tables of a folder of Parquet files: the same values as from the SQLite export of the same capture."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.arrays.intervals import places_among
from nsysdiag.limits import short_name
from nsysdiag.trace.catalog import FoundColumn, FoundTable, Schema, looked_at
from nsysdiag.trace.columns import Buffers, Columns, Pair, SplitBuffers, TextColumn, Values, completed
from nsysdiag.trace.parquet.values import cells, combined, integers, nulls, reals
from nsysdiag.trace.query import Choice, Chosen, ChosenRows, TimeLimit
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType, table_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsysdiag.arrays.intervals import BoolArray, IntArray
    from nsysdiag.trace.parquet.folder import TableFile
    from nsysdiag.trace.query import ChosenPairs, LongTexts


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

    def read(
        self, table: FoundTable, columns: Sequence[ColumnSpec], capacity: int, chosen: Choice | None = None
    ) -> Columns:
        """As `SqliteDatabase.read`."""
        found = [column for column in columns if table.sources(column)]
        numbers = [column for column in found if column.type not in TEXTS]
        texts = {column.name: _Texts(column, self._long) for column in found if column.type in TEXTS}
        buffers, rows, odd = Buffers(numbers, min(capacity, MOST_EXPECTED)), 0, _Odd()
        for part, count in self._parts(table, found, [] if chosen is None else [chosen]):
            if numbers:
                buffers.append([_numbers(table, column, part, odd) for column in numbers])
            for text in texts.values():
                text.append(part[table.sources(text.column)[0].name])
            rows += count
        self._note(table, odd)
        values: dict[str, Values] = dict(zip((column.name for column in numbers), buffers.finish(), strict=True))
        values |= {name: text.finish(rows) for name, text in texts.items()}
        return completed(columns, values, rows)

    def read_split(
        self, table: FoundTable, columns: Sequence[ColumnSpec], chosen: ChosenPairs, within: TimeLimit | None
    ) -> dict[Pair, Columns]:
        """As `SqliteDatabase.read_split`."""
        buffers, odd = SplitBuffers(columns[2:], chosen.pairs), _Odd()
        for part, count in self._parts(table, columns, [chosen, *([] if within is None else [within])]):
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


class _Texts:
    """A column of texts, part by part."""

    def __init__(self, column: ColumnSpec, long: LongTexts) -> None:
        self.column = column
        self._long = long
        self._codes: dict[str, int] = {}
        self._parts: list[IntArray] = []

    def append(self, column: Any) -> None:
        """Take the cells of some rows."""
        blob = self.column.type is ColumnType.BLOB
        codes, found = cells(column, blob=blob)
        texts = [self._text(cell, blob=blob) for cell in found]
        new = [-1 if text is None else self._codes.setdefault(text, len(self._codes)) for text in texts]
        # One place more than there are texts: code -1, NULL, picks the last.
        self._parts.append(np.array([*new, -1], np.int64)[codes])

    def _text(self, cell: object, *, blob: bool) -> str | None:
        if cell is None:
            return None
        return self._long.digits(cell) if blob else short_name(self._long.decode(cell))

    def finish(self, rows: int) -> TextColumn:
        """The whole column."""
        if not self._codes:
            return TextColumn(np.broadcast_to(np.int64(-1), rows), [])
        return TextColumn(np.concatenate(self._parts), list(self._codes))


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
    ids = [choice.ids] if isinstance(choice, Chosen) else list(zip(*choice.pairs, strict=True))
    sides = [np.isin(value, np.asarray(each)) & there for value, each, there in zip(values, ids, known, strict=True)]
    return np.logical_and.reduce(sides)
