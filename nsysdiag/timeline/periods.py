"""Time cut into equal periods, as a counter does that reports once a period: how much of each a set covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.timeline.intervals import IntArray, Intervals, coverage


@dataclass(frozen=True, slots=True, eq=False)
class Periods:
    """Period i is [start + i * length, start + (i + 1) * length). `inside` is how many ns of it lie in the parts that
    were asked about, `covered` how many of those the set covers; periods without any ns inside are in between."""

    start: int
    length: int
    inside: IntArray
    covered: IntArray

    def together(self, count: int) -> Periods:
        """Each `count` periods as one, the last one of what is left."""
        first = np.arange(0, len(self.inside), count)
        inside, covered = (np.add.reduceat(each, first) for each in (self.inside, self.covered))
        return Periods(self.start, self.length * count, inside, covered)


def in_periods(covered: Intervals, parts: Intervals, length: int, most: int) -> Periods:
    """The set `covered`, which lies inside the set `parts`, in periods that begin where the parts do.

    ```
    parts       [-------------)        [-----)
    periods     |....|....|....|....|....|....|     one may lie in no part, one may be cut by the border of a part
    covered       [-----)                [-)
    ```

    The length is doubled until there are no more than `most`. Raises ValueError where there is no time.
    """
    if not len(parts):
        raise ValueError("no time to cut into periods")
    low, high = int(parts.start[0]), int(parts.end[-1])
    while -(-(high - low) // length) > most:
        length *= 2
    start = low + length * np.arange(-(-(high - low) // length), dtype=np.int64)
    each = Intervals(start, np.append(start[1:], high))
    return Periods(low, length, coverage(parts, each), coverage(covered, each))
