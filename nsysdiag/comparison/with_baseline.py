"""A comparison with the runs of a baseline: which of them are compared, and what they tell of chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import BaselineUse, Comparison
from nsysdiag.comparison.sides import LENGTH, Capture, paired, read_from
from nsysdiag.comparison.significance import FEWEST_RUNS, student
from nsysdiag.comparison.units import in_units
from nsysdiag.comparison.waterfall import LEAST_CHANGE
from nsysdiag.report import Report
from nsysdiag.units import format_share, listed

# Runs of one program: how much they differ, and which of them do not belong to the others.

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
    t = student(count - 2, LEVEL / count)
    return float((count - 1) * t / ((count - 2 + t * t) * count) ** 0.5)


MOST_NAMED = 3


class BaselineRuns(Struct, frozen=True):
    """The runs of the baseline `name`, each with the name of its file; `damaged` are files that cannot be read."""

    name: str
    files: list[str]
    reports: list[Report]
    damaged: list[str]


def compare_with_baseline(runs: BaselineRuns, after: Sequence[Report], *, across_gpus: bool = False) -> Comparison:
    """Compare the runs that belong together with those after. The captures before are in the order of `runs`. Raises
    what `compare_reports` does."""
    lengths = lengths_of(runs.reports, after, across_gpus=across_gpus)
    out = strays(lengths)
    kept = [at for at in range(len(lengths)) if at not in out]
    made = compare_reports([runs.reports[at] for at in kept], after, across_gpus=across_gpus)
    left_out = [runs.files[at] for at in out]
    spread = spread_of(lengths[kept])
    use = BaselineUse(
        name=runs.name,
        runs=len(kept),
        spread=None if spread is None else round(spread, 6),
        sentence=_sentence(runs.name, len(kept), spread),
        left_out=left_out,
        damaged=runs.damaged,
    )
    notes = [
        *_files(left_out, "Left out of the baseline, too far from its other runs"),
        *_files(runs.damaged, "Left out of the baseline, as they cannot be read"),
    ]
    before = read_from(made.before, [runs.files[at] for at in kept])
    return replace(made, before=before, baseline=use, notes=[*notes, *made.notes])


def _sentence(name: str, count: int, spread: float | None) -> str:
    runs = "1 run" if count == 1 else f"{count:,} runs"
    if spread is None:
        return (
            f"Baseline {name} has {runs}: what differs from run to run is not known before there are {FEWEST_RUNS}. "
            "A change may be no more than that."
        )
    return f"Baseline {name} has {runs}, whose steps differ by {format_share(spread, 1)} (standard deviation)."


def _files(files: Sequence[str], what: str) -> list[str]:
    few = [*files[:MOST_NAMED], *([f"{len(files) - MOST_NAMED:,} more"] if len(files) > MOST_NAMED else [])]
    return [f"{what}: {listed(few)}."] if files else []
