"""The page of a batch: all traces in one table, the worst first. Complete without scripts or a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch.summary import document
from nsysdiag.formats.format import RenderOptions
from nsysdiag.formats.html import page
from nsysdiag.formats.html.assets import asset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import BatchSummary, HistoryLine
    from nsysdiag.document.blocks import Document


def render(summary: BatchSummary, history: Sequence[HistoryLine]) -> bytes:
    """The whole page as UTF-8."""
    return drawn(document(summary, history), summary)


def drawn(found: Document, summary: BatchSummary) -> bytes:
    """A page of this batch as UTF-8."""
    return page.document(found, summary.tool, summary.settings, RenderOptions(), styles=asset("batch.css"))
