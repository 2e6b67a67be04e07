"""Sections that the page draws with templates of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nsysdiag.document.blocks import Block, Custom, Section

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport

View = dict[str, object]


def report_section(
    id: str,
    title: str,
    view: Callable[[Context], View | None],
    fallback: Callable[[Context], list[Block]] = lambda _context: [],
) -> Callable[[Context], Section | None]:
    """`view` gives the values for `templates/sections/ID.html`, None to leave the section out; other formats show
    the blocks of `fallback`."""

    def section(context: Context) -> Section | None:
        values = view(context)
        return (
            None if values is None else Section(id, title, [Custom(f"sections/{id}.html", values, fallback(context))])
        )

    return section


def device_section(
    id: str,
    title: str,
    view: Callable[[Context, DeviceReport], View | None],
    fallback: Callable[[DeviceReport, Context], list[Block]] = lambda _device, _context: [],
) -> Callable[[DeviceReport, Context], Section | None]:
    """The same for each device."""

    def section(device: DeviceReport, context: Context) -> Section | None:
        values = view(context, device)
        if values is None:
            return None
        return Section(id, title, [Custom(f"sections/{id}.html", values, fallback(device, context))])

    return section
