"""The kernels by the time that they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.figures import percent
from nsysdiag.output.sections.section import DeviceSection, Page, View

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport, KernelRow

MAX_ROWS = 100


def view(page: Page, device: DeviceReport) -> View | None:
    """The kernels with the most time, summed over streams."""
    return rows_view(page, device.kernels)


def rows_view(page: Page, kernels: list[KernelRow]) -> View | None:
    """The rows with the most time, each with a bar against the longest; None where there are none."""
    if not kernels:
        return None
    rows = sorted(kernels, key=lambda row: (-row.total_ns, row.name))
    drawn = [(row, percent(row.total_ns, rows[0].total_ns)) for row in rows[: page.rows(MAX_ROWS)]]
    return {"rows": drawn, "all": len(kernels), "total_ns": sum(row.total_ns for row in kernels)}


SECTION = DeviceSection("kernels", "Kernels", view)
