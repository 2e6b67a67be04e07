"""The report's tables as CSV (RFC 4180, UTF-8): plain numbers, the unit in the name of the column.

Text that a spreadsheet would take for a formula gets a leading apostrophe. With another separator than the comma in the
locale, a cell such as `a;=1+1` is split even if quoted: a part that would be a formula gets an apostrophe too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsysdiag.document.columns import Cell
from nsysdiag.document.names import visible
from nsysdiag.formats.format import RenderOptions
from nsysdiag.formats.rows import BY_NAME
from nsysdiag.ranks.show.words import BY_NAME as RANK_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nsysdiag.document.columns import RecordTable
    from nsysdiag.report import Report

# Full-width forms and white space in front do not stop every spreadsheet from seeing a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Behind a separator of some locale, a quote may still open the cell that begins there.
_FORMULA = re.compile(r'(^|[;|])(?=[ "]*[-=+@＝＋－＠])')
_QUOTED = re.compile(r'[",;|\t\r\n]')
MAIN_TABLE = "gaps"
TABLES = tuple(name for name in BY_NAME if name != MAIN_TABLE)


def render(report: Report, _options: RenderOptions) -> bytes:
    """The gaps table: one row a gap, the longest of each device first."""
    return _csv(BY_NAME[MAIN_TABLE], report)


def tables(report: Report) -> dict[str, bytes]:
    """Every table by name; `gaps` is the one that `render` gives."""
    return {name: _csv(table, report) for name, table in BY_NAME.items()}


def table_path(path: Path, table: str) -> Path:
    """The path of a table other than the gaps, next to `x.csv`: `x.TABLE.csv`."""
    return path.with_name(f"{path.stem}.{table}{path.suffix}")


def is_ours(data: bytes) -> bool:
    """Is the first row exactly the header of one of our tables?"""
    first = data.split(b"\r\n", 1)[0]
    headers = [table.header for table in BY_NAME.values()] + [table.header for table in RANK_TABLES.values()]
    return any(first == ",".join(header).encode() for header in headers)


def _csv(table: RecordTable[Report, Any], report: Report) -> bytes:
    return csv_of(table.header, table.cells(report))


def csv_of(header: list[str], rows: Iterable[list[Cell]]) -> bytes:
    """One table. A cell with the separator of any locale is quoted, which the csv module does for one separator."""
    lines = [header, *([_cell(value) for value in row] for row in rows)]
    return "".join(f"{','.join(map(_quoted, line))}\r\n" for line in lines).encode()


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    return str(value)


def _text(value: str) -> str:
    shown = _FORMULA.sub(r"\1'", visible(value))
    control = value.lstrip(" ").startswith(FORMULA_STARTS) and not shown.startswith("'")  # written out by now
    return f"'{shown}" if control else shown
