"""Does memory keep growing from one iteration to the next? A robust slope, and what speaks against a leak."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from nsysdiag.arrays.intervals import FloatArray, IntArray
from nsysdiag.config.settings import MemoryThresholds
from nsysdiag.memory.facts import MemoryGrowth

MOST_LEVELS = 500  # of more iterations so many are looked at: all pairs of them are
CONFIDENCE = 1.959964  # standard deviations for 95% both ways
LEAST_KEPT = 0.5
LARGEST_STEP = 0.4
LEAST_LATE = 0.25
FEWEST_LATE = 3
LEAST_OVER_NOISE = 2
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

    What is kept at an iteration is the lowest level from then on: what comes and goes leaves it as it is.
    """
    if len(net) < limits.leak_iterations:
        return None
    chosen = np.unique(np.linspace(0, len(net) - 1, min(len(net), MOST_LEVELS)).astype(np.int64))
    place, levels = chosen.astype(np.float64), net[chosen].astype(np.float64)
    slopes = _slopes(place, levels)
    low, high = _interval(slopes, len(levels))
    kept = np.minimum.accumulate(levels[::-1])[::-1]
    moved = float(np.abs(np.diff(levels)).sum())
    growth = MemoryGrowth(
        iterations=len(net),
        slope_bytes=round(float(np.median(slopes)), 3),
        low_bytes=round(low, 3),
        high_bytes=round(high, 3),
        growth_bytes=int(net[-1] - net[0]),
        kept_bytes=int(kept[-1] - kept[0]),
        kept_share=round(float(kept[-1] - kept[0]) / moved, 6) if moved else 0.0,
        shape=LEAK,
    )
    least = max(limits.leak_share * usual, limits.leak_bytes)
    shape = FLAT if moved <= least else _shape(place, levels, kept, growth, least)
    return msgspec.structs.replace(growth, shape=shape)


def _slopes(place: FloatArray, levels: FloatArray) -> FloatArray:
    """The slopes of all pairs, sorted."""
    one, other = np.triu_indices(len(levels), 1)
    return np.sort((levels[other] - levels[one]) / (place[other] - place[one]))


def _interval(slopes: FloatArray, count: int) -> tuple[float, float]:
    """Sen's interval of 95%: so many pairs to either side of the median as Kendall's statistic spreads."""
    spread = CONFIDENCE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    pairs = len(slopes)
    first = max(math.floor((pairs - spread) / 2) - 1, 0)
    return float(slopes[first]), float(slopes[pairs - 1 - first])


def _shape(place: FloatArray, levels: FloatArray, kept: FloatArray, growth: MemoryGrowth, least: float) -> str:
    """A leak, or the plainest thing that speaks against it."""
    late = slice(-max(FEWEST_LATE, len(kept) // 4), None)
    against = {
        SMALL: growth.kept_bytes <= least,
        FEW_STEPS: float(np.diff(kept).max()) > LARGEST_STEP * growth.kept_bytes,
        LEVELLED_OFF: float(np.median(_slopes(place[late], kept[late]))) <= max(LEAST_LATE * growth.slope_bytes, 0),
        UNSURE: growth.low_bytes <= 0 or not _stands_out(place, levels, growth.slope_bytes),
    }
    found = next((shape for shape, holds in against.items() if holds), LEAK)
    return FALLS_BACK if found != LEAK and growth.kept_share < LEAST_KEPT else found


def _stands_out(place: FloatArray, levels: FloatArray, slope: float) -> bool:
    """Whether the growth is larger than the ups and downs around it."""
    around = levels - slope * place
    noise = float(np.percentile(around, 90) - np.percentile(around, 10))
    return bool(slope * (place[-1] - place[0]) >= LEAST_OVER_NOISE * noise)
