"""How work comes to a device: in steady steps, in bursts, or in no way that shows."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import TriageThresholds
from nsysdiag.diagnosis.bursts import Bursts, irregularity
from nsysdiag.diagnosis.facts import Workload
from nsysdiag.units import format_count, format_ns, format_share

FEWEST_STEPS = 5
STEPS, BURSTS, UNCLEAR = "steps", "bursts", "unclear"


def workload(
    steady: Intervals | None, bursts: Bursts, window_ns: int, between_ns: int, limits: TriageThresholds
) -> Workload:
    """Steps of one length make training; irregular bursts with nothing to do between them serving; `steady` are the
    iterations after the warm-up, None where nothing repeats, and `between_ns` is the idle time between bursts."""
    steps = _spread(steady)
    if steps is not None and steps <= limits.regular:
        count, median = format_count(len(steady or ())), format_ns(_median(steady))
        alike = f"half of them within {format_share(steps, 1)} of that" if steps else "most of them alike"
        why = f"{count} steps repeat, of {median} in the median, {alike}"
        return Workload(kind=STEPS, why=why, judged_ns=window_ns)
    arrivals = irregularity(bursts.spans)
    enough = len(bursts) >= limits.fewest_bursts and between_ns >= limits.between * window_ns
    if not enough or arrivals is None or arrivals <= limits.regular:
        return Workload(kind=UNCLEAR, why=_unclear(steps, len(steady or ()), len(bursts)), judged_ns=window_ns)
    share = format_share(between_ns, window_ns)
    return Workload(
        kind=BURSTS,
        why=f"work comes in {format_count(len(bursts))} bursts at irregular times, and for {share} of the window the "
        "host waits between them to be asked",
        judged_ns=window_ns - between_ns,
        bursts=len(bursts),
        median_burst_ns=_median(bursts.spans),
        between_ns=between_ns,
    )


def _median(spans: Intervals | None) -> int:
    return 0 if spans is None or len(spans) == 0 else int(np.median(spans.end - spans.start))


def _spread(steady: Intervals | None) -> float | None:
    """The median deviation of the lengths from the median one, as a share of it; None of too few."""
    if steady is None or len(steady) < FEWEST_STEPS:
        return None
    length = steady.end - steady.start
    middle = float(np.median(length))
    return float(np.median(np.abs(length - middle))) / middle if middle > 0 else None


def _unclear(spread: float | None, steps: int, bursts: int) -> str:
    if spread is not None:
        return f"steps take very different times, half of them over {format_share(spread, 1)} from the median"
    none = f"only {steps} steady steps repeat" if steps else "no steps repeat"
    if bursts > 1:
        return f"{none}, and {format_count(bursts)} bursts are too few, too close or too regular for requests"
    return f"{none}, and there are no pauses in which the host had nothing to do"
