"""The critical path: what a step consists of along its longest chain, and which work is not on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsysdiag.bottlenecks import OF_WORK, noun_of
from nsysdiag.critical_path.facts import CriticalPath, PathPart, PathWork
from nsysdiag.document.blocks import Block, Column, Limit, Lines, Section, SectionScope, Table
from nsysdiag.document.columns import COUNT, SHARE, TEXT, TIME, RecordTable, columns, part, part_of
from nsysdiag.document.names import clip
from nsysdiag.document.words import counted
from nsysdiag.units import capitalized, format_ns, format_share, uncapitalized

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.document.view import Context
    from nsysdiag.report import Report

TITLE = "Critical path"
NOTE = (
    "The chain of work and waits that decides how long it takes, by the dependencies in the trace. Faster work off the "
    "path makes no step shorter; on it, until another chain is as long."
)
LEAST, NOTABLE, WHOLLY = 0.01, 0.05, 0.95
"""Work is mentioned from this share of the length on, if this share of it is off the path; families that are so far."""
MOST_ROWS, TOP_ROWS, MOST_NAMED, MOST_KEY = 8, 5, 3, 40
LIMIT = Limit(page=MOST_ROWS, ticket=TOP_ROWS, summary=TOP_ROWS, brief=0)


def section(context: Context) -> Section | None:
    """None if the report has no path."""
    found = context.report.critical_path
    if found is None or found.total_ns <= 0:
        return None
    key = clip(found.device, MOST_KEY) if len(context.report.devices) > 1 else ""
    of = f" of {key}" if key else ""
    lines = off_the_path(found, of) + ([f"The path is on one GPU at a time, most on {key}."] if key else [])
    parts = (
        Column("On the path", TEXT, "name", head=True),
        Column("Time", TIME, _a_step("ns", found), strong=True),
        Column("Share", SHARE, part_of("ns", found.total_ns)),
    )
    work = (
        Column("Work", TEXT, "name", head=True),
        Column("Time", TIME, _a_step("total_ns", found), strong=True),
        Column("On the path", SHARE, lambda row: part(row.path_ns, row.total_ns)),
        Column("Runs", COUNT, "count"),
    )
    about: dict[str, Any] = {"order": "with most time", "limit": LIMIT}
    blocks: list[Block] = [
        Lines(lines),
        Table.of("The path", parts, found.parts, note=NOTE, noun="parts", sortable=False, **about),
        Table.of(f"Work{of}, on the path and off it", work, found.work, noun="kinds", **about),
    ]
    return Section("critical-path", TITLE, blocks, _gist(found), _scope(found))


def _a_step(field: str, found: CriticalPath) -> Callable[[Any], int]:
    return lambda row: int(getattr(row, field)) // max(found.steps, 1)


def _gist(found: CriticalPath) -> str:
    """The parts with most time of the path."""
    return ", ".join(
        f"{format_share(each.ns, found.total_ns)} {uncapitalized(clip(each.name, MOST_KEY))}"
        for each in found.parts[:MOST_NAMED]
        if each.ns >= LEAST * found.total_ns
    )


def _scope(found: CriticalPath) -> SectionScope:
    if found.per != "step":
        return SectionScope("window", f"The judged time: {format_ns(found.total_ns)}")
    each = found.total_ns // max(found.steps, 1)
    return SectionScope("step", f"Mean of {counted(found.steps, 'replayed step')}: {format_ns(each)}")


def off_the_path(found: CriticalPath, of: str = "") -> list[str]:
    """Which work is not on the path: by kind, and families of it that are not, if others are."""
    lines: list[str] = []
    wholly: list[PathWork] = []
    for bottleneck in OF_WORK.values():
        mine = [each for each in found.work if each.bottleneck == bottleneck]
        total, on_path = sum(each.total_ns for each in mine), sum(each.path_ns for each in mine)
        if total < LEAST * found.total_ns or total - on_path < NOTABLE * total:
            continue
        off = format_share(total - on_path, total)
        lines.append(f"{capitalized(noun_of(bottleneck))}{of}: {off} of the time is off the path.")
        if on_path > (1 - WHOLLY) * total:
            wholly += [each for each in mine if each.path_ns <= (1 - WHOLLY) * each.total_ns]
    named = [clip(each.name, MOST_KEY) for each in wholly if each.total_ns >= LEAST * found.total_ns][:MOST_NAMED]
    return [*lines, *([f"Off the path altogether: {', '.join(named)}."] if named else [])]


class _WorkRow(NamedTuple):
    """Work of a GPU."""

    device: str
    work: PathWork


def _work_rows(report: Report) -> list[_WorkRow]:
    found = report.critical_path
    return [_WorkRow(found.device, each) for each in found.work] if found else []


_WORK = "device name=work.name bottleneck=work.bottleneck count=work.count total_ns=work.total_ns path_ns=work.path_ns"
TABLES: tuple[RecordTable[Any, Any], ...] = (
    RecordTable("critical_path", columns(PathPart), lambda report: getattr(report.critical_path, "parts", ())),
    RecordTable("critical_path_work", columns(_WorkRow, _WORK), _work_rows),
)
"""The tables of CSV and the data frames."""
