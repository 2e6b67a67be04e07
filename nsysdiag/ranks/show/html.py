"""Ranks as one HTML file: complete without scripts or a network, like the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import Document
from nsysdiag.document.words import counted
from nsysdiag.formats.html.page import document
from nsysdiag.ranks.show.blocks import sections
from nsysdiag.ranks.show.words import TITLE

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.report import RanksReport


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    facts = f"{counted(len(report.comparison.ranks), 'rank')} in {counted(len(report.traces), 'trace')}"
    return document(Document(TITLE, sections(report), facts), report.tool, report.settings, options)
