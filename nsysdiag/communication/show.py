"""Communication: collectives by kind, MPI calls of the host, and the kernels behind the collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import PAGE, TERMINAL, Column, Lines, Section, Table
from nsysdiag.document.columns import BAR, COUNT, NAME, SHARE, TEXT, TIME, part_of
from nsysdiag.kernels.show import kernel_table
from nsysdiag.units import format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.communication.facts import CollectiveKind, MpiCall
    from nsysdiag.document.view import Context
    from nsysdiag.report import DeviceReport

LEAST = 100
"""The terminal names what takes this fraction of the window."""


def section(device: DeviceReport, context: Context) -> Section | None:
    """None where no communication was captured."""
    found = device.communication
    if not found.kernels and not found.mpi:
        return None
    exposed, hidden = format_ns(device.exposed_comm_ns), format_ns(device.overlapped_comm_ns)
    least = max(device.window_ns // LEAST, 1)
    lines = [kind_sentence(row) for row in found.kinds if row.exposed_ns + row.overlapped_ns >= least]
    lines += [mpi_sentence(row) for row in found.mpi if row.total_ns >= least]
    return Section(
        "communication",
        "Communication",
        [
            Lines(lines, TERMINAL),
            Table.of(
                "Collectives by kind",
                (
                    Column("Total", TIME, "total_ns"),
                    Column("Bar", BAR, part_of("total_ns", max((row.total_ns for row in found.kinds), default=0))),
                    Column("Exposed", TIME, "exposed_ns", strong=True),
                    Column("Of window", SHARE, part_of("exposed_ns", device.window_ns)),
                    Column("Overlapped", TIME, "overlapped_ns"),
                    Column("Count", COUNT, "count"),
                    Column("Collective", TEXT, "kind", head=True),
                ),
                found.kinds,
                note=f"{exposed} ran with no compute at the same time, {hidden} during compute. Where several kinds "
                "run at once, the time is charged to the kind with most total time.",
            ),
            Table.of(
                "MPI calls",
                (
                    Column("Total", TIME, "total_ns"),
                    Column("GPU idle meanwhile", TIME, "idle_ns", strong=True),
                    Column("Of idle", SHARE, part_of("idle_ns", device.idle_ns)),
                    Column("Count", COUNT, "count"),
                    Column("MPI call", NAME, "name", head=True),
                ),
                found.mpi,
                note="Of the threads that launch on this device. Idle: while the thread of the next launch was inside "
                "the call.",
            ),
            kernel_table(device, found.kernels, context, "Communication kernels", f"{exposed} of it exposed.", PAGE),
        ],
        f"{exposed} exposed, {hidden} hidden behind compute",
    )


def kind_sentence(row: CollectiveKind) -> str:
    """What collectives of one kind took, and how much of it computing hid."""
    hidden = f", {format_ns(row.overlapped_ns)} of it during compute" if row.overlapped_ns else ""
    alone = f"{format_ns(row.exposed_ns)} with no compute at the same time"
    return f"{format_count(row.count)} × {row.kind}: {format_ns(row.total_ns)}{hidden}, {alone}"


def mpi_sentence(row: MpiCall) -> str:
    """What one MPI function took of the launching threads, and how long the device was idle meanwhile."""
    idle = f"the GPU idle for {format_ns(row.idle_ns)} of it"
    return f"{format_count(row.count)} × {row.name}: {format_ns(row.total_ns)}, {idle}"
