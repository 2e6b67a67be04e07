"""The windows of the host as small charts above each other: one for each column, all over the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT
from nsysdiag.document.words import instant
from nsysdiag.host.words import METRICS, metric_value
from nsysdiag.units import NS_PER

if TYPE_CHECKING:
    from nsysdiag.host.facts import HostReport, HostWindow


@dataclass(frozen=True, slots=True)
class Strip:
    """One column: bars as a path, the value of a full bar, whether a change of it was found, and what the pointer shows
    of each window."""

    label: str
    top: str
    path: str
    told: list[str]


@dataclass(frozen=True, slots=True)
class HostChart:
    """Strips of `width` by `height` units, a slot a window; `began` is where changes begin, in units of the width."""

    width: int
    height: int
    slot: int
    strips: list[Strip]
    began: list[int]


def draw_windows(host: HostReport) -> HostChart | None:
    """The columns that hold anything; None where none does."""
    strips = [strip for metric in METRICS if (strip := _strip(host.windows, metric)) is not None]
    if not strips:
        return None
    began = sorted({SLOT * each.window for each in host.beginnings if 0 <= each.window < len(host.windows)})
    return HostChart(SLOT * len(host.windows), HEIGHT, SLOT, strips, began)


def _strip(windows: list[HostWindow], metric: str) -> Strip | None:
    values = [window_value(window, metric) for window in windows]
    top = max((value for value in values if value is not None), default=0.0)
    if top <= 0:
        return None
    bars = [
        f"M{SLOT * at} {HEIGHT}v-{round(HEIGHT * value / top)}h{SLOT - 1}V{HEIGHT}z"
        for at, value in enumerate(values)
        if value is not None and value > 0
    ]
    told = [
        f"at {instant(window.start_ns)}: {'unknown' if value is None else metric_value(metric, value)}"
        for window, value in zip(windows, values, strict=True)
    ]
    label = METRICS[metric]
    return Strip(label[:1].upper() + label[1:], metric_value(metric, top), "".join(bars), told)


def window_value(window: HostWindow, metric: str) -> float | None:
    """The value of a column in one window, None where it is unknown."""
    if metric == "switches_per_second":
        length = max(window.end_ns - window.start_ns, 1)
        return None if window.switches is None else window.switches * NS_PER["s"] / length
    value: float | None = getattr(window, metric)
    return value
