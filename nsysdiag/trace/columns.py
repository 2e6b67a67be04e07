"""Columns of a table as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.intervals import FloatArray
from nsysdiag.trace.tables import TEXTS, ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

IntArray = npt.NDArray[np.signedinteger[Any]]


class Text(Struct, frozen=True):
    """A text column: `values[codes[row]]`; code -1 is NULL. `values` are distinct, in order of appearance."""

    codes: IntArray
    values: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: Any) -> Text:
        """The same column of some of the rows: any index of numpy that yields an array."""
        return Text(self.codes[index], self.values)

    def text(self, row: int) -> str | None:
        """The text of one row; None where it is NULL."""
        code = int(self.codes[row])
        return self.values[code] if code >= 0 else None

    def texts(self) -> list[str | None]:
        """The text of every row."""
        known: list[str | None] = [*self.values, None]
        return [known[code] for code in self.codes.tolist()]


Values = IntArray | FloatArray | Text


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

    def text(self, name: str) -> Text:
        """A text column."""
        values: Text = self._values[name]  # type: ignore[assignment]
        return values

    def where(self, index: Any) -> Columns:
        """The same columns of some of the rows: a mask, a slice or indices."""
        values: dict[str, Values] = {name: column[index] for name, column in self._values.items()}
        rows = len(next(iter(values.values()))) if values else len(np.empty(self.rows, np.bool_)[index])
        return Columns(values, self._present, rows)


def defaults(spec: ColumnSpec, rows: int) -> Values:
    """A column that the file does not have: its default everywhere."""
    if spec.type in TEXTS:
        return Text(np.full(rows, -1, np.int64), [])
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
    if not isinstance(parts[0], Text):
        return np.concatenate(parts)  # type: ignore[arg-type]
    codes: dict[str, int] = {}
    recoded = []
    for part in parts:
        assert isinstance(part, Text)
        # One place more than there are texts: code -1, NULL, picks the last.
        table = np.array([codes.setdefault(text, len(codes)) for text in part.values] + [-1], np.int64)
        recoded.append(table[part.codes])
    return Text(np.concatenate(recoded), list(codes))
