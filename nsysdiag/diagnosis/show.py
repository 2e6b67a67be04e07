"""Shows the diagnosis of a job: the headline, the phases, and a row for each device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.diagnosis import entries
from nsysdiag.diagnosis.facts import NOTABLE_UNKNOWN
from nsysdiag.document import blocks as b
from nsysdiag.document import words
from nsysdiag.document.columns import BAR, SHARE, TEXT, TIME, part_of, share_of
from nsysdiag.document.drawings import StackedBar, window_stack
from nsysdiag.document.names import clip
from nsysdiag.document.view import held, host_unseen, missing, mostly_graphs, window_parts
from nsysdiag.findings.facts import action_of, first_of, what_to_do
from nsysdiag.findings.show import anchors
from nsysdiag.kernels.show import whole_graphs
from nsysdiag.phases.facts import shown_as
from nsysdiag.trace.capabilities import REFUSED, refused, was_asked
from nsysdiag.trace.show import by_given, lacked_options, recapture
from nsysdiag.units import capitalized, format_count, format_ns, format_share
from nsysdiag.utilization.show import real_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.diagnosis.facts import Diagnosis
    from nsysdiag.document.view import Context
    from nsysdiag.findings.facts import Finding
    from nsysdiag.phases.facts import Phase, PhaseDevice
    from nsysdiag.report import DeviceReport, Report

MOST_IDS, MOST_SPANS = 300, 4
ALWAYS = ("compute", "idle")
CUDA_CALLS, MORE_OF_HOST = "cuda-api", "To see more of the host, capture again with"
MANY = 2
GPUS_JUDGED = "GPUs in the judged time"
DIVIDES = "How the window divides into compute, exposed communication, exposed copies and idle"
HEADLINE = "; the headline is about it"
PHASES = (
    b.Column("Phase", TEXT, head=True),
    b.Column("Time", TIME),
    b.Column("Most time", TEXT),
    b.Column("Share", SHARE),
    b.Column("Judged", TEXT),
)


def summary(context: Context) -> b.Section | None:
    """The first screen: what holds the job up, what to fix first, when, and how each GPU fares. None for a report of
    an older version."""
    if context.report.diagnosis is None:
        return None
    return b.Section("diagnosis", "Diagnosis", [*opening(context), *each_gpu(context), *closing(context)])


def opening(context: Context) -> list[b.Block]:
    """The headline, what to fix first, the phases, and the judged time by bottleneck."""
    report, found = context.report, context.report.diagnosis
    if found is None:
        return []
    headline = b.Paragraph(found.headline, "verdict")
    if not report.phases:
        return [headline]
    several = len(report.phases) > 1
    account = entries.accounts([each for phases in _judged(report, found).values() for each in phases])
    title = _account_title(report, found)
    return [
        headline,
        *action(found, report.findings),
        *_phase_lines(report, found),
        *_serving_lines(report),
        *entries.phase_strip(report.phases, found.basis, found.phase)[0 if several else 1 :],
        b.Table("", PHASES, _phase_rows(report, found) if several else [], limit=b.MARKDOWN),
        b.Paragraph(f"{title}: {format_ns(_judged_ns(report, found))}", "quiet", b.PAGE),
        replace(entries.account_chart(account, title, host_unseen=host_unseen(report)), limit=b.NOT_TERMINAL),
        replace(entries.account_chart(account, "", host_unseen=host_unseen(report)), limit=b.TERMINAL),
    ]


def _account_title(report: Report, found: Diagnosis) -> str:
    """`Judged time by bottleneck`; of several judged phases the name of the one that it is of: `Steady 2 by
    bottleneck`."""
    if found.phase is None or sum(phase.judged for phase in report.phases) < MANY:
        return entries.JUDGED_TIME
    return f"{capitalized(entries.phase_names(report.phases, found.basis)[found.phase])} by bottleneck"


def _phase_lines(report: Report, found: Diagnosis) -> list[b.Block]:
    """The phases in a line, if there are several, or steps. If several are judged, each of these has a separate
    line."""
    phases = report.phases
    names = entries.phase_names(phases, found.basis)
    judged_ns = sum(each.end_ns - each.start_ns for each in phases if each.judged)
    if found.phase is not None and sum(phase.judged for phase in phases) > 1:
        return _verdicts(phases, names, found.phase, judged_ns, unseen=host_unseen(report))
    several = len(phases) > 1
    if not several and phases[0].steps is None:
        return []
    named = [
        entries.phase_label(each, name, judged=True, judged_ns=judged_ns, host_unseen=host_unseen(report))
        for each, name in zip(phases, names, strict=True)
    ]
    more = f", and {len(named) - entries.MOST_PHASES} more" if len(named) > entries.MOST_PHASES else ""
    text = f"Phases: {', '.join(named[: entries.MOST_PHASES])}{more}."
    return [b.Paragraph(text, limit=b.TERMINAL if several else b.NOT_PAGE)]


def _serving_lines(report: Report) -> list[b.Block]:
    """What the steps of a server do, of the first device that shows it; on the page it is next to the iterations."""
    served = (each.iterations for each in report.devices if each.iterations and each.iterations.serving)
    where = ", in all phases:" if len(report.phases) > 1 else ":"
    said = [words.kinds_sentence(each).replace(":", where, 1) for each in list(served)[:1]]
    return [b.Paragraph(f"{each}.", limit=b.NOT_PAGE) for each in said]


def _verdicts(
    phases: Sequence[Phase], names: Sequence[str], about: int, judged_ns: int, *, unseen: bool
) -> list[b.Block]:
    """What takes most of each judged phase, and which of them the headline is about; the other phases in a line."""
    unjudged = [(each, name) for each, name in zip(phases, names, strict=True) if not each.judged]
    others = [entries.phase_label(each, name, judged_ns=judged_ns, host_unseen=unseen) for each, name in unjudged]
    lines = [
        entries.phase_verdict(phases[at], names[at], host_unseen=unseen) + (HEADLINE if at == about else "")
        for at in entries.shown_phases(phases)
        if phases[at].judged
    ]
    left = sum(phase.judged for phase in phases) - len(lines)
    rest = [words.counted(left, "more judged phase")] if left else []
    besides = f" (others: {', '.join(others[: entries.MOST_PHASES])})" if others else ""
    return [
        b.Paragraph(f"Phases, each by itself{besides}:", limit=b.TERMINAL),
        b.Lines([*lines, *rest], limit=b.TERMINAL),
    ]


def action(found: Diagnosis, findings: Sequence[Finding]) -> list[b.Block]:
    """What to fix first. If kernels lead and no fix has a notable saving, kernels come first, followed by the
    finding that saves most."""
    if not found.action:
        return []
    first, saving = first_of(found, findings), action_of(found, findings)
    if first is None:
        return [b.Callout(entries.FIX_FIRST, found.action)]
    href = f"#{next(anchor for each, anchor in zip(findings, anchors(findings), strict=True) if each is first)}"
    if first.saves is None:
        also = f"Also: {saving.title}: saves {saving.saves.words}." if saving is not None and saving.saves else ""
        return [
            b.Callout(entries.LOOK_FIRST, first.title, text=what_to_do(first), href=href),
            *([b.Paragraph(also)] if also else []),
        ]
    label = entries.IF_STARTS_MATTER if found.basis == "cold" else entries.FIX_FIRST
    return [b.Callout(label, first.title, first.saves.figure, first.saves.of, what_to_do(first), href)]


def _judged(report: Report, found: Diagnosis) -> dict[str, list[PhaseDevice]]:
    """By device the judged phases; all of them if the diagnosis is not about a single one."""
    phases = report.phases if found.phase is None else [report.phases[found.phase]]
    by_device: dict[str, list[PhaseDevice]] = {}
    for phase in phases:
        for device in phase.devices:
            by_device.setdefault(device.key, []).append(device)
    return by_device


def _judged_ns(report: Report, found: Diagnosis) -> int:
    """How much time the account of a device is of."""
    phases = report.phases if found.phase is None else [report.phases[found.phase]]
    return sum(phase.counted_ns for phase in phases)


def _phase_rows(report: Report, found: Diagnosis) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (
            name,
            phase.counted_ns,
            entries.label(phase.shown, host_unseen=host_unseen(report)) if phase.share else None,
            phase.share or None,
            entries.judged_word(report.phases, at, found.phase, "yes"),
        )
        for at, (name, phase) in enumerate(
            zip(entries.phase_names(report.phases, found.basis), report.phases, strict=True)
        )
    ]
    return [rows[at] for at in entries.shown_phases(report.phases)]


def each_gpu(context: Context) -> list[b.Block]:
    """One row a device, in text one for all that show the same; of a single device, which is the whole job, only what
    its bar counts elsewhere than one expects."""
    report, found = context.report, context.report.diagnosis
    if found is None or not report.phases:
        return []
    judged = _judged(report, found)
    unseen = host_unseen(report)
    table, *notes = entries.account_table(judged, GPUS_JUDGED, b.PAGE, host_unseen=unseen)
    if len(judged) == 1:
        return notes
    return [
        table,
        *notes,
        *entries.joined(entries.account_table(judged, GPUS_JUDGED, b.TERMINAL, host_unseen=unseen)),
        *entries.joined(entries.account_table(judged, "", b.MARKDOWN, host_unseen=unseen)),
    ]


def closing(context: Context) -> list[b.Block]:
    """The unknown share, and the capture that would explain it."""
    report, found = context.report, context.report.diagnosis
    if found is None:
        return []
    if not report.phases:
        return _nothing(report)
    why = _worth_a_capture(report, found)
    capture = (recapture(report, f"{why} Capture with") or [b.Paragraph(why, "quiet")]) if why else []
    return [*by_given(report), *capture]


def _worth_a_capture(report: Report, found: Diagnosis) -> str:
    """Why another capture would show what to do first; empty if it would not. Also empty for a cold start, whose
    headline names the capture, unless most of it is unknown."""
    if found.basis == "cold" and found.bottleneck != "unknown":
        return ""
    if found.unknown_share >= NOTABLE_UNKNOWN or found.bottleneck == "unknown":
        lacking = lacked_options(report)
        known_as = shown_as(UNKNOWN, (device for phase in report.phases if phase.judged for device in phase.devices))
        is_what = "is charged to host code outside CUDA calls, which was not captured"
        if known_as != UNKNOWN or not host_unseen(report):
            is_what = "is unexplained"
        unknown = f"{format_share(found.unknown_share, 1)} of the time {is_what}"
        unknown += f"; missing: {lacking}" if lacking else ""
        return f"{unknown}. {REFUSED}" if refused(report.trace.capabilities) else f"{unknown}."
    unnamed = next((each for each in report.findings if each.unnamed and each.share >= NOTABLE_UNKNOWN), None)
    return entries.naming(unnamed, sampled="cpu-samples" not in missing(report)) if unnamed is not None else ""


def overview(context: Context) -> b.Section | None:
    """Each device at a glance, or what a trace without GPU work holds instead if no diagnosis says so."""
    report = context.report
    if report.devices:
        alone = len(report.devices) == 1
        spans = "; ".join(f"{device.key}: {words.window_sentence(device)}" for device in report.devices[:MOST_SPANS])
        glances = [_glance(device, alone=alone) for device in report.devices]
        return b.Section("overview", "GPU" if alone else "GPUs", glances, scope=b.SectionScope("window", spans))
    if report.diagnosis is not None:
        return None
    return b.Section("overview", "GPUs", [b.Paragraph(f"{words.NO_GPU_WORK}.", "verdict"), *_nothing(report)])


def _glance(device: DeviceReport, *, alone: bool) -> b.Entry:
    """A device at a glance; of one that is `alone` the page has the headline above."""
    columns = (
        b.Column("Part of the window", TEXT, "label", head=True),
        b.Column("Time", TIME, "ns"),
        b.Column("Share", share_of(device.window_ns), "ns"),
        b.Column("Bar", BAR, part_of("ns", device.window_ns), limit=b.TERMINAL),
    )
    parts = window_parts(device)
    divided = window_stack((each.ns for each in parts), (each.label for each in parts))
    ids = ", ".join(f"device {entry.device_id} of process {entry.pid}" for entry in device.ids)
    ran = f"Ran: {words.ops_sentence(device.ops)}."
    known = [f"Known as: {clip(ids, MOST_IDS)}."] if ids else []
    return b.Entry(
        device.name,
        [
            b.Paragraph(device.verdict.sentence, "verdict", b.NOT_PAGE if alone else b.EVERYWHERE),
            b.Chart(StackedBar(DIVIDES, divided, device.window_ns), DIVIDES, id=device.key),
            b.FigureRow(_cards(device), b.PAGE, cards=True),
            b.Lines([f"Window: {words.window_sentence(device)}.", ran, *known], b.NOT_PAGE),
            b.Lines([ran, *known], b.PAGE),
            *(b.Paragraph(note, "note") for note in device.notes),
            *([b.Paragraph(whole_graphs(device), "note")] if mostly_graphs(device) else []),
            b.Table.of("", columns, parts, limit=b.NOT_PAGE),
        ],
        note=device.key,
    )


def _cards(device: DeviceReport) -> list[b.Fact]:
    """The numbers of a device, each part of its window in the colour that it has above; parts of no time are left
    out."""
    notes = {
        "communication": f"{format_ns(device.overlapped_comm_ns)} hidden" if device.overlapped_comm_ns else "",
        "idle": words.counted(device.gap_count, "gap"),
    }
    share, found = share_of(device.window_ns), device.utilization
    cards = [b.Fact("Window", device.window_ns, TIME, note=_outside(device))]
    if found.util_time_share is not None:
        cards.append(b.Fact("Dashboard", SHARE.text(found.util_time_share), note=real_note(found)))
    cards.append(b.Fact("Busy", device.busy_ns, share, note=format_ns(device.busy_ns)))
    for each in window_parts(device):
        if each.ns or each.id in ALWAYS:
            note = " · ".join(filter(None, (format_ns(each.ns), notes.get(each.id))))
            cards.append(b.Fact(each.label, each.ns, share, note, each.id))
    return cards


def _outside(device: DeviceReport) -> str:
    if device.window.outside_ns:
        return f"{format_ns(device.window.outside_ns)} outside it"
    if len(device.window.parts) > 1:
        return f"in {format_count(len(device.window.parts))} parts"
    return f"from {words.instant(device.window.start_ns)}"


def _nothing(report: Report) -> list[b.Block]:
    """What the threads of a trace without GPU work did, or else its tables, and the capture that shows more."""
    threads = report.diagnosis.host if report.diagnosis else []
    tables = [] if threads else held(report)
    lines = "What the program's threads did:" if threads else "The trace holds:"
    calls = any(each.id == CUDA_CALLS and each.available for each in report.trace.capabilities)
    traced = calls or was_asked(report.trace.capabilities, CUDA_CALLS)
    return [
        b.Paragraph(lines if threads or tables else "The trace holds no events of other kinds either."),
        b.Lines(threads or tables),
        *recapture(report, MORE_OF_HOST if traced else "To see the GPU, capture again with"),
    ]


def method(context: Context) -> b.Section | None:
    """How the numbers are made, and the thresholds of each device; None if there is no device."""
    devices = context.report.devices
    if not devices:
        return None
    thresholds = [f"{device.name} ({device.key}): {words.calibration_sentence(device)}" for device in devices]
    gist = f"{words.counted(len(devices), 'GPU')}: thresholds, and how idle time gets its causes"
    return b.Section("method", "Method", [b.Paragraph(words.METHOD, limit=b.PAGE), b.Lines(thresholds, b.PAGE)], gist)
