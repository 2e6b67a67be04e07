"""The tables of a comparison as CSV: the ranks, and one more file for every other table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.csv_ import csv_of
from nsysdiag.ranks.show.rows import BY_NAME

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.report import RanksReport

MAIN_TABLE = "ranks"
TABLES = tuple(name for name in BY_NAME if name != MAIN_TABLE)


def render(report: RanksReport, _options: RenderOptions) -> bytes:
    """The ranks, one row each."""
    return tables(report)[MAIN_TABLE]


def tables(report: RanksReport) -> dict[str, bytes]:
    """Every table by name."""
    return {name: csv_of(table.header, table.cells(report.comparison)) for name, table in BY_NAME.items()}
