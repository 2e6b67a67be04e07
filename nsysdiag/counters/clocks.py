"""Whether the clock was low while the device had work to do."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.counters.facts import Clocks
from nsysdiag.counters.masks import Within
from nsysdiag.events.gpu_metrics import Series

CHIP, SEEN = "chip", "seen"


def clocks(series: Series, busy: Intervals, chip_hz: int | None, limit: float) -> Clocks | None:
    """The clock over the time of the set `busy`; None where no sample is wholly inside.

    ```
    device   |=====|.|====|................|=========|
    judged   [------------)                [---------)     a pause of less than a period is part of the work
    clock    [1.4)[1.4)[1.0)[1.0)[0.2)[0.2)[0.6)[1.4)      low while idle: says nothing; 1.0 in work: does
                            ^ mixed         ^ mixed
    ```
    """
    within = Within.of(series.grid, _without_pauses(busy, series.grid.period_ns))
    judged = within.whole & ~np.isnan(series.value[within.index])
    if not judged.any():
        return None
    value, length = series.value[within.index[judged]], within.ns[judged]
    highest = int(np.nanmax(series.value))
    source = CHIP if chip_hz is not None and chip_hz >= highest else SEEN
    most = chip_hz if chip_hz is not None and source == CHIP else highest
    low = value < limit * most
    return Clocks(
        max_hz=most,
        source=source,
        limit=limit,
        judged_ns=int(length.sum()),
        mean_hz=round(float(np.average(value, weights=length))),
        lowest_hz=int(value.min()),
        low_ns=int(length[low].sum()),
        low_mean_hz=round(float(np.average(value[low], weights=length[low]))) if low.any() else None,
    )


def _without_pauses(spans: Intervals, shortest_ns: int) -> Intervals:
    """The set with pauses of less than `shortest_ns` filled."""
    pause = np.flatnonzero(spans.start[1:] - spans.end[:-1] >= shortest_ns)
    first: IntArray = np.append(0, pause + 1)[: len(spans)]
    last: IntArray = np.append(pause, len(spans) - 1)[: len(spans)]
    return Intervals(spans.start[first], spans.end[last])
