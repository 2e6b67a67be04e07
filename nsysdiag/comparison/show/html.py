"""Two sides compared as one HTML file: complete without scripts or a network, like the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.view import devices
from nsysdiag.document.view import Causes
from nsysdiag.formats.html.assets import asset, page_script, page_style
from nsysdiag.formats.html.page import framed

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.formats.format import RenderOptions


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
