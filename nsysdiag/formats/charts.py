"""The report as plotly figures, for a notebook: the time of each device, the lengths of its gaps, and its queue
depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from msgspec import Struct

from nsysdiag.document.figures import safe_color
from nsysdiag.document.histogram import bound, tally_gaps, unit_of
from nsysdiag.document.names import plain, visible
from nsysdiag.document.packed import QueueBuckets, unpack_series
from nsysdiag.document.view import Causes, window_parts
from nsysdiag.document.words import NO_GPU_WORK, counted
from nsysdiag.formats.figures.look import GRID, PART_COLORS, ROWS, blank, with_legend
from nsysdiag.messages import UsageError
from nsysdiag.units import format_exact_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report

DEVICE_COLORS = ("#2b6cb8", "#9c640c", "#1c7444", "#7d55b5", "#b3261e", "#0e7490")
IDLE = "idle"
NO_GAPS, NO_DEPTH = "No gaps", "Not in this report"


class _Bars(Struct, frozen=True):
    """Bars of one colour: the time of one part or cause on each device."""

    label: str
    color: str
    ns: list[int]


def ledger_chart(report: Report) -> go.Figure:
    """One stacked bar a device, as long as its window: what ran, then the idle time by cause, longest first.

    `customdata` of each trace holds the exact nanoseconds behind its bars, in the order of `report.devices`, and the
    two lines that the pointer shows.
    """
    devices = report.devices
    scale, unit = unit_of(max((device.window_ns for device in devices), default=0))
    bars_of_all = _ledger_bars(report)
    figure = blank("Where the time of each device went", 64 * max(len(devices), 1))
    figure.update_layout(barmode="stack", bargap=0.4)
    figure.update_xaxes(title={"text": f"Time in the window ({unit})"}, **GRID)
    figure.update_yaxes(title={"text": "Device", "standoff": 12}, type="category", autorange="reversed", **ROWS)
    labels = [plain(device.key) + "<br>" + plain(device.name) for device in devices]
    for bars in bars_of_all:
        figure.add_bar(
            orientation="h",
            name=plain(bars.label),
            y=labels,
            x=[ns / scale for ns in bars.ns],
            marker={"color": bars.color},
            customdata=[
                [ns, format_exact_ns(ns), plain(f"{format_share(ns, device.window_ns)} of the window")]
                for ns, device in zip(bars.ns, devices, strict=True)
            ],
            hovertemplate="%{fullData.name}<br>%{y}<br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
        )
    return with_legend(figure) if devices else _empty(figure, NO_GPU_WORK)


def _ledger_bars(report: Report) -> list[_Bars]:
    devices = report.devices
    parts = zip(*(window_parts(device) for device in devices), strict=True)
    busy = [
        _Bars(part[0].label, PART_COLORS[part[0].id], [each.ns for each in part])
        for part in parts
        if part[0].id != IDLE
    ]
    causes = Causes(report.causes)
    ids = {cause for device in devices for cause in device.ledger}
    idle = [
        _Bars(f"Idle: {causes.title(cause)}", safe_color(causes[cause].color), _ledger_ns(devices, cause))
        for cause in sorted(ids, key=lambda cause: (-sum(_ledger_ns(devices, cause)), cause))
    ]
    return [bars for bars in (*busy, *idle) if any(bars.ns)]


def _ledger_ns(devices: list[DeviceReport], cause: str) -> list[int]:
    return [device.ledger.get(cause, 0) for device in devices]


def gap_chart(report: Report, device: str | None = None) -> go.Figure:
    """All gaps by length, in bins of 1, 2 and 5 times a power of ten: their number above, their time below, both
    stacked by the gaps' dominant cause.

    `device` is the key of one device, None means all. `customdata` of each trace holds the number of gaps and the exact
    nanoseconds of each bar, and the two lines of its tooltip. Raises UsageError for an unknown key, InputError where a
    saved report is damaged.
    """
    chosen = _chosen(report, device)
    tallies = tally_gaps(chosen)
    known = Causes(report.causes)
    where = "all devices" if device is None else plain(device)
    figure = blank(f"Gaps by length, {where}", 400, "By the dominant cause of each gap.")
    figure.update_layout(barmode="stack", bargap=0)
    if not tallies:
        return _empty(figure, NO_GAPS if report.devices else NO_GPU_WORK)
    used = np.flatnonzero(sum(tally.count for tally in tallies.values()))
    first, last = int(used[0]), int(used[-1])
    scale, unit = unit_of(max(int(tally.ns.sum()) for tally in tallies.values()))
    _gap_axes(figure, first, last, unit)
    for cause, tally in tallies.items():
        shown = slice(first, last + 1)
        look = {"name": plain(known.title(cause)), "color": safe_color(known[cause].color)}
        _gap_bars(figure, first, tally.count[shown].tolist(), tally.ns[shown].tolist(), scale, look)
    return with_legend(figure)


def queue_depth_chart(report: Report, device: str | None = None) -> go.Figure:
    """The operations that were launched and had not finished over time: the mean, in a band from lowest to highest.

    `device` is the key of one device, None means all. `customdata` of each mean holds the lowest and the highest depth.
    Raises UsageError for an unknown key, InputError where a saved report is damaged.
    """
    chosen = [each for each in _chosen(report, device) if each.launch.queue_depth is not None]
    where = "all devices" if device is None else plain(device)
    figure = blank(f"Operations launched and not finished, {where}", 300)
    scale, unit = unit_of(max((each.window.end_ns for each in chosen), default=0))
    figure.update_xaxes(title={"text": f"Time in the trace ({unit})"}, **GRID)
    figure.update_yaxes(title={"text": "Operations"}, rangemode="tozero", **GRID)
    for at, each in enumerate(chosen):
        if each.launch.queue_depth is not None:
            _depth(figure, each, unpack_series(each.launch.queue_depth), scale, DEVICE_COLORS[at % len(DEVICE_COLORS)])
    return with_legend(figure) if chosen else _empty(figure, NO_DEPTH if report.devices else NO_GPU_WORK)


def _depth(figure: go.Figure, device: DeviceReport, series: QueueBuckets, scale: int, color: str) -> None:
    """The band as an outline without a line, then the mean. The last bucket is drawn to its end."""
    time = [edge / scale for edge in series.edges.tolist()]
    lowest, mean, highest = (
        [*values.tolist(), values.tolist()[-1]] for values in (series.lowest, series.mean, series.highest)
    )
    common = {"x": time, "legendgroup": plain(device.key), "mode": "lines"}
    edge = {"shape": "hv", "width": 0, "color": color}
    figure.add_scatter(y=lowest, line=edge, showlegend=False, hoverinfo="skip", **common)
    figure.add_scatter(y=highest, line=edge, fill="tonexty", showlegend=False, hoverinfo="skip", **common)
    figure.add_scatter(
        y=mean,
        line={"shape": "hv", "width": 1.5, "color": color},
        name=plain(device.key),
        customdata=list(zip(lowest, highest, strict=True)),
        hovertemplate="%{fullData.name}<br>mean %{y:.1f}, %{customdata[0]} to %{customdata[1]}<extra></extra>",
        **common,
    )


def _chosen(report: Report, key: str | None) -> list[DeviceReport]:
    chosen = [device for device in report.devices if key in (None, device.key)]
    if key is not None and not chosen:
        known = ", ".join(visible(device.key) for device in report.devices) or "none"
        raise UsageError(f"the report has no device '{visible(key)}'", hint=f"its devices are: {known}")
    return chosen


def _gap_axes(figure: go.Figure, first: int, last: int, unit: str) -> None:
    """Two charts above each other, on one axis whose ticks are the bounds of the bins."""
    ticks = range(first, last + 2)
    figure.update_layout(
        xaxis={
            "title": {"text": "Length of the gap"},
            "tickvals": list(ticks),
            "ticktext": [bound(at) for at in ticks],
            "range": [first - 0.1, last + 1.1],
            "anchor": "y2",
            "zeroline": False,
        },
        yaxis={"title": {"text": "Number of gaps"}, "domain": [0.54, 1], **GRID},
        yaxis2={"title": {"text": f"Idle time ({unit})"}, "domain": [0, 0.46], **GRID},
    )


def _gap_bars(figure: go.Figure, first: int, count: list[int], ns: list[int], scale: int, look: dict[str, str]) -> None:
    exact = [
        [number, time, f"{counted(number, 'gap')} from {bound(at)} to {bound(at + 1)}", format_exact_ns(time)]
        for at, (number, time) in enumerate(zip(count, ns, strict=True), start=first)
    ]
    for axis, heights in (("y", count), ("y2", [time / scale for time in ns])):
        figure.add_bar(
            name=look["name"],
            legendgroup=look["name"],
            showlegend=axis == "y",
            x=[first + at + 0.5 for at in range(len(count))],
            y=heights,
            width=1,
            yaxis=axis,
            marker={"color": look["color"]},
            customdata=exact,
            hovertemplate="%{fullData.name}<br>%{customdata[2]}<br>%{customdata[3]}<extra></extra>",
        )


def _empty(figure: go.Figure, why: str) -> go.Figure:
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure.add_annotation(text=why, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
