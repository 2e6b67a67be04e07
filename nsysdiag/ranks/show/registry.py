"""The formats of a comparison of ranks. They have the names, suffixes and markers of the formats of a report."""

from __future__ import annotations

from collections.abc import Callable

from nsysdiag.document.blocks import Document
from nsysdiag.document.markup import markdown_document
from nsysdiag.document.text import text_document
from nsysdiag.document.words import counted
from nsysdiag.formats import RenderOptions
from nsysdiag.formats.html.page import document
from nsysdiag.formats.tables import csv_of
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show.blocks import BY_NAME, TITLE, files, sections
from nsysdiag.record import to_json
from nsysdiag.units import format_bytes

# The tables of a comparison as CSV: the ranks, and one more file for every other table.

MAIN_TABLE = "ranks"
TABLES = tuple(name for name in BY_NAME if name != MAIN_TABLE)


def render_csv(report: RanksReport, _options: RenderOptions) -> bytes:
    """The ranks, one row each."""
    return tables(report)[MAIN_TABLE]


def tables(report: RanksReport) -> dict[str, bytes]:
    """Every table by name."""
    return {name: csv_of(table.header, table.cells(report.comparison)) for name, table in BY_NAME.items()}


# Ranks as one HTML file: complete without scripts or a network, like the report.


def render_html(report: RanksReport, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    facts = f"{counted(len(report.comparison.ranks), 'rank')} in {counted(len(report.traces), 'trace')}"
    return document(Document(TITLE, sections(report), facts), report.tool, report.settings, options)


# Ranks as Markdown for a ticket.


def render_markdown(report: RanksReport, options: RenderOptions) -> bytes:
    """The comparison as Markdown, with the marker by which a later run finds its own file again."""
    return markdown_document(TITLE.lower(), sections(report), files(report), options.command)


# Ranks as text for the terminal.

FIRST_FILES = 3


def render_text(report: RanksReport, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only if requested."""
    files = [f"{trace.file} ({format_bytes(trace.size_bytes)})" for trace in report.traces]
    more = f" and {len(files) - FIRST_FILES:,} more files" if len(files) > FIRST_FILES else ""
    head = f"{report.tool.name} {report.tool.version} · ranks of {', '.join(files[:FIRST_FILES])}{more}"
    return text_document(head, sections(report), options.width, options.command, color=options.color)


RENDERERS: dict[str, Callable[[RanksReport, RenderOptions], bytes]] = {
    "html": render_html,
    "json": lambda report, _options: to_json(report),
    "md": render_markdown,
    "txt": render_text,
    "csv": render_csv,
}
