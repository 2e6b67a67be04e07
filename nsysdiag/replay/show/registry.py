"""A prediction in every format: text for the terminal, Markdown for a ticket, JSON, and the page. Formats have the
names, suffixes and markers of those of a report."""

from __future__ import annotations

from collections.abc import Callable

from nsysdiag.document.blocks import Detail, Document, Name, Paragraph, Part, Section
from nsysdiag.document.markdown import markdown_of, markdown_page
from nsysdiag.document.text import text_of, text_page, wide_enough
from nsysdiag.formats import RenderOptions
from nsysdiag.formats.html.page import document
from nsysdiag.record import to_json
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.show import outlooks as words
from nsysdiag.replay.show.blocks import sections
from nsysdiag.units import format_bytes


def render_text(found: WhatIf, options: RenderOptions) -> bytes:
    """The prediction as plain text of `options.width` columns, with colours only if requested: one screen, which begins
    with the headline."""
    width = wide_enough(options.width)
    blocks = [block for section in sections(found) for block in section.blocks]
    whole = Section("", "", [Paragraph(words.headline(found), "verdict"), *blocks])
    head = f"{found.tool.name} {found.tool.version} · {found.trace.file} · {format_bytes(found.trace.size_bytes)}"
    drawn = text_of(whole, Detail.SUMMARY, width)
    return text_page(head, drawn, width, options.command, color=options.color)


def render_markdown(found: WhatIf, options: RenderOptions) -> bytes:
    """The prediction as Markdown, with the marker by which a later run finds its own file again."""
    blocks = [line for section in sections(found) for line in markdown_of(section, 2)]
    tool = f"{found.tool.name} {found.tool.version}"
    origin: list[Part] = [tool, " · ", Name(found.trace.file), f" ({format_bytes(found.trace.size_bytes)})"]
    return markdown_page(words.TITLE.lower(), blocks, origin, options.command, words.headline(found))


def render_html(found: WhatIf, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    facts: list[Part] = [Name(found.trace.file), f" · {format_bytes(found.trace.size_bytes)}"]
    page = Document(words.TITLE, sections(found), facts)
    return document(page, found.tool, found.settings, options)


RENDERERS: dict[str, Callable[[WhatIf, RenderOptions], bytes]] = {
    "html": render_html,
    "json": lambda found, _options: to_json(found),
    "md": render_markdown,
    "txt": render_text,
}
