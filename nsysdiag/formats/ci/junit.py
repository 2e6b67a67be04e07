"""One report as JUnit XML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.formats.batch import junit
from nsysdiag.formats.batch.entries import batch_of_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import Report

is_ours: Callable[[bytes], bool] = junit.is_ours


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return junit.render(batch_of_one(report, options))
