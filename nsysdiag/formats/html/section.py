"""Sections that the page draws with templates of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nsysdiag.document import words
from nsysdiag.document.axis import time_ticks
from nsysdiag.document.blocks import Block, Chart, Custom, Section, SectionScope
from nsysdiag.document.drawings import StackedBar, Stacks, entry_of, safe_color, stack
from nsysdiag.document.svg import percent
from nsysdiag.document.view import Context, LedgerRow, follows_wakes, ledger_rows, moved
from nsysdiag.ledger.show import blocks

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

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
