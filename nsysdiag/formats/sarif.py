"""One report as SARIF 2.1.0 for code scanning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch import sarif
from nsysdiag.formats.batch.entries import batch_of_one
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.workflow_commands import JSON

if TYPE_CHECKING:
    from nsysdiag.report import Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return sarif.render(batch_of_one(report, options), report.causes)


FORMAT = Format("sarif", ".sarif", "SARIF 2.1.0 for code scanning", render, sarif.is_ours, JSON)
