"""Does memory keep growing from one iteration to the next? A robust slope, and what speaks against a leak."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nsysdiag.activity.identity import IntArray
from nsysdiag.config import MemoryThresholds
from nsysdiag.model_memory import MemoryGrowth

FloatArray = npt.NDArray[np.float64]

MOST_LEVELS = 500  # of more iterations so many are looked at: all pairs of them are
CONFIDENCE = 1.959964  # standard deviations for 95 % both ways
LEAST_ONE_WAY = 0.5
LARGEST_STEP = 0.4
LEAST_LATE = 0.25
FEWEST_LATE = 3
LEAK, FLAT, FALLS_BACK, FEW_STEPS, LEVELLED_OFF, SMALL, UNSURE = (
    *("leak", "flat", "falls back", "few steps", "levelled off", "small", "unsure"),
)


def memory_growth(net: IntArray, usual: int, limits: MemoryThresholds) -> MemoryGrowth | None:
    """The growth of levels at the ends of steady iterations; None where there are too few of them. `net` may be off by
    a constant: it is what rose and fell; `usual` is how much memory there is.

    ```
    leak                            few steps        levelled off     falls back
                      ..--               .------        .-------         /|  /|
                ..--''                   |             /                / | / | /
          ..--''                   ------'            /                /  |/  |/
    ```
    """
    if len(net) < limits.leak_iterations:
        return None
    chosen = _spread(len(net))
    place, levels = chosen.astype(np.float64), net[chosen].astype(np.float64)
    slopes = _slopes(place, levels)
    slope = float(np.median(slopes))
    low, high = _interval(slopes, len(levels))
    return MemoryGrowth(
        iterations=len(net),
        slope_bytes=round(slope, 3),
        low_bytes=round(low, 3),
        high_bytes=round(high, 3),
        growth_bytes=int(net[-1] - net[0]),
        one_way_share=round(_one_way(levels), 6),
        shape=_shape(place, levels, slope, low, max(limits.leak_share * usual, limits.leak_bytes)),
    )


def _spread(count: int) -> IntArray:
    """All places, or MOST_LEVELS of them with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_LEVELS)).astype(np.int64))


def _slopes(place: FloatArray, levels: FloatArray) -> FloatArray:
    """The slopes of all pairs, sorted."""
    one, other = np.triu_indices(len(levels), 1)
    return np.sort((levels[other] - levels[one]) / (place[other] - place[one]))


def _interval(slopes: FloatArray, count: int) -> tuple[float, float]:
    """Sen's interval of 95 %: so many pairs to either side of the median as Kendall's statistic spreads."""
    spread = CONFIDENCE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    pairs = len(slopes)
    first = max(math.floor((pairs - spread) / 2) - 1, 0)
    return float(slopes[first]), float(slopes[pairs - 1 - first])


def _one_way(levels: FloatArray) -> float:
    """The net growth by all ups and downs together, from 0 (none is left) to 1 (it never fell)."""
    every = float(np.abs(np.diff(levels)).sum())
    return max(float(levels[-1] - levels[0]), 0.0) / every if every else 0.0


def _shape(place: FloatArray, levels: FloatArray, slope: float, low: float, least: float) -> str:
    steps = np.diff(levels)
    growth = float(levels[-1] - levels[0])
    if float(np.abs(steps).sum()) <= least:
        return FLAT
    if _one_way(levels) < LEAST_ONE_WAY:
        return FALLS_BACK
    if growth <= least:
        return SMALL
    if float(steps.max()) > LARGEST_STEP * growth:
        return FEW_STEPS
    late = slice(-max(FEWEST_LATE, len(levels) // 4), None)
    if float(np.median(_slopes(place[late], levels[late]))) < LEAST_LATE * slope or slope <= 0:
        return LEVELLED_OFF
    return LEAK if low > 0 else UNSURE
