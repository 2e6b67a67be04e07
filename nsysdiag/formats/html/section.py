"""Sections that the page draws with templates of their own: the ledger, gap groups and the longest gaps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nsysdiag.document import words
from nsysdiag.document.axis import time_ticks
from nsysdiag.document.blocks import Block, Chart, Custom, Section, SectionScope
from nsysdiag.document.drawings import StackedBar, Stacks, entry_of, safe_color, stack
from nsysdiag.document.names import call_site_label, host_code_label
from nsysdiag.document.svg import percent
from nsysdiag.document.view import (
    Causes,
    Context,
    LedgerRow,
    by_length,
    by_total,
    evidence,
    flags,
    follows_wakes,
    ledger_rows,
    moved,
    slices_by_time,
)
from nsysdiag.formats.html.timeline_data import gap_key
from nsysdiag.gap_groups.show import gaps_gist, groups, groups_gist, longest
from nsysdiag.ledger.show import blocks
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Gap, Operation, Root, Slice

    DeviceSection = Callable[[DeviceReport, Context], Section | None]
    ReportSection = Callable[[Context], Section | None]


View = dict[str, Any]


def report_section(
    id: str,
    title: str,
    there: Callable[[Context], object],
    view: Callable[[Context], View],
    fallback: Callable[[Context], list[Block]] = lambda _context: [],
    scope: Callable[[Context], SectionScope | None] = lambda _context: None,
) -> ReportSection:
    """`view` gives the values for `templates/sections/ID.html`, for the page alone; other formats show the blocks of
    `fallback`. The section is left out where nothing of it is `there`; `scope` is that of its sums."""

    def section(context: Context) -> Section | None:
        if not there(context):
            return None
        drawn = Custom(f"sections/{id}.html", cache(partial(view, context)), fallback(context))
        return Section(id, title, [drawn], scope=scope(context))

    return section


def device_section(
    id: str,
    title: str,
    there: Callable[[DeviceReport], object],
    view: Callable[[Context, DeviceReport], View],
    fallback: Callable[[DeviceReport, Context], list[Block]] = lambda _device, _context: [],
    gist: Callable[[DeviceReport], str] = lambda _device: "",
) -> DeviceSection:
    """The same for each device, folded on the page below its `gist` if it has one."""

    def section(device: DeviceReport, context: Context) -> Section | None:
        if not there(device):
            return None
        drawn = Custom(f"sections/{id}.html", cache(partial(view, context, device)), fallback(device, context))
        return Section(id, title, [drawn], gist(device))

    return section


# The idle ledger: what the device waited for, to the nanosecond.

MAX_LABELS = 6
DIVIDES = "How the idle time divides into causes"


class CauseRow(Struct, frozen=True):
    """A cause as drawn; `bar` is its share of the longest one."""

    row: LedgerRow
    color: str
    bar: str
    labels: tuple[tuple[str, int], ...]
    more: int
    more_ns: int


def _charts(context: Context, device: DeviceReport) -> list[Chart]:
    """The ledger as one bar, and another one after wake-ups where these moved time."""
    rows = ledger_rows(device, context.causes)
    cuts = {"By what the thread did": [row.ns for row in rows]}
    if follows_wakes(device):
        cuts["By root cause"] = [row.root_ns for row in rows]
    bars = []
    for title, times in cuts.items():
        segments = stack((entry_of(row.cause.id, context.causes), ns) for row, ns in zip(rows, times, strict=True))
        label = f"{DIVIDES}, {title.lower()}" if len(cuts) > 1 else DIVIDES
        bars.append((title, StackedBar(label, segments, device.idle_ns)))
    return [Chart(Stacks(bars), DIVIDES)]


def view(context: Context, device: DeviceReport) -> View:
    """The ledger as rows and as one bar."""
    rows = ledger_rows(device, context.causes)
    roots = moved(device, context.causes)
    places = {row.cause.id: place for place, row in enumerate(rows, start=1)}
    longest = max((row.ns for row in rows), default=0)
    return {
        "rows": [_draw(row, longest) for row in rows],
        "charts": _charts(context, device),
        "axis": time_ticks(device.idle_ns),
        "wakes": follows_wakes(device),
        "moved": [(row, safe_color(row.cause.color), words.root_kinds(row), places[row.cause.id]) for row in roots],
        "root_places": {row.cause.id for row in roots},
        "coverage": words.coverage_sentence(device.coverage),
        "drained": " ".join(words.behind_sentences(device, context.report)),
    }


def _draw(row: LedgerRow, longest: int) -> CauseRow:
    hidden = row.labels[MAX_LABELS:]
    return CauseRow(
        row=row,
        color=safe_color(row.cause.color),
        bar=percent(row.ns, longest),
        labels=row.labels[:MAX_LABELS],
        more=len(hidden),
        more_ns=sum(ns for _label, ns in hidden),
    )


section: DeviceSection = device_section(
    "ledger", "What the GPU waited for", lambda device: device.idle_ns, view, blocks
)


# Gaps: the same place in the program added up, and the longest one by one, with the evidence for each.

MAX_SIGNATURES, MAX_GAPS = 50, 60
SHOWN_AT_FIRST = 20


def recurring_view(context: Context, device: DeviceReport) -> View:
    """The signatures with the most time."""
    rows = by_total(device.signatures)[: context.rows(MAX_SIGNATURES)]
    drawn = [
        (row, context.causes.title(row.cause), safe_color(context.causes[row.cause].color), words.path_label(row.nvtx))
        for row in rows
    ]
    code = {row.id: (call_site_label(row.call_site), host_code_label(row.host_code)) for row in rows}
    return {
        "rows": drawn,
        "all": len(device.signatures),
        "code": code if any(map(any, code.values())) else {},
        "iterates": any(row.per_iteration_ns for row in rows),
        "sentence": words.signatures_sentence(device),
        "links": {row.id: gap_key(context.report, device.key, row.representative_start_ns) for row in rows},
    }


recurring: DeviceSection = device_section(
    "signatures", "Gap groups", lambda device: device.signatures, recurring_view, groups, gist=groups_gist
)


class SliceView(Struct, frozen=True):
    """A slice with its cause's title and colour, and its share of the gap."""

    slice: Slice
    title: str
    color: str
    share: str
    evidence: str


class GapView(Struct, frozen=True):
    """A gap as drawn; `slices` has the longest first, `divided` the order of the report."""

    gap: Gap
    length: int
    slices: list[SliceView]
    divided: StackedBar
    thread: str
    short_thread: str
    path: str
    flags: list[str]
    before: str
    after: str
    root: Root | None
    sure: str
    code: str
    elsewhere: str
    key: str


def _gap_charts(context: Context, device: DeviceReport) -> list[Chart]:
    """How each of the longest gaps divides, as in the rows of the table."""
    rows = [
        (f"{format_ns(gap.end_ns - gap.start_ns)} at {words.instant(gap.start_ns)}", _divided(gap, context.causes))
        for gap in _longest(context, device)
        if gap.slices
    ]
    return [Chart(Stacks(rows), "How each of the longest gaps divides into causes")] if rows else []


def _longest(context: Context, device: DeviceReport) -> list[Gap]:
    return by_length(device.gaps)[: context.shared_rows(MAX_GAPS)]


def _divided(gap: Gap, causes: Causes) -> StackedBar:
    segments = stack((entry_of(part.cause, causes), part.ns) for part in gap.slices)
    return StackedBar("How the gap divides into causes", segments, gap.end_ns - gap.start_ns)


def longest_view(context: Context, device: DeviceReport) -> View:
    """The longest gaps that the report holds, as many as the page has room for."""
    gaps = _longest(context, device)
    rows = [_drawn_gap(gap, gap_key(context.report, device.key, gap.start_ns), context.causes) for gap in gaps]
    return {
        "gaps": rows,
        "charts": _gap_charts(context, device),
        "held": len(device.gaps),
        "first": SHOWN_AT_FIRST,
        "flagged": any(gap.sync_drained for gap in gaps),
    }


def _drawn_gap(gap: Gap, key: str, causes: Causes) -> GapView:
    length = gap.end_ns - gap.start_ns
    return GapView(
        gap=gap,
        length=length,
        slices=[
            SliceView(
                part,
                causes.title(part.cause),
                safe_color(causes[part.cause].color),
                format_share(part.ns, length),
                evidence(part, causes),
            )
            for part in slices_by_time(gap)
        ],
        divided=_divided(gap, causes),
        thread=words.thread_label(gap.thread) if gap.thread else "",
        short_thread=words.short_thread_label(gap.thread) if gap.thread else "",
        path=words.path_label(gap.nvtx),
        flags=flags(gap),
        before=_when(gap.previous_op),
        after=_when(gap.next_op),
        root=gap.root,
        sure=words.root_sentence(gap),
        code=call_site_label(gap.call_site),
        elsewhere=words.path_label(gap.nvtx_elsewhere),
        key=key,
    )


def _when(operation: Operation | None) -> str:
    if operation is None:
        return ""
    length = format_ns(operation.end_ns - operation.start_ns)
    return f"{operation.category}, {length} on stream {operation.stream}"


longest_section: DeviceSection = device_section(
    "gaps", "Longest gaps", lambda device: device.gaps, longest_view, longest, gaps_gist
)
