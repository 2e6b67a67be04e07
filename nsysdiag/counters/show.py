"""What the GPU's own counters measured: means, curves, and which ranges and kernels use the hardware."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nsysdiag.arrays.intervals import equal_edges
from nsysdiag.counters.facts import Clocks, GpuMetric, GpuMetrics, KernelMetrics, RangeMetrics
from nsysdiag.document.blocks import (
    EVERYWHERE,
    NOT_BRIEF,
    PAGE,
    Block,
    Cell,
    Chart,
    Column,
    Limit,
    Lines,
    Section,
    Table,
)
from nsysdiag.document.columns import COUNT, HERTZ, NAME, RATE, SHARE, TEXT, TIME, RecordColumn, columns, of_devices
from nsysdiag.document.drawings import Curve, CurveLayer, CurveStrip, CurveStrips, TimeSeries
from nsysdiag.document.names import brief, clip
from nsysdiag.document.packed import unpack_metric
from nsysdiag.document.words import counted, instant
from nsysdiag.units import format_hertz, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.view import Context
    from nsysdiag.report import DeviceReport


# What the GPU's own counters say, in sentences and as the text of cells.

TITLE = "GPU counters"
LEAST_LOW, LEAST_KERNEL = 0.05, 0.05
"""Low clocks and kernels are worth a sentence from this share of their time, and of the window, on."""
HALF = 0.5
KERNEL_NAME = 60
COLUMNS = ("sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write", "nvlink_rx", "nvlink_tx")
"""The metrics that have a column in tables by range and kernel, if they were captured."""
TRAFFIC = {"dram_read": "DRAM reads", "dram_write": "DRAM writes", "nvlink_rx": "NVLink in", "nvlink_tx": "NVLink out"}
SHORT = {
    "sm_active": "SM active",
    "sm_issue": "Issue",
    "tensor_active": "Tensor",
    "dram_read": "DRAM read",
    "dram_write": "DRAM write",
    "nvlink_rx": "NVLink in",
    "nvlink_tx": "NVLink out",
}


def counter_sentences(device: DeviceReport) -> list[str]:
    """At most four sentences; none if no GPU metrics were captured."""
    found = device.gpu_metrics
    if found is None:
        return []
    return [*_activity(found), *_memory(found), *_idlest(device, found), *_clocks(found.clocks)]


def metric(found: GpuMetrics, name: str) -> GpuMetric | None:
    """One metric by its id, None if it was not captured."""
    return next((row for row in found.metrics if row.id == name), None)


def shown_metrics(found: GpuMetrics) -> list[str]:
    """Those of COLUMNS that were captured."""
    return [name for name in COLUMNS if metric(found, name) is not None]


def rate(row: GpuMetric, mean: float | None) -> str:
    """What a mean share is in bytes a second, empty if the trace does not say."""
    if mean is None or row.peak_bytes_per_second is None:
        return ""
    return RATE.text(mean * row.peak_bytes_per_second)


def name_of(row: KernelMetrics) -> str:
    """A kernel by its short name, in a sentence."""
    return clip(brief(row.short_name), KERNEL_NAME)


def clock_facts(clocks: Clocks) -> str:
    """The clock in numbers: mean, lowest, and what it is measured against."""
    against = "the chip's highest" if clocks.source == "chip" else "the highest seen"
    return (
        f"mean {format_hertz(clocks.mean_hz)}, lowest {format_hertz(clocks.lowest_hz)}, "
        f"{against} {format_hertz(clocks.max_hz)}"
    )


def _activity(found: GpuMetrics) -> list[str]:
    active = metric(found, "sm_active")
    if active is None:
        return []
    facts = [f"{SHARE.text(active.window)} of the SMs are active on average over the window"]
    mixed = ", with short idle times between them" if active.idle is None else ""
    facts += [f"{SHARE.text(active.kernels)} while kernels run{mixed}"] if active.kernels is not None else []
    parts = [
        f"{title} {SHARE.text(row.kernels)}"
        for name, title in (("sm_issue", "instruction issue"), ("tensor_active", "tensor cores"))
        if (row := metric(found, name)) is not None and row.kernels is not None
    ]
    beside = f"; meanwhile {', '.join(parts)}" if parts else ""
    return [f"By the GPU's own counters {' and '.join(facts)}{beside}."]


def _memory(found: GpuMetrics) -> list[str]:
    """Memory and links while kernels ran."""
    shown = []
    for name, title in TRAFFIC.items():
        row = metric(found, name)
        if row is not None and row.kernels is not None and (name.startswith("dram") or row.kernels > 0):
            speed = rate(row, row.kernels)
            shown.append(f"{title} {SHARE.text(row.kernels)}" + (f" ({speed})" if speed else ""))
    return [f"Of the highest rates, while kernels run: {', '.join(shown)}."] if shown else []


def _idlest(device: DeviceReport, found: GpuMetrics) -> list[str]:
    """Of the kernels that take a while, the one that leaves most SMs idle."""
    rows = [
        (mean, row)
        for row in found.kernels
        if row.gpu_ns >= LEAST_KERNEL * device.window_ns
        and (mean := row.means.get("sm_active")) is not None
        and mean < HALF
    ]
    if not rows:
        return []
    mean, row = min(rows, key=lambda each: (each[0], each[1].name))
    took = format_share(row.gpu_ns, device.window_ns)
    mixed = "" if row.whole else ", with neighbouring work"
    return [f"{name_of(row)} keeps {SHARE.text(mean)} of the SMs active{mixed}; it runs {took} of the window."]


def _clocks(clocks: Clocks | None) -> list[str]:
    if clocks is None or clocks.low_mean_hz is None or clocks.low_ns < LEAST_LOW * clocks.judged_ns:
        return []
    low = format_share(clocks.low_mean_hz, clocks.max_hz)
    return [
        f"Clocks were at {low} of the maximum during {format_share(clocks.low_ns, clocks.judged_ns)} of the time with "
        f"kernels ({clock_facts(clocks)}). Power or thermal limits, a fixed clock, or a clock still rising after idle "
        "time: the trace cannot tell which."
    ]


def counter_strip(found: GpuMetrics, row: GpuMetric, hovers: int) -> CurveStrip:
    """The curve of one share over the window, with holes if nothing was sampled. Raises InputError if the report
    is damaged."""
    edges = equal_edges(found.start_ns, found.end_ns, found.buckets).tolist()
    values = [None if math.isnan(value) else value for value in unpack_metric(found, row).tolist()]
    return CurveStrip(
        row.title,
        f"{SHARE.text(row.window)} of the window",
        f"{row.title} from {instant(found.start_ns)} to {instant(found.end_ns)}: {SHARE.text(row.window)} on average",
        Curve([CurveLayer("", "area", TimeSeries(edges, values))], row.title, SHARE, 1, {}, hovers=hovers),
    )


def _mean(title: str, field: str, limit: Limit = EVERYWHERE) -> Column:
    def cell(row: GpuMetric) -> Cell:
        mean = getattr(row, field)
        return Cell(mean, kind=HERTZ if row.unit == "Hz" else SHARE, note=rate(row, mean))

    return Column(title, SHARE, cell, limit=limit)


CURVES = ("sm_active", "tensor_active", "dram_read", "dram_write")
MAX_HOVERS, TOP_KERNELS = 125, 5
MEAN_COLUMNS = (
    Column("Metric", TEXT, lambda row: Cell(row.title, note=" + ".join(row.names)), head=True, length=60),
    _mean("Window", "window"),
    _mean("Kernels ran", "kernels"),
    _mean("Compute", "compute", PAGE),
    _mean("In gaps", "gaps"),
    _mean("Lowest", "lowest", PAGE),
    _mean("Highest", "highest", PAGE),
    Column("Samples", COUNT, "samples", limit=PAGE),
    Column("Left out", COUNT, "left_out", limit=PAGE),
)


def section(device: DeviceReport, context: Context) -> Section | None:
    """None if no GPU metrics were captured."""
    found = device.gpu_metrics
    if found is None:
        return None
    blocks: list[Block] = [Lines(counter_sentences(device), NOT_BRIEF)]
    rows = [row for name in CURVES if (row := metric(found, name)) is not None]
    if rows:
        curves = CurveStrips([counter_strip(found, row, context.rows(MAX_HOVERS)) for row in rows])
        span = f"From {instant(found.start_ns)} to {instant(found.end_ns)}"
        caption = f"{span}, each from 0 to 100% of what the hardware can do; a break in a curve means no samples."
        blocks.append(Chart(curves, "Counters over time", captions=[caption]))
    return Section("gpu-metrics", TITLE, [*blocks, _means(found), *_by_name(found)], _gist(found))


def _gist(found: GpuMetrics) -> str:
    """The share of active SMs, or how many counters there are."""
    active = metric(found, "sm_active")
    number = counted(len(found.metrics), "counter")
    return f"{SHARE.text(active.window)} of the SMs active on average, {number}" if active else number


# The tables about GPU metrics.


def _means(found: GpuMetrics) -> Table:
    clocks = ""
    if found.clocks:
        low = format_share(found.clocks.low_ns, found.clocks.judged_ns)
        limit = format_share(found.clocks.limit, 1)
        clocks = f" GPC clock while kernels ran: {clock_facts(found.clocks)}; below {limit} of it {low} of that time."
    note = (
        f"From a sample every {format_ns(found.period_ns)}. Kernels ran, Compute: of that work alone, without the idle "
        f"parts of samples if the idle level is known. In gaps: samples wholly inside a gap.{clocks}"
    )
    return Table.of("Means over time", MEAN_COLUMNS, found.metrics, note=note)


def _by_name(found: GpuMetrics) -> list[Block]:
    """The metrics with a column of their own by NVTX range and by kernel."""
    shown = shown_metrics(found)
    if not shown:
        return []
    return [
        Table.of(
            "By NVTX range",
            [*_columns(shown, "Ranges"), Column("Range", NAME, "name", head=True)],
            found.ranges,
            note="From the first to the last operation launched inside it. N stands for a counter in a name.",
            limit=PAGE,
        ),
        Table.of(
            "By kernel",
            [*_columns(shown, "Runs"), Column("Kernel", NAME, _kernel, head=True)],
            found.kernels,
            note="Samples wholly inside the kernels of a name. If kernels are shorter than a sample: all samples "
            "that overlap them, with neighbouring work (mixed).",
            noun="names",
            limit=Limit(ticket=TOP_KERNELS, summary=0, brief=0),
        ),
    ]


def _columns(shown: list[str], runs: str) -> list[Column]:
    return [
        Column("Time", TIME, "gpu_ns", strong=True),
        Column(runs, COUNT, "count", limit=PAGE),
        Column("Samples", COUNT, "samples", limit=PAGE),
        *(Column(SHORT[name], SHARE, partial(_mean_of, name)) for name in shown),
    ]


def _mean_of(metric: str, row: RangeMetrics | KernelMetrics) -> float | None:
    return row.means.get(metric)


def _kernel(row: KernelMetrics) -> Cell:
    return Cell(row.short_name, tag="" if row.whole else "mixed")


class _Mean(NamedTuple):
    """The mean of one metric over the ranges or kernels of a name, or over an iteration."""

    what: str
    name: str
    instances: int
    time_ns: int
    samples: int
    whole: bool | None
    metric: str
    mean: float | None


def _mean_rows(device: DeviceReport) -> Iterator[_Mean]:
    """Those of each range, kernel and iteration that the report lists."""
    found = device.gpu_metrics
    if found is None:
        return
    rows: list[tuple[Any, ...]] = [("range", row, row.name, row.count, row.gpu_ns, None) for row in found.ranges]
    rows += [("kernel", row, row.name, row.count, row.gpu_ns, row.whole) for row in found.kernels]
    rows += [("iteration", row, str(row.index), 1, row.length_ns, None) for row in found.iterations]
    for what, row, name, count, ns, whole in rows:
        for metric, mean in sorted(row.means.items()):
            yield _Mean(what, name, count, ns, row.samples, whole, metric, mean)


_METRICS = """
    metric=id title unit window_mean=window kernels_mean=kernels compute_mean=compute gaps_mean=gaps idle_level=idle
    lowest highest samples gap_samples left_out capped peak_bytes_per_second
"""
TABLES = (
    of_devices(
        "gpu_metrics",
        (*columns(GpuMetric, _METRICS), RecordColumn[GpuMetric]("names", "text", lambda row: " + ".join(row.names))),
        "gpu_metrics.metrics",
    ),
    of_devices(
        "gpu_metrics_by_name", columns(_Mean, "what name count=instances time_ns samples whole metric mean"), _mean_rows
    ),
)
