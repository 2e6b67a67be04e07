"""One report as a code quality report of GitLab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch import gitlab
from nsysdiag.formats.batch.entries import batch_of_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import Report

is_ours: Callable[[bytes], bool] = gitlab.is_ours


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return gitlab.render(batch_of_one(report, options))
