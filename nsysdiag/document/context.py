"""What a subject's presentation may use in addition to its own records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import Struct

from nsysdiag.document.counted_names import as_read
from nsysdiag.document.view import Causes

if TYPE_CHECKING:
    from nsysdiag.report import Report

DEVICES_IN_FULL, FEWEST_ROWS, FEWEST_LARGE_ROWS = 1.5, 20, 10


class Context(Struct, frozen=True):
    """The whole report, as readers see it, and its causes by id."""

    report: Report
    causes: Causes

    @classmethod
    def of(cls, report: Report) -> Self:
        """That of a report."""
        return cls(as_read(report), Causes(report.causes))

    def rows(self, most: int) -> int:
        """How many rows a table of a device may have on the page: fewer where many devices share it."""
        devices = max(DEVICES_IN_FULL, len(self.report.devices))
        return max(FEWEST_ROWS, int(most * DEVICES_IN_FULL / devices))

    def shared_rows(self, most: int) -> int:
        """How many rows a table of a device may have whose rows are large: the devices share them."""
        return max(FEWEST_LARGE_ROWS, most // max(len(self.report.devices), 1))
