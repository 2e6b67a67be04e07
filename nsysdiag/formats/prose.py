"""The report as Markdown for a ticket, and as text: what a reviewer must see, in tables that GitHub and GitLab draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import EVERYWHERE, Block, Column, Command, Detail, Paragraph, Part, Section, Table, named
from nsysdiag.document.columns import CODE, MARK, TEXT
from nsysdiag.document.markup import Piece, comment, markdown_blocks, markdown_of
from nsysdiag.document.names import MARKER, code, text, visible
from nsysdiag.document.text import heading, printed, text_of, wide_enough
from nsysdiag.document.view import Context
from nsysdiag.findings import show as findings
from nsysdiag.formats import RenderOptions, sections
from nsysdiag.formats.batch import entries
from nsysdiag.replay.show import outlooks
from nsysdiag.trace.show import source
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from nsysdiag.report import Report


# Budgets in a comment on a pull request: what is broken, what is not known, and the command that accepts it.

MOST_COMMANDS = 10
COLUMNS = (Column("Budget", CODE, head=True, length=120), Column("State", MARK), Column("What", TEXT, length=400))


def section(options: RenderOptions) -> Section:
    """Broken budgets, those that fail first, then those that cannot be judged; without blocks if there is none."""
    broken = entries.failing_first(each for each in options.budgets if each.broken)
    rows = [(each.budget, entries.budget_mark(each), each.sentence) for each in broken]
    unjudged = entries.shown_unjudged(options.unjudged)
    rows += [(each.budget, entries.budget_mark(each), entries.not_judged(each)) for each in unjudged]
    commands = [command for each in broken if entries.fails(each) and (command := options.accept.get(each.id))]
    blocks: list[Block] = [Table("", COLUMNS, rows, sortable=False, noun="budgets", limit=EVERYWHERE)]
    if commands:
        blocks += [Paragraph("To accept it:"), *map(Command, commands[:MOST_COMMANDS])]
    return Section("budgets", "Budgets" if rows else "", blocks)


def render_markdown(report: Report, options: RenderOptions) -> bytes:
    """The first screen and the findings, or with `details` all sections, under a marker comment by which a later run
    finds its own file again."""
    context = Context.of(report)
    report = context.report
    if options.comment:
        return _comment(context, options.comment, options)
    blocks = [MARKER, f"# nsysdiag: {code(report.trace.file)}"]
    if options.details or report.diagnosis is None:
        blocks += _in_full(context)
    else:
        found = diagnosis.summary(context)
        blocks += markdown_of(Section("diagnosis", "", found.blocks if found else ()), 2)
        blocks += markdown_of(outlooks.section(context), 2)
        blocks += markdown_of(findings.ticket(report), 2)
    blocks += ["---", *markdown_blocks([Paragraph(_origin(report, options))], 2)]
    return ("\n\n".join(blocks) + "\n").encode()


def _comment(context: Context, key: str, options: RenderOptions) -> bytes:
    """Budgets and the first screen, and folded below them the findings, or with `details` all sections."""
    report, found = context.report, diagnosis.summary(context)
    pieces = [
        Piece(section(options), 0),
        *([Piece(Section("diagnosis", "Diagnosis", found.blocks), 1)] if found else []),
    ]
    pieces += [
        Piece(section, weight, folded=True)
        for section, weight in ((outlooks.section(context), 3), (findings.ticket(report), 2))
        if section is not None
    ]
    if options.details or report.diagnosis is None:
        for group in sections.groups(context):
            where = f"{group.device.key}: " if group.nested and group.device else ""
            pieces += [Piece(each, 4, folded=True, title=f"{where}{each.title}") for each in group.sections]
    return comment(key, report.trace.file, pieces, _origin(report, options), options.report_url)


def _origin(report: Report, options: RenderOptions) -> list[Part]:
    created = f" · {options.created}" if options.created else ""
    return [*source(report), *named(" · ", options.command), created]


def _in_full(context: Context) -> list[str]:
    blocks = []
    for group in sections.groups(context):
        if group.device and group.nested:
            blocks.append(f"## {text(group.device.name)} ({text(group.device.key)})")
        blocks += [line for section in group.sections for line in markdown_of(section, 3 if group.nested else 2)]
    return blocks


def is_markdown(data: bytes) -> bool:
    """Does the document begin with our marker?"""
    return data.lstrip().startswith(MARKER.encode())


# The summary that a person reads first, in the terminal or as a text file.


def render_text(report: Report, options: RenderOptions) -> bytes:
    """The first screen, or with `details` all sections, as plain text of `options.width` columns, with colours only if
    requested."""
    width = wide_enough(options.width)
    context = Context.of(report)
    in_full = options.details or report.diagnosis is None
    blocks = _all_sections(context, width) if in_full else _first_screen(context, width)
    facts = [fact for fact in (options.source, options.command, options.created) if fact]
    origin = [Text(f"\n{visible(' · '.join(facts))}", "dim")] if facts else []
    return printed(Group(_head(report), *blocks), origin, width, color=options.color)


def _first_screen(context: Context, width: int) -> list[RenderableType]:
    """What a person needs first."""
    shown = [
        Section("diagnosis", "", diagnosis.opening(context)),
        findings.brief(context.report),
        Section("gpus", "", diagnosis.each_gpu(context)),
        Section("unknown", "", diagnosis.closing(context)),
    ]
    return [line for section in shown for line in text_of(section, Detail.SUMMARY, width)]


def _all_sections(context: Context, width: int) -> list[RenderableType]:
    blocks: list[RenderableType] = []
    for group in sections.groups(context):
        if group.device and group.nested:
            key = group.device.key
            blocks.append(heading(f"Details of {key}", f"more of it: --device {key}, and the other formats"))
        detail = Detail.BRIEF if group.nested else Detail.SUMMARY
        blocks += [line for section in group.sections for line in text_of(section, detail, width)]
    return blocks


def _head(report: Report) -> Text:
    trace = report.trace
    facts = [trace.file, format_bytes(trace.size_bytes)]
    facts += [f"nsys {trace.nsys_version}"] if trace.nsys_version else []
    return Text(f"{report.tool.name} {visible(report.tool.version)} · " + " · ".join(visible(fact) for fact in facts))


def is_text(data: bytes) -> bool:
    """Does the first line begin with our name?"""
    return data.startswith(b"nsysdiag ")
