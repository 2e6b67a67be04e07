"""The summary that a person reads first, in the terminal or as a text file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nsysdiag.diagnosis import show as diagnosis
from nsysdiag.document.blocks import Detail, Section
from nsysdiag.document.names import visible
from nsysdiag.document.text import heading, printed, text_of, wide_enough
from nsysdiag.document.view import Context
from nsysdiag.findings import show as findings
from nsysdiag.formats import sections
from nsysdiag.formats.format import RenderOptions
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from nsysdiag.report import Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The first screen, or with `details` all sections, as plain text of `options.width` columns, with colours only if
    requested."""
    width = wide_enough(options.width)
    context = Context.of(report)
    in_full = options.details or report.diagnosis is None
    blocks = _in_full(context, width) if in_full else _first_screen(context, width)
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


def _in_full(context: Context, width: int) -> list[RenderableType]:
    several = len(context.report.devices) > 1
    blocks: list[RenderableType] = []
    for group in sections.groups(context):
        nested = several and group.device is not None
        if group.device and nested:
            key = group.device.key
            blocks.append(heading(f"Details of {key}", f"more of it: --device {key}, and the other formats"))
        detail = Detail.BRIEF if nested else Detail.SUMMARY
        blocks += [line for section in group.sections for line in text_of(section, detail, width)]
    return blocks


def _head(report: Report) -> Text:
    trace = report.trace
    facts = [trace.file, format_bytes(trace.size_bytes)]
    facts += [f"nsys {trace.nsys_version}"] if trace.nsys_version else []
    return Text(f"{report.tool.name} {visible(report.tool.version)} · " + " · ".join(visible(fact) for fact in facts))


def is_ours(data: bytes) -> bool:
    """Does the first line begin with our name?"""
    return data.startswith(b"nsysdiag ")
