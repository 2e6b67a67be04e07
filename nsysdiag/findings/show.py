"""What is worth doing something about. The page draws findings with a template of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.blocks import TERMINAL, TICKET, Block, Chain, Entry, Lines, Name, Paragraph, Section, Tone, named
from nsysdiag.document.markdown import markdown_blocks
from nsysdiag.document.view import by_rank, device_label, namesake
from nsysdiag.trace.show import source
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.report import Finding, Report

TOP = 6
"""So many findings the terminal shows."""
BRIEF = 3
"""And so many where it shows a screen alone."""
TICKET_LEVEL = 2
TONES: dict[str, Tone] = {"high": "bad", "medium": "note", "low": "good", "info": "quiet"}


def brief(report: Report) -> Section | None:
    """The findings that matter most, two lines each; None where there are none."""
    top, rest = report.findings[:BRIEF], report.findings[BRIEF:]
    if not top:
        return None
    more = f"{words.counted(len(rest), 'more finding')}: --details, or the page."
    return Section("findings", "Findings", [*map(_in_brief, top), *([Paragraph(more, "quiet")] if rest else [])])


def _in_brief(finding: Finding) -> Entry:
    facts = [f"saves {finding.saves.words}"] if finding.saves else []
    facts.append(f"{format_share(finding.share, 1)} of the judged time")
    return Entry(
        finding.title,
        [Paragraph(" · ".join(facts))],
        mark=f"{words.SEVERITY_ICONS.get(finding.severity, '○')} {finding.severity}",
        note=", ".join(finding.devices),
        tone=TONES.get(finding.severity, "plain"),
    )


def blocks(report: Report) -> list[Block]:
    """All findings, the worst first; the terminal has only the worst, and no chain twice."""
    findings = by_rank(report.findings)
    top, rest = findings[:TOP], findings[TOP:]
    more = f"{words.counted(len(rest), 'more finding')} in the other formats."
    note = words.overlap_note(report.findings)
    return [
        *(_entry(report, finding, namesake(finding, top)) for finding in top),
        *(replace(_entry(report, finding, None), limit=TICKET) for finding in rest),
        *([Paragraph(more, "quiet", TERMINAL)] if rest else []),
        *([Paragraph(note, "quiet")] if note else []),
    ]


def finding_markdown(report: Report, finding: Finding) -> str:
    """One finding as Markdown, to be pasted into a ticket."""
    alone: list[Block] = [_entry(report, finding, None), Paragraph(source(report))]
    return "\n\n".join(markdown_blocks(alone, TICKET_LEVEL))


def _entry(report: Report, finding: Finding, earlier: Finding | None) -> Entry:
    """What a finding costs, how sure it is, its chain, evidence and advice; `earlier` is the one on another device that
    has the same chain."""
    advice = finding.advice[:1] if earlier is None or earlier.advice[:1] != finding.advice[:1] else []
    device = device_label(report, finding.device)
    path = named(f"On {device}, in ", words.path_label(finding.nvtx))
    return Entry(
        finding.title,
        [
            Paragraph(_facts(finding)),
            Paragraph([*path, "."] if path else f"On {device}.", limit=TICKET),
            Chain(finding.chain, TICKET),
            Chain(finding.chain[:-1], TERMINAL)
            if earlier is None
            else Paragraph(f"as on {earlier.device}, above", "quiet", TERMINAL),
            *(Paragraph(f"Fix: {each}", "good", TERMINAL) for each in advice),
            Lines(
                [
                    *finding.evidence,
                    *([Name(words.row_query(row))] for row in finding.rows),
                    *(f"→ {each}" for each in finding.advice),
                ],
                TICKET,
            ),
        ],
        mark=f"{words.SEVERITY_ICONS.get(finding.severity, '○')} {finding.severity}",
        note=finding.device if len(report.devices) > 1 else "",
        tone=TONES.get(finding.severity, "plain"),
    )


def _facts(finding: Finding) -> str:
    sure = f"{words.confidence_word(finding.confidence)} ({format_share(finding.confidence, 1)})"
    facts = [f"Lost: {words.lost_sentence(finding)}", f"confidence: {sure}"]
    return " · ".join([*facts, *([words.where_sentence(finding)] if finding.gaps else [])])
