"""Communication: collectives by kind, MPI calls of the host, and the kernels behind the collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import PAGE, TERMINAL, Column, Lines, Section, Table
from nsysdiag.document.columns import BAR, COUNT, NAME, RATE, SHARE, TEXT, TIME, part_of
from nsysdiag.kernels.show import kernel_table
from nsysdiag.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.communication.facts import CollectiveKind, Communication, MpiCall
    from nsysdiag.document.view import Context
    from nsysdiag.report import DeviceReport

RATES = (
    "Bus bandwidth as in nccl-tests: what each rank has to send, by the time of the kernels with their waits for other "
    "ranks. Best: the 95th percentile of large ones."
)
NO_SIZES = (
    "Bus bandwidth is not known: the trace lacks the sizes of messages or the number of ranks (NVTX payloads of NCCL)."
)
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
    lines += [f"{row.kind}: {row.refused}" for row in found.kinds if row.refused]
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
                    *_rates(found),
                    Column("Collective", TEXT, "kind", head=True),
                ),
                found.kinds,
                note=f"{exposed} ran with no compute at the same time, {hidden} during compute. Where several kinds "
                f"run at once, the time is charged to the kind with most total time. {_about_rates(found)}",
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


def _rates(found: Communication) -> Sequence[Column]:
    """The columns of rates; none where no kind has any."""
    if not any(row.bus_bytes_per_second for row in found.kinds):
        return ()
    best = "best_bus_bytes_per_second"
    link = found.link_bytes_per_second
    return (
        Column("Bus bandwidth", RATE, "bus_bytes_per_second"),
        Column("Best", RATE, best),
        *([Column("Of NVLink", SHARE, part_of(best, link))] if link else []),
    )


def _about_rates(found: Communication) -> str:
    """What the rates are, or why there are none."""
    refused = " ".join(f"{row.kind}: {row.refused}." for row in found.kinds if row.refused)
    if not any(row.sized for row in found.kinds):
        return NO_SIZES if found.kinds else ""
    link = (
        f" NVLink of this GPU carries {format_bytes(found.link_bytes_per_second)}/s each way."
        if found.link_bytes_per_second
        else ""
    )
    return f"{RATES}{link} {refused}".strip()


def kind_sentence(row: CollectiveKind) -> str:
    """What collectives of one kind took, and how much of it computing hid."""
    hidden = f", {format_ns(row.overlapped_ns)} of it during compute" if row.overlapped_ns else ""
    alone = f"{format_ns(row.exposed_ns)} with no compute at the same time"
    bus = f", {format_bytes(row.bus_bytes_per_second)}/s of bus bandwidth" if row.bus_bytes_per_second else ""
    return f"{format_count(row.count)} × {row.kind}: {format_ns(row.total_ns)}{hidden}, {alone}{bus}"


def mpi_sentence(row: MpiCall) -> str:
    """What one MPI function took of the launching threads, and how long the device was idle meanwhile."""
    idle = f"the GPU idle for {format_ns(row.idle_ns)} of it"
    return f"{format_count(row.count)} × {row.name}: {format_ns(row.total_ns)}, {idle}"
