"""Slices: which cause each nanosecond of each gap was given to, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import Rows


class SliceRows(Rows, frozen=True):
    """Slices [start, end) of gaps in ns. `cause` is an index into the registry's order, `label` and `text` indices into
    their tables, -1 for none."""

    gap: IntArray
    cause: IntArray
    start: IntArray
    end: IntArray
    label: IntArray
    text: IntArray


class Slices(Struct, frozen=True):
    """All slices of one device, and the words that they point to."""

    rows: SliceRows
    labels: list[str]
    texts: list[str]

    @property
    def ns(self) -> IntArray:
        """The length of every slice."""
        return self.rows.end - self.rows.start

    def lengths(self, index: IntArray | BoolArray) -> IntArray:
        """The lengths of those at `index`."""
        return self.rows.end[index] - self.rows.start[index]


class SliceCollector:
    """Gathers slices part by part; words are kept once."""

    def __init__(self, causes: list[str]) -> None:
        self._cause = {cause: number for number, cause in enumerate(causes)}
        self._parts: list[SliceRows] = []
        self._labels: dict[str, int] = {}
        self._texts: dict[str, int] = {}

    def label(self, label: str | None) -> int:
        """The code of a label, -1 for none."""
        return -1 if label is None else self._labels.setdefault(label, len(self._labels))

    def labels(self, labels: Iterable[str]) -> IntArray:
        """The code of each label; behind them that of none."""
        return np.array([*(self.label(label) for label in labels), -1], dtype=np.int64)

    def texts(self, texts: list[str]) -> IntArray:
        """The code of each text."""
        return np.array([self._texts.setdefault(text, len(self._texts)) for text in texts], dtype=np.int32)

    def add(self, cause: str, pieces: Owned, *, label: int | IntArray = -1, text: int | IntArray = -1) -> None:
        """Give `pieces` (times, not positions) to a cause."""
        count = len(pieces)
        if count == 0:
            return
        self._parts.append(
            SliceRows(
                gap=pieces.owner.astype(np.int32),
                cause=np.full(count, self._cause[cause], dtype=np.int8),
                start=pieces.spans.start,
                end=pieces.spans.end,
                label=np.broadcast_to(np.asarray(label, dtype=np.int32), (count,)),
                text=np.broadcast_to(np.asarray(text, dtype=np.int32), (count,)),
            )
        )

    def finish(self) -> Slices:
        """Everything that was added."""
        nothing, code = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        empty = SliceRows(code, code.astype(np.int8), nothing, nothing, code, code)
        rows = SliceRows.concatenate(self._parts or [empty])
        return Slices(rows, list(self._labels), list(self._texts))
