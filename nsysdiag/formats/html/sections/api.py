"""The CUDA calls of the device's processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.document.figures import safe_color
from nsysdiag.formats.html.sections.section import View, device_section

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

MAX_ROWS = 60


def view(context: Context, device: DeviceReport) -> View | None:
    """The calls with the most time."""
    rows = sorted(device.launch.api, key=lambda row: (-row.total_ns, row.name))
    if not rows:
        return None
    drawn = [(row, _cause(context, row.cause)) for row in rows[: context.rows(MAX_ROWS)]]
    return {"rows": drawn, "all": len(rows)}


def _cause(context: Context, cause: str | None) -> tuple[str, str] | None:
    return (context.causes.title(cause), safe_color(context.causes[cause].color)) if cause else None


section = device_section("api", "CUDA calls", view)
