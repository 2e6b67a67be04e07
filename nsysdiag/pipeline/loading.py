"""A path in, a report out: of a trace by analysis, or as it was saved."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from nsysdiag import pipeline
from nsysdiag.comparison.sides import are_redacted
from nsysdiag.config.settings import AFTERWARDS, Settings
from nsysdiag.messages import UsageError, printable
from nsysdiag.pipeline.analysis import with_given
from nsysdiag.pipeline.reading import Progress
from nsysdiag.report import Report
from nsysdiag.saved import is_saved_report, read_report


def load(path: str | os.PathLike[str]) -> Report:
    """The report of a trace or of a saved report, distinguished by their content.

    A report written by `save` or `-o x.json` is read. A trace (an SQLite file, a folder of Parquet files or a
    .nsys-rep) is analyzed with default settings: use `analyze` for others. Raises InputError for other files, for saved
    documents other than a report of one trace, and for a damaged report. Raises MemoryShortError if memory runs out.
    """
    return analyze(path)


def analyze(path: str | os.PathLike[str], settings: Settings | None = None, progress: Progress | None = None) -> Report:
    """Analyze one exported trace; or read a saved report, and apply the price and the reference step of the settings.

    Raises InputError for other files, and MemoryShortError, a MemoryError, if memory runs out. Raises UsageError for
    settings that do not fit: those of a saved report's analysis cannot be changed.
    """
    found = Path(os.fsdecode(path))
    if not is_saved_report(found):
        made = pipeline.analyze(found, settings, progress, keep_time=True)
        made.keep_source(found, settings)
        return made
    settings, report = settings or Settings(), read_report(found)
    asked = [
        name
        for name, value in settings.changed().items()
        if name not in AFTERWARDS and report.settings.get(name) != value
    ]
    if asked:
        raise UsageError(
            f"{', '.join(asked)} cannot be used with '{printable(found)}': it is a saved report, already analyzed",
            hint="analyze the trace itself again",
        )
    return priced_again(report, settings)


def priced_again(report: Report, settings: Settings) -> Report:
    """A saved report with today's prices, reference step and operations, which its settings then hold; unchanged if
    there are none. Raises UsageError if it has no steps for the latter two."""
    made = with_given(report, settings)
    if made is report:
        return report
    prices = {name: text for name, text in settings.changed().items() if name in AFTERWARDS}
    if are_redacted([report]):
        prices.pop("config", None)  # the name of a file
    return replace(made, settings={**report.settings, **prices})
