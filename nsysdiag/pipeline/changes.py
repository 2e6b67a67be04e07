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
from nsysdiag.comparison.sides import read_from, require_names
from nsysdiag.config.settings import Settings
from nsysdiag.messages import UsageError, printable
from nsysdiag.pipeline import analyze
from nsysdiag.pipeline.aligning import Given, cut_alike
from nsysdiag.pipeline.analysis import analysis_of
from nsysdiag.pipeline.reading import Progress
from nsysdiag.replay.facts import Transform, WhatIf, read
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Predictions, Told, answered, identity_of, reason_against, refused
from nsysdiag.replay.work import MOST_AT_ALL, MOST_OPERATIONS
from nsysdiag.report import Report
from nsysdiag.saved import is_saved_report, read_side
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
    left, right = _given(before), _given(after)
    require_names([each.report for each in (*left, *right)])
    settings = [Settings()] * (len(left) + len(right))
    cut = cut_alike(left, right, settings, lambda path, its, steps: analyze(path, its, steps=steps))
    reports = cut.reports[: len(left)], cut.reports[len(left) :]
    made = compare_sides(*reports, across_gpus=across_gpus, same_work=cut.same_work)
    made = read_from(made, *([each.file for each in side] for side in (left, right)))
    return replace(made, notes=[*cut.notes, *made.notes])


def _given(side: Side) -> list[Given]:
    """The captures of a side. Traces are analyzed. Raises what `load` raises."""
    captures = [side] if isinstance(side, str | os.PathLike | Report | WhatIf) else side
    return [Given(each) if isinstance(each, Report | WhatIf) else _read(Path(os.fsdecode(each))) for each in captures]


def _read(path: Path) -> Given:
    if is_saved_report(path):
        return Given(read_side(path), file=path.name)
    return Given(analyze(path), path, path.name)


class Replayed(Struct, frozen=True):
    """A report, and the model of its judged time, or a sentence why there is none: the model that predicted the savings
    of its findings, if there is one, and what was `told` of these."""

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

    Raises UsageError if a transform matches nothing, with near names, and what `analyze` raises."""
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
