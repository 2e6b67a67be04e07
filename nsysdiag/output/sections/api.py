"""The CUDA calls of the device's processes, and how its work was launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.figures import safe_color
from nsysdiag.output.sections.section import DeviceSection, Page, View
from nsysdiag.units import format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport, Launch

MAX_ROWS = 60


def view(page: Page, device: DeviceReport) -> View | None:
    """Launch facts and the calls with the most time."""
    rows = sorted(device.launch.api, key=lambda row: (-row.total_ns, row.name))
    if not rows and not device.launch.launched_ops:
        return None
    drawn = [(row, _cause(page, row.cause)) for row in rows[: page.rows(MAX_ROWS)]]
    return {"rows": drawn, "all": len(rows), "facts": _facts(device.launch)}


def _cause(page: Page, cause: str | None) -> tuple[str, str] | None:
    return (page.causes.title(cause), safe_color(page.causes[cause].color)) if cause else None


def _facts(launch: Launch) -> list[tuple[str, str]]:
    return [
        ("Launched operations", format_count(launch.launched_ops)),
        ("Without a launch row", format_count(launch.unlaunched_ops)),
        ("Found the device idle", format_count(launch.found_device_idle)),
        ("Median time in the queue", _time(launch.median_queue_delay_ns)),
        ("Median time between launches", _time(launch.median_interval_ns)),
        ("Median kernel", _time(launch.median_kernel_ns)),
    ]


def _time(ns: int | None) -> str:
    return "–" if ns is None else format_ns(ns)


SECTION = DeviceSection("api", "Launches and CUDA calls", view)
