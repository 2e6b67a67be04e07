"""The communication kernels by the time that they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.sections.kernels import rows_view
from nsysdiag.output.sections.section import DeviceSection, Page, View

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport


def view(page: Page, device: DeviceReport) -> View | None:
    """The communication kernels with the most time; left out where none ran."""
    return rows_view(page, device.communication.kernels)


SECTION = DeviceSection("communication", "Communication", view)
