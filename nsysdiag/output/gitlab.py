"""One report as GitLab code quality report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.batch import gitlab
from nsysdiag.output.batch.single import batch_of_one
from nsysdiag.output.format import Format, RenderOptions
from nsysdiag.workflow_commands import JSON

if TYPE_CHECKING:
    from nsysdiag.model import Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return gitlab.render(batch_of_one(report, options))


FORMAT = Format("gitlab", ".gitlab.json", "GitLab code quality report", render, gitlab.is_ours, JSON)
