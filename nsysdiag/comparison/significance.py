"""Confidence intervals of means: a block bootstrap over iterations, and over captures if a side has several.

Consecutive iterations are correlated (a queue that fills, a clock that drops), so blocks of them are drawn. Drawing
from few entries makes intervals too narrow; they are widened by Student's t.

If a side has several captures and the other one or two, the iterations of these do not show what differs from run to
run. The captures of the first side do, so that the interval is that of a further run of theirs:

```
before   ---o--o-o---o----          5 runs, their means differ by s
after                   o           1 run: beyond chance from  t(4) * s * sqrt(1/5 + 1/1)  on
```
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct_values

Values = npt.NDArray[np.float64]
"""One row an entry, one column a quantity."""

DRAWS, SEED = 2000, 7
"""Draws of the bootstrap: 50 of them are outside of each end of a 95% interval. Fewer make the ends less steady. The
seed is fixed, so that equal reports give equal intervals; any other would do."""
FEWEST_ENTRIES = 5
"""Fewer entries do not show how far chance goes."""
LEAST_CHANGE = 0.02
"""A smaller change, as a share, never counts."""
FEWEST_RUNS = 3
"""So many captures of a side tell how much it differs from run to run."""
LEVEL = 0.05
"""How often chance alone leaves 0 outside of an interval."""
_MOST_ROWS, _STEPS = 400, 20_000
"""Entries of a capture that are drawn one by one; of more, neighbours are added up, which bounds time and memory.
_STEPS are those of the table of Student's t: more make its quantiles more exact."""
_MEDIAN_VALUES, _FEWEST_DRAWS = 4_000_000, 400
"""Entries times draws of medians, which bound a table of weights to 32 MB; fewer entries get more draws. _FEWEST_DRAWS
are made of any number of entries: 10 of them are outside of each end of a 95% interval."""
_NORMAL = 1.959964
"""The two-sided 95% quantile of the normal distribution. Intervals are widened by the ratio of Student's t to it."""
_FREE = 1.5
"""Degrees of freedom for each piece of the smaller side after the first: 1 is right for one side, 2 for both. A larger
number makes intervals narrower."""


class BootstrapMeans(Struct, frozen=True):
    """The means of a side: as they are, and of each draw (one row a draw), and of each capture alone (one row a
    capture). `blocks` is how many independent pieces the side is made of, None if it is a single one, which tells
    nothing about chance."""

    mean: Values
    draws: Values
    blocks: float | None
    runs: Values

    @property
    def deviation(self) -> Values:
        """The standard error of the mean of each quantity."""
        return np.asarray(self.draws.std(axis=0), dtype=np.float64)


def drawn_means(captures: Sequence[Values], stream: int) -> BootstrapMeans:
    """Draw the means of a side of one or several captures; `stream` sets the draws of one side apart."""
    random = np.random.default_rng([SEED, stream])
    mean = np.concatenate(captures).mean(axis=0)
    runs = np.array([capture.mean(axis=0) for capture in captures])
    few = [_added_up(capture) for capture in captures]
    total, weight = np.zeros((DRAWS, len(mean))), np.zeros(DRAWS)
    for _pick in captures:
        chosen = random.integers(len(captures), size=DRAWS)
        for number, (rows, sums) in enumerate(few):
            mine = np.flatnonzero(chosen == number)
            found, counted = _drawn(rows, sums, random, len(mine))
            total[mine] += found
            weight[mine] += counted
    blocks = _pieces([sums[:, 0] / rows for rows, sums in few])
    return BootstrapMeans(mean, total / weight[:, None], blocks, runs)


def drawn_medians(captures: Sequence[Values], stream: int) -> BootstrapMeans:
    """Draw the medians of a side, as `drawn_means` does its means; one column each. A few entries that last far longer
    than the others hardly move them. Of very many entries there are fewer draws."""
    random = np.random.default_rng([SEED, stream])
    values = np.concatenate(captures).ravel()
    order = np.argsort(values, kind="stable")
    draws = int(np.clip(_MEDIAN_VALUES // len(values), _FEWEST_DRAWS, DRAWS))
    sides = [_weights(len(each), block_length(each.ravel()), random, draws) for each in captures]
    chosen = random.integers(len(captures), size=(draws, len(captures)))
    sides = [each * (chosen == at).sum(axis=1)[:, None] for at, each in enumerate(sides)]
    reached = np.cumsum(np.concatenate(sides, axis=1)[:, order], axis=1)
    place = (reached < reached[:, -1:] / 2).sum(axis=1)
    blocks = _pieces([each.ravel() for each in captures])
    runs = np.array([[np.median(each)] for each in captures])
    return BootstrapMeans(np.array([np.median(values)]), values[order][place][:, None], blocks, runs)


def interval(before: BootstrapMeans, after: BootstrapMeans) -> tuple[Values, Values] | None:
    """The 95% interval of after - before of each quantity; None if a side is one piece."""
    free = freedom(before, after)
    if free is None:
        return None
    change = after.mean - before.mean
    if (learnt := _learnt_from(before, after)) is not None:
        half = student(free) * _deviation_of_change(learnt, after if learnt is before else before)
        return change - half, change + half
    low, high = np.percentile(after.draws - before.draws, (50 * LEVEL, 100 - 50 * LEVEL), axis=0)
    least = free / _FREE + 1
    wider = student(free) / _NORMAL * (least / (least - 1)) ** 0.5
    return change + wider * np.minimum(low - change, 0.0), change + wider * np.maximum(high - change, 0.0)


def freedom(before: BootstrapMeans, after: BootstrapMeans) -> float | None:
    """The degrees of freedom of Student's t behind an interval, between those of one side and of both: a few steady
    iterations are those that are alike. None if a side is one piece."""
    if (learnt := _learnt_from(before, after)) is not None:
        return float(len(learnt.runs) - 1)
    if before.blocks is None or after.blocks is None:
        return None
    return _FREE * (max(min(before.blocks, after.blocks), 1.5) - 1)


def _learnt_from(before: BootstrapMeans, after: BootstrapMeans) -> BootstrapMeans | None:
    """The side whose captures tell what differs from run to run, if those of the other side do not."""
    many, few = (before, after) if len(before.runs) >= len(after.runs) else (after, before)
    return many if len(many.runs) >= FEWEST_RUNS > len(few.runs) else None


def _deviation_of_change(learnt: BootstrapMeans, other: BootstrapMeans) -> Values:
    """The standard error of the change of each quantity: runs of the other side are assumed to differ as the known runs
    do, or as much as its own iterations show."""
    spread = learnt.runs.std(axis=0, ddof=1)
    theirs = np.maximum(spread / len(other.runs) ** 0.5, other.deviation)
    return np.asarray(np.hypot(spread / len(learnt.runs) ** 0.5, theirs), dtype=np.float64)


def _pieces(captures: Sequence[Values]) -> float | None:
    """How many independent pieces a side is made of: its captures, or those of the entries of a single one; None if
    these are too few to show their spread."""
    if len(captures) > 1:
        return float(len(captures))
    entries = len(captures[0])
    return entries / block_length(captures[0]) if entries >= FEWEST_ENTRIES else None


def block_length(values: Values) -> int:
    """The block length: the cube root of the number of entries, more for correlated ones (Carlstein's rule for a
    first-order autoregression), and at most a third of them."""
    centred = values - values.mean()
    square = float(centred @ centred)
    alike = min(max(float(centred[1:] @ centred[:-1]) / square, 0.0), 0.95) if square > 0 else 0.0
    factor = max((6**0.5 * alike / (1 - alike * alike)) ** (2 / 3), 1.0)
    root = len(values) ** (1 / 3)
    return max(min(int(np.ceil(factor * root)), max(len(values) // 3, int(np.ceil(root)))), 1)


def drift(captures: Sequence[Values], drawn: BootstrapMeans) -> float:
    """The change of the first quantity from the first half of a side's entries to the second, beyond chance, as a share
    of its mean; the largest of all captures."""
    error = 2 * _NORMAL * float(drawn.deviation[0])
    mean = float(drawn.mean[0])
    found = [0.0]
    for capture in captures:
        half = len(capture) // 2
        if half >= FEWEST_ENTRIES // 2 and mean > 0:
            change = float(capture[half:, 0].mean() - capture[:half, 0].mean())
            found.append(max(abs(change) - error, 0.0) / mean)
    return max(found)


@cache
def student(freedom: float, level: float = LEVEL) -> float:
    """The two-sided quantile of Student's t at `level`; below one degree of freedom that of one. With t = sqrt(freedom)
    * tan(angle), its density is proportional to cos(angle) ** (freedom - 1)."""
    freedom = max(freedom, 1.0)
    angle = np.linspace(0.0, np.pi / 2, _STEPS + 1)
    density = np.cos(angle) ** (freedom - 1)
    below = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return float(freedom**0.5 * np.tan(np.interp(1 - level, below / below[-1], angle)))


def _added_up(capture: Values) -> tuple[Values, Values]:
    """Entries that follow one another added up if there are very many: how many each row stands for, and the
    sums."""
    starts = distinct_values(
        np.linspace(0, len(capture), min(len(capture), _MOST_ROWS), endpoint=False).astype(np.int64)
    )
    rows = np.diff(np.append(starts, len(capture))).astype(np.float64)
    return rows, np.add.reduceat(capture, starts, axis=0)


def _drawn(rows: Values, sums: Values, random: np.random.Generator, draws: int) -> tuple[Values, Values]:
    """The sums of drawn blocks, and how many entries each draw holds. Blocks go round the end."""
    weight = _weights(len(rows), block_length(sums[:, 0] / rows), random, draws)
    return weight @ sums, weight @ rows


def _weights(count: int, long: int, random: np.random.Generator, draws: int) -> Values:
    """How often each of `count` entries is drawn, a row for each draw of blocks of `long` entries."""
    blocks = -(-count // long)
    first = random.integers(count, size=(draws, blocks)) + count * np.arange(draws)[:, None]
    begun = np.bincount(first.ravel(), minlength=draws * count).reshape(draws, count).astype(np.float64)
    weight = begun.copy()
    for shift in range(1, long):
        weight += np.roll(begun, shift, axis=1)
    return weight


# Runs of one program: how much they differ, and which of them do not belong to the others.

STRAY_LEVEL = 0.01
"""How often a run that belongs to the others is taken for a stray."""


def spread_of(lengths: Values) -> float | None:
    """The standard deviation of the lengths of runs as a share of their mean; None if they are too few to tell."""
    if len(lengths) < FEWEST_RUNS or not lengths.mean() > 0:
        return None
    return float(lengths.std(ddof=1) / lengths.mean())


def strays(lengths: Values) -> list[int]:
    """The places of runs, in order, whose lengths are too far from the others to be of the same machine in the same
    state.

    Rosner's generalized extreme studentized deviate test (Technometrics 25, 1983): the run farthest from the mean is
    taken out, then the next one, a third of them at most. The last one that is farther than by chance, and all before
    it, are strays. So two of them do not hide each other. Changes of 2% and less are never one.
    """
    left = list(range(len(lengths)))
    out: list[int] = []
    found = 0
    for _step in range((len(lengths) - 1) // FEWEST_RUNS):
        values = lengths[left]
        far = np.abs(values - values.mean())
        at = int(far.argmax())
        beyond = far[at] > _most_by_chance(len(left)) * values.std(ddof=1)
        out.append(left.pop(at))
        if beyond and abs(values[at] / np.median(lengths[left]) - 1) > LEAST_CHANGE:
            found = len(out)
    return sorted(out[:found])


def _most_by_chance(count: int) -> float:
    """How many standard deviations the farthest of so many values is from their mean, once in a hundred times."""
    t = student(count - 2, STRAY_LEVEL / count)
    return float((count - 1) * t / ((count - 2 + t * t) * count) ** 0.5)
