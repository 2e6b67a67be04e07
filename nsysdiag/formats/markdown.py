"""The report as Markdown for a ticket: what a reviewer must see, in tables that GitHub and GitLab draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import Paragraph, Section, named
from nsysdiag.document.context import Context
from nsysdiag.document.markdown import markdown_blocks, markdown_of
from nsysdiag.document.markup import MARKER, code, text
from nsysdiag.findings import show as findings
from nsysdiag.formats import sections
from nsysdiag.formats.format import RenderOptions
from nsysdiag.replay.show import outlooks
from nsysdiag.trace.show import source

if TYPE_CHECKING:
    from nsysdiag.report import Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The first screen and the findings, or with `details` all sections, under a marker comment by which a later run
    finds its own file again."""
    context = Context.of(report)
    report = context.report
    blocks = [MARKER, f"# nsysdiag: {code(report.trace.file)}"]
    if options.details or report.diagnosis is None:
        blocks += _in_full(context)
    else:
        found = diagnosis.summary(context)
        blocks += markdown_of(Section("diagnosis", "", found.blocks if found else ()), 2)
        blocks += markdown_of(outlooks.section(context), 2)
        blocks += markdown_of(findings.ticket(report), 2)
    created = f" · {options.created}" if options.created else ""
    origin = [*source(report), *named(" · ", options.command), created]
    blocks += ["---", *markdown_blocks([Paragraph(origin)], 2)]
    return ("\n\n".join(blocks) + "\n").encode()


def _in_full(context: Context) -> list[str]:
    several = len(context.report.devices) > 1
    blocks = []
    for group in sections.groups(context):
        nested = several and group.device is not None
        if group.device and nested:
            blocks.append(f"## {text(group.device.name)} ({text(group.device.key)})")
        blocks += [line for section in group.sections for line in markdown_of(section, 3 if nested else 2)]
    return blocks


def is_ours(data: bytes) -> bool:
    """Does the document begin with our marker?"""
    return data.lstrip().startswith(MARKER.encode())
