"""Ends of waits that keep a beat: the work before them differs, and they come when it is time all the same.

```
beat       |         |         |         |
thread   [work ][spins, prepares)[work ....][prepares)[work ..][spins, prepares)
                                )          )                                  )   late by what was prepared, no more
```

Without a beat each end is late by all that took longer before it. With one it is late by its own work alone.
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.events.rows import distinct

NOISE_NS = 2_000
"""Times that differ by less say nothing."""
FEWEST = 30
TURNS_BACK = 1.1
"""The mean square of differences, as a share of the variance: 2 of values that do not depend on each other, and 0.4 of
sums of 39 such values. Of 1,500 simulated loops of 39 steps without a beat at most 0.6% were taken for one with a beat.
Of those with one 98.8% were found. Of fewer than FEWEST steps more would be wrong."""
LONGEST_TURN = 13
"""Patterns that repeat after so many values are taken out first: every tenth step may take longer, and none waits."""
MOST_TURNS = 4
MAKES_UP, DEVIATIONS = -0.4, 4
"""A wait is shorter by as much of what it begins later, or more; and by so many standard errors at least."""
ON_GRID, MOST_ON_GRID, MOST_CELLS, OTHERS = 0.08, 0.9, 4, 3
"""How far from the grid an end may be, as a share of the distance; the share of the ends that are that near; how many
distances the shortest step spans at most; and how many steps span another number than most do."""
RETURN_NS, MOST_OFF_GRID = 60_000, 0.2
"""By how much the returns of two waits differ in captured programs, and how far from the grid that may lead."""


def keeps_beat(begin: IntArray, end: IntArray) -> bool:
    """Whether stretches in order, which `begin` and `end` at these times in ns, end by a clock: what begins later is
    shorter, and no end is later for what was late before."""
    if len(end) < FEWEST:
        return False
    late, began = _late(end), _late(begin)
    if np.sqrt(np.mean(late**2)) < NOISE_NS or np.sqrt(np.mean(began**2)) < NOISE_NS:
        return False
    turns = range(1, min(LONGEST_TURN, len(end) // 3) + 1)
    if min(_turning(late, turn) for turn in turns) < TURNS_BACK:
        return False
    # Who waits in each second step or third one makes up for what is late in these.
    length = (end - begin).astype(np.float64)
    every = ((first, turn) for turn in range(1, MOST_TURNS + 1) for first in range(turn))
    return any(_makes_up(began[first::turn], length[first::turn]) for first, turn in every)


def _late(times: IntArray) -> FloatArray:
    """By how many ns each of these times is late, if they should come at equal distances."""
    number = np.arange(len(times)) - (len(times) - 1) / 2
    centered = (times - times[0]).astype(np.float64)
    centered -= centered.mean()
    late: FloatArray = centered - number * (number @ centered) / (number @ number)
    return late


def _turning(late: FloatArray, turn: int) -> float:
    """How soon values turn back, without what repeats after `turn` of them."""
    place = np.arange(len(late)) % turn
    left = late - (np.bincount(place, late) / np.bincount(place))[place]
    return float(np.mean(np.diff(left) ** 2)) / max(float(np.mean(left**2)), 1.0)


def _makes_up(began: FloatArray, length: FloatArray) -> bool:
    """Whether what begins later is shorter, by a line of least squares."""
    began, other = began - began.mean(), length - length.mean()
    slope = (began @ other) / (began @ began)
    error = np.sqrt(np.mean((other - slope * began) ** 2) / (began @ began))
    return bool(slope <= MAKES_UP and slope <= -DEVIATIONS * error)


def on_grid(end: IntArray) -> bool:
    """Whether waits in order end at multiples of one time, and not always as many apart: they end with the next one,
    as those for the picture on a screen."""
    apart = np.diff(end)
    if len(apart) < FEWEST // 2 or apart.min() <= NOISE_NS:
        return False
    shortest = float(np.median(apart[apart <= 1.3 * apart.min()]))
    return any(_fits(apart, shortest / cells) for cells in range(1, MOST_CELLS + 1))


def may_miss_each(begin: IntArray, end: IntArray) -> bool:
    """Whether waits in order may end at each second one of equal distances, or a later one. They end as far apart each
    time, and the work between them is always too long for those between. A shorter step may be on time for these.

    ```
    distances    |       |       |       |       |
    thread     ..)[works      ][waits )[works     ][waits )
    ```
    """
    apart, busy = np.diff(end), begin[1:] - end[:-1]
    if len(apart) < FEWEST // 2:
        return False
    usual = float(np.median(apart))
    return bool(_near(apart - usual, usual).mean() >= MOST_ON_GRID and 2 * (busy.min() + RETURN_NS) > usual)


def _near(off: FloatArray, cell: float) -> BoolArray:
    """Which ends are near a grid of this distance that are `off` by so much. Threads take their time to go on."""
    found: BoolArray = np.abs(off) <= min(max(ON_GRID * cell, RETURN_NS), MOST_OFF_GRID * cell)
    return found


def _fits(apart: IntArray, cell: float) -> bool:
    """Whether these distances are different multiples of about this one."""
    cells = np.round(apart / cell)
    exact = apart.sum() / cells.sum()
    near = _near(apart - cells * exact, exact)
    _, number = distinct(cells.astype(np.int64))
    others = len(cells) - np.bincount(number).max()
    return bool(near.mean() >= MOST_ON_GRID and others >= OTHERS)
