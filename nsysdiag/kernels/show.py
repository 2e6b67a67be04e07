"""The kernels by the time that they ran, and how long single ones took."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsysdiag.document.axis import EDGES, edge_labels, panel, time_label
from nsysdiag.document.blocks import (
    NOT_BRIEF,
    PAGE,
    Block,
    Cell,
    Chart,
    Column,
    Details,
    Limit,
    Name,
    Paragraph,
    Section,
    Table,
)
from nsysdiag.document.columns import BAR, COUNT, DEPTH, NAME, SHARE, TEXT, TIME, part_of
from nsysdiag.document.drawings import Bar, Histogram
from nsysdiag.document.view import Context, Share, graphs_ns
from nsysdiag.document.words import counted
from nsysdiag.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.kernels.facts import KernelRow
    from nsysdiag.launches.facts import Distribution
    from nsysdiag.report import DeviceReport

MAX_ROWS, TOP_ROWS, FIRST_ROWS, MAX_FAMILIES = 100, 5, 20, 20
OVERLAP = "Kernels of several streams overlap, so shares add up to more than the whole."
FIRST_EDGE = 100
"""Where the first bin of a distribution ends, in ns."""
FAMILIES = (
    Column("Family", TEXT, "family", head=True),
    Column("Time", TIME, "total_ns", strong=True),
    Column("Of judged time", SHARE, "share"),
    Column("Runs", COUNT, "count"),
    Column("A step", TIME, "step_ns"),
    Column("Runs a step", DEPTH, "step_count"),
)
LIMITS = (
    Column("Limited by", TEXT, "limit"),
    Column("SMs active", SHARE, "sm_active", spare=True),
    Column("Tensor cores", SHARE, "tensor_active", spare=True),
    Column("DRAM", SHARE, "dram_active", spare=True),
)
NOT_MEASURED = "What limits a family is not in this trace: it takes GPU metrics (--gpu-metrics-devices=all)."
MEASURED = (
    "What limits a family is by GPU metrics, over samples in which nothing else ran: what is at 60% of its peak or "
    "more. A dash: fewer than ten such samples."
)
LARGEST = (
    Column("Family", TEXT),
    Column("Time", TIME, strong=True),
    Column("Runs", COUNT),
    Column("Kernel", NAME, head=True),
)


def section(device: DeviceReport, context: Context) -> Section | None:
    """None where no kernel ran, alone or in a graph."""
    unseen = whole_graphs(device)
    if not device.kernels:
        return Section("kernels", "Kernels", [Paragraph(unseen)]) if unseen else None
    total, runs = sum(row.total_ns for row in device.kernels), sum(row.count for row in device.kernels)
    gist = f"{counted(runs, 'run')} of {counted(len(device.kernels), 'kernel')}: {format_ns(total)} over all streams"
    limit = Limit(page=context.rows(MAX_ROWS), ticket=TOP_ROWS, summary=0, brief=0)
    note = "Summed over streams, so shares may pass 100%."
    table = kernel_table(device, device.kernels, context, "Kernels inside the window", note, limit)
    graphs = [Paragraph(unseen)] if unseen else []
    blocks = [*graphs, *_families(device), *_durations(device.launch.kernel), table]
    return Section("kernels", "Kernels", blocks, gist)


def _families(device: DeviceReport) -> list[Block]:
    """The families with their time and what limits each, and folded below it the largest kernels of each."""
    families, measured = device.kernel_families, device.gpu_metrics is not None
    stepped = any(row.step_ns is not None for row in families)
    columns = (*(FAMILIES if stepped else FAMILIES[:-2]), *(LIMITS if measured else ()))
    kernels = [
        (row.family, kernel.total_ns, kernel.count, Name(kernel.name)) for row in families for kernel in row.kernels
    ]
    limit = Limit(page=MAX_FAMILIES, ticket=MAX_FAMILIES, summary=TOP_ROWS, brief=0)
    overlap = OVERLAP if sum(row.share for row in families) > 1 else ""
    table = Table.of("Kernels of the judged time by family", columns, families, note=overlap, limit=limit)
    note = Paragraph(MEASURED if measured else NOT_MEASURED, "quiet", NOT_BRIEF)
    return [
        table,
        *([note] if families else []),
        Details("The kernels with most time of each family", [Table("By family", LARGEST, kernels, limit=PAGE)]),
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
    device: DeviceReport, kernels: list[KernelRow], context: Context, title: str, note: str, limit: Limit
) -> Table:
    """The kernels with most time, each with a bar against the longest."""
    rows = sorted(kernels, key=lambda row: (-row.total_ns, row.name))
    total = f"{format_ns(sum(row.total_ns for row in rows))} in all."
    return Table.of(
        title,
        (
            Column("Total", TIME, "total_ns", strong=True),
            Column("Of window", SHARE, part_of("total_ns", device.window_ns)),
            Column("Bar", BAR, part_of("total_ns", rows[0].total_ns if rows else 0)),
            Column("Runs", COUNT, "count"),
            Column("Mean", TIME, "mean_ns"),
            Column("Median", TIME, "median_ns"),
            Column("Shortest", TIME, "min_ns"),
            Column("Longest", TIME, "max_ns"),
            Column("Kernel", NAME, _name, head=True),
        ),
        rows[: context.rows(MAX_ROWS)],
        note=f"{total} {note}",
        noun="names",
        order="with most time",
        total=len(rows),
        first=FIRST_ROWS,
        limit=limit,
    )


def _name(row: KernelRow) -> Cell:
    return Cell(Name(row.short_name, row.name), tag="communication" if row.communication else "")


def _durations(found: Distribution | None) -> list[Block]:
    """A histogram of how long single kernels ran; nothing where the report does not say, or all are alike."""
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
        Chart(
            Histogram({"Number of kernels": panel(bars, COUNT)}, edge_labels(edges), "Kernel duration"),
            f"Number of kernels by duration: {lengths}",
            captions=[f"Durations of {format_count(found.count)} kernels: {lengths}."],
        )
    ]
