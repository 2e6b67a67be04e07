"""The longest gaps one by one, with the evidence for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.code import call_site_label
from nsysdiag.document.context import Context
from nsysdiag.document.figures import Segment, safe_color, stack
from nsysdiag.document.view import Causes, by_length, evidence, flags, slices_by_time
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.formats.html.timeline.data import gap_key
from nsysdiag.gap_groups.show import longest
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Gap, Operation, Root, Slice

MAX_GAPS = 60
SHOWN_AT_FIRST = 20


@dataclass(frozen=True, slots=True)
class SliceView:
    """A slice with its cause's title and colour, and its share of the gap."""

    slice: Slice
    title: str
    color: str
    share: str
    evidence: str


@dataclass(frozen=True, slots=True)
class GapView:
    """A gap as drawn; `slices` has the longest first, `segments` the order of the report."""

    gap: Gap
    length: int
    slices: list[SliceView]
    segments: list[Segment]
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


def view(context: Context, device: DeviceReport) -> View:
    """The longest gaps that the report holds, as many as the page has room for."""
    gaps = by_length(device.gaps)[: context.shared_rows(MAX_GAPS)]
    rows = [_draw(gap, gap_key(context.report, device.key, gap.start_ns), context.causes) for gap in gaps]
    return {
        "gaps": rows,
        "held": len(device.gaps),
        "first": SHOWN_AT_FIRST,
        "flagged": any(gap.sync_drained for gap in gaps),
    }


def _draw(gap: Gap, key: str, causes: Causes) -> GapView:
    length = gap.end_ns - gap.start_ns
    return GapView(
        gap=gap,
        length=length,
        slices=[_slice(part, length, causes) for part in slices_by_time(gap)],
        segments=stack((causes.title(part.cause), part.ns, causes[part.cause].color, "") for part in gap.slices),
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


def _slice(part: Slice, length: int, causes: Causes) -> SliceView:
    cause = causes[part.cause]
    return SliceView(part, cause.title, safe_color(cause.color), format_share(part.ns, length), evidence(part, causes))


def _when(operation: Operation | None) -> str:
    if operation is None:
        return ""
    length = format_ns(operation.end_ns - operation.start_ns)
    return f"{operation.category}, {length} on stream {operation.stream}"


section = device_section("gaps", "Longest gaps", lambda device: device.gaps, view, longest)
