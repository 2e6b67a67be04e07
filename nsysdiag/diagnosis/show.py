"""What holds the job up: the headline, the phases, and each device at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.blocks import (
    NOT_PAGE,
    PAGE,
    TERMINAL,
    Block,
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
PHASES = (
    Column("Phase", TEXT, head=True),
    Column("Time", TIME),
    Column("Share of the job", BAR, limit=PAGE),
    Column("Most time", TEXT),
    Column("Share", SHARE),
    Column("Judged", TEXT),
)


def overview(context: Context) -> Section:
    """Each device at a glance, or what a trace without GPU work holds instead."""
    report = context.report
    blocks = [_glance(device) for device in report.devices] or _nothing(report)
    return Section("overview", "Overview", [*_judgment(report), *blocks])


def _judgment(report: Report) -> list[Block]:
    """Empty for a report of an older version."""
    found = report.diagnosis
    if found is None or not report.devices:
        return []
    return [
        Paragraph(found.headline, "verdict"),
        *([Paragraph(f"Fix first: {found.action}", "good")] if found.action else []),
        *([_phases(report)] if len(report.phases) > 1 else []),
    ]


def _phases(report: Report) -> Table:
    whole = sum(phase.end_ns - phase.start_ns for phase in report.phases)
    rows = [
        (
            phase.name,
            phase.end_ns - phase.start_ns,
            part(phase.end_ns - phase.start_ns, whole),
            phase.bottleneck,
            phase.share,
            "yes" if phase.judged else "",
        )
        for phase in report.phases
    ]
    return Table("Phases of the job", PHASES, rows, sortable=False)


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


def method(context: Context) -> Section | None:
    """How the numbers are made, and the thresholds of each device; None where there is no device."""
    devices = context.report.devices
    if not devices:
        return None
    thresholds = [f"{device.name} ({device.key}): {words.calibration_sentence(device)}" for device in devices]
    return Section("method", "Method", [Paragraph(words.METHOD, limit=PAGE), Lines(thresholds, PAGE)])
