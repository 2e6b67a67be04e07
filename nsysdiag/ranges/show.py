"""The time of a device by NVTX range: an icicle, and the paths with most time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.blocks import PAGE, Chart, Column, Limit, Section, Table
from nsysdiag.document.columns import RecordColumn, columns
from nsysdiag.document.drawings import Icicle, LegendEntry, StackedBar, TreeRow, entry_of, stack
from nsysdiag.document.kinds import COUNT, NAME, STACK, TIME, share_of
from nsysdiag.document.view import by_time
from nsysdiag.ranges.facts import RangePath
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.document.view import Causes, Context
    from nsysdiag.report import DeviceReport

MAX_ROWS, IN_MARKDOWN, IN_TEXT, AT_FIRST, MOST_CAUSES = 40, 10, 5, 20, 2
MOST_CELLS = 60
WINDOW, INSIDE = "Window", "· "
WORK, IDLE = LegendEntry("Work", "compute", ""), LegendEntry("Idle", "idle", "")
NOTE = (
    "Work counts in the range that launched it, idle time in the one that the launching thread was in. Own: in no "
    "range inside, of the window in no range at all. Projected: from the first operation of each instance to the end "
    "of its last, added up."
)
RANGE = (Column("Range", NAME, head=True, length=110), Column("Time", TIME, strong=True))
FIGURES = (
    Column("Own", TIME),
    Column("Work", TIME),
    Column("Projected", TIME, spare=True),
    Column("Instances", COUNT, spare=True),
    Column("Causes", STACK, limit=PAGE),
)


def section(device: DeviceReport, context: Context) -> Section | None:
    """None where the launching threads have no ranges."""
    tree = device.ranges
    if tree is None or len(tree.rows) < 2:
        return None
    whole, longest = tree.rows[0], max(row.time_ns for row in tree.rows[1:])
    covered = format_share(whole.time_ns - whole.own_ns, device.window_ns)
    gist = f"{words.counted(tree.count - 1, 'path')} of ranges hold {covered} of the window, one {format_ns(longest)}"
    chart = Chart(
        Icicle.of(_tree_rows(tree.rows), WINDOW),
        "Time of the window by path of ranges",
        ["Below each range those inside it, as wide as their time. Lines at the feet are work and idle time."],
        [WORK, IDLE],
    )
    limit = Limit(page=context.rows(MAX_ROWS), ticket=IN_MARKDOWN, summary=IN_TEXT, brief=0)
    rows = _largest(tree.rows, context.rows(MAX_ROWS))
    table = Table(
        "Time by path of ranges",
        (*RANGE, Column("Of window", share_of(device.window_ns)), *FIGURES),
        [_row(row, context.causes) for row in rows],
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


def _row(row: RangePath, causes: Causes) -> tuple[object, ...]:
    longest = by_time(row.idle)
    said = ", ".join(causes.title(cause) for cause, _ns in longest[:MOST_CAUSES])
    segments = stack((entry_of(cause, causes), ns) for cause, ns in longest)
    bar = StackedBar("Causes of the idle time inside", segments, row.idle_ns, said=said) if segments else None
    name = INSIDE * (len(row.path) - 1) + row.path[-1] if row.path else WINDOW
    projected = row.projected_ns if row.instances else None
    return name, row.time_ns, row.time_ns, row.own_ns, row.work_ns, projected, row.instances or None, bar


def _tree_rows(rows: Sequence[RangePath]) -> Iterator[TreeRow]:
    """The paths with most time, with their work and idle time."""
    for row in _largest(rows, MOST_CELLS):
        parts = stack([(WORK, row.work_ns), (IDLE, row.idle_ns)])
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
