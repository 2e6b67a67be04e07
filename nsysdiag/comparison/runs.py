"""Runs of one program: how much they differ, and which of them do not belong to the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nsysdiag.comparison.changes import LEAST_CHANGE
from nsysdiag.comparison.pairing import paired
from nsysdiag.comparison.side import LENGTH, Capture
from nsysdiag.comparison.significance import FEWEST_RUNS, student
from nsysdiag.comparison.units import in_units
from nsysdiag.report import Report

LEVEL = 0.01
"""How often a run that belongs to the others is taken for a stray."""
Lengths = npt.NDArray[np.float64]
"""The mean length of a unit of work in each run, ns."""


def lengths_of(before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool) -> Lengths:
    """The lengths of the runs before on their slowest devices, in the unit of work that they share with those after.
    Raises what `compare_reports` does."""
    pairs, _notes = paired(before, after, across_gpus=across_gpus)
    devices = [_lengths(in_units(pair.before, pair.after).before) for pair in pairs]
    return np.asarray(np.max(devices, axis=0), dtype=np.float64)


def _lengths(captures: Sequence[Capture]) -> Lengths:
    return np.array([float(each.table[LENGTH].mean()) for each in captures])


def spread_of(lengths: Lengths) -> float | None:
    """The standard deviation of the runs as a share of their mean; None where they are too few to tell."""
    if len(lengths) < FEWEST_RUNS or not lengths.mean() > 0:
        return None
    return float(lengths.std(ddof=1) / lengths.mean())


def strays(lengths: Lengths) -> list[int]:
    """The places of runs that are too far from the others to be runs of the same machine in the same state, in order.

    Rosner's generalized extreme studentized deviate test (Technometrics 25, 1983): the run farthest from the mean is
    taken out, then the next one, a third of them at most. The last one that is farther than chance brings it, and all
    before it, are strays: so two of them do not hide each other. Changes of 2% and less are never one.
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
    t = student(count - 2, LEVEL / count)
    return float((count - 1) * t / ((count - 2 + t * t) * count) ** 0.5)
