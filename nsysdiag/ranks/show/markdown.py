"""Ranks as Markdown for a ticket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.markup import MARKER, code, table, text
from nsysdiag.document.view import Causes
from nsysdiag.document.words import confidence_word
from nsysdiag.ranks.show import words
from nsysdiag.units import format_bytes, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.facts import RankComparison
    from nsysdiag.ranks.report import RanksReport

TOP_WAITS, TOP_GROUPS = 20, 20


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The comparison as Markdown, with the marker by which a later run finds its own file again."""
    blocks = [MARKER, *rank_blocks(report.comparison, Causes(report.causes), f"# nsysdiag: {words.TITLE.lower()}")]
    warnings = [f"- {text(trace.file)}: {text(warning)}" for trace in report.traces for warning in trace.warnings]
    blocks += ["## Trace health", "\n".join(warnings)] if warnings else []
    return ("\n\n".join([*blocks, _footer(report, options)]) + "\n").encode()


def _footer(report: RanksReport, options: RenderOptions) -> str:
    files = [f"{code(trace.file)} ({format_bytes(trace.size_bytes)})" for trace in report.traces]
    command = [code(options.command, limit=500)] if options.command else []
    return "---\n\n" + " · ".join([f"{report.tool.name} {text(report.tool.version)}", *files, *command])


def rank_blocks(found: RankComparison, causes: Causes, title: str) -> list[str]:
    """The comparison as blocks under a title of its own."""
    blocks = [
        title,
        f"**{text(found.sentence)}**",
        text(f"{words.basis_sentence(found)} {words.imbalance_sentence(found)} {words.clock_sentence(found)}"),
        _ranks(found),
    ]
    blocks += ["### Who is late, and why", _stragglers(found, causes)] if found.stragglers else []
    waits = [f"- {text(words.wait_sentence(wait, causes))}" for wait in found.waits[:TOP_WAITS]]
    blocks += ["### Who waits for whom", "\n".join(waits)] if waits else []
    blocks += ["### Collectives", _groups(found)] if found.groups else []
    return blocks + [f"> Not matched: {text(line)}" for line in found.unmatched]


def _ranks(found: RankComparison) -> str:
    rows = [
        [
            code(row.rank, in_table=True),
            *(
                f"{format_ns(ns)} ({format_share(ns, row.span_ns)})"
                for ns in (row.compute_ns, row.exposed_comm_ns, row.exposed_copy_ns, row.idle_ns)
            ),
            format_ns(row.wait_ns),
            f"{row.late:,}",
            format_ns(row.late_ns),
        ]
        for row in found.ranks
    ]
    header = ["Rank", "Compute", "Exposed communication", "Exposed copies", "Idle", "Waited", "Late", "By"]
    return table(header, "lrrrrrrr", rows)


def _stragglers(found: RankComparison, causes: Causes) -> str:
    rows = [
        [
            code(late.rank, in_table=True),
            f"{late.late:,} of {late.of:,}",
            format_ns(late.late_ns),
            format_ns(late.caused_ns),
            text(words.reasons(late.more, causes)),
            text(words.reasons(late.meanwhile, causes)),
            confidence_word(late.confidence),
        ]
        for late in found.stragglers
    ]
    header = ["Rank", "Late", "In all", "Others waited", "More than others", "While they waited", "Confidence"]
    return table(header, "lrrrlll", rows)


def _groups(found: RankComparison) -> str:
    rows = [
        [
            text(f"{group.kind}{words.on_communicator(group)}"),
            text(words.ranks_label(group.ranks)),
            f"{group.count:,}",
            format_ns(group.transfer_ns),
            format_ns(group.wait_ns),
            format_ns(group.spread_ns),
            f"{group.late:,}",
        ]
        for group in found.groups[:TOP_GROUPS]
    ]
    header = ["Kind", "Ranks", "Count", "Transfer", "Waits", "Ends within", "With a late rank"]
    return table(header, "llrrrrr", rows)
