"""One report as SARIF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch import sarif
from nsysdiag.formats.batch.entries import batch_of_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import Report

is_ours: Callable[[bytes], bool] = sarif.is_ours


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return sarif.render(batch_of_one(report, options), report.causes)
