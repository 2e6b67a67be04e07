"""Ranks as text for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.text import text_document
from nsysdiag.ranks.show.blocks import sections
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.report import RanksReport

FIRST_FILES = 3


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only if requested."""
    files = [f"{trace.file} ({format_bytes(trace.size_bytes)})" for trace in report.traces]
    more = f" and {len(files) - FIRST_FILES:,} more files" if len(files) > FIRST_FILES else ""
    head = f"{report.tool.name} {report.tool.version} · ranks of {', '.join(files[:FIRST_FILES])}{more}"
    return text_document(head, sections(report), options.width, options.command, color=options.color)
