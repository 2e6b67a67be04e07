"""How far the host ran ahead as numbers for a drawing: a band from the lowest to the highest depth, and the mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, LINE_ROOM, SLOT, HoverArea, Line, band, stairs
from nsysdiag.document.curve import Curve, CurveLayer, TimeSeries
from nsysdiag.document.figures import percent
from nsysdiag.document.kinds import DEPTH
from nsysdiag.document.packed import QueueBuckets, unpack_series
from nsysdiag.document.words import instant
from nsysdiag.units import format_count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nsysdiag.report import QueueDepth


def draw_depth(ahead: QueueDepth, most_spots: int) -> Curve | None:
    """The chart on a logarithmic scale whose floor is 0, a slot a bucket; None where nothing was ever outstanding.

    Raises InputError where the report is damaged.
    """
    series = unpack_series(ahead)
    top = int(series.highest.max())
    if top <= 0:
        return None
    width = SLOT * len(series.mean)
    together = -(-len(series.mean) // most_spots)
    edges = series.edges.tolist()
    return Curve(
        width=width,
        height=HEIGHT,
        layers=[
            CurveLayer(
                band(_levels(series.lowest, top), _levels(series.highest, top)),
                "lowest to highest",
                "area",
                TimeSeries(edges, series.highest.tolist(), series.lowest.tolist()),
            ),
            CurveLayer(stairs(_levels(series.mean, top)), "mean", "line", TimeSeries(edges, series.mean.tolist())),
        ],
        lines=_lines(top),
        spots=[_spot(series, at, together) for at in range(0, len(series.mean), together)],
        spot_width=SLOT * together,
        what="Operations",
        kind=DEPTH,
        top=top,
        log=True,
        bottom="none",
    )


def _levels(depth: npt.NDArray[np.generic], top: int) -> list[int]:
    return [_level(value, top) for value in depth.tolist()]


def _level(depth: float, top: int) -> int:
    """The distance from the upper edge: one operation more matters most where there are few."""
    return round(HEIGHT * (1 - math.log1p(max(depth, 0)) / math.log1p(top)))


def _lines(top: int) -> list[Line]:
    """The powers of ten up to the top, without those that would write over each other."""
    lines: list[Line] = []
    below = HEIGHT
    for power in range(len(str(top))):
        at = _level(10**power, top)
        if below - at >= LINE_ROOM:
            lines.append(Line(percent(at, HEIGHT), format_count(10**power), 10**power))
            below = at
    return lines


def _spot(series: QueueBuckets, at: int, together: int) -> HoverArea:
    part = slice(at, at + together)
    low, high = int(series.lowest[part].min()), int(series.highest[part].max())
    depth = format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"
    return HoverArea(SLOT * at, f"at {instant(int(series.edges[at]))}: {depth}, mean {series.mean[part].mean():.1f}")
