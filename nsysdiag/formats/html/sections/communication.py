"""Communication: collectives by kind, the kernels behind them, and MPI calls of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.document.figures import percent
from nsysdiag.formats.html.sections.kernels import rows_view
from nsysdiag.formats.html.sections.section import View, device_section

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


def view(context: Context, device: DeviceReport) -> View | None:
    """Collectives by kind, MPI calls by name, the communication kernels with the most time; left out where there are
    none of them."""
    found = device.communication
    kernels = rows_view(context, found.kernels)
    if kernels is None and not found.mpi:
        return None
    longest = max((row.total_ns for row in found.kinds), default=0)
    return {
        "kinds": [(row, percent(row.total_ns, longest)) for row in found.kinds],
        "mpi": found.mpi,
        "kernels": kernels,
    }


section = device_section("communication", "Communication", view)
