"""The windows of the host as small charts above each other: one for each column, all over the same time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT, Spot
from nsysdiag.document.curve import Strip, Strips, TimeSeries
from nsysdiag.document.kinds import Kind
from nsysdiag.document.words import instant
from nsysdiag.host.words import METRICS, metric_value
from nsysdiag.units import capitalized

if TYPE_CHECKING:
    from nsysdiag.host.facts import HostReport, HostWindow


def draw_windows(host: HostReport) -> Strips | None:
    """A strip for each column that holds anything, a slot a window; marks are where changes begin. None without any."""
    edges = [*(window.start_ns for window in host.windows), host.end_ns]
    strips = [strip for metric in METRICS if (strip := _strip(host.windows, edges, metric)) is not None]
    if not strips:
        return None
    began = sorted({each.window for each in host.change_points if 0 <= each.window < len(host.windows)})
    marks, moments = [SLOT * at for at in began], [edges[at] for at in began]
    return Strips(SLOT * len(host.windows), HEIGHT, strips, marks, moments)


def _strip(windows: list[HostWindow], edges: list[int], metric: str) -> Strip | None:
    values: list[float | None] = [getattr(window, metric) for window in windows]
    top = max((value for value in values if value is not None), default=0.0)
    if top <= 0:
        return None
    bars = [
        f"M{SLOT * at} {HEIGHT}v-{round(HEIGHT * value / top)}h{SLOT - 1}V{HEIGHT}z"
        for at, value in enumerate(values)
        if value is not None and value > 0
    ]
    spots = [
        Spot(SLOT * at, f"at {instant(window.start_ns)}: {'unknown' if value is None else metric_value(metric, value)}")
        for at, (window, value) in enumerate(zip(windows, values, strict=True))
    ]
    title, highest = capitalized(METRICS[metric]), f"up to {metric_value(metric, top)}"
    return Strip(
        title=title,
        note=highest,
        label=f"{title} over time, {highest}",
        d="".join(bars),
        spots=spots,
        spot_width=SLOT,
        series=TimeSeries(edges, values),
        kind=Kind(metric, partial(metric_value, metric)),
        top=top,
    )
