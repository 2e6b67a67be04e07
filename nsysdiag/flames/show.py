"""Flame graphs: icicles of time, and the stacks with most of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nsysdiag.document import words
from nsysdiag.document.blocks import Block, Chart, Column, Limit, Section, Table
from nsysdiag.document.columns import RecordColumn, RecordTable
from nsysdiag.document.drawings import Icicle, LegendEntry, TreeRow, by_bottleneck, entry_of, stack
from nsysdiag.document.kinds import NAME, TIME, share_of
from nsysdiag.document.names import short
from nsysdiag.flames.facts import FlameStack
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.document.view import Causes, Context
    from nsysdiag.report import DeviceReport, Report

MAX_ROWS, IN_MARKDOWN, IN_TEXT, AT_FIRST = 20, 5, 3, 5
MOST_CELLS, MOST_WAITS = 40, 20
IDLE, WAITS, SAMPLES = "idle", "waits", "samples"
"""The names of the graphs in tables and files."""
TITLES = {IDLE: "Idle time", WAITS: "Waits for work of the GPU", SAMPLES: "CPU samples"}
IDLE_NOTE = (
    "Below each other: the root cause, the ranges of the launching thread, what was done then and by which thread, and "
    "its functions. Call chains tell these, and CPU samples, each for one sampling period."
)
WAITS_NOTE = "The time of calls that waited while the GPU worked, by the operation that ran. Threads are added up."
SAMPLES_NOTE = "The program's own functions and the innermost one; each sample counts for one sampling period."


def section(device: DeviceReport, context: Context) -> Section | None:
    """None where nothing was idle or waited for."""
    flames = device.flames
    if flames is None or not flames.idle + flames.waits:
        return None
    idle, waited = (sum(each.ns for each in stacks) for stacks in (flames.idle, flames.waits))
    gist = f"{format_ns(idle)} idle, and {format_ns(waited)} in calls that wait for work of the GPU"
    blocks = [
        *_graph(flames.idle, IDLE, IDLE_NOTE, context, MOST_CELLS),
        *_graph(flames.waits, WAITS, WAITS_NOTE, context, MOST_WAITS),
    ]
    return Section("flames", "Flame graphs", blocks, gist)


def host_section(context: Context) -> Section | None:
    """The functions of all threads; None for a report with a GPU or without samples."""
    stacks = context.report.host_stacks
    if not stacks:
        return None
    return Section("samples", "CPU samples", _graph(stacks, SAMPLES, SAMPLES_NOTE, context, MOST_CELLS))


def _graph(stacks: Sequence[FlameStack], name: str, note: str, context: Context, cells: int) -> list[Block]:
    """The drawing, and the stacks with most time."""
    if not stacks:
        return []
    whole, title = sum(each.ns for each in stacks), TITLES[name]
    causes = list(dict.fromkeys(each.cause for each in stacks if each.cause))
    legend = by_bottleneck(entry_of(cause, context.causes) for cause in causes)
    chart = Chart(Icicle.of(_tree_rows(stacks, context.causes, cells), title), title, [note], legend, id=name)
    columns = (
        Column("Stack", NAME, head=True, length=150),
        Column("Time", TIME, strong=True),
        Column("Share", share_of(whole)),
    )
    most = context.shared_rows(MAX_ROWS)
    rows = [(words.path_label(_shown(each)), each.ns, each.ns) for each in stacks[:most]]
    limit = Limit(page=most, ticket=IN_MARKDOWN, summary=IN_TEXT, brief=0)
    return [
        chart,
        Table(f"{title}: stacks", columns, rows, noun="stacks", total=len(stacks), first=AT_FIRST, limit=limit),
    ]


def _shown(each: FlameStack) -> list[str]:
    return [short(frame) for frame in each.frames]


def _tree_rows(stacks: Sequence[FlameStack], causes: Causes, most: int) -> Iterator[TreeRow]:
    """The paths with most time, each before those inside it, these by their time."""
    total: Counter[tuple[str, ...]] = Counter()
    of_cause: dict[tuple[str, ...], Counter[str]] = {}
    for each in stacks:
        path = tuple(_shown(each))
        for depth in range(len(path) + 1):
            total[path[:depth]] += each.ns
            of_cause.setdefault(path[:depth], Counter())[each.cause] += each.ns
    chosen = sorted(total, key=lambda path: (-total[path], len(path)))[:most]
    for path in sorted(chosen, key=lambda path: [(-total[path[:at]], path[at - 1]) for at in range(1, len(path) + 1)]):
        parts = stack((_entry(cause, causes), ns) for cause, ns in of_cause[path].most_common())
        yield TreeRow(path, total[path], parts)


def _entry(cause: str, causes: Causes) -> LegendEntry:
    """The colour of a cause, and of time without one that of work."""
    return entry_of(cause, causes) if cause else LegendEntry("Work", "compute", "")


def rows_of(report: Report) -> Iterator[tuple[str, str, FlameStack]]:
    """Each stack with the key of its device and the name of its graph."""
    for device in report.devices:
        if device.flames is not None:
            yield from ((device.key, IDLE, each) for each in device.flames.idle)
            yield from ((device.key, WAITS, each) for each in device.flames.waits)
    yield from (("", SAMPLES, each) for each in report.host_stacks)


Row = tuple[str, str, FlameStack]
TABLE: RecordTable[Any, Row] = RecordTable(
    "stacks",
    (
        RecordColumn[Row]("device", "text", lambda row: row[0]),
        RecordColumn[Row]("graph", "text", lambda row: row[1]),
        RecordColumn[Row]("stack", "text", lambda row: words.path_label(row[2].frames)),
        RecordColumn[Row]("depth", "integer", lambda row: len(row[2].frames)),
        RecordColumn[Row]("cause", "text", lambda row: row[2].cause or None),
        RecordColumn[Row]("ns", "integer", lambda row: row[2].ns),
    ),
    rows_of,
)
"""The table of CSV and the data frame."""
