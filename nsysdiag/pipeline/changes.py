"""What a change brought, by captures before and after it, and what a fix would bring: reads a trace, analyzes it, and
replays its judged time with something changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.predicted import compare_sides
from nsysdiag.comparison.sides import are_redacted, read_from, require_names
from nsysdiag.config.settings import Settings
from nsysdiag.iterations.chosen import CarriedSteps
from nsysdiag.messages import UsageError, printable
from nsysdiag.pipeline import analyze
from nsysdiag.pipeline.aligning import Given, cut_alike
from nsysdiag.pipeline.analysis import analysis_of
from nsysdiag.pipeline.loading import load_side
from nsysdiag.pipeline.reading import Progress
from nsysdiag.replay.facts import Transform, WhatIf, read
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Predictions, Told, answered, identity_of, reason_against, refused
from nsysdiag.replay.work import MOST_AT_ALL, MOST_OPERATIONS
from nsysdiag.report import Report
from nsysdiag.saved import is_saved_report
from nsysdiag.shortage import Attempt
from nsysdiag.trace.trace import Trace, open_trace

Capture = Report | WhatIf | str | os.PathLike[str]
Side = Capture | Sequence[Capture]
"""One or several captures of a program: reports, or paths of traces and saved reports. Or a prediction alone."""


def compare(before: Side, after: Side, *, across_gpus: bool = False) -> Comparison:
    """Compare one or several captures before with one or several after: reports, saved reports, or traces, which are
    analyzed with default settings. A side may also be a prediction, saved or not. Raises NotComparableError if there is
    no common unit of work, GPU models differ, redacted names do not match, or a prediction was refused. Raises
    UsageError for a prediction that changes nothing or is not alone, and InputError for other files."""
    (left, left_files), (right, right_files) = _reports(before), _reports(after)
    require_names([*left, *right])
    sides = _given(left, before), _given(right, after)

    def again(at: int, steps: CarriedSteps) -> Report:
        path = [*sides[0], *sides[1]][at].trace
        assert path is not None  # only traces are analyzed again
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


class Replayed(Struct, frozen=True):
    """A report, and the model of its judged time, or a sentence why there is none: the model that predicted the savings
    of its findings, where there is one, and what was `told` of these."""

    report: Report
    model: Model | str
    told: Told = {}


def replayed(
    trace: Trace, settings: Settings, progress: Progress | None = None, transforms: Sequence[Transform] = ()
) -> Replayed:
    """What the report's savings were predicted with is replayed again, or there would be two answers to one question.
    Without that each finding takes replays of its own, so without transforms less time is replayed."""
    found = analysis_of(trace, settings, progress)
    predictions = found.job.predictions
    if isinstance(predictions, Predictions):
        return Replayed(found.report, predictions.model, predictions.known)
    return Replayed(found.report, found.job.builder(MOST_OPERATIONS, MOST_AT_ALL if transforms else MOST_OPERATIONS))


def whatif(
    path: str | os.PathLike[str],
    transforms: Sequence[Transform] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """The prediction with all these transforms together; without any, what each finding would bring.

    Raises UsageError where a transform matches nothing, with near names, and what `analyze` raises."""
    return with_report(path, transforms, settings or Settings(timeline=False), progress)[1]


def whatif_of(report: Report, changes: Sequence[str]) -> WhatIf:
    """The prediction for a report's trace with these changes, each as on the command line. Raises UsageError for a
    report that was read from a file, and what `whatif` does."""
    if report.source is None:
        raise UsageError(
            "this report was read from a file: a prediction needs the trace itself", hint="nsysdiag.whatif(TRACE, ...)"
        )
    path, settings = report.source
    return whatif(path, [read(each) for each in changes], replace(settings or Settings(), timeline=False))


def with_report(
    path: str | os.PathLike[str], transforms: Sequence[Transform], settings: Settings, progress: Progress | None = None
) -> tuple[Report, WhatIf]:
    """The report and the prediction of one analysis. Raises what `whatif` does."""
    with (
        Attempt(f"replay '{printable(os.fsdecode(path))}'") as attempt,
        open_trace(path, reader=settings.reader, full_hash=settings.full_hash, nsys=settings.nsys) as trace,
    ):
        found = replayed(trace, settings, attempt.noting(progress), transforms)
        trace.check_unchanged()
    if isinstance(found.model, str):
        return found.report, refused(found.report, transforms, str(found.model))
    identity = identity_of(found.model)
    if reason := reason_against(found.model, identity):
        return found.report, refused(found.report, transforms, reason, identity)
    return found.report, answered(found.report, found.model, transforms, identity, found.told)
