"""Which of very many like cases run, by turns: all of them would take an hour. NSYSDIAG_THOROUGH=1 runs all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

THOROUGH = bool(os.environ.get("NSYSDIAG_THOROUGH"))


def some(cases: Sequence[T], part: int, turn: int = 0) -> list[T]:
    """Every `part`-th of the cases."""
    return list(cases if THOROUGH else cases[turn % part :: part])


def crossed(rows: Sequence[T], columns: Sequence[U], part: int) -> list[tuple[T, U]]:
    """One of `part` pairs, so that every row and every column comes up."""
    pairs = [(i + j, row, column) for i, row in enumerate(rows) for j, column in enumerate(columns)]
    return [(row, column) for at, row, column in pairs if THOROUGH or at % part == 0]
