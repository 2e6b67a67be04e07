"""Cuts a trace of a few rows and reads what is left of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nsysdiag import open_trace
from nsysdiag.share.cut import SliceCut, write_cut

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builder import TraceBuilder

Rows = list[tuple[Any, ...]]


def cut_of(trace: TraceBuilder, folder: Path, cut: SliceCut, name: str = "trace.sqlite") -> Path:
    """Write the trace, and what the cut asks for of it."""
    source = folder / name
    return cut_file(source if source.exists() else trace.write(source), folder / "cut.sqlite", cut)


def cut_file(source: Path, target: Path, cut: SliceCut) -> Path:
    """What the cut asks for of a trace, in a file that replaces an earlier one."""
    target.unlink(missing_ok=True)
    with open_trace(source) as opened:
        write_cut(opened, target, cut)
    return target


def rows(path: Path, query: str) -> Rows:
    """What a query says of a database."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def column(path: Path, table: str, name: str) -> list[Any]:
    """The values of a column, sorted; none where there is no such table."""
    if not rows(path, f"SELECT 1 FROM sqlite_master WHERE name = '{table}'"):
        return []
    return [value for (value,) in rows(path, f'SELECT "{name}" FROM "{table}" ORDER BY 1')]


def texts(path: Path) -> list[str]:
    """The strings of a trace."""
    return column(path, "StringIds", "value")


def tables(path: Path) -> list[str]:
    """Everything in the schema that has a name of its own."""
    return [name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1")]
