"""Captures before and after a change in, a comparison out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.pairing import are_redacted, read_from, require_names
from nsysdiag.comparison.predicted import compare_sides
from nsysdiag.config.settings import Settings
from nsysdiag.iterations.chosen import CarriedSteps
from nsysdiag.pipeline import analyze
from nsysdiag.pipeline.aligning import Given, cut_alike
from nsysdiag.pipeline.loading import load_side
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.saved.files import is_saved_report

Capture = Report | WhatIf | str | os.PathLike[str]
Side = Capture | Sequence[Capture]
"""One or several captures of a program: reports, or paths of traces and saved reports. Or a prediction alone."""


def compare(before: Side, after: Side, *, across_gpus: bool = False) -> Comparison:
    """Compare one or several captures before with one or several after: reports, saved reports, or traces, which are
    analysed with default settings. A side may also be a prediction, saved or not. Raises NotComparableError if there is
    no common unit of work, GPU models differ, redacted names do not match, or a prediction was refused. Raises
    UsageError for a prediction that changes nothing or is not alone, and InputError for other files."""
    (left, left_files), (right, right_files) = _reports(before), _reports(after)
    require_names([*left, *right])
    sides = _given(left, before), _given(right, after)

    def again(at: int, steps: CarriedSteps) -> Report:
        path = [*sides[0], *sides[1]][at].trace
        assert path is not None  # only traces are analysed again
        return analyze(path, steps=steps)

    cut = cut_alike(*sides, [Settings()] * (len(left) + len(right)), again)
    reports = cut.reports
    both = reports[: len(left)], reports[len(left) :]
    made = compare_sides(*both, across_gpus=across_gpus, same_work=cut.same_work)
    made = replace(made, notes=[*cut.notes, *made.notes])
    if are_redacted(reports):
        return made
    return replace(made, before=read_from(made.before, left_files), after=read_from(made.after, right_files))


def _given(reports: Sequence[Report | WhatIf], side: Side) -> list[Given]:
    captures = [side] if isinstance(side, str | os.PathLike | Report | WhatIf) else side
    paths = [None if isinstance(each, Report | WhatIf) else Path(os.fsdecode(each)) for each in captures]
    return [
        Given(report, None if path is None or is_saved_report(path) else path)
        for report, path in zip(reports, paths, strict=True)
    ]


def _reports(side: Side) -> tuple[list[Report | WhatIf], list[str | None]]:
    """The captures of a side, and the names of the files that they were read from."""
    captures = [side] if isinstance(side, str | os.PathLike | Report | WhatIf) else side
    files = [None if isinstance(each, Report | WhatIf) else Path(os.fsdecode(each)).name for each in captures]
    return [each if isinstance(each, Report | WhatIf) else load_side(each) for each in captures], files
