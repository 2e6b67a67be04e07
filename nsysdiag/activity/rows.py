"""A table as a record of equally long arrays, and how rows are picked from it."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class RowsOf:
    """Which rows hold each of the distinct values of a column, or of those `among` them: found by one sort however many
    values there are, and by none where there is one."""

    def __init__(self, column: IntArray, among: IntArray | list[int] | None = None) -> None:
        rows = np.arange(len(column)) if among is None else np.flatnonzero(np.isin(column, among))
        values = column[rows]
        if len(values) and values.min() != values.max():
            order = np.argsort(values, kind="stable")
            rows, values = rows[order], values[order]
        borders = np.flatnonzero(values[1:] != values[:-1]) + 1
        self._rows = np.split(rows, borders) if len(rows) else []
        self._at = {int(column[rows[0]]): at for at, rows in enumerate(self._rows)}

    def __getitem__(self, value: int) -> IntArray:
        """The rows in their order; none where the column does not hold the value."""
        at = self._at.get(value)
        return np.empty(0, dtype=np.int64) if at is None else self._rows[at]

    def values(self) -> list[int]:
        """The distinct values, sorted."""
        return list(self._at)


@dataclasses.dataclass(frozen=True, slots=True)
class Rows:
    """Base of records whose fields are all arrays of one length, a row an index."""

    def __len__(self) -> int:
        first: npt.NDArray[Any] = getattr(self, dataclasses.fields(self)[0].name)
        return len(first)

    def take(self, index: npt.NDArray[Any]) -> Self:
        """The rows at `index`: positions in the order asked for, or a mask."""
        return type(self)(**{field.name: getattr(self, field.name)[index] for field in dataclasses.fields(self)})

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """All rows of `parts`, one table after the other; `parts` holds at least one."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            **{
                field.name: np.concatenate([getattr(part, field.name) for part in parts])
                for field in dataclasses.fields(cls)
            }
        )
