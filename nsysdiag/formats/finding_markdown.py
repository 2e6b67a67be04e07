"""A finding as Markdown: in the report, and alone for a ticket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.markup import code, text
from nsysdiag.document.view import device_label
from nsysdiag.units import format_bytes, format_share

if TYPE_CHECKING:
    from nsysdiag.report import Finding, Report


def finding_block(report: Report, finding: Finding) -> str:
    """One finding: what it costs, how sure it is, its evidence and advice."""
    lines = [
        f"**{finding_heading(finding)}**",
        "",
        f"Lost: {words.lost_sentence(finding)}. Confidence: {words.confidence_word(finding.confidence)} "
        f"({format_share(finding.confidence, 1)}). {text(device_label(report, finding.device))}."
        + (f" {text(words.where_sentence(finding))}." if finding.gaps else "")
        + (f" In {code(words.path_label(finding.nvtx))}." if finding.nvtx else ""),
        "",
        *([text(words.chain_label(finding.chain)), ""] if finding.chain else []),
        *(f"- {text(line)}" for line in finding.evidence),
        *(f"- {code(words.row_query(row), limit=300)}" for row in finding.rows),
        *(f"- → {text(advice)}" for advice in finding.advice),
    ]
    return "\n".join(lines).rstrip()


def finding_heading(finding: Finding) -> str:
    """Severity in a sign and a word, then the title, escaped."""
    icon = words.SEVERITY_ICONS.get(finding.severity, "○")
    return f"{icon} {text(finding.severity)}: {text(finding.title)}"


def finding_markdown(report: Report, finding: Finding) -> str:
    """One finding as Markdown, to be pasted into a ticket."""
    return finding_block(report, finding) + f"\n\n{source_line(report)}"


def source_line(report: Report) -> str:
    """What made the report, and of which trace."""
    trace = report.trace
    return " · ".join(
        [
            f"{report.tool.name} {text(report.tool.version)}",
            f"{code(trace.file)} ({format_bytes(trace.size_bytes)})",
            f"fingerprint {code(trace.fingerprint)}",
        ]
    )
