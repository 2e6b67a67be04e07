"""What the codes of columns stand for: labels, and tables of values that keep each once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray


class EvidenceLabel(Struct, frozen=True, eq=False):
    """A kind of evidence that a cause tells apart. Rules compare the object; its words are for readers alone.

    `cause` is the id of the cause of a loading worker's time, if the label stands for that."""

    text: str
    cause: str = ""

    @property
    def words(self) -> str:
        """How reports word it."""
        return self.text


Value = TypeVar("Value")


class CodeTable(Generic[Value]):
    """Values by code, each kept once; the code of a value is its place in `known`, -1 for none."""

    def __init__(self) -> None:
        self.known: dict[Value, int] = {}

    def code(self, value: Value | None) -> int:
        """The code of a value."""
        return -1 if value is None else self.known.setdefault(value, len(self.known))

    def codes(self, values: Iterable[Value | None]) -> IntArray:
        """The code of each value, and behind them -1: so that -1 as an index stays -1."""
        return np.array([*(self.code(value) for value in values), -1], dtype=np.int64)
