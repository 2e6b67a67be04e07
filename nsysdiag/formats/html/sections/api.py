"""The CUDA calls of the device's processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.figures import safe_color
from nsysdiag.formats.html.sections.section import DeviceSection, Page, View

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

MAX_ROWS = 60


def view(page: Page, device: DeviceReport) -> View | None:
    """The calls with the most time."""
    rows = sorted(device.launch.api, key=lambda row: (-row.total_ns, row.name))
    if not rows:
        return None
    drawn = [(row, _cause(page, row.cause)) for row in rows[: page.rows(MAX_ROWS)]]
    return {"rows": drawn, "all": len(rows)}


def _cause(page: Page, cause: str | None) -> tuple[str, str] | None:
    return (page.causes.title(cause), safe_color(page.causes[cause].color)) if cause else None


SECTION = DeviceSection("api", "CUDA calls", view)
