"""Two sides compared as one HTML file: complete without scripts or a network, like the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.assets import asset, page_script, page_style
from nsysdiag.output.compare import words
from nsysdiag.output.compare.view import devices
from nsysdiag.output.html import framed
from nsysdiag.output.view import Causes

if TYPE_CHECKING:
    from nsysdiag.model_compare import Comparison
    from nsysdiag.output.format import RenderOptions


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    return framed(
        "compare.html",
        comparison.tool,
        page_style() + asset("compare.css"),
        page_script(),
        comparison=comparison,
        options=options,
        mark=words.verdict_mark(comparison.verdict),
        devices=devices(comparison, Causes(comparison.causes)),
        files=(words.files_label(comparison.before), words.files_label(comparison.after)),
        several=len(comparison.devices) > 1,
    )
