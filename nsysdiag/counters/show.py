"""What the GPU's own counters measured: means, curves, and which ranges and kernels use the hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.counters.chart import draw_curves
from nsysdiag.counters.words import SHORT, TITLE, clock_facts, columns, counter_sentences, metric, rate
from nsysdiag.document.blocks import NOT_BRIEF, PAGE, Block, Cell, Chart, Column, Limit, Lines, Section, Table
from nsysdiag.document.kinds import COUNT, HERTZ, NAME, SHARE, TEXT, TIME
from nsysdiag.document.words import instant
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.counters.facts import GpuMetric, GpuMetrics, KernelMetrics, RangeMetrics
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport

CURVES = ("sm_active", "tensor_active", "dram_read", "dram_write")
MAX_SPOTS, TOP_KERNELS = 125, 5
MEANS = (
    Column("Metric", TEXT, head=True, length=60),
    Column("Window", SHARE),
    Column("Kernels ran", SHARE),
    Column("Compute", SHARE, limit=PAGE),
    Column("In gaps", SHARE),
    Column("Lowest", SHARE, limit=PAGE),
    Column("Highest", SHARE, limit=PAGE),
    Column("Samples", COUNT, limit=PAGE),
    Column("Left out", COUNT, limit=PAGE),
)


def section(device: DeviceReport, context: Context) -> Section | None:
    """None where no GPU metrics were captured."""
    found = device.gpu_metrics
    if found is None:
        return None
    blocks: list[Block] = [Lines(counter_sentences(device), NOT_BRIEF)]
    rows = [row for name in CURVES if (row := metric(found, name)) is not None]
    if rows:
        curves = draw_curves(found, rows, context.rows(MAX_SPOTS))
        span = f"From {instant(found.start_ns)} to {instant(found.end_ns)}"
        caption = f"{span}, each from 0 to 100% of what the hardware can do; a break in a curve means no samples."
        blocks.append(Chart(curves, "Counters over time", captions=[caption]))
    return Section("gpu-metrics", TITLE, [*blocks, _means(found), *_by_name(found)])


def _means(found: GpuMetrics) -> Table:
    clocks = ""
    if found.clocks:
        low = format_share(found.clocks.low_ns, found.clocks.judged_ns)
        limit = format_share(found.clocks.limit, 1)
        clocks = f" GPC clock while kernels ran: {clock_facts(found.clocks)}; below {limit} of it {low} of that time."
    return Table(
        "Means over time",
        MEANS,
        [_metric(row) for row in found.metrics],
        note=f"From a sample every {format_ns(found.period_ns)}. Kernels ran, Compute: of that work alone, "
        "without the idle parts of samples where the idle level is known. In gaps: samples wholly inside a gap."
        + clocks,
    )


def _metric(row: GpuMetric) -> tuple[object, ...]:
    kind = HERTZ if row.unit == "Hz" else SHARE
    means = (row.window, row.kernels, row.compute, row.gaps, row.lowest, row.highest)
    cells = (Cell(mean, kind=kind, note=rate(row, mean)) for mean in means)
    return (Cell(row.title, note=" + ".join(row.names)), *cells, row.samples, row.left_out)


def _by_name(found: GpuMetrics) -> list[Block]:
    """The metrics with a column of their own by NVTX range and by kernel."""
    shown = columns(found)
    if not shown:
        return []
    ranges = [(row, Cell(row.name)) for row in found.ranges]
    kernels = [(row, Cell(row.short_name, tag="" if row.whole else "mixed")) for row in found.kernels]
    return [
        Table(
            "By NVTX range",
            _columns(shown, "Ranges", "Range"),
            _rows(ranges, shown),
            note="From the first to the last operation launched inside it. N stands for a counter in a name.",
            limit=PAGE,
        ),
        Table(
            "By kernel",
            _columns(shown, "Runs", "Kernel"),
            _rows(kernels, shown),
            note="Samples wholly inside the kernels of a name. Where kernels are shorter than a sample: all samples "
            "that overlap them, with neighbouring work (mixed).",
            noun="names",
            limit=Limit(ticket=TOP_KERNELS, summary=0, brief=0),
        ),
    ]


def _columns(shown: list[str], runs: str, named: str) -> list[Column]:
    means = [Column(SHORT[name], SHARE) for name in shown]
    counts = (Column(runs, COUNT, limit=PAGE), Column("Samples", COUNT, limit=PAGE))
    return [Column("Time", TIME, strong=True), *counts, *means, Column(named, NAME, head=True)]


def _rows(rows: Iterable[tuple[RangeMetrics | KernelMetrics, Cell]], shown: list[str]) -> list[tuple[object, ...]]:
    return [
        (row.gpu_ns, row.count, row.samples, *(row.means.get(metric) for metric in shown), name) for row, name in rows
    ]
