"""What the cell of a notebook shows of a report, a finding or a comparison that stands at its end."""

from __future__ import annotations

from functools import singledispatch

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show import changes, job, sections
from nsysdiag.comparison.show.words import files_label
from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import Block, Paragraph, named
from nsysdiag.document.context import Context
from nsysdiag.document.counted_names import as_read
from nsysdiag.document.fragment import fragment
from nsysdiag.document.words import counted, path_label
from nsysdiag.findings.show import items_of
from nsysdiag.report import Finding, Report
from nsysdiag.trace.show import source

MOST_FINDINGS, MOST_DEVICES = 7, 8


@singledispatch
def cell(record: object) -> str:
    """A piece of HTML without scripts, colours or links: the first screen of a report or a comparison, or a finding.
    Raises TypeError for any other record."""
    raise TypeError(f"a {type(record).__name__} is not drawn")


@cell.register(Report)
def _(report: Report) -> str:
    context = Context.of(report)
    report = context.report
    found = diagnosis.summary(context)
    blocks: list[Block] = [*(found.blocks if found else ())]
    if report.findings:
        blocks.append(items_of(report.findings[:MOST_FINDINGS], len(report.devices)))
    if (left := len(report.findings) - MOST_FINDINGS) > 0:
        blocks.append(Paragraph(f"{counted(left, 'more finding')}.", "quiet"))
    return fragment(f"nsysdiag: {report.trace.file}", [*blocks, Paragraph(source(report), "quiet")])


@cell.register(Finding)
def _(finding: Finding) -> str:
    devices = finding.devices or [finding.device]
    more = len(devices) - MOST_DEVICES
    on = ", ".join(devices[:MOST_DEVICES]) + (f" and {more:,} more" if more > 0 else "")
    where = Paragraph([f"On {on}", *named(", in ", path_label(finding.nvtx)), "."], "quiet")
    return fragment("Finding", [items_of([finding], 1), where])


@cell.register(Comparison)
def _(comparison: Comparison) -> str:
    comparison = as_read(comparison)
    headline = [Paragraph(comparison.headline, "strong")] if comparison.headline else []
    blocks = [*headline, *sections.verdict(comparison).blocks, *job.brief(comparison), *changes.in_brief(comparison)]
    return fragment(f"nsysdiag: {files_label(comparison.before)} → {files_label(comparison.after)}", blocks)
