"""When it began: the window from which on a column of the windows stays changed for the worse."""

from __future__ import annotations

from bisect import insort

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import FloatArray
from nsysdiag.host.facts import ChangePoint, HostWindow
from nsysdiag.units import NS_PER

FACTOR = 2.0
"""How many times more, or less, the median must be from then on."""
LEAST_AFTER = 3
"""Windows that the change must last for; it lasts to the end of the range."""
QUIET_SHARE = 0.2
"""The part of the range that must be stable before a change point: the beginning of a program is not representative."""
KEPT_SHARE = 0.8
"""So many of the windows on either side must be on that side of the border."""
FEWEST_SYNCS, FEWEST_COUNTED = 5, 10


class Metric(Struct, frozen=True):
    """A column, whether more of it is worse, and the least change that counts. Of what is `counted` a second, a window
    must hold some on one side at least."""

    id: str
    more_is_worse: bool
    least: float
    counted: bool = False


METRICS = (
    Metric("switches_per_second", True, 100.0, counted=True),
    Metric("off_cpu_share", True, 0.1),
    Metric("preempted_share", True, 0.1),
    Metric("crowded_share", True, 0.1),
    Metric("sync_p50_ns", True, 20_000.0),
    Metric("sync_late_p50_ns", True, 20_000.0),
    Metric("launches_per_second", False, 10.0, counted=True),
    Metric("kernels_per_second", False, 10.0, counted=True),
    Metric("busy_share", False, 0.2),
)


def change_points(windows: list[HostWindow]) -> list[ChangePoint]:
    """The changes that last, one at most for each metric, the earliest first."""
    found = []
    seconds = min((window.end_ns - window.start_ns for window in windows), default=0) / NS_PER["s"]
    for metric in METRICS:
        values = np.array([_value(window, metric.id) for window in windows], dtype=np.float64)
        at = _change(values, metric, FEWEST_COUNTED / seconds if metric.counted and seconds else 0.0)
        if at is not None:
            found.append(
                ChangePoint(
                    metric=metric.id,
                    window=at,
                    start_ns=windows[at].start_ns,
                    before=round(float(np.nanmedian(values[:at])), 6),
                    after=round(float(np.nanmedian(values[at:])), 6),
                )
            )
    return sorted(found, key=lambda each: each.window)


def _value(window: HostWindow, metric: str) -> float:
    """NaN where the window does not tell."""
    if metric in ("sync_p50_ns", "sync_late_p50_ns") and window.sync_calls < FEWEST_SYNCS:
        return np.nan
    value = getattr(window, metric)
    return np.nan if value is None else float(value)


def _change(values: FloatArray, metric: Metric, fewest: float) -> int | None:
    """The first window of the change, None where there is none; one side must come to `fewest` at least.

    ```
    values   2 3 2 2 3 2 9 8 9 9 7 9      from the seventh on
             2 3 2 2 9 9 9 2 3 2 2 3      a spike: the median of the rest is what it was
             2 3 9 2 9 2 3 9 2 3 9 2      no side keeps to itself
    ```
    """
    known = np.flatnonzero(~np.isnan(values))
    if len(known) < max(0.8 * len(values), 1):
        return None
    series = values[known] if metric.more_is_worse else -values[known]
    if np.ptp(series) < metric.least:  # no two medians are further apart
        return None
    first, last = max(LEAST_AFTER, int(np.ceil(QUIET_SHARE * len(series)))), len(series) - LEAST_AFTER
    before, after = _medians(series)[:-1], _medians(series[::-1])[-2::-1]
    low, high = np.sort(np.abs([before, after]), axis=0)
    changed = (after - before >= metric.least) & (high >= np.maximum(FACTOR * low, fewest))
    borders = np.flatnonzero(changed) + 1
    places = []
    for at in borders[(borders >= first) & (borders <= last)].tolist():
        worse = series > (before[at - 1] + after[at - 1]) / 2  # on the far side of the middle between both medians
        own = np.append(~worse[:at], worse[at:])
        if min(own[:at].mean(), own[at:].mean()) >= KEPT_SHARE and own[at : at + LEAST_AFTER].all():
            places.append((int(np.count_nonzero(own)), -at))
    # The border with most values on their own side, the first of several.
    return int(known[-max(places)[1]]) if places else None


def _medians(series: FloatArray) -> FloatArray:
    """The median of the first value, of the first two, and so on to all. They are few: there is one for a window."""
    ordered: list[float] = []
    medians = []
    for value in series.tolist():
        insort(ordered, value)
        middle = len(ordered) // 2
        medians.append((ordered[middle] + ordered[-middle - 1]) / 2)
    return np.array(medians)
