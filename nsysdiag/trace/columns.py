"""Columns of a table as numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.constant import constant, is_constant
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import FloatArray, places_among
from nsysdiag.arrays.spill import laid
from nsysdiag.limits import short_name
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


IntArray = npt.NDArray[np.signedinteger[Any]]


class TextColumn(Struct, frozen=True):
    """A text column: `values[codes[row]]`; code -1 is NULL. `values` are distinct, in order of appearance."""

    codes: IntArray
    values: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: Any) -> TextColumn:
        """The same column of some of the rows: any index of numpy that yields an array."""
        return TextColumn(self.codes[index], self.values)

    def texts(self) -> list[str | None]:
        """The text of every row."""
        known: list[str | None] = [*self.values, None]
        return [known[code] for code in self.codes.tolist()]


Values = IntArray | FloatArray | TextColumn
Together = Callable[[str, Sequence[npt.NDArray[Any]]], npt.NDArray[Any]]
"""Makes one array of the parts of a column of numbers, by its name."""


class Columns:
    """Some columns of one table, all of the same length, rows in the order of the file.

    `columns["start"]` is an int64 array, float64 for a REAL column, Text for a text column. The typed
    accessors say which one the caller expects.
    """

    __slots__ = ("_present", "_values", "rows")

    def __init__(self, values: Mapping[str, Values], present: Iterable[str], rows: int) -> None:
        self._values = dict(values)
        self._present = frozenset(present)
        self.rows: int = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def present(self, name: str) -> bool:
        """Whether the file has this column; if not, every row holds the default."""
        return name in self._present

    def names(self) -> list[str]:
        """The requested columns, in that order."""
        return list(self._values)

    def integers(self, name: str) -> IntArray:
        """An INTEGER column."""
        values: IntArray = self._values[name]  # type: ignore[assignment]
        return values

    def reals(self, name: str) -> FloatArray:
        """A REAL column; NaN if it is NULL."""
        values: FloatArray = self._values[name]  # type: ignore[assignment]
        return values

    def text(self, name: str) -> TextColumn:
        """A text column."""
        values: TextColumn = self._values[name]  # type: ignore[assignment]
        return values

    def tuples(self, *names: str) -> list[tuple[Any, ...]]:
        """The rows as plain values, of these columns or of all; None for NULL of a text column."""
        columns = [self._values[name] for name in names or self._values]
        lists = (each.texts() if isinstance(each, TextColumn) else each.tolist() for each in columns)
        return list(zip(*lists, strict=True))

    def where(self, index: Any) -> Columns:
        """The same columns of some of the rows: a mask, a slice or indices."""
        values: dict[str, Values] = {name: column[index] for name, column in self._values.items()}
        rows = len(next(iter(values.values()))) if values else len(np.empty(self.rows, np.bool_)[index])
        return Columns(values, self._present, rows)

    def in_files(self) -> Columns:
        """The same with large arrays in files."""
        values = laid(tuple(self._values.values()))
        return Columns(dict(zip(self._values, values, strict=True)), self._present, self.rows)

    def pop(self, name: str) -> Values:
        """A column, which is not kept."""
        return self._values.pop(name)


def defaults(spec: ColumnSpec, rows: int) -> Values:
    """A column that the file does not have: its default everywhere."""
    if spec.type in TEXTS:
        return TextColumn(np.full(rows, -1, np.int64), [])
    if spec.type is ColumnType.REAL:
        return np.full(rows, np.nan)
    return constant(np.full(1, spec.default, np.dtype(np.int32 if spec.compact else np.int64)), rows)


def concatenated(_name: str, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The numbers of a column, one part after another, in new memory."""
    return np.concatenate(parts)


def joined(parts: Sequence[Columns], together: Together = concatenated) -> Columns:
    """The rows of all parts, one after another; the parts hold the same columns. At least one part. Several are empty
    afterwards: so one column at a time takes its memory twice. `together` makes one array of those of a column."""
    first = parts[0]
    if len(parts) == 1:
        return first
    each = ((name, [part.pop(name) for part in parts]) for name in first.names())
    values = {name: _joined_values(parts, partial(together, name)) for name, parts in each}
    return Columns(values, filter(first.present, first.names()), sum(map(len, parts)))


def _joined_values(parts: Sequence[Values], together: Callable[[Any], Any]) -> Values:
    if not isinstance(parts[0], TextColumn):
        if all(is_constant(part) and part[0] == parts[0][0] for part in parts):  # type: ignore[arg-type]
            return constant(parts[0], sum(map(len, parts)))
        made: Values = together(parts)
        return made
    codes: dict[str, int] = {}
    recoded = []
    for part in parts:
        assert isinstance(part, TextColumn)
        # One place more than there are texts: code -1, NULL, picks the last.
        table = np.array([codes.setdefault(text, len(codes)) for text in part.values] + [-1], np.int64)
        recoded.append(table[part.codes])
    none = constant(np.full(1, -1), sum(map(len, parts)))
    return TextColumn(np.concatenate(recoded) if codes else none, list(codes))


# Arrays that are filled batch by batch, of all rows or of each of several pairs of ids.

COMPACT_LIMIT = 1 << 30
"""A column of 32 bits that meets a value beyond this gets 64."""


class Sink(Protocol):
    """Takes what is read, batch by batch."""

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """One array a column, all of the same length."""


class Buffers:
    """One growing array a column. `capacity` is an expected number of rows: a hint, never relied upon. So many are
    written to the arrays that `place` has, if given."""

    def __init__(self, columns: Sequence[ColumnSpec], capacity: int, place: Place | None = None) -> None:
        self.columns = columns
        self.rows: int = 0
        self._capacity = capacity if place else max(capacity, 1)
        self._arrays: list[npt.NDArray[Any]] = place(columns) if place else arrays(columns, self._capacity)

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
            done.append(part if 2 * self.rows >= self._capacity else part.copy())
        return done


Place = Callable[[Sequence[ColumnSpec]], list[npt.NDArray[Any]]]
"""Has an array for each of some columns, into which they are read."""


def arrays(columns: Sequence[ColumnSpec], rows: int) -> list[npt.NDArray[Any]]:
    """Memory for so many rows of the columns."""
    return [np.empty(rows, _dtype(column)) for column in columns]


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
        row, column = places_among(self._first, first), places_among(self._second, second)
        place = np.where((row >= 0) & (column >= 0), self._place[row, column], -1)
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


def completed(columns: Sequence[ColumnSpec], values: Mapping[str, Values], rows: int) -> Columns:
    """The `values` that the file has of these columns; the others hold their defaults."""
    every = {column.name: values.get(column.name, defaults(column, rows)) for column in columns}
    return Columns(every, values, rows)


# StringIds, resolved lazily: only requested ids are fetched.


class Strings:
    """The texts behind the ids of names. An id that the file does not know reads as `<string 17>`."""

    def __init__(self, rows: Callable[[list[int]], Iterable[tuple[int, str]]] | None) -> None:
        """`rows` returns the ids and texts of existing ids; None if the file has no such table."""
        self._rows = rows
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
        distinct = distinct_values(np.asarray(among, np.int64))
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
            if self._rows is not None:
                found.update(self._rows(missing))
            self._known.update(found)
