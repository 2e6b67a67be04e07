"""Two sides compared as Markdown for a ticket: tables of before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.comparison.show import job, sections, words
from nsysdiag.document.blocks import Name, Part
from nsysdiag.document.markdown import markdown_blocks, markdown_of, markdown_page
from nsysdiag.document.markup import text
from nsysdiag.document.view import Causes
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.comparison.facts import Comparison, SideTrace
    from nsysdiag.formats.format import RenderOptions


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The comparison as Markdown, with the marker by which a later run finds its own file again."""
    causes, several = Causes(comparison.causes), len(comparison.devices) > 1
    blocks = markdown_of(sections.verdict(comparison), 2)
    blocks += markdown_blocks(job.brief(comparison, job.TICKET_BOTTLENECKS), 3)
    for device in comparison.devices:
        blocks.append(f"## {text(device.name_after)} ({text(device.key)})")
        for section in sections.of_device(device, causes, several=several):
            blocks += markdown_of(section, 3)
    blocks += [text(words.ELSEWHERE)] if several else []
    blocks += markdown_of(sections.traces(comparison), 2)
    tool = f"{comparison.tool.name} {comparison.tool.version}"
    origin = [tool, *_side(" · before ", comparison.before), *_side(" · after ", comparison.after)]
    return markdown_page("before and after", blocks, origin, options.command, comparison.headline)


def _side(label: str, traces: Sequence[SideTrace]) -> Iterator[Part]:
    for trace in traces[: words.MOST_FILES]:
        yield from (label, Name(trace.file), f" ({format_bytes(trace.size_bytes)})")
        label = ", "
    if len(traces) > words.MOST_FILES:
        yield f", {len(traces) - words.MOST_FILES:,} more"
