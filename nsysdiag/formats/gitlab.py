"""One report as GitLab code quality report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch import gitlab
from nsysdiag.formats.batch.entries import batch_of_one
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.workflow_commands import JSON

if TYPE_CHECKING:
    from nsysdiag.report import Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return gitlab.render(batch_of_one(report, options))


FORMAT = Format("gitlab", ".gitlab.json", "GitLab code quality report", render, gitlab.is_ours, JSON)
