"""The course of GPU metrics over the window, as numbers for a drawing."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.counters.words import share
from nsysdiag.document.bars import HEIGHT, SLOT, Spot
from nsysdiag.document.curve import Strip, Strips, TimeSeries
from nsysdiag.document.kinds import SHARE
from nsysdiag.document.packed import unpack_metric
from nsysdiag.document.words import instant

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.counters.facts import GpuMetric, GpuMetrics


def draw_curves(found: GpuMetrics, rows: list[GpuMetric], most_spots: int) -> Strips:
    """Shares above each other, each from 0 to 100%, a slot a bucket, with holes where nothing was sampled.

    Raises InputError where the report is damaged.
    """
    return Strips(SLOT * found.buckets, HEIGHT, [draw_curve(found, row, most_spots) for row in rows])


def draw_curve(found: GpuMetrics, row: GpuMetric, most_spots: int) -> Strip:
    """The curve of one share. Raises InputError where the report is damaged."""
    values = unpack_metric(found, row)
    together = -(-len(values) // most_spots)
    edges = [found.start_ns + (found.end_ns - found.start_ns) * at // found.buckets for at in range(found.buckets + 1)]
    spots = []
    for at in range(0, len(values), together):
        part = values[at : at + together]
        said = "not sampled" if np.isnan(part).all() else share(float(np.nanmean(part)))
        spots.append(Spot(SLOT * at, f"at {instant(edges[at])}: {said}"))
    span = f"from {instant(found.start_ns)} to {instant(found.end_ns)}"
    return Strip(
        title=row.title,
        note=f"{share(row.window)} of the window",
        label=f"{row.title} {span}: {share(row.window)} on average",
        d=_area(values),
        spots=spots,
        spot_width=SLOT * together,
        series=TimeSeries(edges, [None if math.isnan(value) else value for value in values.tolist()]),
        kind=SHARE,
        top=1,
    )


def _area(values: npt.NDArray[np.float64]) -> str:
    path = ""
    for sampled, run in groupby(range(len(values)), key=lambda at: not np.isnan(values[at])):
        places = list(run)
        if sampled:
            heights = {at: round(HEIGHT * (1 - min(max(values[at], 0.0), 1.0))) for at in places}
            steps = "".join(f"V{height}H{SLOT * (at + 1)}" for at, height in heights.items())
            path += f"M{SLOT * places[0]} {HEIGHT}{steps}V{HEIGHT}z"
    return path
