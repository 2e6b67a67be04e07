"""The frame of the pages of a batch: style, scripts, policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from nsysdiag.output.assets import asset, page_script, page_style
from nsysdiag.output.html import GENERATOR, environment, policy, squeezed

if TYPE_CHECKING:
    from nsysdiag.model_ci import BatchSummary


def framed(template: str, summary: BatchSummary, **values: object) -> bytes:
    """A template of a page of this batch, drawn with `values`, as UTF-8."""
    style, theme, script = page_style() + asset("batch.css"), asset("theme.js"), page_script()
    html = (
        environment()
        .get_template(template)
        .render(
            values,
            tool=summary.tool,
            generator=f"{GENERATOR} {summary.tool.version}",
            policy=policy(style, theme, script),
            style=Markup(style),  # our own files, guarded by asset()
            theme=Markup(theme),
            script=Markup(script),
        )
    )
    return (squeezed(html).rstrip() + "\n").encode()
