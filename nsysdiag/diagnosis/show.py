"""What happened on each device, and what limits it: all kinds of bottleneck in the order of their repair, with the
evidence for and against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.words import TITLE, holds_word, triage_sentences, workload_sentence
from nsysdiag.document import words
from nsysdiag.document.blocks import (
    NOT_PAGE,
    PAGE,
    TERMINAL,
    TICKET,
    Block,
    Cell,
    Chart,
    Column,
    Entry,
    Fact,
    Facts,
    Lines,
    Paragraph,
    Section,
    Table,
)
from nsysdiag.document.figures import Stack, stack
from nsysdiag.document.kinds import BAR, SHARE, TEXT, TIME, part, share_of
from nsysdiag.document.names import clip
from nsysdiag.document.view import held, window_parts
from nsysdiag.trace.show import recapture
from nsysdiag.units import format_count, format_ns
from nsysdiag.utilization.words import percent_of, real_note

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport, Report

LENGTH, MOST_IDS = 900, 300
DIVIDES = "How the window divides into compute, exposed communication, exposed copies and idle"
COLUMNS = (
    Column("Kind", TEXT, head=True),
    Column("Holds", TEXT),
    Column("Share", SHARE),
    Column("Evidence", TEXT, length=LENGTH),
    Column("What to do", TEXT, length=LENGTH),
)


def overview(context: Context) -> Section:
    """Each device at a glance, or what a trace without GPU work holds instead."""
    blocks = [_glance(device) for device in context.report.devices] or _nothing(context.report)
    return Section("overview", "Overview", blocks)


def _glance(device: DeviceReport) -> Entry:
    columns = (
        Column("Part of the window", TEXT, head=True),
        Column("Time", TIME),
        Column("Share", share_of(device.window_ns)),
        Column("Bar", BAR, limit=TERMINAL),
    )
    parts = window_parts(device)
    rows = [(each.label, each.ns, each.ns, part(each.ns, device.window_ns)) for each in parts]
    segments = stack((each.label, each.ns, None, each.id) for each in parts)
    ids = ", ".join(f"device {entry.device_id} of process {entry.pid}" for entry in device.ids)
    lines = [f"Window: {words.window_sentence(device)}.", f"Ran: {words.ops_sentence(device.ops)}."]
    return Entry(
        device.name,
        [
            Paragraph(device.verdict.sentence, "verdict"),
            Chart(Stack(DIVIDES, segments, device.window_ns), DIVIDES),
            Facts(_cards(device), PAGE, cards=True),
            Lines([*lines, *([f"Known as: {clip(ids, MOST_IDS)}."] if ids else [])]),
            *(Paragraph(note, "note") for note in device.notes),
            Table("", columns, rows, limit=NOT_PAGE),
        ],
        note=device.key,
    )


def _cards(device: DeviceReport) -> list[Fact]:
    """The numbers of a device, each part of its window in the colour that it has above."""
    notes = {
        "communication": f"{format_ns(device.overlapped_comm_ns)} hidden" if device.overlapped_comm_ns else "",
        "idle": words.counted(device.gap_count, "gap"),
    }
    share, found = share_of(device.window_ns), device.utilization
    dashboard = (
        []
        if found.util_time_share is None
        else [Fact("Dashboard", percent_of(found.util_time_share), note=real_note(found))]
    )
    covered = "nothing to cover" if device.coverage is None else words.confidence_word(device.coverage)
    return [
        Fact("Window", device.window_ns, TIME, note=_outside(device)),
        *dashboard,
        Fact("Busy", device.busy_ns, share, note=format_ns(device.busy_ns)),
        *(
            Fact(
                each.label, each.ns, share, " · ".join(filter(None, (format_ns(each.ns), notes.get(each.id)))), each.id
            )
            for each in window_parts(device)
        ),
        Fact("Coverage", device.coverage, SHARE, note=covered),
    ]


def _outside(device: DeviceReport) -> str:
    if device.window.outside_ns:
        return f"{format_ns(device.window.outside_ns)} outside it"
    if len(device.window.parts) > 1:
        return f"in {format_count(len(device.window.parts))} parts"
    return f"from {words.instant(device.window.start_ns)}"


def _nothing(report: Report) -> list[Block]:
    tables = held(report)
    holds = "The trace holds:" if tables else "The trace holds no events of other kinds either."
    return [
        Paragraph(f"{words.NO_GPU_WORK}.", "verdict"),
        Paragraph(f"There is no idle time to explain. {holds}"),
        Lines(tables),
        *recapture(report, "To see the GPU, capture again with"),
    ]


def triage(device: DeviceReport, _context: Context) -> Section | None:
    """None where nothing ran."""
    found = device.triage
    if found is None:
        return None
    rows = [
        (
            kind.title,
            Cell(holds_word(kind), strong=bool(kind.holds)),
            kind.share,
            " ".join(kind.evidence) or None,
            " ".join(kind.advice) or None,
        )
        for kind in found.kinds
    ]
    return Section(
        "triage",
        TITLE,
        [
            Lines(triage_sentences(found), TERMINAL),
            Paragraph(found.sentence, tone="strong", limit=TICKET),
            Paragraph(workload_sentence(found), tone="quiet", limit=TICKET),
            Table(
                "Bottlenecks in the order in which they are worth repairing",
                COLUMNS,
                rows,
                note="Shares are of the judged time, and say what a repair could touch at most.",
                sortable=False,
            ),
        ],
    )


def method(context: Context) -> Section | None:
    """How the numbers are made, and the thresholds of each device; None where there is no device."""
    devices = context.report.devices
    if not devices:
        return None
    thresholds = [f"{device.name} ({device.key}): {words.calibration_sentence(device)}" for device in devices]
    return Section("method", "Method", [Paragraph(words.METHOD, limit=PAGE), Lines(thresholds, PAGE)])
