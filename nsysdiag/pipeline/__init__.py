"""The analysis: a trace file in, a report out. `analysis` has its stages, `changes` compares and predicts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nsysdiag.config.settings import Settings
from nsysdiag.events.host import large_tables
from nsysdiag.messages import printable
from nsysdiag.shortage import Attempt
from nsysdiag.trace.trace import open_trace

if TYPE_CHECKING:
    from nsysdiag.iterations.chosen import CarriedSteps
    from nsysdiag.pipeline.reading import Progress
    from nsysdiag.report import Report


def analyze(
    path: str | os.PathLike[str],
    settings: Settings | None = None,
    progress: Progress | None = None,
    *,
    keep_time: bool = False,
    steps: CarriedSteps | None = None,
) -> Report:
    """Analyze one exported trace. With `keep_time` the report keeps its table of time. `steps` are those that another
    trace shows, None if they are found or chosen.

    Raises InputError for other files, UsageError for settings that do not fit, and MemoryShortError, a MemoryError, if
    memory runs out."""
    settings = settings or Settings()
    with (
        Attempt(f"analyze '{printable(os.fsdecode(path))}'") as attempt,
        open_trace(path, reader=settings.reader, full_hash=settings.full_hash, nsys=settings.nsys) as trace,
    ):
        if settings.memory_limit is None:
            trace.read_ahead(large_tables(trace))
        # While that is read, without Python's lock: to import the stages of the analysis takes as long as to read some
        # 100,000 kernels.
        from nsysdiag.pipeline.analysis import analyze_trace

        return analyze_trace(trace, settings, attempt.noting(progress), keep_time=keep_time, steps=steps)
