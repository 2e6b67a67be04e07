"""The display of a result or a finding at the end of a notebook cell: what a ticket has, its Markdown made HTML.

It brings neither scripts nor colours: text, lines and backgrounds are those of the notebook, light or dark. Names are
made visible and escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import chain

from markdown_it import MarkdownIt

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show import job, sections, tables
from nsysdiag.comparison.show.words import files_label
from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import Block, Paragraph, named
from nsysdiag.document.markup import at_most, markdown_blocks
from nsysdiag.document.view import Context, as_read
from nsysdiag.document.words import counted, path_label
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.show import items_of
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show import blocks as ranks
from nsysdiag.ranks.show.blocks import NOUN as RANKS
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.show import blocks as whatif
from nsysdiag.replay.show import outlooks as whatif_words
from nsysdiag.report import Report
from nsysdiag.trace.show import source

MOST_FINDINGS, MOST_DEVICES, MOST_FILES = 7, 8, 3


@singledispatch
def cell(record: object) -> str:
    """A piece of HTML without scripts, colours or links: the first screen of a result, or a finding. Raises TypeError
    for any other record."""
    raise TypeError(f"a {type(record).__name__} is not drawn")


@cell.register(Report)
def _(report: Report) -> str:
    context = Context.of(report)
    report = context.report
    found = diagnosis.summary(context)
    blocks: list[Block] = [*(found.blocks if found else ()), *_first_findings(report.findings, len(report.devices))]
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
    blocks = [*headline, *sections.verdict(comparison).blocks, *job.brief(comparison), *tables.in_brief(comparison)]
    return fragment(f"nsysdiag: {files_label(comparison.before)} → {files_label(comparison.after)}", blocks)


@cell.register(RanksReport)
def _(report: RanksReport) -> str:
    report = as_read(report)
    names = [each.file for each in report.traces]
    files = ", ".join(names[:MOST_FILES])
    more = f" and {len(names) - MOST_FILES:,} more" if len(names) > MOST_FILES else ""
    first = _first_findings(report.findings, len(report.judged), RANKS)
    parts = [first if each.id == "findings" else each.blocks for each in ranks.sections(report)]
    return fragment(f"nsysdiag: ranks of {files}{more}", [*chain.from_iterable(parts)])


@cell.register(WhatIf)
def _(prediction: WhatIf) -> str:
    prediction = as_read(prediction)
    blocks = chain.from_iterable(each.blocks for each in whatif.sections(prediction))
    headline = Paragraph(whatif_words.headline(prediction), "verdict")
    return fragment(f"nsysdiag: {prediction.trace.file}", [headline, *blocks])


def _first_findings(findings: Sequence[Finding], devices: int, noun: str = "GPUs") -> list[Block]:
    """The first findings of a job of so many devices, and the number of the others."""
    if not findings:
        return []
    left = len(findings) - MOST_FINDINGS
    rest = [Paragraph(f"{counted(left, 'more finding')}.", "quiet")] if left > 0 else []
    return [items_of(findings[:MOST_FINDINGS], devices, noun), *rest]


MOST_BYTES = 50_000
"""Notebooks keep every output in their file."""
MOST_ROWS = 30
AROUND = "color:inherit;background:none;overflow-x:auto;max-width:70em"
REST = Paragraph("The rest is left out: save() writes the whole page.", "quiet")


def fragment(title: str, blocks: Sequence[Block]) -> str:
    """The blocks under a title, the first ones of them if all would be too many for a cell."""
    shown = [Paragraph(title, "strong"), *(at_most(block, MOST_ROWS) for block in blocks)]
    return f'<div style="{AROUND}">{"".join(_within(MOST_BYTES, shown))}</div>'


def _within(most: int, blocks: Sequence[Block]) -> Iterator[str]:
    """The pieces of blocks as long as they fit into so many bytes."""
    for piece in map(_html, markdown_blocks(blocks, 4)):
        most -= len(piece.encode())
        if most < 0:
            yield from map(_html, markdown_blocks([REST], 4))
            return
        yield piece


def _html(piece: str) -> str:
    """Without HTML of its own: what is not Markdown is text."""
    made = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(piece))
    return made.replace('<code class="language-sh">', "<code>").replace("\n", " ")
