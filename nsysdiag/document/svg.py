"""Where the page draws what charts declare: paths, places in per cent, and what the pointer finds.

A plot has units of its own, which the browser stretches to the width; `templates/macros.html` has the elements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.document import drawings as d
from nsysdiag.document.drawings import FULL, legend_entry, placed, shown_levels
from nsysdiag.document.names import clip
from nsysdiag.document.words import instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from nsysdiag.document.columns import CellKind

    Places = npt.NDArray[np.int64]

HEIGHT, SLOT = 1000, 10
"""The height of a plot in its own units, and the width of the place of a bar or a bucket."""
FEWEST_NAMES, NAME_LENGTH = 7, 16
"""So many named places fill the width: each then has room for its name, in narrow windows too."""
THIN = 200
"""More bars than this have no room between them: gaps of less than a pixel only blur."""
SHARE_PERCENT, CHARACTER_PERCENT = 6.5, 1.15
"""How many per cent of a stacked bar a share and one more character of a label take, at the width of a narrow page."""
LEAST_RANGE = 0.05
"""The height of a small line is at least so much of the whole: what is less is noise and looks like it."""


CELL_HEIGHT, THIN_PART = 26, 2_000
"""Of a cell of an icicle, in pixels; and the part of the width from which on something is drawn."""


def percent(part: float, whole: float) -> str:
    """A share as a length for SVG: `12.345%`."""
    return f"{100 * part / whole if whole else 0:.3f}%"


class Path(Struct, frozen=True):
    """A shape: `look` are its classes, `color` its fill if none of them has one."""

    look: str
    color: str
    d: str


class HoverArea(Struct, frozen=True):
    """Where the pointer finds something, in units of the plot, and what it shows."""

    x: int
    width: int
    tooltip: str


class Mark(NamedTuple):
    """A sign above a bar, or a label below: `x` is its middle in per cent of the width."""

    x: str
    text: str


class Plot(Struct, frozen=True):
    """A plot of `width` by HEIGHT units. `lines` and the solid `floors` are levels: from the top in per cent, and the
    label. `marks` are above, `labels` below; lines down are at `moments`, in units."""

    width: int
    paths: list[Path]
    hovers: list[HoverArea] = []
    lines: list[Mark] = []
    floors: list[Mark] = []
    marks: list[Mark] = []
    labels: list[Mark] = []
    moments: list[int] = []
    height: int = HEIGHT


def _level(chart: d.BarChart | d.Curve, value: float) -> int:
    """The distance from the upper edge."""
    return HEIGHT - min(HEIGHT, round(HEIGHT * chart.place(value)))


def _lines(chart: d.BarChart | d.Curve) -> list[Mark]:
    return [Mark(percent(_level(chart, value), HEIGHT), label) for label, value in shown_levels(chart).items()]


def _names(names: Sequence[str], slots: int) -> list[Mark]:
    """The names of the last place and of those before it at even distances, as far as there is room."""
    step = (slots + FEWEST_NAMES - 1) // FEWEST_NAMES
    chosen = sorted(range(len(names) - 1, -1, -step))
    return [Mark(percent(SLOT * at + SLOT // 2, slots * SLOT), clip(names[at], NAME_LENGTH)) for at in chosen]


# Bars.


def bar_plot(chart: d.BarChart) -> Plot:
    """One path for each colour of the bars that count, and one of those that do not."""
    slots = max(len(chart.bars), chart.fewest)
    flags = [(at, "slow" if bar.slow else "left-out") for at, bar in enumerate(chart.bars) if bar.slow or bar.faded]
    return Plot(
        SLOT * slots,
        _rectangles(chart, SLOT if len(chart.bars) > THIN else SLOT - 2),
        hovers=[HoverArea(SLOT * at, SLOT, bar.tooltip) for at, bar in enumerate(chart.bars)],
        lines=_lines(chart),
        floors=[Mark("100%", chart.bottom)] if chart.bottom else [],
        marks=[Mark(percent(at + 0.5, slots), flag) for at, flag in flags],
        labels=_names([bar.name for bar in chart.bars], slots) if chart.named else [],
    )


def _rectangles(chart: d.BarChart, width: int) -> list[Path]:
    drawn: dict[tuple[str, str], list[str]] = {}
    left = (SLOT - width) // 2
    for at, bar in enumerate(chart.bars):
        for share, begin in placed(bar.parts):
            below, level = _level(chart, begin), _level(chart, begin + share.ns)
            if level < below:
                entry = legend_entry(share)
                look = f"{fill_class(entry.part)}{' faded' if bar.faded else ''}".strip()
                piece = f"M{SLOT * at + left} {level}h{width}v{below - level}h-{width}z"
                drawn.setdefault((look, entry.color), []).append(piece)
    return [Path(look, color, "".join(pieces)) for (look, color), pieces in drawn.items()]


def fill_class(part: str) -> str:
    """The class of what has the colour of a part of the time; empty for none."""
    return f"fill-{part}" if part else ""


def histogram_plots(histogram: d.Histogram) -> list[tuple[str, Plot]]:
    """The panels by title, with the edges below the last."""
    plots = [(title, bar_plot(panel)) for title, panel in histogram.panels.items()]
    title, last = plots[-1]
    edges = [Mark(percent(SLOT * at, last.width), label) for at, label in histogram.edges.items()]
    return [*plots[:-1], (title, replace(last, labels=edges))]


# Curves.


class TimeAxis(Struct, frozen=True):
    """The time from `start` to `end`, in ns, over `width` units."""

    start: int
    end: int
    width: int

    def at(self, time: int) -> int:
        """The place of a moment; those of damaged reports may lie outside."""
        return min(max(round(self.width * (time - self.start) / max(self.end - self.start, 1)), 0), self.width)


def _axis(curve: d.Curve) -> TimeAxis:
    series = [layer.series for layer in curve.layers]
    ends = min(each.edges[0] for each in series), max(each.edges[-1] for each in series)
    return TimeAxis(*ends, SLOT * max(len(each.values) for each in series))


def curve_plot(curve: d.Curve) -> Plot:
    """The layers over their common time, or a point for each name."""
    if curve.names:
        return _named_plot(curve)
    axis = _axis(curve)
    return Plot(
        axis.width,
        [Path(f"curve-{layer.look}", "", _path(layer, curve, axis)) for layer in curve.layers],
        hovers=_hovers(curve, axis),
        lines=_lines(curve),
        floors=[
            *(Mark(percent(_level(curve, value), HEIGHT), label) for label, value in curve.limit.items()),
            Mark("100%", curve.bottom),
        ],
    )


def _path(layer: d.CurveLayer, curve: d.Curve, axis: TimeAxis) -> str:
    """Steps, interrupted if no value is known; areas are closed along the floor, or along the lowest values."""
    series = layer.series
    edges = np.array([axis.at(edge) for edge in series.edges])
    levels = np.array([_level(curve, value or 0) for value in series.values])
    floor = np.array([_level(curve, value) for value in series.lowest]) if series.lowest else None
    path = ""
    for known, run in groupby(range(len(levels)), key=lambda at: series.values[at] is not None):
        if known:
            first, *_more = places = list(run)
            at, ends = slice(first, first + len(places)), edges[first : first + len(places) + 1]
            forth = steps(ends, levels[at])
            if layer.look == "line":
                path += f"M{ends[0]} {levels[first]}{forth}"
            elif floor is None:
                path += f"M{ends[0]} {HEIGHT}{forth}V{HEIGHT}z"
            else:
                path += f"M{ends[0]} {levels[first]}{forth}{steps(ends[::-1], floor[at][::-1])}z"
    return path


def steps(edges: Places, levels: Places) -> str:
    """From edge to edge at these levels; a run of equal ones is one step."""
    border = np.flatnonzero(np.append(np.diff(levels) != 0, True))
    pairs = zip(levels[border].tolist(), edges[border + 1].tolist(), strict=True)
    return "".join(f"V{level}H{end}" for level, end in pairs)


def _hovers(curve: d.Curve, axis: TimeAxis) -> list[HoverArea]:
    """At most so many places as the curve has, of equally many steps of the last layer each."""
    first, *others = curve.layers
    edges = curve.layers[-1].series.edges
    bounds = [*edges[: -1 : -(-(len(edges) - 1) // curve.hovers)], edges[-1]]
    shown = [first, *(each for each in others if each.series.values != first.series.values)]
    return [
        HoverArea(
            axis.at(low),
            max(axis.at(high) - axis.at(low), 0),
            f"at {instant(low)}: {', '.join(_told(layer, curve.kind, low, high) for layer in shown)}",
        )
        for low, high in pairwise(bounds)
    ]


def _told(layer: d.CurveLayer, kind: CellKind, low: int, high: int) -> str:
    """The lowest and highest value, or the mean, from one moment to another."""
    series = layer.series
    piece = slice(bisect_right(series.edges, low) - 1, bisect_left(series.edges, high))
    if series.lowest:
        least, most = min(series.lowest[piece]), max(value or 0 for value in series.values[piece])
        return kind.show(most) if least == most else f"{kind.show(least)} to {kind.show(most)}"
    mean = _mean(series, piece, low, high)
    said = "not known" if mean is None else kind.show(mean)
    return f"{layer.label} {said}" if layer.label else said


def _mean(series: d.TimeSeries, piece: slice, low: int, high: int) -> float | None:
    """The mean over the known time; of one step its value as it is."""
    edges = pairwise(series.edges[piece.start : piece.stop + 1])
    held = [
        (min(end, high) - max(begin, low), value)
        for (begin, end), value in zip(edges, series.values[piece], strict=True)
        if value is not None
    ]
    if len(held) < 2:
        return held[0][1] if held else None
    return sum(ns * value for ns, value in held) / sum(ns for ns, _value in held)


def _named_plot(curve: d.Curve) -> Plot:
    """Points with a line through them, which has gaps if a name has no value."""
    slots = max(len(curve.names), FEWEST_NAMES)
    values = curve.layers[0].series.values
    points = [
        None if value is None else f"{SLOT * at + SLOT // 2} {_level(curve, value)}" for at, value in enumerate(values)
    ]
    line = "".join(f"{'L' if before else 'M'}{point}" for before, point in pairwise([None, *points]) if point)
    dots = "".join(f"M{point}h0" for point in points if point)
    told = ["not known" if value is None else curve.kind.show(value) for value in values]
    return Plot(
        SLOT * slots,
        [Path("curve-line", "", line), Path("curve-dots", "", dots)],
        hovers=[HoverArea(SLOT * at, SLOT, f"{name}: {told[at]}") for at, name in enumerate(curve.names)],
        lines=_lines(curve),
        floors=[Mark("100%", curve.bottom)],
        labels=_names(curve.names, slots),
    )


def strip_plots(strips: d.CurveStrips) -> list[Plot]:
    """A plot for each strip."""
    plots = [(curve_plot(strip.curve), _axis(strip.curve)) for strip in strips.strips]
    return [replace(plot, moments=[axis.at(moment) for moment in strips.moments]) for plot, axis in plots]


class SparkLine(Struct, frozen=True):
    """The path of a small line of so many units, and its last point."""

    width: int
    line: str
    dot: str
    height: int = HEIGHT


def spark_line(spark: d.Spark) -> SparkLine:
    """At the scale of its shares, or of LEAST_RANGE if they differ by less."""
    low, high = min(spark.shares), max(spark.shares)
    pad = max(LEAST_RANGE - (high - low), 0.0) / 2 + 0.1 * max(high - low, LEAST_RANGE)
    scale, upper = HEIGHT / (high - low + 2 * pad), high + pad
    points = [f"{SLOT * at} {round(scale * (upper - share))}" for at, share in enumerate(spark.shares)]
    return SparkLine(SLOT * (len(points) - 1), "M" + "L".join(points), f"M{points[-1]}h0")


# Stacked bars, lanes and waterfalls.


class PlacedSegment(Struct, frozen=True):
    """A segment: `x` and `width` are per cent of the bar, `ink` is the colour of the text on it, empty with a part of
    the theme. `has_share` and `has_label` say what is drawn on it: only what fits."""

    segment: d.Segment
    x: str
    width: str
    ink: str
    has_share: bool
    has_label: bool


def segments(bar: d.StackedBar) -> list[PlacedSegment]:
    """The segments from the left."""
    total, found = max(sum(each.ns for each in bar.segments), bar.longest), []
    for each, begin in placed(bar.segments):
        width = 100 * each.ns / total
        room = width - CHARACTER_PERCENT * len(each.label) - (CHARACTER_PERCENT if bar.over_time else SHARE_PERCENT)
        x, ink = percent(begin, total), ink_on(each.color) if each.color else ""
        found.append(PlacedSegment(each, x, percent(each.ns, total), ink, width >= SHARE_PERCENT, room >= 0))
    return found


class PlacedCell(Struct, frozen=True):
    """A cell of an icicle: `x`, `width` and those of its parts are per cent of the whole, `y` is in pixels. `parts` are
    each one, its beginning and its width; `label` is empty if it does not fit."""

    cell: d.IcicleCell
    x: str
    y: int
    width: str
    parts: list[tuple[d.Segment, str, str]]
    label: str


def icicle_cells(icicle: d.Icicle) -> list[PlacedCell]:
    """The cells at their places; parts smaller than a pixel of a wide page are left out."""
    found, whole = [], icicle.whole
    for cell in icicle.cells:
        parts = [
            (each, percent(begin, whole), percent(each.ns, whole))
            for each, begin in placed(cell.parts, cell.start)
            if THIN_PART * each.ns >= whole
        ]
        label = cell.label if fits(cell.label, cell.ns, whole) else ""
        x, width = percent(cell.start, whole), percent(cell.ns, whole)
        found.append(PlacedCell(cell, x, CELL_HEIGHT * cell.depth, width, parts, label))
    return found


def icicle_height(icicle: d.Icicle) -> int:
    """In pixels."""
    return CELL_HEIGHT * (1 + max((cell.depth for cell in icicle.cells), default=-1))


def fits(text: str, ns: int, whole: int) -> bool:
    """Whether a text without a share fits on its part of a bar."""
    return 100 * ns >= CHARACTER_PERCENT * (len(text) + 1) * whole


def ink_on(color: str) -> str:
    """Black or white, whichever stands out more from `color` (#rrggbb): always at a contrast of 4.5 or more."""
    light = _luminance(color)
    return "#000000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#ffffff"


def _luminance(color: str) -> float:
    """The relative luminance of an sRGB colour, as WCAG defines it."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else float(((each + 0.055) / 1.055) ** 2.4) for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lane_paths(lane: d.DrawnLane) -> list[Path]:
    """The areas of a lane, from the bottom up, in units of FULL by a bucket."""
    edges = np.arange(lane.buckets + 1)
    return [
        Path(fill_class(area.part), area.color, f"M0 {FULL}{steps(edges, FULL - area.heights)}V{FULL}z")
        for area in lane.areas
    ]


def group_widths(lanes: d.DrawnLanes) -> list[str]:
    """How much of the width each group takes, in proportion to the longest."""
    lengths = [max(group.end_ns - group.start_ns, 1) for group in lanes.groups]
    return [percent(length, max(lengths)) for length in lengths]


class PlacedStep(Struct, frozen=True):
    """A bar of a waterfall: where it begins and how wide it is. `begin` and `end` are where lines lead to the bars
    above and below."""

    x: str
    width: str
    begin: str
    end: str


def waterfall_steps(fall: d.Waterfall) -> list[PlacedStep]:
    """The places of the bars."""
    found = []
    for bar in fall.bars:
        left, right = sorted((fall.low if bar.is_length else bar.from_ns, bar.to_ns))
        begin = bar.to_ns if bar.is_length else bar.from_ns
        width = percent(right - left, fall.high - fall.low)
        found.append(PlacedStep(_at(fall, left), width, _at(fall, begin), _at(fall, bar.to_ns)))
    return found


def waterfall_ticks(fall: d.Waterfall) -> list[Mark]:
    """The labels of the axis."""
    return [Mark(_at(fall, ns), label) for label, ns in fall.ticks.items()]


def _at(fall: d.Waterfall, ns: int) -> str:
    return percent(max(ns - fall.low, 0), fall.high - fall.low)


_PLACED: tuple[Callable[..., object], ...] = (
    *(bar_plot, curve_plot, histogram_plots, strip_plots, spark_line, segments),
    *(icicle_cells, icicle_height, lane_paths, group_widths, waterfall_steps, waterfall_ticks),
)
FILTERS = {each.__name__: each for each in _PLACED}
"""What the templates ask for, by name."""
