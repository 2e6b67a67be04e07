"""Ranks as one HTML file: complete without scripts or a network, like the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.assets import page_script, page_style
from nsysdiag.output.html import framed
from nsysdiag.output.ranks.view import ranks_view
from nsysdiag.output.view import Causes

if TYPE_CHECKING:
    from nsysdiag.model_ranks_report import RanksReport
    from nsysdiag.output.format import RenderOptions


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    view = ranks_view(report.comparison, Causes(report.causes))
    return framed("ranks.html", report.tool, page_style(), page_script(), report=report, options=options, view=view)
