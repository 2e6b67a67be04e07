"""The report as Markdown for a ticket: what a reviewer must see, in tables that GitHub and GitLab draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output import words
from nsysdiag.output.format import Format, RenderOptions
from nsysdiag.output.markup import MARKER, code, fenced, table, text
from nsysdiag.output.names import brief, clip
from nsysdiag.output.ranks.markdown import rank_blocks
from nsysdiag.output.ranks.words import DEVICES_TITLE
from nsysdiag.output.view import (
    Causes,
    by_length,
    by_rank,
    device_label,
    evidence,
    held,
    ledger_rows,
    missing,
    slices_by_time,
    window_parts,
)
from nsysdiag.units import format_bytes, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport, Finding, Gap, Operation, Report

TOP_GAPS, TOP_GAPS_OF_SEVERAL = 10, 5
TOP_SLOW = 10


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as Markdown, with a marker comment by which a later run finds its own file again."""
    blocks = [MARKER, f"# nsysdiag: {code(report.trace.file)}"]
    causes = Causes(report.causes)
    limit = TOP_GAPS if len(report.devices) == 1 else TOP_GAPS_OF_SEVERAL
    for device in report.devices:
        blocks += _device(device, causes)
        blocks += _communication(device)
        blocks += _iterations(device, causes)
        blocks += _gaps(device, causes, limit)
    if not report.devices:
        blocks += _no_devices(report)
    if report.ranks is not None:
        blocks += rank_blocks(report.ranks, causes, f"## {DEVICES_TITLE}")
    blocks += _findings(report)
    blocks += _health(report)
    blocks.append(_footer(report, options))
    return ("\n\n".join(blocks) + "\n").encode()


def _device(device: DeviceReport, causes: Causes) -> list[str]:
    blocks = [
        f"## {text(device.name)} ({text(device.key)})",
        f"**{text(device.verdict.sentence)}**",
        text(f"Window: {words.window_sentence(device)}. {words.ops_sentence(device.ops)}."),
        _split(device),
    ]
    if device.idle_ns:
        blocks += [
            "### What the GPU waited for",
            _ledger(device, causes),
            text(words.coverage_sentence(device.coverage)),
        ]
    drained = words.drained_sentence(device)
    blocks += [text(drained)] if drained else []
    blocks += [f"> {text(note)}" for note in device.notes]
    return blocks


def _split(device: DeviceReport) -> str:
    rows = [[part.label, format_ns(part.ns), format_share(part.ns, device.window_ns)] for part in window_parts(device)]
    rows.append(["**Window**", f"**{format_ns(device.window_ns)}**", ""])
    return table(["Part of the window", "Time", "Share"], "lrr", rows)


def _ledger(device: DeviceReport, causes: Causes) -> str:
    rows = [
        [
            text(row.cause.title),
            format_ns(row.ns),
            format_share(row.ns, device.idle_ns),
            format_share(row.ns, device.window_ns),
        ]
        for row in ledger_rows(device, causes)
        if row.ns
    ]
    return table(["Cause", "Time", "Of idle", "Of window"], "lrrr", rows)


def _communication(device: DeviceReport) -> list[str]:
    found = device.communication
    kinds = [
        [text(row.kind), f"{row.count:,}", *map(format_ns, (row.total_ns, row.exposed_ns, row.overlapped_ns))]
        for row in found.kinds
    ]
    calls = [
        [code(row.name, in_table=True), f"{row.count:,}", format_ns(row.total_ns), format_ns(row.idle_ns)]
        for row in found.mpi
    ]
    blocks = [table(["Collective", "Count", "Total", "Exposed", "Overlapped"], "lrrrr", kinds)] if kinds else []
    blocks += [table(["MPI call", "Count", "Total", "GPU idle meanwhile"], "lrrr", calls)] if calls else []
    return ["### Communication", *blocks] if blocks else []


def _iterations(device: DeviceReport, causes: Causes) -> list[str]:
    found = device.iterations
    if found is None:
        return []
    blocks = ["### Iterations", text(f"{words.iterations_sentence(found)}.")]
    rows = [
        [
            f"{slow.index}",
            format_ns(found.p50_ns + slow.extra_ns),
            f"+{format_ns(slow.extra_ns)}",
            text(words.more_label(slow, causes)),
        ]
        for slow in found.slow[:TOP_SLOW]
    ]
    header = ["Slow iteration", "Length", "Over the median one", "What it has more of"]
    return [*blocks, table(header, "rrrl", rows)] if rows else blocks


def _gaps(device: DeviceReport, causes: Causes, limit: int) -> list[str]:
    rows = [_gap(gap, causes) for gap in by_length(device.gaps)[:limit]]
    if not rows:
        return []
    header = ["Length", "Start", "Cause", "Evidence", "Before", "After", "NVTX"]
    title = f"### The longest {len(rows)} of {words.counted(device.gap_count, 'gap')}"
    return [title, table(header, "rrlllll", rows)]


def _gap(gap: Gap, causes: Causes) -> list[str]:
    length = gap.end_ns - gap.start_ns
    slices = slices_by_time(gap)
    cause = told = "–"
    if slices:
        cause = f"{text(causes.title(slices[0].cause))} ({format_share(slices[0].ns, length)})"
        told = text(clip(evidence(slices[0], causes), 160)) or "–"
    path = code(words.path_label(gap.nvtx), in_table=True)
    before, after = _operation(gap.previous_op), _operation(gap.next_op)
    return [format_ns(length), words.instant(gap.start_ns), cause, told, before, after, path]


def _operation(operation: Operation | None) -> str:
    return code(brief(operation.name), in_table=True) if operation else "–"


def _no_devices(report: Report) -> list[str]:
    tables = [f"- {text(line)}" for line in held(report)]
    holds = ["It holds:", "\n".join(tables)] if tables else ["It holds no events of other kinds either."]
    return [f"**{words.NO_GPU_WORK}.** There is no idle time to explain.", *holds]


def _findings(report: Report) -> list[str]:
    if not report.findings:
        return []
    return ["## Findings", *(_finding(report, finding) for finding in by_rank(report.findings))]


def _finding(report: Report, finding: Finding) -> str:
    lines = [
        f"**{finding_heading(finding)}**",
        "",
        f"Lost: {words.lost_sentence(finding)}. Confidence: {words.confidence_word(finding.confidence)} "
        f"({format_share(finding.confidence, 1)}). {text(device_label(report, finding.device))}."
        + (f" In {code(words.path_label(finding.nvtx))}." if finding.nvtx else ""),
        "",
        *(f"- {text(line)}" for line in finding.evidence),
        *(f"- → {text(advice)}" for advice in finding.advice),
    ]
    return "\n".join(lines).rstrip()


def finding_heading(finding: Finding) -> str:
    """Severity in a sign and a word, then the title, escaped."""
    icon = words.SEVERITY_ICONS.get(finding.severity, "○")
    return f"{icon} {text(finding.severity)}: {text(finding.title)}"


def finding_markdown(report: Report, finding: Finding) -> str:
    """One finding as Markdown, to be pasted into a ticket."""
    return _finding(report, finding) + f"\n\n{_source(report)}"


def _health(report: Report) -> list[str]:
    blocks = [f"- {text(warning)}" for warning in report.trace.warnings]
    absent = missing(report)
    if absent:
        blocks.insert(0, f"- Not captured: {text(', '.join(absent))}.")
    health = ["## Trace health", "\n".join(blocks)] if blocks else []
    if report.recapture:
        health += ["To resolve more, capture again with", fenced(report.recapture, "sh")]
    return health


def _source(report: Report) -> str:
    trace = report.trace
    return " · ".join(
        [
            f"{report.tool.name} {text(report.tool.version)}",
            f"{code(trace.file)} ({format_bytes(trace.size_bytes)})",
            f"fingerprint {code(trace.fingerprint)}",
        ]
    )


def _footer(report: Report, options: RenderOptions) -> str:
    extra = [code(options.command, limit=500)] if options.command else []
    extra += [text(options.created)] if options.created else []
    return "---\n\n" + " · ".join([_source(report), *extra])


def is_ours(data: bytes) -> bool:
    """Does the document begin with our marker?"""
    return data.lstrip().startswith(MARKER.encode())


FORMAT = Format("md", ".md", "Markdown for tickets", render, is_ours)
