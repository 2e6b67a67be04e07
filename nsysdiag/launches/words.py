"""What is to be said about the launches of a device, in sentences; nothing if nothing stands out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag import typed
from nsysdiag.document.columns import RecordColumn, columns, of_devices
from nsysdiag.document.packed import unpack_series
from nsysdiag.document.words import counted, path_label
from nsysdiag.fields import Sentence
from nsysdiag.launches import facts
from nsysdiag.typed import listed, say
from nsysdiag.units import NS_PER, format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport


AHEAD = 2
"""From so many outstanding operations on there is one in the queue behind the one that runs: the host is ahead."""


def launch_sentences(device: DeviceReport, causes: Causes) -> list[Sentence]:
    """The sentences in reading order; those on launch-bound phases, drains, graphs or a full queue only if there are
    any."""
    launch = device.launch
    notes: list[Sentence] = [*_drains(launch.queue_depth, causes)]
    if launch.launch_bound is not None:
        notes.append(launch_bound_sentence(launch.launch_bound, device.window_ns))
    notes += [*_graphs(launch), *_functions(launch)]
    if launch.queue_full_ns:
        full = format_ns(launch.queue_full_ns)
        waited = "the host was ahead and waited for space. That is no loss in itself."
        notes.append(f"The command buffer was full for {full}: {waited}")
    return [*_rate(device), *_lead(launch), *notes] if notes else []


def rate(launches: int, ns: int) -> str:
    """Launches in a second, as text."""
    return format_count(round(launches * NS_PER["s"] / ns)) if ns else "–"


def usual_rate(device: DeviceReport) -> str:
    """Launches in a second while they follow each other: `4,170`, or `4,170 (without pauses of 1.20 s)`."""
    launch = device.launch
    if not launch.in_a_row:
        return rate(launch.calls, device.window_ns)
    pauses = launch.interval.total_ns - launch.in_a_row_ns if launch.interval else 0
    found = rate(launch.in_a_row, launch.in_a_row_ns)
    return f"{found} (without pauses of {format_ns(pauses)})" if pauses else found


def drain_label(row: facts.QueueDrains, causes: Causes) -> str:
    """Where the thread was: in a call, in code of a kind, or unknown."""
    cause = causes[row.cause]
    if cause.unresolved:
        return "in something that the trace does not show"
    return f"in {row.call if row.is_call else cause.title[:1].lower() + cause.title[1:]}"


def _rate(device: DeviceReport) -> list[str]:
    launch = device.launch
    if not launch.calls:
        return []
    times = [
        f"a kernel takes {format_ns(launch.kernel.p50_ns)}" if launch.kernel else "",
        f"its launch call {format_ns(launch.call.p50_ns)}" if launch.call else "",
        f"{format_ns(launch.interval.p50_ns)} pass from one launch to the next" if launch.interval else "",
    ]
    medians = ", ".join(filter(None, times))
    more = f"; in the median {medians}" if medians else ""
    return [f"{counted(launch.calls, 'launch', 'launches')}, {usual_rate(device)} a second{more}."]


def _lead(launch: facts.Launch) -> list[str]:
    ahead = launch.queue_depth
    if ahead is None:
        return []
    empty = f"nothing is outstanding {format_share(ahead.empty_ns, ahead.observed_ns)} of the time"
    if ahead.p50 >= AHEAD:
        delay = launch.median_queue_delay_ns
        wait = f", and they wait {format_ns(delay)} in the queue" if delay else ""
        lead = f"{format_count(ahead.p50)} operations are outstanding in the median{wait}"
        return [f"The host runs ahead, which is good: {lead}; {empty}."]
    if ahead.p95 >= AHEAD:
        most = f"p95 is {format_count(ahead.p95)} outstanding operations, the median {format_count(ahead.p50)}"
        return [f"The host runs ahead only at times: {empty}; {most}."]
    return [f"The host does not run ahead: {empty}, and hardly ever more than one operation."]


def _drains(ahead: facts.QueueDepth | None, causes: Causes) -> list[str]:
    if ahead is None or not ahead.drains:
        return []
    first = ahead.drains[0]
    times = counted(ahead.drain_count, "time")
    idle = f"{format_ns(ahead.drain_idle_ns)} of idle time followed"
    lead = f"The queue drained {times}, and {idle}"
    if len(ahead.drains) == 1:
        return [f"{lead}, with the launching thread {drain_label(first, causes)}."]
    share = f"{counted(first.count, 'time')}, {format_ns(first.idle_ns)}"
    return [f"{lead}; most of it with the launching thread {drain_label(first, causes)} ({share})."]


def launch_bound_sentence(phases: facts.LaunchBound, window_ns: int) -> str:
    """What all phases of a device cost together."""
    share = format_share(phases.idle_ns, window_ns)
    return (
        f"{counted(phases.count, 'launch-bound phase')}: {counted(phases.launches, 'launch', 'launches')} in "
        f"{format_ns(phases.span_ns)}, {rate(phases.launches, phases.span_ns)} a second. The GPU "
        f"finishes sooner than launches follow: it idles {format_ns(phases.idle_ns)}, {share} of the window."
    )


def _graphs(launch: facts.Launch) -> list[Sentence]:
    graphs = launch.graphs
    if graphs is None:
        return []
    lines: list[Sentence] = []
    if graphs.nodes:
        each = round(graphs.node_api_ns / graphs.nodes)
        plain = f", a single kernel launch {format_ns(launch.call.p50_ns)}" if launch.call else ""
        places = counted(max(graphs.nodes - graphs.launches, 1), "place")
        idle = f"{format_ns(graphs.between_ns)} in all, at {places} between nodes"
        between = f"; the GPU idles {idle}" if graphs.between_ns else ""
        nodes = counted(graphs.nodes, "node")
        lines.append(
            f"{_graph_launches(graphs.launches)} of {nodes}: a node costs the host {format_ns(each)}{plain}{between}."
        )
    elif graphs.launches:
        per = format_ns(round(graphs.api_ns / graphs.launches))
        lines.append(f"{_graph_launches(graphs.launches)}, recorded without their nodes: one costs the host {per}.")
    if graphs.outside:
        lines.append(_outside(graphs))
    if graphs.untraced:
        lines.append(f"{_graph_launches(graphs.untraced)} left only the launch call in the trace.")
    if graphs.partial:
        lines.append(
            f"{_graph_launches(graphs.partial)} lack nodes that others of the same graph have: what the GPU did "
            "between their nodes is unknown."
        )
    return lines


def _functions(launch: facts.Launch) -> list[str]:
    """How long streams wait for host functions, and what runs these."""
    functions = launch.functions
    if functions is None:
        return []
    said = f"{counted(functions.count, 'host function')} held streams for {format_ns(functions.held_ns)}"
    if not functions.threads:
        return [f"{said}."]
    ran = sum(row.ran_ns for row in functions.threads)
    by = f"thread {functions.threads[0].tid}" if len(functions.threads) == 1 else f"{len(functions.threads)} threads"
    return [f"{said}; {by} of the driver ran them, for {format_ns(ran)}."]


def _outside(graphs: facts.GraphLaunches) -> Sentence:
    """How much of the work graphs cover, and what runs outside of them."""
    covered = format_share(graphs.work_ns, graphs.work_ns + graphs.outside_ns)
    run = counted(graphs.outside, "kernel runs", "kernels run")
    names = listed([typed.kernel(each) for each in graphs.outside_kernels])
    return say("{} of the time of kernels is in graphs. {} outside of them, longest {}.", covered, run, names)


def _graph_launches(count: int) -> str:
    return counted(count, "graph launch", "graph launches")


# The tables about launches.

DISTRIBUTIONS = {
    "kernel": "Kernel",
    "call": "Launch call of a kernel",
    "interval": "From one launch to the next",
    "to_start": "From the call to the start of a kernel",
    "queue_delay": "In the queue",
}
"""What the distributions of a device are of, by the name of the field."""


class NamedDistribution(NamedTuple):
    """A distribution of a device, and the name of its field."""

    what: str
    times: facts.Distribution


class _DepthBucket(NamedTuple):
    """How far the host ran ahead in one bucket of time."""

    start_ns: int
    end_ns: int
    lowest_depth: int
    mean_depth: float
    highest_depth: int


def distributions(device: DeviceReport) -> list[NamedDistribution]:
    """Those that the device has."""
    found = [(name, getattr(device.launch, name)) for name in DISTRIBUTIONS]
    return [NamedDistribution(name, each) for name, each in found if each is not None]


def _depths(device: DeviceReport) -> Iterator[_DepthBucket]:
    if device.launch.queue_depth is not None:
        series = unpack_series(device.launch.queue_depth)
        depths = (series.edges[:-1], series.edges[1:], series.lowest, series.mean, series.highest)
        yield from map(_DepthBucket._make, zip(*(each.tolist() for each in depths), strict=True))


_PERCENTILES = "count total_ns p5_ns p25_ns p50_ns p75_ns p95_ns p99_ns max_ns"
_LAUNCHES = (*columns(NamedDistribution, "what"), *columns(NamedDistribution, _PERCENTILES, at="times"))
TABLES = (
    of_devices("api", columns(facts.ApiRow), "launch.api"),
    of_devices("launches", _LAUNCHES, distributions),
    of_devices("queue_depth", columns(_DepthBucket), _depths),
    of_devices(
        "queue_drains", columns(facts.QueueDrains, "call cause count idle_ns median_depth"), "launch.queue_depth.drains"
    ),
    of_devices(
        "launch_bound",
        (
            *columns(facts.LaunchBoundPhase, "start_ns end_ns"),
            RecordColumn[facts.LaunchBoundPhase]("length_ns", "integer", lambda row: row.end_ns - row.start_ns),
            *columns(facts.LaunchBoundPhase, "launches busy_ns idle_ns median_interval_ns median_work_ns"),
            RecordColumn[facts.LaunchBoundPhase]("nvtx", "text", lambda row: path_label(row.nvtx)),
        ),
        "launch.launch_bound.rows",
    ),
    of_devices("graphs", columns(facts.GraphRow), "launch.graphs.rows"),
)
