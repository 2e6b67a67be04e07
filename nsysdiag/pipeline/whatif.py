"""What a fix would bring: reads a trace, analyses it, and replays its judged time with something changed."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from nsysdiag.config.settings import Settings
from nsysdiag.messages import printable
from nsysdiag.pipeline.analysis import analysis_of
from nsysdiag.pipeline.reading import Progress
from nsysdiag.replay.answer import answered, refused
from nsysdiag.replay.facts import Transform, WhatIf
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Predictions, Told, identity_of, reason_against
from nsysdiag.replay.stretch import MOST_AT_ALL, MOST_OPERATIONS
from nsysdiag.report import Report
from nsysdiag.shortage import Attempt
from nsysdiag.trace.trace import Trace, open_trace


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
