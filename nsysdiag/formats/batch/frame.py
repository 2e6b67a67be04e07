"""The frame of the pages of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.html import page
from nsysdiag.formats.html.assets import asset, page_script, page_style

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchSummary


def framed(template: str, summary: BatchSummary, **values: object) -> bytes:
    """A template of a page of this batch, drawn with `values`, as UTF-8."""
    style = page_style() + asset("batch.css")
    return page.framed(template, summary.tool, style, page_script(), tool=summary.tool, **values)
