"""Gaps: the same place in the program added up, and the longest one by one, with the evidence for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document import words
from nsysdiag.document.blocks import Chart
from nsysdiag.document.drawings import StackedBar, Stacks, entry_of, safe_color, stack
from nsysdiag.document.names import call_site_label, host_code_label
from nsysdiag.document.view import Causes, Context, by_length, by_total, evidence, flags, slices_by_time
from nsysdiag.formats.html.section import View, device_section
from nsysdiag.formats.html.timeline_data import gap_key
from nsysdiag.gap_groups.show import gaps_gist, groups, groups_gist, longest
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.formats.html.section import DeviceSection
    from nsysdiag.report import DeviceReport, Gap, Operation, Root, Slice


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


def _charts(context: Context, device: DeviceReport) -> list[Chart]:
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
    rows = [_draw(gap, gap_key(context.report, device.key, gap.start_ns), context.causes) for gap in gaps]
    return {
        "gaps": rows,
        "charts": _charts(context, device),
        "held": len(device.gaps),
        "first": SHOWN_AT_FIRST,
        "flagged": any(gap.sync_drained for gap in gaps),
    }


def _draw(gap: Gap, key: str, causes: Causes) -> GapView:
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


section: DeviceSection = device_section(
    "gaps", "Longest gaps", lambda device: device.gaps, longest_view, longest, gaps_gist
)
