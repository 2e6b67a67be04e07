"""Ranks as one HTML file: complete without scripts or a network, like the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.view import Causes
from nsysdiag.formats.html.assets import page_script, page_style
from nsysdiag.formats.html.page import framed
from nsysdiag.ranks.show.view import ranks_view

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.report import RanksReport


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    view = ranks_view(report.comparison, Causes(report.causes))
    return framed("ranks.html", report.tool, page_style(), page_script(), report=report, options=options, view=view)
