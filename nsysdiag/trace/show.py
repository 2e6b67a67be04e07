"""What the trace holds, what could not be judged, and the capture that would show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.config.settings import setting_text
from nsysdiag.document import blocks as b
from nsysdiag.document import words
from nsysdiag.document.columns import CODE, FIGURE, NAME, TEXT
from nsysdiag.document.view import missing, missing_in_words
from nsysdiag.trace.capabilities import KINDS
from nsysdiag.units import format_bytes, format_count

if TYPE_CHECKING:
    from nsysdiag.document.view import Context
    from nsysdiag.report import Report


NVTX = "--trace=nvtx"
MOST_RATES = 4
"""Devices whose arithmetic is named in sentences."""
FAITHFUL = 0.1
"""A step that differs by less from one without the profiler needs no warning."""
LARGEST_ID = "A number with ~ is the largest row id."
YES, NO = b.Cell("✓ yes", tone="good"), b.Cell("✕ no", tone="bad")
EVIDENCE = (
    b.Column("Evidence", TEXT, "id", head=True, length=80),
    b.Column("Captured", TEXT, lambda each: YES if each.available else NO),
    b.Column("Why", TEXT, "why", length=300),
    b.Column("Option that records it", CODE, lambda each: None if each.available else each.recapture, length=200),
)
NOT_RECORDED = (
    b.Column("What", TEXT, "what", head=True, length=100),
    b.Column("Tool that shows it", CODE, "tool", length=100),
)
TABLES = (b.Column("Table", NAME, head=True, length=120), b.Column("Rows", FIGURE))
SETTINGS = (b.Column("Setting", TEXT, head=True, length=60), b.Column("Value", TEXT, length=300))


def health(context: Context) -> b.Section:
    """Evidence, warnings, tables and settings, and the capture that would resolve more, which a diagnosis gives itself
    where it is worth it."""
    report = context.report
    absent = missing(report)
    rows_of = sorted(report.trace.tables.items())
    tables = [(table, rows if isinstance(rows, str) else format_count(rows)) for table, rows in rows_of]
    settings = [(name, setting_text(name, value)) for name, value in sorted(report.settings.items())]
    unrecorded = report.not_recorded
    blocks: list[b.Block] = [
        *([b.Paragraph(f"Not captured: {', '.join(missing_in_words(report))}.", limit=b.NOT_PAGE)] if absent else []),
        b.Lines(report.trace.warnings, tone="note"),
        *(by_given(report) if report.diagnosis is None else []),
        _evidence(report, len(absent)),
        *([b.Paragraph(words.not_recorded_sentence(report.not_recorded), limit=b.NOT_PAGE)] if unrecorded else []),
        *recapture(report if report.devices and not report.diagnosis else None, "To resolve more, capture again with"),
        b.Details("What no such trace shows", [b.Table.of("Not recorded", NOT_RECORDED, unrecorded, sortable=False)]),
        b.Details(
            "Tables of the trace", [b.Table("Rows of each table", TABLES, tables, note=LARGEST_ID, sortable=False)]
        ),
        b.Details("Settings of this analysis", [b.Table("Settings", SETTINGS, settings, sortable=False)]),
    ]
    return b.Section("health", "Trace health", blocks, _gist(report, len(absent)))


def _gist(report: Report, absent: int) -> str:
    """How many kinds of evidence are missing, and how many warnings there are."""
    warnings = words.counted(len(report.trace.warnings), "warning")
    return f"{absent:,} of {len(report.trace.capabilities):,} kinds of evidence missing, {warnings}"


def _evidence(report: Report, absent: int) -> b.Table:
    """What was captured, what is missing first."""
    rows = sorted(report.trace.capabilities, key=lambda capability: capability.available)
    title = f"{absent:,} of {len(rows):,} kinds of evidence are missing: what they show could not be judged"
    title = title if absent else "All kinds of evidence were captured"
    return b.Table.of(title, EVIDENCE, rows, sortable=False, limit=b.PAGE)


def by_given(report: Report) -> list[b.Block]:
    """What follows from what the user gave: what the profiler does to a step, and the arithmetic per second. Devices
    with the same sentence share it."""
    reference, said = report.step_reference, list[b.Block]()
    if reference is not None:
        faithful = 1 - FAITHFUL <= reference.factor <= 1 + FAITHFUL
        said.append(b.Paragraph(reference.sentence, "quiet" if faithful else "note"))
    keys: dict[tuple[str, bool], list[str]] = {}
    for device in report.devices:
        if (found := device.utilization.flops) is not None:
            keys.setdefault((found.sentence, found.refused), []).append(device.key)
    for (sentence, refused), of in list(keys.items())[:MOST_RATES]:
        lead = f"{', '.join(of)}: " if len(report.devices) > 1 else ""
        said.append(b.Paragraph(f"{lead}{sentence}", "note" if refused else "quiet"))
    return said


def lacked_options(report: Report) -> str:
    """The options of the recapture command of which the trace holds nothing, in short: the command has their scope.
    That of NVTX is none of them: a program without ranges has no rows either."""
    asked = dict.fromkeys((report.recapture or "").replace(",", " --trace=").split())
    options = {name: kind.recapture for name, kind in KINDS.items()}
    captured = {options.get(each.id) for each in report.trace.capabilities if each.available}
    absent = {options.get(each.id) for each in report.trace.capabilities if not each.available}
    return ", ".join(option.removesuffix("=process-tree") for option in asked if option in absent - captured - {NVTX})


def recapture(report: Report | None, sentence: str) -> list[b.Block]:
    """The command under its sentence, where there is one."""
    if report is None or not report.recapture:
        return []
    return [b.Paragraph(sentence), b.Command(report.recapture, place=sentence)]


def source(report: Report) -> list[b.Part]:
    """What made the report, and of which trace."""
    trace = report.trace
    return [
        f"{report.tool.name} {report.tool.version} · ",
        b.Name(trace.file),
        f" ({format_bytes(trace.size_bytes)}) · fingerprint ",
        b.Name(trace.fingerprint),
    ]
