"""Two sides compared as text for the terminal: the headline and the job; in full, where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.comparison.show import job, sections, words
from nsysdiag.document.blocks import Detail
from nsysdiag.document.terminal import heading
from nsysdiag.document.text import text_of, text_page, wide_enough
from nsysdiag.document.view import Causes
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from nsysdiag.comparison.facts import Comparison, SideTrace
    from nsysdiag.formats.format import RenderOptions


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only where asked for: its first screen, or
    with `options.details` all of it."""
    width, causes = wide_enough(options.width), Causes(comparison.causes)
    brief = bool(comparison.headline) and not options.details
    first = text_of(sections.first_screen(comparison), Detail.SUMMARY, width)
    blocks = first if brief else _in_full(comparison, causes, width)
    files = f"{_side(comparison.before)} before, {_side(comparison.after)} after"
    head = f"{comparison.tool.name} {comparison.tool.version} · {files}"
    return text_page(head, blocks, width, options.command, color=options.color)


def _in_full(comparison: Comparison, causes: Causes, width: int) -> list[RenderableType]:
    several = len(comparison.devices) > 1
    detail = Detail.BRIEF if several else Detail.SUMMARY
    blocks = text_of(sections.verdict(comparison), Detail.SUMMARY, width)
    blocks += text_of(job.card(comparison, causes), Detail.SUMMARY, width)
    for device in comparison.devices:
        blocks.append(heading(device.name_after, device.key))
        for section in sections.of_device(device, causes, several=several):
            blocks += text_of(section, detail, width)
    if several:
        blocks.append(heading("", words.ELSEWHERE))
    return [*blocks, *text_of(sections.traces(comparison), detail, width)]


def _side(traces: Sequence[SideTrace]) -> str:
    return f"{words.files_label(traces)} ({format_bytes(sum(trace.size_bytes for trace in traces))})"
