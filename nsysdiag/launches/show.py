"""Shows how work reaches the device: queue depth, queue drains, launch-bound phases, and the CUDA calls of the device's
processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import blocks as b
from nsysdiag.document.columns import BAR, COUNT, DEPTH, FIGURE, KEY, MOMENT, NAME, OF_RUNS, SHARE, TEXT, TIME, part
from nsysdiag.document.drawings import Curve, CurveLayer, LegendEntry, TimeSeries, entry_of
from nsysdiag.document.packed import unpack_series
from nsysdiag.document.words import counted, instant, path_label
from nsysdiag.launches.words import DISTRIBUTIONS, distributions, launch_sentences, rate, usual_rate
from nsysdiag.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.view import Context
    from nsysdiag.launches.facts import Distribution, GraphLaunches, GraphRow, LaunchBound, QueueDepth
    from nsysdiag.report import DeviceReport


def queue_depth(ahead: QueueDepth, hovers: int) -> Curve | None:
    """How far the host ran ahead over time, on a logarithmic scale; None if nothing was ever outstanding. Raises
    InputError if the report is damaged."""
    series = unpack_series(ahead)
    top, edges = int(series.highest.max()), series.edges.tolist()
    if top <= 0:
        return None
    band = TimeSeries(edges, series.highest.tolist(), series.lowest.tolist())
    return Curve(
        [
            CurveLayer("lowest to highest", "area", band),
            CurveLayer("mean", "line", TimeSeries(edges, series.mean.tolist())),
        ],
        "Operations",
        DEPTH,
        top,
        {format_count(10**power): 10**power for power in range(len(str(top)))},
        log=True,
        bottom="none",
        hovers=hovers,
    )


MAX_HOVERS, MAX_CALLS, TOP_ROWS = 125, 60, 5
TOP = b.Limit(ticket=TOP_ROWS, summary=0, brief=0)
SIDE_BY_SIDE = ("kernel", "call", "interval")
"""The distributions that a histogram compares: launches are too slow if the last is above the first."""
HEALTHY = "A long time in the queue is good: the host runs ahead of the GPU."
DEPTH_HELP = (
    "on a logarithmic scale. High is good. If the band touches the floor, the queue is empty. A mean of about one "
    "means that launches come just in time or late."
)
BUBBLES = (
    b.Column("Start", MOMENT, "start_ns"),
    b.Column("Length", TIME, lambda row: row.end_ns - row.start_ns),
    b.Column("Launches", COUNT, "launches"),
    b.Column("A second", FIGURE, lambda row: rate(row.launches, row.end_ns - row.start_ns)),
    b.Column("Idle", TIME, "idle_ns", strong=True),
    b.Column("Busy", SHARE, lambda row: part(row.busy_ns, row.end_ns - row.start_ns), limit=b.PAGE),
    b.Column("Between launches", TIME, "median_interval_ns"),
    b.Column("Work of a launch", TIME, "median_work_ns"),
    b.Column("NVTX", NAME, lambda row: path_label(row.nvtx), head=True),
)


def _a_node(row: GraphRow, ns: int) -> int | None:
    nodes = (row.nodes or 0) * row.launches
    return ns // nodes if nodes else None


def _graph(row: GraphRow) -> b.Cell:
    return b.Cell(row.name, tag="" if row.executable is None else f"executable {row.executable}")


GRAPHS = (
    b.Column("Work", TIME, "work_ns", strong=True),
    b.Column("Launches", COUNT, "launches"),
    b.Column("Nodes", COUNT, lambda row: row.nodes or None),
    b.Column("Median launch call", TIME, "median_api_ns"),
    b.Column("Call a node", TIME, lambda row: _a_node(row, row.api_ns)),
    b.Column("Work a node", TIME, lambda row: _a_node(row, row.work_ns)),
    b.Column("Idle between nodes", TIME, lambda row: row.between_ns if row.nodes and row.launches else None),
    b.Column("Graph", NAME, _graph, head=True, length=70),
)
PERCENTILES = (
    b.Column("Duration", TEXT, lambda row: DISTRIBUTIONS[row.what], head=True),
    b.Column("Number", COUNT, "times.count"),
    b.Column("Total", TIME, "times.total_ns"),
    *(b.Column(name, TIME, f"times.{name}_ns") for name in ("p5", "p25", "p50", "p75", "p95", "p99")),
    b.Column("Longest", TIME, "times.max_ns"),
)
LENGTHS = (
    b.Column("From", TIME, head=True),
    *(
        column
        for title in ("Kernels", "Launch calls", "Times between launches")
        for column in (b.Column(title, COUNT), b.Column("Bar", BAR))
    ),
)


def section(device: DeviceReport, context: Context) -> b.Section | None:
    """None if nothing was launched."""
    launch = device.launch
    if not launch.launched_ops:
        return None
    return b.Section(
        "launches",
        "Launches",
        [
            b.FigureRow(_facts(device), b.PAGE),
            b.Paragraph(HEALTHY, tone="quiet", limit=b.PAGE),
            b.Lines(launch_sentences(device, context.causes), b.NOT_BRIEF),
            *(_depth(launch.queue_depth, context) if launch.queue_depth else []),
            *([_launch_bound(launch.launch_bound)] if launch.launch_bound else []),
            *([_graphs(launch.graphs, launch.call)] if launch.graphs else []),
            b.Details("Durations of kernels, launch calls and waits", _distributions(device), b.PAGE),
        ],
        f"{counted(launch.launched_ops, 'operation')} launched, {format_count(launch.found_device_idle)} of them to an "
        "idle device",
    )


def _facts(device: DeviceReport) -> list[b.Fact]:
    launch, ahead = device.launch, device.launch.queue_depth
    return [
        b.Fact("Launched operations", launch.launched_ops, COUNT),
        b.Fact("Without a launch row", launch.unlaunched_ops, COUNT),
        b.Fact("Found the device idle", launch.found_device_idle, COUNT),
        b.Fact("Launches a second", usual_rate(device) if launch.calls else None),
        b.Fact("Median time between launches", launch.median_interval_ns, TIME),
        b.Fact("Median launch call", launch.call.p50_ns if launch.call else None, TIME),
        b.Fact("Median kernel", launch.median_kernel_ns, TIME),
        b.Fact("Median time in the queue", launch.median_queue_delay_ns, TIME),
        *([b.Fact("Outstanding, median", ahead.p50, COUNT)] if ahead else []),
        *([b.Fact("Nothing outstanding", part(ahead.empty_ns, ahead.observed_ns), SHARE)] if ahead else []),
    ]


def _depth(ahead: QueueDepth, context: Context) -> list[b.Block]:
    """The queue depth over time, and queue drains."""
    title = f"Operations outstanding (launched, not finished) from {instant(ahead.start_ns)} to {instant(ahead.end_ns)}"
    levels = {"median": ahead.p50, "p5": ahead.p5, "p95": ahead.p95, "at most": ahead.max}
    told = ", ".join(f"{name} {format_count(depth)}" for name, depth in levels.items())
    label = f"{title}: {told}; none {format_share(ahead.empty_ns, ahead.observed_ns)} of the time"
    drawing = queue_depth(ahead, context.rows(MAX_HOVERS))
    columns = (
        b.Column("Idle after", TIME, "idle_ns", strong=True),
        b.Column("Times", COUNT, "count"),
        b.Column("Outstanding before", COUNT, "median_depth"),
        b.Column("In", NAME, "call", head=True),
        b.Column("Cause", KEY, lambda row: _cause(context, row.cause)),
    )
    note = (
        "What the launching thread did when the queue drained after several operations had been outstanding. In all "
        f"{counted(ahead.drain_count, 'time')}, with {format_ns(ahead.drain_idle_ns)} of idle time in the gaps that "
        "followed."
    )
    return [
        *([b.Chart(drawing, label, captions=[f"{title}, {DEPTH_HELP}"])] if drawing else []),
        b.Table.of("Queue drains", columns, ahead.drains, note=note, limit=TOP),
    ]


def _cause(context: Context, cause: str | None) -> LegendEntry | None:
    return entry_of(cause, context.causes) if cause else None


def _launch_bound(phases: LaunchBound) -> b.Table:
    return b.Table.of(
        "Launch-bound phases",
        BUBBLES,
        phases.rows,
        note="Periods in which kernels take less time than it takes to launch them.",
        noun="phases",
        order="with most idle time",
        total=phases.count,
        first=8,
        limit=TOP,
    )


def _graphs(graphs: GraphLaunches, call: Distribution | None) -> b.Table:
    plain = f" A single kernel launch takes {format_ns(call.p50_ns)} in the median." if call else ""
    return b.Table.of(
        "CUDA graphs",
        GRAPHS,
        graphs.rows,
        note=f"By the first operation that runs.{plain}",
        noun="graphs",
        order="with most work",
        total=graphs.count,
        limit=b.PAGE,
    )


def _distributions(device: DeviceReport) -> list[b.Block]:
    found = distributions(device)
    if not found:
        return []
    side = (
        "Each bar is relative to the largest of its column. If launches are further apart than kernels are long, "
        "the GPU waits for launches."
    )
    note, bins = "Each value occurs in the trace.", _histogram(dict(found))
    return [
        b.Table.of("Percentiles", PERCENTILES, found, note=note, sortable=False, limit=b.PAGE),
        b.Table("By length", LENGTHS, bins, note=side, sortable=False, limit=b.PAGE),
    ]


def _histogram(found: dict[str, Distribution]) -> list[list[object]]:
    """The bins of the distributions side by side."""
    kinds = [dict(found[name].bins) if name in found else {} for name in SIDE_BY_SIDE]
    most = [max(bins.values(), default=0) for bins in kinds]
    return [
        [
            start,
            *(
                value
                for bins, top in zip(kinds, most, strict=True)
                for value in (bins.get(start, 0), part(bins.get(start, 0), top))
            ),
        ]
        for start in sorted({start for bins in kinds for start in bins})
    ]


def calls(device: DeviceReport, context: Context) -> b.Section | None:
    """The CUDA calls with most time; None if none was captured."""
    found = sorted(device.launch.api, key=lambda row: (-row.total_ns, row.name))
    if not found:
        return None
    return b.Section(
        "api",
        "CUDA calls",
        [
            b.Table.of(
                "CUDA calls",
                (
                    b.Column("Total", TIME, "total_ns", strong=True),
                    b.Column("Calls", COUNT, "count"),
                    *(b.Column(title, TIME, path) for title, path in OF_RUNS.items()),
                    b.Column("Call", NAME, "name", head=True),
                    b.Column("Cause where it delays the GPU", KEY, lambda row: _cause(context, row.cause)),
                ),
                found[: context.rows(MAX_CALLS)],
                note="By the threads of the device’s processes inside the window. A call’s time is not lost time in "
                "itself: the ledger says what it cost.",
                noun="names",
                order="with most time",
                total=len(found),
                first=20,
                limit=b.PAGE,
            )
        ],
        f"{counted(sum(row.count for row in found), 'call')}, most time in {found[0].name}: "
        f"{format_ns(found[0].total_ns)}",
    )
