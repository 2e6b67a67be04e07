"""Ranks as Markdown for a ticket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.markdown import markdown_document
from nsysdiag.ranks.show.blocks import files, sections
from nsysdiag.ranks.show.words import TITLE

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.report import RanksReport


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The comparison as Markdown, with the marker by which a later run finds its own file again."""
    return markdown_document(TITLE.lower(), sections(report), files(report), options.command)
