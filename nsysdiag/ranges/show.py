"""The time of a device by NVTX range and by stack: icicles, and the rows with most time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nsysdiag.document import words
from nsysdiag.document.blocks import PAGE, Block, Chart, Column, Limit, Section, Table
from nsysdiag.document.columns import COUNT, NAME, STACK, TIME, RecordColumn, RecordTable, columns, share_of
from nsysdiag.document.drawings import Icicle, LegendEntry, StackedBar, TreeRow, by_bottleneck, entry_of, stack
from nsysdiag.document.names import short
from nsysdiag.document.view import Causes, Context, by_time
from nsysdiag.ranges.facts import FlameStack, RangePath
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.report import DeviceReport, Report


MAX_ROWS, IN_MARKDOWN, IN_TEXT, AT_FIRST, MOST_CAUSES = 40, 10, 5, 20, 2
MOST_CELLS = 60
WINDOW, INSIDE = "Window", "· "
WORK_ENTRY, IDLE_ENTRY = LegendEntry("Work", "compute", ""), LegendEntry("Idle", "idle", "")
NOTE = (
    "Work counts in the range that launched it, idle time in the one that the launching thread was in. Own: in no "
    "range inside, of the window in no range at all. Projected: from the first operation of each instance to the end "
    "of its last, added up."
)


def section(device: DeviceReport, context: Context) -> Section | None:
    """None if the launching threads have no ranges."""
    tree = device.ranges
    if tree is None or len(tree.rows) < 2:
        return None
    whole, longest = tree.rows[0], max(row.time_ns for row in tree.rows[1:])
    covered = format_share(whole.time_ns - whole.own_ns, device.window_ns)
    gist = f"{words.counted(tree.count - 1, 'path')} of ranges hold {covered} of the window, one {format_ns(longest)}"
    chart = Chart(
        Icicle.of(_range_rows(tree.rows), WINDOW),
        "Time of the window by path of ranges",
        ["Below each range those inside it, as wide as their time. Lines at the feet are work and idle time."],
        [WORK_ENTRY, IDLE_ENTRY],
    )
    limit = Limit(page=context.rows(MAX_ROWS), ticket=IN_MARKDOWN, summary=IN_TEXT, brief=0)
    rows = _largest(tree.rows, context.rows(MAX_ROWS))
    table = Table.of(
        "Time by path of ranges",
        (
            Column("Range", NAME, _name, head=True, length=110),
            Column("Time", TIME, "time_ns", strong=True),
            Column("Of window", share_of(device.window_ns), "time_ns"),
            Column("Own", TIME, "own_ns"),
            Column("Work", TIME, "work_ns"),
            Column("Projected", TIME, lambda row: row.projected_ns if row.instances else None, spare=True),
            Column("Instances", COUNT, lambda row: row.instances or None, spare=True),
            Column("Causes", STACK, lambda row: _causes(row, context.causes), limit=PAGE),
        ),
        rows,
        note=NOTE,
        noun="paths",
        order="with most time",
        total=tree.count,
        first=AT_FIRST,
        sortable=False,
        limit=limit,
    )
    return Section("nvtx", "NVTX ranges", [chart, table], gist)


def _largest(rows: Sequence[RangePath], most: int) -> list[RangePath]:
    """So many of the rows, those with most time, in their order: of paths inside each other the outer one is among them
    first."""
    order = sorted(range(len(rows)), key=lambda at: -rows[at].time_ns)
    return [rows[at] for at in sorted(order[:most])]


def _name(row: RangePath) -> str:
    return INSIDE * (len(row.path) - 1) + row.path[-1] if row.path else WINDOW


def _causes(row: RangePath, causes: Causes) -> StackedBar | None:
    longest = by_time(row.idle)
    said = ", ".join(causes.title(cause) for cause, _ns in longest[:MOST_CAUSES])
    segments = stack((entry_of(cause, causes), ns) for cause, ns in longest)
    return StackedBar("Causes of the idle time inside", segments, row.idle_ns, said=said) if segments else None


def _range_rows(rows: Sequence[RangePath]) -> Iterator[TreeRow]:
    """The paths with most time, with their work and idle time."""
    for row in _largest(rows, MOST_CELLS):
        parts = stack([(WORK_ENTRY, row.work_ns), (IDLE_ENTRY, row.idle_ns)])
        yield TreeRow(tuple(row.path), row.time_ns, parts, f"idle {format_ns(row.idle_ns)}")


TABLE = (
    RecordColumn[RangePath]("path", "text", lambda row: words.path_label(row.path)),
    RecordColumn[RangePath]("depth", "integer", lambda row: len(row.path)),
    *columns(RangePath, "instances projected_ns operations"),
    RecordColumn[RangePath]("time_ns", "integer", lambda row: row.time_ns),
    RecordColumn[RangePath]("own_ns", "integer", lambda row: row.own_ns),
    *columns(RangePath, "work_ns own_work_ns"),
    RecordColumn[RangePath]("idle_ns", "integer", lambda row: row.idle_ns),
    *columns(RangePath, "own_idle_ns"),
    RecordColumn[RangePath](
        "ledger_ns", "text", lambda row: ";".join(f"{cause}:{ns}" for cause, ns in by_time(row.idle))
    ),
)
"""The columns of the CSV table and of the data frame."""


# Flame graphs: icicles of time, and the stacks with most of it.

STACK_ROWS, STACKS_IN_MARKDOWN, STACKS_IN_TEXT, STACKS_AT_FIRST = 20, 5, 3, 5
STACK_CELLS, MOST_WAITS = 40, 20
IDLE, WAITS, SAMPLES = "idle", "waits", "samples"
"""The names of the graphs in tables and files."""
TITLES = {IDLE: "Idle time", WAITS: "Waits for work of the GPU", SAMPLES: "CPU samples"}
IDLE_NOTE = (
    "Below each other: the root cause, the ranges of the launching thread, what was done then and by which thread, and "
    "its functions. Call chains tell these, and CPU samples, each for one sampling period."
)
WAITS_NOTE = "The time of calls that waited while the GPU worked, by the operation that ran. Threads are added up."
SAMPLES_NOTE = "The program's own functions and the innermost one; each sample counts for one sampling period."


def flame_section(device: DeviceReport, context: Context) -> Section | None:
    """None if nothing was idle or waited for."""
    flames = device.flames
    if flames is None or not flames.idle + flames.waits:
        return None
    idle, waited = (sum(each.ns for each in stacks) for stacks in (flames.idle, flames.waits))
    gist = f"{format_ns(idle)} idle, and {format_ns(waited)} in calls that wait for work of the GPU"
    blocks = [
        *_graph(flames.idle, IDLE, IDLE_NOTE, context, STACK_CELLS),
        *_graph(flames.waits, WAITS, WAITS_NOTE, context, MOST_WAITS),
    ]
    return Section("flames", "Flame graphs", blocks, gist)


def host_section(context: Context) -> Section | None:
    """The functions of all threads; None for a report with a GPU or without samples."""
    stacks = context.report.host_stacks
    if not stacks:
        return None
    return Section("samples", "CPU samples", _graph(stacks, SAMPLES, SAMPLES_NOTE, context, STACK_CELLS))


def _graph(stacks: Sequence[FlameStack], name: str, note: str, context: Context, cells: int) -> list[Block]:
    """The drawing, and the stacks with most time."""
    if not stacks:
        return []
    whole, title = sum(each.ns for each in stacks), TITLES[name]
    causes = list(dict.fromkeys(each.cause for each in stacks if each.cause))
    legend = by_bottleneck(entry_of(cause, context.causes) for cause in causes)
    chart = Chart(Icicle.of(_stack_rows(stacks, context.causes, cells), title), title, [note], legend, id=name)
    columns = (
        Column("Stack", NAME, lambda each: words.path_label(_shown(each)), head=True, length=150),
        Column("Time", TIME, "ns", strong=True),
        Column("Share", share_of(whole), "ns"),
    )
    most = context.shared_rows(STACK_ROWS)
    limit = Limit(page=most, ticket=STACKS_IN_MARKDOWN, summary=STACKS_IN_TEXT, brief=0)
    return [
        chart,
        Table.of(
            f"{title}: stacks",
            columns,
            stacks[:most],
            noun="stacks",
            total=len(stacks),
            first=STACKS_AT_FIRST,
            limit=limit,
        ),
    ]


def _shown(each: FlameStack) -> list[str]:
    return [short(frame) for frame in each.frames]


def _stack_rows(stacks: Sequence[FlameStack], causes: Causes, most: int) -> Iterator[TreeRow]:
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
        parts = stack(
            (entry_of(cause, causes) if cause else WORK_ENTRY, ns) for cause, ns in of_cause[path].most_common()
        )
        yield TreeRow(path, total[path], parts)


def rows_of(report: Report) -> Iterator[tuple[str, str, FlameStack]]:
    """Each stack with the key of its device and the name of its graph."""
    for device in report.devices:
        if device.flames is not None:
            yield from ((device.key, IDLE, each) for each in device.flames.idle)
            yield from ((device.key, WAITS, each) for each in device.flames.waits)
    yield from (("", SAMPLES, each) for each in report.host_stacks)


Row = tuple[str, str, FlameStack]
FLAME_TABLE: RecordTable[Any, Row] = RecordTable(
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
