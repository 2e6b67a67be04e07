"""Sections that the page draws with templates of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from nsysdiag.document.blocks import Block, Chart, Custom, Section

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
    charts: Callable[[Context], list[Chart]] = lambda _context: [],
) -> ReportSection:
    """`view` gives the values for `templates/sections/ID.html`, for the page alone, and `charts` the charts that it
    draws; other formats show the blocks of `fallback`. The section is left out where nothing of it is `there`."""

    def section(context: Context) -> Section | None:
        if not there(context):
            return None
        return _section(id, title, partial(view, context), fallback(context), partial(charts, context))

    return section


def device_section(
    id: str,
    title: str,
    there: Callable[[DeviceReport], object],
    view: Callable[[Context, DeviceReport], View],
    fallback: Callable[[DeviceReport, Context], list[Block]] = lambda _device, _context: [],
    charts: Callable[[Context, DeviceReport], list[Chart]] = lambda _context, _device: [],
) -> DeviceSection:
    """The same for each device."""

    def section(device: DeviceReport, context: Context) -> Section | None:
        if not there(device):
            return None
        made, drawn = partial(view, context, device), partial(charts, context, device)
        return _section(id, title, made, fallback(device, context), drawn)

    return section


def _section(
    id: str, title: str, view: Callable[[], View], fallback: list[Block], charts: Callable[[], list[Chart]]
) -> Section:
    return Section(id, title, [Custom(f"sections/{id}.html", cache(view), fallback, charts=charts)])
