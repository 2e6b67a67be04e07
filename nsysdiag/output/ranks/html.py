"""Ranks as one HTML file: complete without scripts or a network, like the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from nsysdiag.output.assets import asset, page_script, page_style
from nsysdiag.output.html import GENERATOR, environment, policy
from nsysdiag.output.ranks.view import ranks_view
from nsysdiag.output.view import Causes

if TYPE_CHECKING:
    from nsysdiag.model_ranks_report import RanksReport
    from nsysdiag.output.format import RenderOptions


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    style, theme, script = page_style(), asset("theme.js"), page_script()
    html = (
        environment()
        .get_template("ranks.html")
        .render(
            report=report,
            options=options,
            view=ranks_view(report.comparison, Causes(report.causes)),
            generator=f"{GENERATOR} {report.tool.version}",
            policy=policy(style, theme, script),
            style=Markup(style),  # our own files, guarded by asset()
            theme=Markup(theme),
            script=Markup(script),
        )
    )
    return (html.rstrip() + "\n").encode()
