"""Columns of a table as numpy arrays."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.intervals import FloatArray
from nsysdiag.arrays.nesting import constant
from nsysdiag.limits import short_name
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


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

    def text(self, row: int) -> str | None:
        """The text of one row; None where it is NULL."""
        code = int(self.codes[row])
        return self.values[code] if code >= 0 else None

    def texts(self) -> list[str | None]:
        """The text of every row."""
        known: list[str | None] = [*self.values, None]
        return [known[code] for code in self.codes.tolist()]


Values = IntArray | FloatArray | TextColumn


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
        """A REAL column; NaN where it is NULL."""
        values: FloatArray = self._values[name]  # type: ignore[assignment]
        return values

    def text(self, name: str) -> TextColumn:
        """A text column."""
        values: TextColumn = self._values[name]  # type: ignore[assignment]
        return values

    def where(self, index: Any) -> Columns:
        """The same columns of some of the rows: a mask, a slice or indices."""
        values: dict[str, Values] = {name: column[index] for name, column in self._values.items()}
        rows = len(next(iter(values.values()))) if values else len(np.empty(self.rows, np.bool_)[index])
        return Columns(values, self._present, rows)


def defaults(spec: ColumnSpec, rows: int) -> Values:
    """A column that the file does not have: its default everywhere."""
    if spec.type in TEXTS:
        return TextColumn(np.full(rows, -1, np.int64), [])
    if spec.type is ColumnType.REAL:
        return np.full(rows, np.nan)
    return constant(np.full(1, spec.default, np.dtype(np.int32 if spec.compact else np.int64)), rows)


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of all parts, one after another; the parts hold the same columns. At least one part."""
    first = parts[0]
    if len(parts) == 1:
        return first
    values = {name: _joined_values([part[name] for part in parts]) for name in first.names()}
    return Columns(values, filter(first.present, first.names()), sum(map(len, parts)))


def _joined_values(parts: Sequence[Values]) -> Values:
    if not isinstance(parts[0], TextColumn):
        return np.concatenate(parts)  # type: ignore[arg-type]
    codes: dict[str, int] = {}
    recoded = []
    for part in parts:
        assert isinstance(part, TextColumn)
        # One place more than there are texts: code -1, NULL, picks the last.
        table = np.array([codes.setdefault(text, len(codes)) for text in part.values] + [-1], np.int64)
        recoded.append(table[part.codes])
    return TextColumn(np.concatenate(recoded), list(codes))


# Tables read in the background, while what was read before is worked on.

Request = tuple[str, tuple[str, ...]]
"""A table and its columns, in the order in which they will be read."""
WORKERS = 2
"""The driver reads without Python's lock. More at a time would only hold more memory at once."""


class ReadAhead:
    """Reads in the background, each kept until it is taken once.

    ```
    worker 1   [kernels         ][ranges ][samples]
    worker 2   [calls        ][switches][OS calls]
    main                        [work on kernels and calls      ][...
    ```
    """

    def __init__(self, read: Callable[..., Columns], requests: Sequence[Request]) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="nsysdiag-read")
        self._begun: dict[Request, Future[Columns]] = {}
        try:
            for table, columns in requests:
                self._begun[table, columns] = self._pool.submit(read, table, *columns)
        except BaseException:  # no thread could be started
            self.close()
            raise

    def take(self, table: str, columns: tuple[str, ...]) -> Columns | None:
        """What was read, waiting for it where need be; None for what was not begun. Raises what reading raised."""
        begun = self._begun.pop((table, columns), None)
        return None if begun is None else begun.result()

    def close(self) -> None:
        """Begin no more reads, wait for running ones, and drop results that were not taken."""
        self._pool.shutdown(cancel_futures=True)
        self._begun.clear()


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
            if self._rows is not None:
                found.update(self._rows(missing))
            self._known.update(found)
