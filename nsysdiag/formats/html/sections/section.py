"""What a section of the HTML report is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.view import Causes

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import DeviceReport, Report

View = dict[str, object]
DEVICES_IN_FULL, FEWEST_ROWS, FEWEST_LARGE_ROWS = 1.5, 20, 10


@dataclass(frozen=True, slots=True)
class Page:
    """What a section may draw from."""

    report: Report
    options: RenderOptions
    causes: Causes

    def rows(self, most: int) -> int:
        """How many rows a table of a device may have: fewer where many devices share the page."""
        devices = max(DEVICES_IN_FULL, len(self.report.devices))
        return max(FEWEST_ROWS, int(most * DEVICES_IN_FULL / devices))

    def shared_rows(self, most: int) -> int:
        """How many rows a table of a device may have whose rows are large: the devices share them."""
        return max(FEWEST_LARGE_ROWS, most // max(len(self.report.devices), 1))


@dataclass(frozen=True, slots=True)
class ReportSection:
    """Drawn once. `view` gives the values for `templates/sections/ID.html`, or None to leave the section out."""

    id: str
    title: str
    view: Callable[[Page], View | None]


@dataclass(frozen=True, slots=True)
class DeviceSection:
    """Drawn for each device, like ReportSection."""

    id: str
    title: str
    view: Callable[[Page, DeviceReport], View | None]
