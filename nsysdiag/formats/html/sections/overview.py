"""Each device at a glance: verdict, the split of its window, the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.context import Context
from nsysdiag.document.figures import Segment, stack
from nsysdiag.document.view import held, window_parts
from nsysdiag.formats.html.sections.section import View, report_section
from nsysdiag.units import format_count, format_ns, format_share
from nsysdiag.utilization.words import percent_of, real_note

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


@dataclass(frozen=True, slots=True)
class Card:
    """One number: `kind` ties it to its segment of the bar above."""

    label: str
    value: str
    note: str
    kind: str


@dataclass(frozen=True, slots=True)
class Glance:
    """What is shown of one device."""

    device: DeviceReport
    title: str
    processes: str
    window: str
    ops: str
    drained: str | None
    split: list[Segment]
    cards: list[Card]


def view(context: Context) -> View:
    """A glance at each device, or what a trace without GPU work holds instead."""
    return {"glances": [_glance(device) for device in context.report.devices], "held": held(context.report)}


def _glance(device: DeviceReport) -> Glance:
    ids = ", ".join(f"device {entry.device_id} of process {entry.pid}" for entry in device.ids)
    return Glance(
        device=device,
        title=device.name,
        processes=ids,
        window=words.window_sentence(device),
        ops=words.ops_sentence(device.ops),
        drained=words.drained_sentence(device),
        split=stack((part.label, part.ns, None, part.id) for part in window_parts(device)),
        cards=_cards(device),
    )


def _cards(device: DeviceReport) -> list[Card]:
    notes = {
        "communication": f"{format_ns(device.overlapped_comm_ns)} hidden" if device.overlapped_comm_ns else "",
        "idle": words.counted(device.gap_count, "gap"),
    }
    return [
        Card("Window", format_ns(device.window_ns), _outside(device), "window"),
        *_dashboard(device),
        Card("Busy", format_share(device.busy_ns, device.window_ns), format_ns(device.busy_ns), "busy"),
        *(
            Card(
                part.label,
                format_share(part.ns, device.window_ns),
                " · ".join(note for note in (format_ns(part.ns), notes.get(part.id)) if note),
                part.id,
            )
            for part in window_parts(device)
        ),
        _coverage(device),
    ]


def _dashboard(device: DeviceReport) -> list[Card]:
    """What a dashboard shows, with what is true below it."""
    found = device.utilization
    if found.util_time_share is None:
        return []
    return [Card("Dashboard", percent_of(found.util_time_share), real_note(found), "dashboard")]


def _outside(device: DeviceReport) -> str:
    if device.window.outside_ns:
        return f"{format_ns(device.window.outside_ns)} outside it"
    if len(device.window.parts) > 1:
        return f"in {format_count(len(device.window.parts))} parts"
    return f"from {words.instant(device.window.start_ns)}"


def _coverage(device: DeviceReport) -> Card:
    if device.coverage is None:
        return Card("Coverage", "–", "nothing to cover", "coverage")
    return Card("Coverage", format_share(device.coverage, 1), words.confidence_word(device.coverage), "coverage")


section = report_section("overview", "Overview", view)
