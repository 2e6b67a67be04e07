"""The figures of a result by name: one for each chart that its page draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, cycle
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import summed
from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show import sections as of_comparison
from nsysdiag.document import blocks as b
from nsysdiag.document import drawings as d
from nsysdiag.document.blocks import as_cell, columns_of, cut, shown
from nsysdiag.document.columns import STACK
from nsysdiag.document.drawings import LegendEntry, stack
from nsysdiag.document.names import visible
from nsysdiag.document.view import Causes, Context, as_read, window_parts
from nsysdiag.document.words import NO_GPU_WORK
from nsysdiag.formats import sections as of_report
from nsysdiag.formats.plots import FIGURES, curve, empty, stacks
from nsysdiag.gap_groups.show import gap_lengths
from nsysdiag.launches.show import queue_depth
from nsysdiag.messages import UsageError
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show import blocks as of_ranks
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.show import blocks as of_prediction

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report

DEVICE_COLORS = ("#2b6cb8", "#9c640c", "#1c7444", "#7d55b5", "#b3261e", "#0e7490")
NO_GAPS, NO_DEPTH = "No gaps", "Not in this report"


class NamedFigure(Struct, frozen=True):
    """A chart of the page, the title of its figure, and what is said below that."""

    title: str
    said: str
    chart: b.Chart


class Figures(Mapping[str, go.Figure]):
    """Figures by name, in the order of the page. Each is made on each access."""

    def __init__(self, charts: dict[str, NamedFigure]) -> None:
        self._charts = charts

    def __getitem__(self, name: str) -> go.Figure:
        return drawn(self._charts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._charts)

    def __len__(self) -> int:
        return len(self._charts)

    def __repr__(self) -> str:
        """The names, a line each."""
        return "\n".join([f"<{len(self)} figures>", *map(visible, self)])


def figures(result: Report | RanksReport | Comparison | WhatIf) -> Figures:
    """A plotly figure for each chart on the page of a result, by name: the id of its section on the page, below the key
    of its device (`gpu0/iterations`). Charts of a section with several have their own names (`diagnosis/phases`).

    A figure has the values of the drawing on the page, with all digits in the tooltip. It looks the same with any
    default template. Raises InputError if a saved result is damaged.
    """
    return Figures(charts(result))


def charts(result: Report | RanksReport | Comparison | WhatIf) -> dict[str, NamedFigure]:
    """The charts of the page by the names of their figures. Raises InputError if a saved result is damaged."""
    found: dict[str, NamedFigure] = {}
    for device, section in _sections(result):
        for heading, chart in _charts(section.blocks):
            name = "/".join(part for part in (device, section.id, chart.id) if part)
            title = ": ".join(part for part in (device, section.title) if part)
            said = ". ".join(part.removesuffix(".") for part in (heading, chart.label, *chart.captions) if part)
            found[_free(name, found)] = NamedFigure(title, f"{said}.", chart)
    return found


def _free(name: str, taken: dict[str, NamedFigure]) -> str:
    """The name, or with a number behind it: a saved result may hold a device twice."""
    numbered = (f"{name}-{at}" for at in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)


def _sections(result: Report | RanksReport | Comparison | WhatIf) -> Iterator[tuple[str, b.Section]]:
    """The sections of the page, each with the key of the device that it is about, or nothing."""
    match result:
        case RanksReport():
            yield from (("", section) for section in of_ranks.sections(result))
        case WhatIf():
            yield from (("", section) for section in of_prediction.sections(result))
        case Comparison():
            found, several = as_read(result), len(result.devices) > 1
            causes = Causes(found.causes)
            for device in found.devices:
                for section in of_comparison.of_device(device, causes, several=several):
                    yield device.key, section
        case _:
            for group in of_report.groups(Context.of(result)):
                yield from ((group.device.key if group.device else "", section) for section in group.sections)


def _charts(blocks: Sequence[b.Block], heading: str = "") -> Iterator[tuple[str, b.Chart]]:
    """The charts among blocks of the page, each with the title that it is folded or entered under."""
    for block in shown(blocks, b.Detail.PAGE):
        match block:
            case b.Chart():
                yield heading, block
            case b.Table():
                yield from ((heading, chart) for chart in _in_cells(block))
            case b.Custom(view=view):
                yield from ((heading, chart) for chart in view().get("charts", ()))
            case b.Details(title=title, blocks=inside) | b.Entry(title=title, blocks=inside):
                yield from _charts(inside, title)


def _in_cells(table: b.Table) -> Iterator[b.Chart]:
    """A chart for each column of stacked bars, with the name of the row next to each bar."""
    rows = cut(table.rows, table.limit, b.Detail.PAGE)
    for at in columns_of(table, b.Detail.PAGE):
        if table.columns[at].kind is STACK:
            bars = [(_row_name(table, row), as_cell(row[at]).value) for row in rows]
            held = [(name, bar) for name, bar in bars if isinstance(bar, d.StackedBar)]
            if held:
                yield b.Chart(d.Stacks(held), table.title, id=_slug(table.columns[at].title))


def _row_name(table: b.Table, row: Sequence[object]) -> str:
    """What the head of a row says, and columns without a title, which belong to it."""
    held = zip(table.columns, map(as_cell, row), strict=True)
    return " ".join(_text(column, cell) for column, cell in held if column.head or not column.title)


def _text(column: b.Column, cell: b.Cell) -> str:
    match cell.value:
        case b.Name(text=text) | LegendEntry(label=text):
            return text
        case value:
            return (cell.kind or column.kind).text(value)


def _slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def drawn(named: NamedFigure) -> go.Figure:
    """A chart of the page as a figure."""
    return FIGURES[type(named.chart.drawing)](named.chart.drawing, named.title, named.said)


# Figures that have several devices in one.


def ledger_chart(report: Report) -> go.Figure:
    """One stacked bar a device, as long as its window: what ran, then the idle time by cause, longest first."""
    title, causes = "Where the time of each device went", Causes(report.causes)
    if not report.devices:
        return empty(title, NO_GPU_WORK)
    total = summed(device.ledger for device in report.devices)
    order = sorted(total, key=lambda cause: (-total[cause], cause))
    rows = []
    for device in report.devices:
        busy = [(LegendEntry(part.label, part.id, ""), part.ns) for part in window_parts(device) if part.id != "idle"]
        named = [LegendEntry(f"Idle: {causes.title(each)}", "", causes[each].color) for each in order]
        idle = zip(named, (device.ledger.get(each, 0) for each in order), strict=True)
        rows.append((f"{device.key} {device.name}", d.StackedBar("", stack([*busy, *idle]), device.window_ns)))
    return stacks(d.Stacks(rows), title, "")


def gap_chart(report: Report, device: str | None = None) -> go.Figure:
    """All gaps by length, in bins of 1, 2 and 5 times a power of ten: their number above, their time below, both
    stacked by the gaps' dominant cause.

    `device` is the key of one device, None means all. Raises UsageError for an unknown key, InputError if a saved
    report is damaged.
    """
    chosen = _chosen(report, device)
    title = f"Gaps by length, {device or 'all devices'}"
    if not any(each.gaps_packed.count for each in chosen):
        return empty(title, NO_GAPS if report.devices else NO_GPU_WORK)
    chart = gap_lengths(chosen, Causes(report.causes))
    return FIGURES[type(chart.drawing)](chart.drawing, title, chart.captions[0])


def queue_depth_chart(report: Report, device: str | None = None) -> go.Figure:
    """The operations that were launched and had not finished over time: the mean, in a band from lowest to highest.

    `device` is the key of one device, None means all. Raises UsageError for an unknown key, InputError if a saved
    report is damaged.
    """
    title = f"Operations launched and not finished, {device or 'all devices'}"
    depths = [(each.key, each.launch.queue_depth) for each in _chosen(report, device)]
    curves = [(key, made) for key, depth in depths if depth and (made := queue_depth(depth, 1))]
    if not curves:
        return empty(title, NO_DEPTH if report.devices else NO_GPU_WORK)
    layers = [
        replace(layer, label=key if layer.look == "line" else f"{key}: {layer.label}", color=color)
        for (key, made), color in zip(curves, cycle(DEVICE_COLORS), strict=False)
        for layer in made.layers
    ]
    highest = max((made for _key, made in curves), key=lambda made: made.top)
    return curve(replace(highest, layers=layers), title, "")


def _chosen(report: Report, key: str | None) -> list[DeviceReport]:
    chosen = [device for device in report.devices if key in (None, device.key)]
    if key is not None and not chosen:
        known = ", ".join(visible(device.key) for device in report.devices) or "none"
        raise UsageError(f"the report has no device '{visible(key)}'", hint=f"its devices are: {known}")
    return chosen
