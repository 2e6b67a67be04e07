"""One report as JUnit XML, one test case a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch import junit
from nsysdiag.formats.batch.entries import batch_of_one
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.workflow_commands import MARKUP

if TYPE_CHECKING:
    from nsysdiag.report import Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return junit.render(batch_of_one(report, options))


FORMAT = Format("junit", ".junit.xml", "JUnit XML, one test case a budget", render, junit.is_ours, MARKUP)
