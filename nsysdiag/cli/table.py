"""Small tables and records of `info` and `rules`, as text, Markdown and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nsysdiag.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Columns padded to their widest cell, a space of two between; names are made safe for a terminal."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{indent}{line.rstrip()}\n" for line in lines)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table; a pipe inside a cell is escaped."""
    cells = [[printable(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_json(value: object) -> str:
    """Indented JSON, keys sorted, one final newline: same value, same text."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
