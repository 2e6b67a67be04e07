"""The kernels by the time that they ran, how long single ones took, communication, and rates next to their peaks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.document import blocks as b
from nsysdiag.document.axis import EDGES, edge_labels, panel, time_label
from nsysdiag.document.columns import (
    BAR,
    COUNT,
    DEPTH,
    NAME,
    OF_RUNS,
    RATE,
    SHARE,
    TEXT,
    TIME,
    columns,
    of_devices,
    part,
    part_of,
)
from nsysdiag.document.drawings import Bar, Histogram
from nsysdiag.document.view import Context, Share, graphs_ns
from nsysdiag.document.words import counted
from nsysdiag.units import NS_PER, format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.kernels.facts import CollectiveKind, KernelRow, MpiCall
    from nsysdiag.launches.facts import Distribution
    from nsysdiag.report import DeviceReport


MAX_ROWS, TOP_ROWS, FIRST_ROWS, MAX_FAMILIES = 100, 5, 20, 20
OVERLAP = "Kernels of several streams overlap, so shares add up to more than the whole."
FIRST_EDGE = 100
"""Where the first bin of a distribution ends, in ns."""
FAMILIES = (
    b.Column("Family", TEXT, "family", head=True),
    b.Column("Time", TIME, "total_ns", strong=True),
    b.Column("Of judged time", SHARE, "share"),
    b.Column("Runs", COUNT, "count"),
    b.Column("A step", TIME, "step_ns"),
    b.Column("Runs a step", DEPTH, "step_count"),
)
LIMITS = (
    b.Column("Limited by", TEXT, "limit"),
    b.Column("SMs active", SHARE, "sm_active", spare=True),
    b.Column("Tensor cores", SHARE, "tensor_active", spare=True),
    b.Column("DRAM", SHARE, "dram_active", spare=True),
)
NOT_MEASURED = "What limits a family is not in this trace: it takes GPU metrics (--gpu-metrics-devices=all)."
NOT_OF_AMD = "What limits a family is not in this trace: it takes the counters of ROCm (rocprof-compute)."
MEASURED = (
    "What limits a family is by GPU metrics, over samples in which nothing else ran: what is at 60% of its peak or "
    "more. A dash: fewer than ten such samples."
)
LARGEST = (
    b.Column("Family", TEXT),
    b.Column("Time", TIME, strong=True),
    b.Column("Runs", COUNT),
    b.Column("Kernel", NAME, head=True),
)


def section(device: DeviceReport, context: Context) -> b.Section | None:
    """None if no kernel ran, alone or in a graph."""
    unseen = whole_graphs(device)
    if not device.kernels:
        return b.Section("kernels", "Kernels", [b.Paragraph(unseen)]) if unseen else None
    total, runs = sum(row.total_ns for row in device.kernels), sum(row.count for row in device.kernels)
    gist = f"{counted(runs, 'run')} of {counted(len(device.kernels), 'kernel')}: {format_ns(total)} over all streams"
    limit = b.Limit(page=context.rows(MAX_ROWS), ticket=TOP_ROWS, summary=0, brief=0)
    note = "Summed over streams, so shares may pass 100%."
    table = kernel_table(device, device.kernels, context, "Kernels inside the window", note, limit)
    graphs = [b.Paragraph(unseen)] if unseen else []
    blocks = [*graphs, *_families(device), *_durations(device.launch.kernel), table]
    return b.Section("kernels", "Kernels", blocks, gist)


def _families(device: DeviceReport) -> list[b.Block]:
    """The families with their time and what limits each, and folded below it the largest kernels of each."""
    families, measured = device.kernel_families, device.gpu_metrics is not None
    stepped = any(row.step_ns is not None for row in families)
    columns = (*(FAMILIES if stepped else FAMILIES[:-2]), *(LIMITS if measured else ()))
    kernels = [
        (row.family, kernel.total_ns, kernel.count, b.Name(kernel.name)) for row in families for kernel in row.kernels
    ]
    limit = b.Limit(page=MAX_FAMILIES, ticket=MAX_FAMILIES, summary=TOP_ROWS, brief=0)
    overlap = OVERLAP if sum(row.share for row in families) > 1 else ""
    table = b.Table.of("Kernels of the judged time by family", columns, families, note=overlap, limit=limit)
    unknown = NOT_OF_AMD if "AMD" in device.name else NOT_MEASURED
    note = b.Paragraph(MEASURED if measured else unknown, "quiet", b.NOT_BRIEF)
    return [
        table,
        *([note] if families else []),
        b.Details("The kernels with most time of each family", [b.Table("By family", LARGEST, kernels, limit=b.PAGE)]),
    ]


def whole_graphs(device: DeviceReport) -> str:
    """The graphs that were recorded as a whole, as a sentence; empty without any."""
    graphs, ns = device.launch.graphs, graphs_ns(device)
    count = sum(row.launches for row in graphs.rows if row.nodes is None) if graphs else 0
    return (
        f"{counted(count, 'CUDA graph')} take {format_ns(ns)}, {format_share(ns, device.window_ns)} of the window, and "
        "were recorded without their kernels: capture with --cuda-graph-trace=node to see these."
        if count
        else ""
    )


def kernel_table(
    device: DeviceReport, kernels: list[KernelRow], context: Context, title: str, note: str, limit: b.Limit
) -> b.Table:
    """The kernels with most time, each with a bar against the longest."""
    rows = sorted(kernels, key=lambda row: (-row.total_ns, row.name))
    total = f"{format_ns(sum(row.total_ns for row in rows))} in all."
    return b.Table.of(
        title,
        (
            b.Column("Total", TIME, "total_ns", strong=True),
            b.Column("Of window", SHARE, part_of("total_ns", device.window_ns)),
            b.Column("Bar", BAR, part_of("total_ns", rows[0].total_ns if rows else 0)),
            b.Column("Runs", COUNT, "count"),
            *(b.Column(title, TIME, path) for title, path in OF_RUNS.items()),
            b.Column("Kernel", NAME, _name, head=True),
        ),
        rows[: context.rows(MAX_ROWS)],
        note=f"{total} {note}",
        noun="names",
        order="with most time",
        total=len(rows),
        first=FIRST_ROWS,
        limit=limit,
    )


def _name(row: KernelRow) -> b.Cell:
    return b.Cell(b.Name(row.short_name, row.name), tag="communication" if row.communication else "")


def _durations(found: Distribution | None) -> list[b.Block]:
    """A histogram of how long single kernels ran; nothing if the report does not say, or all are alike."""
    if found is None or sum(count > 0 for _start, count in found.bins) < 2:
        return []
    starts, counts = [start for start, _count in found.bins], [count for _start, count in found.bins]
    behind = next((edge for edge in EDGES if edge > max(starts[-1], FIRST_EDGE - 1)), starts[-1])
    edges = [*starts, behind]
    ranges = [f"{time_label(start)} to {time_label(end)}" for start, end in pairwise(edges)]
    bars = [
        Bar(each, [Share("compute", "Kernels", count, "compute", "")], f"{counted(count, 'kernel')}, {each}")
        for count, each in zip(counts, ranges, strict=True)
    ]
    lengths = (
        f"p5 {format_ns(found.p5_ns)}, median {format_ns(found.p50_ns)}, p95 {format_ns(found.p95_ns)}, "
        f"longest {format_ns(found.max_ns)}"
    )
    return [
        b.Chart(
            Histogram({"Number of kernels": panel(bars, COUNT)}, edge_labels(edges), "Kernel duration"),
            f"Number of kernels by duration: {lengths}",
            captions=[f"Durations of {format_count(found.count)} kernels: {lengths}."],
        )
    ]


# Communication: collectives by kind, MPI calls of the host, and the kernels behind the collectives; bandwidth.

LEAST = 100
"""The terminal names what takes this fraction of the window."""


def communication_section(device: DeviceReport, context: Context) -> b.Section | None:
    """None if no communication was captured."""
    found = device.communication
    if not found.kernels and not found.mpi:
        return None
    exposed, hidden = format_ns(device.exposed_comm_ns), format_ns(device.overlapped_comm_ns)
    least = max(device.window_ns // LEAST, 1)
    lines = [kind_sentence(row) for row in found.kinds if row.exposed_ns + row.overlapped_ns >= least]
    lines += [mpi_sentence(row) for row in found.mpi if row.total_ns >= least]
    return b.Section(
        "communication",
        "Communication",
        [
            b.Lines(lines, b.TERMINAL),
            b.Table.of(
                "Collectives by kind",
                (
                    b.Column("Total", TIME, "total_ns"),
                    b.Column("Bar", BAR, part_of("total_ns", max((row.total_ns for row in found.kinds), default=0))),
                    b.Column("Exposed", TIME, "exposed_ns", strong=True),
                    b.Column("Of window", SHARE, part_of("exposed_ns", device.window_ns)),
                    b.Column("Overlapped", TIME, "overlapped_ns"),
                    b.Column("Count", COUNT, "count"),
                    b.Column("Collective", TEXT, "kind", head=True),
                ),
                found.kinds,
                note=f"{exposed} ran with no compute at the same time, {hidden} during compute. If several kinds "
                "run at once, the time is charged to the kind with most total time.",
            ),
            b.Table.of(
                "MPI calls",
                (
                    b.Column("Total", TIME, "total_ns"),
                    b.Column("GPU idle meanwhile", TIME, "idle_ns", strong=True),
                    b.Column("Of idle", SHARE, part_of("idle_ns", device.idle_ns)),
                    b.Column("Count", COUNT, "count"),
                    b.Column("MPI call", NAME, "name", head=True),
                ),
                found.mpi,
                note="Of the threads that launch on this device. Idle: while the thread of the next launch was inside "
                "the call.",
            ),
            kernel_table(device, found.kernels, context, "Communication kernels", f"{exposed} of it exposed.", b.PAGE),
        ],
        f"{exposed} exposed, {hidden} hidden behind compute",
    )


# What copies and collectives carried, against what their links carry at most.

ABOUT = (
    "Mean: bytes by the time of the operations, for collectives with their waits for other ranks; best: the 95th "
    "percentile of large ones. Of collectives it is the bus bandwidth of nccl-tests: what each rank has to send. Peaks "
    "are one way, as published for GPUs of this name. The trace does not show the slot, nor how many links connect two "
    "GPUs, which may carry less."
)
NO_SIZES = (
    "Bus bandwidth of collectives is not known: the trace lacks the sizes of messages or the number of ranks (NVTX "
    "payloads of NCCL)."
)
IN_SWITCH = "{}: switches of NVLink add up (NVLink SHARP), by the names of kernels. {}"
FASTER = "{}: this is faster than NVLink, unless its switches add up (NVLink SHARP). {}"
BY_SENT = "Each rank then sends less than the bus bandwidth says; the share of the peak is by what it sends."
WAYS = {"HtoD": "Host to GPU", "DtoH": "GPU to host", "DtoD": "Within the GPU", "PtoP": "Between GPUs"}


class BandwidthRow(NamedTuple):
    """The copies of one direction, or the sized collectives of one kind: bytes a second on average and of the best,
    what the link carries at most, and which share of that the best is; `refused` says why it is none."""

    what: str
    operations: int
    bytes_per_second: float | None
    best_bytes_per_second: float | None
    peak: str
    peak_bytes_per_second: float | None
    share: float | None
    slow_share: float | None
    refused: str


def bandwidth_rows(device: DeviceReport) -> list[BandwidthRow]:
    """Copies by direction, then collectives by kind."""
    found = device.communication
    copies = [
        BandwidthRow(
            WAYS.get(row.direction, row.direction),
            row.count,
            row.bytes / row.total_ns * NS_PER["s"] if row.total_ns else None,
            row.best_bytes_per_second,
            row.peak,
            row.peak_bytes_per_second,
            None if row.refused else part(row.best_bytes_per_second, row.peak_bytes_per_second),
            part(row.slow_ns, row.total_ns),
            row.refused,
        )
        for row in device.copies.rates
    ]
    link, name = found.link_bytes_per_second, "NVLink" if found.link_bytes_per_second else ""
    return copies + [
        BandwidthRow(
            row.kind,
            row.sized,
            row.bus_bytes_per_second,
            row.best_bus_bytes_per_second,
            name,
            link,
            part(row.best_link_bytes_per_second or row.best_bus_bytes_per_second, link),
            None,
            row.refused,
        )
        for row in found.kinds
        if row.sized
    ]


def _in_switch(row: CollectiveKind, link: float | None) -> str:
    """Why the share of the peak is not that of the bus bandwidth."""
    fastest = max(row.bus_bytes_per_second or 0.0, row.best_bus_bytes_per_second or 0.0)
    return (FASTER if link and fastest > link else IN_SWITCH).format(row.kind, BY_SENT)


BANDWIDTH = (
    b.Column("What", TEXT, "what", head=True),
    b.Column("Count", COUNT, "operations"),
    b.Column("Mean", RATE, "bytes_per_second"),
    b.Column("Best", RATE, "best_bytes_per_second"),
    b.Column("Peak", RATE, "peak_bytes_per_second"),
    b.Column("Best of peak", SHARE, "share", strong=True),
    b.Column("Time below half of it", SHARE, "slow_share", spare=True),
    b.Column("Peak of", TEXT, lambda row: row.peak or "peak not known"),
)


def bandwidth(device: DeviceReport, _context: Context) -> b.Section | None:
    """What links carried; None if nothing was copied or sent."""
    rows, kinds = bandwidth_rows(device), device.communication.kinds
    if not rows and not kinds:
        return None
    said = [f"{row.what}: {row.refused}." for row in rows if row.refused]
    link = device.communication.link_bytes_per_second
    said += [_in_switch(row, link) for row in kinds if row.in_switch]
    said += [NO_SIZES] if kinds and not any(row.sized for row in kinds) else []
    table = b.Table.of("Bandwidth against peaks", BANDWIDTH, rows, note=ABOUT, sortable=False, limit=b.NOT_BRIEF)
    return b.Section("bandwidth", "Bandwidth", [table, b.Lines(said)])


TABLES = (of_devices("bandwidth", columns(BandwidthRow), bandwidth_rows),)


def kind_sentence(row: CollectiveKind) -> str:
    """What collectives of one kind took, and how much of it computing hid."""
    hidden = f", {format_ns(row.overlapped_ns)} of it during compute" if row.overlapped_ns else ""
    alone = f"{format_ns(row.exposed_ns)} with no compute at the same time"
    bus = f", {RATE.text(row.bus_bytes_per_second)} of bus bandwidth" if row.bus_bytes_per_second else ""
    return f"{format_count(row.count)} × {row.kind}: {format_ns(row.total_ns)}{hidden}, {alone}{bus}"


def mpi_sentence(row: MpiCall) -> str:
    """What one MPI function took of the launching threads, and how long the device was idle meanwhile."""
    idle = f"the GPU idle for {format_ns(row.idle_ns)} of it"
    return f"{format_count(row.count)} × {row.name}: {format_ns(row.total_ns)}, {idle}"
