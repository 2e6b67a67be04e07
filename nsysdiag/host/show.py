"""What the host's threads did meanwhile, who had the CPUs, and when it began."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT, HoverArea
from nsysdiag.document.blocks import PAGE, TICKET, Block, Cell, Chart, Column, Limit, Lines, Scope, Section, Table
from nsysdiag.document.curve import CurveStrip, CurveStrips, TimeSeries
from nsysdiag.document.kinds import COUNT, NAME, TEXT, TIME, CellKind, share_of
from nsysdiag.document.words import counted, instant
from nsysdiag.host.words import (
    METRICS,
    SPAN,
    TITLE,
    facts,
    holder_name,
    host_sentences,
    metric_value,
    on_cpu,
    role,
    stall_label,
    thread_name,
)
from nsysdiag.units import capitalized, format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.host.facts import HostReport, HostThread, HostWindow


# The windows of the host as small charts above each other: one for each column, all over the same time.


def draw_windows(host: HostReport) -> CurveStrips | None:
    """A strip for each column that holds anything, a slot a window; marks are where changes begin. None without any."""
    edges = [*(window.start_ns for window in host.windows), host.end_ns]
    strips = [strip for metric in METRICS if (strip := _strip(host.windows, edges, metric)) is not None]
    if not strips:
        return None
    began = sorted({each.window for each in host.change_points if 0 <= each.window < len(host.windows)})
    marks, moments = [SLOT * at for at in began], [edges[at] for at in began]
    return CurveStrips(SLOT * len(host.windows), HEIGHT, strips, marks, moments)


def _strip(windows: list[HostWindow], edges: list[int], metric: str) -> CurveStrip | None:
    values: list[float | None] = [getattr(window, metric) for window in windows]
    top = max((value for value in values if value is not None), default=0.0)
    if top <= 0:
        return None
    bars = [
        f"M{SLOT * at} {HEIGHT}v-{round(HEIGHT * value / top)}h{SLOT - 1}V{HEIGHT}z"
        for at, value in enumerate(values)
        if value is not None and value > 0
    ]
    spots = [
        HoverArea(
            SLOT * at, f"at {instant(window.start_ns)}: {'unknown' if value is None else metric_value(metric, value)}"
        )
        for at, (window, value) in enumerate(zip(windows, values, strict=True))
    ]
    title, highest = capitalized(METRICS[metric]), f"up to {metric_value(metric, top)}"
    return CurveStrip(
        title=title,
        note=highest,
        label=f"{title} over time, {highest}",
        d="".join(bars),
        spots=spots,
        spot_width=SLOT,
        series=TimeSeries(edges, values),
        kind=CellKind(metric, partial(metric_value, metric)),
        top=top,
    )


TOP_LINES, TOP_THREADS, FIRST_THREADS = 4, 10, 15
HOLDERS = (Column("Thread or process", NAME, head=True), Column("Time", TIME, strong=True))


def section(context: Context) -> Section | None:
    """None where no thread of a process with GPU work is known."""
    host = context.report.host
    if host is None or not host.threads:
        return None
    holders = host.contention.holders if host.contention else []
    return Section(
        "host",
        TITLE,
        [
            Lines(host_sentences(host), Limit(summary=TOP_LINES)),
            Lines(facts(host), TICKET),
            *_over_time(host),
            _threads(host),
            Table(
                "Threads and processes that had the CPU while others waited for it",
                HOLDERS,
                [(holder_name(row), row.ns) for row in holders],
                noun="threads and processes",
                order="with most time",
                total=host.contention.holder_count if host.contention else None,
            ),
        ],
        _gist(host),
        Scope("windows", f"{format_ns(host.end_ns - host.start_ns)}: {SPAN}"),
    )


def _gist(host: HostReport) -> str:
    """How many threads there are, and how long they waited for a CPU where that is known."""
    threads, found = counted(host.thread_count, "thread"), host.contention
    return threads if found is None else f"{threads}, waited {format_ns(found.preempted_ns)} for a CPU"


def _over_time(host: HostReport) -> list[Block]:
    drawing = draw_windows(host)
    if drawing is None:
        return []
    span = f"from {instant(host.start_ns)} to {instant(host.end_ns)}"
    caption = f"{format_count(len(host.windows))} equal windows {span}, each strip on a scale of its own."
    marks = " The lines mark change points: from there on, a value stays different." if drawing.marks else ""
    return [Chart(drawing, "The host over time", captions=[caption + marks])]


def _threads(host: HostReport) -> Table:
    span = host.end_ns - host.start_ns
    share = share_of(span)
    columns = (
        Column("Thread", NAME, head=True, length=60),
        Column("Role", TEXT, pick=True),
        Column("On CPU", share),
        Column("Off CPU", share),
        Column("Ready, no CPU", share),
        Column("Switches", COUNT),
        Column("CPUs", COUNT, limit=PAGE),
        Column("Moves", COUNT, limit=PAGE),
        Column("CUDA calls", share),
        Column("Syncs", share, limit=PAGE),
        Column("OS calls", share, limit=PAGE),
        Column("Longest off the CPU", TEXT, length=160),
    )
    return Table(
        "Threads of the processes that use a GPU",
        columns,
        [_thread(row, span) for row in host.threads],
        note="Shares are of the time above. A dash: not recorded.",
        noun="threads",
        order="that launch work, then those with most time on a CPU",
        total=host.thread_count,
        first=FIRST_THREADS,
        limit=Limit(ticket=TOP_THREADS, summary=0, brief=0),
    )


def _thread(row: HostThread, span: int) -> tuple[object, ...]:
    known = row.on_cpu_ns if row.on_cpu_ns is not None else row.on_cpu_estimate_ns
    on_a_cpu = CellKind("share", lambda _ns: on_cpu(row, span))
    return (
        Cell(thread_name(row), note=f"{row.process} {row.pid}" if row.process else ""),
        role(row),
        Cell(known, kind=on_a_cpu),
        row.off_cpu_ns,
        row.preempted_ns,
        row.switches,
        row.cpus,
        row.migrations,
        row.api_ns,
        row.sync_ns,
        row.os_ns,
        stall_label(row) or None,
    )
