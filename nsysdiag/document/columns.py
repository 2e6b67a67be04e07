"""What the columns of a table hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Cell = str | int | float | bool | None
Rows = Iterator[tuple[Cell, ...]]
Kind = Literal["text", "integer", "integer or none", "number", "truth"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column and what its cells hold. Text and numbers may be None, integers only where their kind says so."""

    name: str
    kind: Kind


def of(kind: Kind, names: str) -> tuple[Column, ...]:
    """Columns of one kind, by their names."""
    return tuple(Column(name, kind) for name in names.split())
