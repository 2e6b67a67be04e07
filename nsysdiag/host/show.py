"""What the host's threads did meanwhile, who had the CPUs, and when it began."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nsysdiag.document import blocks as b
from nsysdiag.document.columns import (
    COUNT,
    NAME,
    TEXT,
    TIME,
    CellKind,
    RecordColumn,
    RecordTable,
    columns,
    part,
    share_of,
)
from nsysdiag.document.drawings import Curve, CurveLayer, CurveStrip, CurveStrips, TimeSeries
from nsysdiag.document.words import counted, instant
from nsysdiag.host.facts import ChangePoint, Contention, CpuHolder, HostReport, HostThread, HostWindow, SyncLatency
from nsysdiag.units import capitalized, format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.view import Context
    from nsysdiag.report import Report


# What is to be said about the host's threads and CPUs, in sentences; nothing if nothing stands out.

TITLE = "Host: threads and CPUs"
SPAN = "from the start of the first to the end of the last window of a device"
NOTABLE_SHARE = 0.01
"""Of the range: what a launching thread must have lost before it is worth a line."""
INFLATED, INFLATED_NS = 1.5, 5_000
"""How many times longer synchronizations must take to return, and by how much, before it is worth a line."""
TOGETHER = 1
"""Changes that begin so many windows apart share a sentence."""
METRICS = {
    "switches_per_second": "context switches a second",
    "off_cpu_share": "launching threads off their CPU",
    "preempted_share": "launching threads ready to run without a CPU",
    "crowded_share": "others on the CPU that a launching thread left",
    "sync_p50_ns": "median synchronization",
    "sync_late_p50_ns": "return after the end of the work",
    "launches_per_second": "launches a second",
    "kernels_per_second": "kernels a second",
    "busy_share": "GPU busy",
}


def host_sentences(host: HostReport) -> list[str]:
    """The sentences in the order in which they are read."""
    lines = [*host.shortage, *([] if host.shortage else _unseen(host))]
    lines += [_began(host, group) for group in _groups(host.change_points)]
    return lines + (_inflated(host.sync_latency) if host.sync_latency else [])


def facts(host: HostReport) -> list[str]:
    """What holds for the whole table: the range, and what the trace cannot tell."""
    length = host.end_ns - host.start_ns
    place = f"{format_ns(length)} from {instant(host.start_ns)} to {instant(host.end_ns)}"
    lines = [f"{place}, {SPAN}; {counted(host.thread_count, 'thread')}."]
    if host.contention is None:
        lines.append(
            "Scheduling was not captured: it is unknown when and why threads were off a CPU. Times on a CPU are "
            "estimates from CPU samples, if there are any."
        )
    else:
        lines.append(contention_sentence(host.contention))
    latency = host.sync_latency
    if latency is not None:
        lines.append(
            f"{counted(latency.calls, 'synchronization')} of launching threads returned {format_ns(latency.p50_ns)} "
            f"after the end of the work in the median, p99 {format_ns(latency.p99_ns)}."
        )
    return lines


def contention_sentence(found: Contention) -> str:
    """How long threads waited for a CPU in all, and for how much of it the trace shows another thread there."""
    used = f"The threads ran on {found.cpus_used} of {counted(found.cpus_seen, 'CPU')} seen in the trace"
    if not found.preempted_ns:
        return f"{used}; no recorded thread waited for a CPU."
    held = f"{format_ns(found.held_ns)} of it while another thread in the trace had it"
    return f"{used}; together they waited {format_ns(found.preempted_ns)} for a CPU, {held}."


def role(row: HostThread) -> str:
    """What a thread does with GPUs: the devices that it launches on, else its calls."""
    if row.launches:
        return f"launches on {', '.join(sorted(row.launches))}"
    if row.sync_calls:
        return "waits for the GPU"
    return "CUDA calls" if row.api_calls else "no CUDA calls"


def thread_name(row: HostThread) -> str:
    """Name and number of a thread."""
    return f"{row.name} {row.tid}" if row.name else f"thread {row.tid}"


def stall_label(row: HostThread) -> str:
    """The longest stretch off the CPU, when, and in what; empty without one."""
    stall = row.worst_stall
    if stall is None:
        return ""
    what = f"in {stall.what}" if stall.what else "in no traced call"
    lost = ", ready to run without a CPU" if stall.preempted else ""
    return f"{format_ns(stall.ns)} at {instant(stall.start_ns)} {what}{lost}"


def on_cpu(row: HostThread, span: int) -> str:
    """The share on a CPU; one that samples stand for is called an estimate."""
    if row.on_cpu_ns is None and row.on_cpu_estimate_ns is not None:
        return f"about {format_share(row.on_cpu_estimate_ns, span)} (samples)"
    return share_of(span).text(row.on_cpu_ns)


def holder_name(holder: CpuHolder) -> str:
    """A thread of the GPU's processes, or another process as a whole."""
    process = f"{holder.process} {holder.pid}" if holder.process else f"process {holder.pid}"
    if holder.tid is None:
        return process
    return f"{holder.thread or 'thread'} {holder.tid} of {process}"


def metric_value(metric: str, value: float) -> str:
    """A value of a column of the windows, with its unit."""
    if metric.endswith("_share"):
        return format_share(value, 1)
    if metric.endswith("_ns"):
        return format_ns(round(value))
    return format_count(round(value))


def _unseen(host: HostReport) -> list[str]:
    """Launching threads that lost time, if the trace does not show to whom."""
    span = host.end_ns - host.start_ns
    return [
        f"{thread_name(row)}, which {role(row)}, was ready and had no CPU for {format_ns(row.preempted_ns or 0)} "
        f"({format_share(row.preempted_ns or 0, span)} of the time). The trace does not show which thread had it. "
        "Reasons are a CPU quota of the container, and processes that were not captured (--cpuctxsw=system-wide "
        "shows them)."
        for row in host.threads
        if row.launches and (row.preempted_ns or 0) >= NOTABLE_SHARE * span
    ][:1]


def _groups(changes: list[ChangePoint]) -> list[list[ChangePoint]]:
    """Changes that begin at about the same time."""
    groups: list[list[ChangePoint]] = []
    for each in changes:
        if groups and each.window - groups[-1][-1].window <= TOGETHER:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _began(host: HostReport, group: list[ChangePoint]) -> str:
    ready = any(each.metric == "preempted_share" for each in group)
    rises = "; ".join(
        f"{METRICS.get(each.metric, each.metric)} {metric_value(each.metric, each.before)}, then "
        f"{metric_value(each.metric, each.after)}"
        for each in group
        if not (ready and each.metric == "crowded_share")
    )
    first = group[0]
    after = format_ns(first.start_ns - host.start_ns)
    return f"From {instant(first.start_ns)} to the end, {after} into the work, these differ: {rises} (medians)."


def _inflated(latency: SyncLatency) -> list[str]:
    quiet, busy, ratio = latency.quiet, latency.busy, latency.p50_ratio
    if quiet is None or busy is None or quiet.p50_ns is None or busy.p50_ns is None or ratio is None:
        return []
    if ratio < INFLATED or busy.p50_ns - quiet.p50_ns < INFLATED_NS:
        return []
    most = "with most time of other threads on the CPUs of launching threads"
    where = most if latency.by == "crowded_share" else "with most context switches"
    with_it = [f"{round(side.switches_per_second):,} context switches a second" for side in (busy, quiet)]
    if busy.crowded_share is not None and quiet.crowded_share is not None:
        shares = [format_share(share, 1) for share in (busy.crowded_share, quiet.crowded_share)]
        with_it = [
            f"others on their CPU {share} of the time, {rate}" for share, rate in zip(shares, with_it, strict=True)
        ]
    return [
        f"Synchronizations return {ratio:.1f} times as late after their work in the quarter of the time {where} as in "
        f"the opposite quarter. Medians: {format_ns(busy.p50_ns)} of {format_count(busy.calls)} against "
        f"{format_ns(quiet.p50_ns)} of {format_count(quiet.calls)}. The same quarters had {with_it[0]} against "
        f"{with_it[1]}; this is a correlation, not proof."
    ]


def window_strips(host: HostReport) -> CurveStrips | None:
    """A strip for each column of the windows that holds anything, with lines where changes begin. None without any."""
    edges = [*(window.start_ns for window in host.windows), host.end_ns]
    strips = [strip for metric in METRICS if (strip := _strip(host.windows, edges, metric)) is not None]
    began = {edges[each.window] for each in host.change_points if 0 <= each.window < len(host.windows)}
    return CurveStrips(strips, sorted(began)) if strips else None


def _strip(windows: list[HostWindow], edges: list[int], metric: str) -> CurveStrip | None:
    values: list[float | None] = [getattr(window, metric) for window in windows]
    top = max((value for value in values if value is not None), default=0.0)
    if top <= 0:
        return None
    title, highest = capitalized(METRICS[metric]), f"up to {metric_value(metric, top)}"
    kind = CellKind(metric, partial(metric_value, metric))
    curve = Curve([CurveLayer("", "area", TimeSeries(edges, values))], title, kind, top, {}, hovers=len(windows))
    return CurveStrip(title, highest, f"{title} over time, {highest}", curve)


TOP_LINES, TOP_THREADS, FIRST_THREADS = 4, 10, 15
HOLDERS = (b.Column("Thread or process", NAME, head=True), b.Column("Time", TIME, strong=True))


def section(context: Context) -> b.Section | None:
    """None if no thread of a process with GPU work is known."""
    host = context.report.host
    if host is None or not host.threads:
        return None
    holders = host.contention.holders if host.contention else []
    return b.Section(
        "host",
        TITLE,
        [
            b.Lines(host_sentences(host), b.Limit(summary=TOP_LINES)),
            b.Lines(facts(host), b.TICKET),
            *_over_time(host),
            _threads(host),
            b.Table(
                "Threads and processes that had the CPU while others waited for it",
                HOLDERS,
                [(holder_name(row), row.ns) for row in holders],
                noun="threads and processes",
                order="with most time",
                total=host.contention.holder_count if host.contention else None,
            ),
        ],
        _gist(host),
        b.SectionScope("windows", f"{format_ns(host.end_ns - host.start_ns)}: {SPAN}"),
    )


def _gist(host: HostReport) -> str:
    """How many threads there are, and how long they waited for a CPU if that is known."""
    threads, found = counted(host.thread_count, "thread"), host.contention
    return threads if found is None else f"{threads}, waited {format_ns(found.preempted_ns)} for a CPU"


def _over_time(host: HostReport) -> list[b.Block]:
    drawing = window_strips(host)
    if drawing is None:
        return []
    span = f"from {instant(host.start_ns)} to {instant(host.end_ns)}"
    caption = f"{format_count(len(host.windows))} equal windows {span}, each strip on a scale of its own."
    marks = " The lines mark change points: from there on, a value stays different." if drawing.moments else ""
    return [b.Chart(drawing, "The host over time", captions=[caption + marks])]


def _threads(host: HostReport) -> b.Table:
    span = host.end_ns - host.start_ns
    share = share_of(span)
    return b.Table.of(
        "Threads of the processes that use a GPU",
        (
            b.Column("Thread", NAME, _thread, head=True, length=60),
            b.Column("Role", TEXT, role, pick=True),
            b.Column("On CPU", share, lambda row: _on_a_cpu(row, span)),
            b.Column("Off CPU", share, "off_cpu_ns"),
            b.Column("Ready, no CPU", share, "preempted_ns"),
            b.Column("Switches", COUNT, "switches"),
            b.Column("CPUs", COUNT, "cpus", limit=b.PAGE),
            b.Column("Moves", COUNT, "migrations", limit=b.PAGE),
            b.Column("CUDA calls", share, "api_ns"),
            b.Column("Syncs", share, "sync_ns", limit=b.PAGE),
            b.Column("OS calls", share, "os_ns", limit=b.PAGE),
            b.Column("Longest off the CPU", TEXT, stall_label, length=160),
        ),
        host.threads,
        note="Shares are of the time above. A dash: not recorded.",
        noun="threads",
        order="that launch work, then those with most time on a CPU",
        total=host.thread_count,
        first=FIRST_THREADS,
        limit=b.Limit(ticket=TOP_THREADS, summary=0, brief=0),
    )


def _thread(row: HostThread) -> b.Cell:
    return b.Cell(thread_name(row), note=f"{row.process} {row.pid}" if row.process else "")


def _on_a_cpu(row: HostThread, span: int) -> b.Cell:
    known = row.on_cpu_ns if row.on_cpu_ns is not None else row.on_cpu_estimate_ns
    return b.Cell(known, kind=CellKind("share", lambda _ns: on_cpu(row, span)))


# The tables about the host.


_OF_THREAD = """
    on_cpu_ns off_cpu_ns unknown_ns preempted_ns preemptions on_cpu_estimate_ns
    switches voluntary involuntary cpus migrations
    worst_stall_ns=worst_stall.ns worst_stall_start_ns=worst_stall.start_ns worst_stall_in=worst_stall.what
    worst_stall_preempted=worst_stall.preempted
    api_calls sync_calls api_ns sync_ns os_ns
"""


class _Thread(NamedTuple):
    """A thread, and the length of the time that the host is reported for."""

    thread: HostThread
    length_ns: int


def _thread_rows(report: Report) -> list[_Thread]:
    host = report.host
    return [_Thread(thread, host.end_ns - host.start_ns) for thread in host.threads] if host else []


_THREADS = (
    *columns(_Thread, "process_id=pid thread_id=tid thread_name=name process", at="thread"),
    RecordColumn[_Thread]("role", "text", lambda row: role(row.thread)),
    RecordColumn[_Thread](
        "launches", "text", lambda row: ";".join(f"{key}:{count}" for key, count in sorted(row.thread.launches.items()))
    ),
    *columns(_Thread, _OF_THREAD, at="thread"),
    RecordColumn[_Thread]("on_cpu_share", "number", lambda row: part(row.thread.on_cpu_ns, row.length_ns)),
)
TABLES: tuple[RecordTable[Report, Any], ...] = (
    RecordTable("threads", _THREADS, _thread_rows),
    RecordTable("host_windows", columns(HostWindow), lambda report: report.host.windows if report.host else ()),
)
