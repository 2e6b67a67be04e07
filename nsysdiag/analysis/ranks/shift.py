"""What lies between two clocks: an offset, and the drift of one against the other where collectives show it.

```
distance of the ends     first third   .  . .
                                          .  .  .            the median distance grows from third to third:
                         last third             . . .        that is drift, and the rest is error
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.timeline.intervals import IntArray

FEWEST_FOR_DRIFT, MOST_DRIFT, BETTER = 30, 500e-6, 2


@dataclass(frozen=True, slots=True)
class Shift:
    """What to add to times of one clock to have those of another: `ns` at the time `pivot`, and `rate` times as much as
    goes by from then on."""

    ns: int
    rate: float = 0.0
    pivot: int = 0

    def forward(self, times: IntArray) -> IntArray:
        """Times of the one clock on the other."""
        return times + self.ns + self._drift(times)

    def back(self, times: IntArray) -> IntArray:
        """Times of the other clock on the one."""
        return times - self.ns - self._drift(times - self.ns)

    def _drift(self, times: IntArray) -> IntArray:
        drift: IntArray = np.rint(self.rate * (times - self.pivot)).astype(np.int64)
        return drift

    def inverse(self) -> Shift:
        """The other way round."""
        return Shift(-self.ns, -self.rate, self.pivot + self.ns)

    def then(self, other: Shift) -> Shift:
        """This one and another behind it, as one."""
        on_the_way = other.rate * (self.pivot + self.ns - other.pivot)
        return Shift(self.ns + other.ns + round(on_the_way), self.rate + other.rate, self.pivot)


def fit(ends: IntArray, reference: IntArray) -> tuple[Shift, int]:
    """The shift from the clock of `ends` to that of `reference`, of the same collectives in order, and its error: how
    far 95 of 100 distances lie from it at most. Drift counts where it halves the error."""
    apart = reference - ends
    steady = Shift(int(np.median(apart)), 0.0, int(ends[0]))
    error = _error(steady, ends, reference)
    drifting = _drifting(ends, apart)
    if drifting is None or BETTER * _error(drifting, ends, reference) > error:
        return steady, error
    return drifting, _error(drifting, ends, reference)


def _drifting(ends: IntArray, apart: IntArray) -> Shift | None:
    third = len(ends) // 3
    if len(ends) < FEWEST_FOR_DRIFT:
        return None
    early, late = (float(np.median(apart[part])) for part in (slice(third), slice(-third, None)))
    low, high = (float(np.median(ends[part])) for part in (slice(third), slice(-third, None)))
    rate = (late - early) / max(high - low, 1.0)
    rest = apart - np.rint(rate * (ends - ends[0])).astype(np.int64)
    return Shift(int(np.median(rest)), rate, int(ends[0])) if abs(rate) <= MOST_DRIFT else None


def _error(shift: Shift, ends: IntArray, reference: IntArray) -> int:
    return int(np.percentile(np.abs(shift.forward(ends) - reference), 95))
