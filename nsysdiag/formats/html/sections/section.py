"""Sections that the page draws with templates of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from nsysdiag.document.blocks import Block, Custom, Section

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport

    ReportSection = Callable[[Context], Section | None]
    DeviceSection = Callable[[DeviceReport, Context], Section | None]

View = dict[str, object]


def report_section(
    id: str,
    title: str,
    there: Callable[[Context], object],
    view: Callable[[Context], View],
    fallback: Callable[[Context], list[Block]] = lambda _context: [],
) -> ReportSection:
    """`view` gives the values for `templates/sections/ID.html`, for the page alone; other formats show the blocks of
    `fallback`. The section is left out where nothing of it is `there`."""

    def section(context: Context) -> Section | None:
        return _section(id, title, partial(view, context), fallback(context)) if there(context) else None

    return section


def device_section(
    id: str,
    title: str,
    there: Callable[[DeviceReport], object],
    view: Callable[[Context, DeviceReport], View],
    fallback: Callable[[DeviceReport, Context], list[Block]] = lambda _device, _context: [],
) -> DeviceSection:
    """The same for each device."""

    def section(device: DeviceReport, context: Context) -> Section | None:
        made = partial(view, context, device)
        return _section(id, title, made, fallback(device, context)) if there(device) else None

    return section


def _section(id: str, title: str, view: Callable[[], View], fallback: list[Block]) -> Section:
    return Section(id, title, [Custom(f"sections/{id}.html", cache(view), fallback)])
