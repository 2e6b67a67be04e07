"""What holds the job up: the headline, the phases, and each device at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.words import OF_WORK, label, phase_label
from nsysdiag.document import words
from nsysdiag.document.blocks import (
    EVERYWHERE,
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
from nsysdiag.document.kinds import BAR, NAME, SHARE, STACK, TEXT, TIME, part, share_of
from nsysdiag.document.names import clip
from nsysdiag.document.view import UNKNOWN_COLOR, held, window_parts
from nsysdiag.trace.show import recapture
from nsysdiag.units import format_count, format_ns, format_share
from nsysdiag.utilization.words import percent_of, real_note

if TYPE_CHECKING:
    from nsysdiag.diagnosis.facts import Diagnosis
    from nsysdiag.document.context import Context
    from nsysdiag.phases.facts import PhaseDevice
    from nsysdiag.report import DeviceReport, Report

MOST_IDS = 300
PHASES_OVER_TIME = "The phases of the job over time, in the colour of what takes most of each"
DIVIDES = "How the window divides into compute, exposed communication, exposed copies and idle"
PHASES = (
    Column("Phase", TEXT, head=True),
    Column("Time", TIME),
    Column("Most time", TEXT),
    Column("Share", SHARE),
    Column("Judged", TEXT),
)
ACCOUNT = (
    Column("Bottleneck", TEXT, head=True),
    Column("Time", TIME),
    Column("Share", SHARE),
    Column("", BAR, limit=TERMINAL),
)
GPUS = (
    Column("GPU", NAME, head=True, length=24),
    Column("Compute", SHARE),
    Column("Comm.", SHARE),
    Column("Copies", SHARE),
    Column("Idle", SHARE),
    Column("Most time", TEXT),
    Column("Share", SHARE),
    Column("By bottleneck", STACK, limit=PAGE),
)
MOST_PHASES, MOST_BOTTLENECKS = 4, 5
NOTABLE_UNKNOWN = 0.01


def summary(context: Context) -> Section | None:
    """The first screen: what holds the job up, what to repair first, when, and how each GPU fares. None for a report of
    an older version, or one without GPU work."""
    report, found = context.report, context.report.diagnosis
    if found is None or not report.phases:
        return None
    phases = ", then ".join(phase_label(each) for each in report.phases[:MOST_PHASES])
    more = f", and {len(report.phases) - MOST_PHASES} more" if len(report.phases) > MOST_PHASES else ""
    judged = _judged(report, found)
    return Section(
        "diagnosis",
        "Diagnosis",
        [
            Paragraph(found.headline, "verdict"),
            *([Paragraph(f"Fix first: {found.action}", "good")] if found.action else []),
            Paragraph(f"Phases: {phases}{more}.", limit=NOT_PAGE),
            Chart(_strip(context), PHASES_OVER_TIME, captions=_captions(report)),
            Table("Phases of the job", PHASES, _phase_rows(report), sortable=False, limit=PAGE),
            _account(judged),
            _gpus(context, judged),
            *_unknown(report, found),
        ],
    )


def _judged(report: Report, found: Diagnosis) -> dict[str, list[PhaseDevice]]:
    """By device the judged phases; all of them where the diagnosis is about no single one."""
    phases = report.phases if found.phase is None else [report.phases[found.phase]]
    by_device: dict[str, list[PhaseDevice]] = {}
    for phase in phases:
        for device in phase.devices:
            by_device.setdefault(device.key, []).append(device)
    return by_device


def _strip(context: Context) -> Stack:
    phases = context.report.phases
    segments = stack((each.name, each.end_ns - each.start_ns, _color(context, each.bottleneck), "") for each in phases)
    return Stack(PHASES_OVER_TIME, segments, phases[-1].end_ns - phases[0].start_ns)


def _captions(report: Report) -> list[str]:
    return [phase.sentence for phase in report.phases[:MOST_PHASES]]


def _phase_rows(report: Report) -> list[tuple[object, ...]]:
    return [
        (
            phase.name,
            phase.end_ns - phase.start_ns,
            label(phase.bottleneck),
            phase.share,
            "yes" if phase.judged else "",
        )
        for phase in report.phases
    ]


def _color(context: Context, bottleneck: str) -> str:
    """That of the last cause or rule that counts to it: rules about work come behind the causes of idle time."""
    found = [each.color for each in context.report.causes if each.bottleneck == bottleneck]
    return (found[-1] if bottleneck in OF_WORK else found[0]) if found else UNKNOWN_COLOR


def _total(devices: list[PhaseDevice], name: str) -> int:
    return sum(getattr(each, name) for each in devices)


def _accounts(devices: list[PhaseDevice]) -> dict[str, int]:
    total: dict[str, int] = {}
    for device in devices:
        for name, ns in device.account.items():
            total[name] = total.get(name, 0) + ns
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _account(judged: dict[str, list[PhaseDevice]]) -> Table:
    """The judged time of all devices by bottleneck, the largest parts."""
    account = _accounts([each for phases in judged.values() for each in phases])
    total = sum(account.values())
    rows = [(label(name), ns, part(ns, total), part(ns, total)) for name, ns in account.items()]
    return Table(
        "Judged time by bottleneck",
        ACCOUNT,
        rows[:MOST_BOTTLENECKS],
        sortable=False,
        limit=EVERYWHERE,
    )


def _gpus(context: Context, judged: dict[str, list[PhaseDevice]]) -> Table:
    """One row a device."""
    rows = []
    for key, phases in judged.items():
        parts = [_total(phases, f"{name}_ns") for name in ("compute", "exposed_comm", "exposed_copy", "idle")]
        account, whole = _accounts(phases), sum(parts)
        most = next(iter(account), "unknown")
        segments = stack((label(name), ns, _color(context, name), "") for name, ns in account.items())
        said = f"How the judged time of {key} divides by bottleneck"
        shares = [part(each, whole) for each in parts]
        top = (label(most), part(account.get(most, 0), sum(account.values())))
        rows.append((key, *shares, *top, Stack(said, segments, sum(account.values()))))
    several = len(rows) > 1
    return Table("GPUs in the judged time", GPUS, rows, limit=EVERYWHERE if several else PAGE)


def _unknown(report: Report, found: Diagnosis) -> list[Block]:
    if found.unknown_share < NOTABLE_UNKNOWN:
        return []
    unknown = f"No evidence for {format_share(found.unknown_share, 1)} of the judged time."
    return [Paragraph(unknown, "quiet"), *recapture(report, "To resolve it, capture again with")]


def overview(context: Context) -> Section:
    """Each device at a glance, or what a trace without GPU work holds instead."""
    report = context.report
    return Section("overview", "GPUs", [_glance(device) for device in report.devices] or _nothing(report))


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
