"""A comparison with the runs of a baseline: which of them are compared, and what they tell of chance."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import BaselineUse, Comparison
from nsysdiag.comparison.pairing import read_from
from nsysdiag.comparison.runs import lengths_of, spread_of, strays
from nsysdiag.comparison.significance import FEWEST_RUNS
from nsysdiag.report import Report
from nsysdiag.units import format_share, listed

MOST_NAMED = 3


class Runs(Struct, frozen=True):
    """The runs of the baseline `name`, each with the name of its file; `damaged` are files that cannot be read."""

    name: str
    files: list[str]
    reports: list[Report]
    damaged: list[str]


def compare_with_baseline(runs: Runs, after: Sequence[Report], *, across_gpus: bool = False) -> Comparison:
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
