"""Gets a report: from a trace by analysis, or from a saved report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.cli.console import progress_bar
from nsysdiag.saved.files import is_saved_report, read_report

if TYPE_CHECKING:
    from nsysdiag.config.settings import Settings
    from nsysdiag.iterations.chosen import CarriedSteps
    from nsysdiag.report import Report


def analyze_trace(path: Path, settings: Settings, *, quiet: bool, steps: CarriedSteps | None = None) -> Report:
    """Analyse a trace, with a progress bar where stderr is a terminal. `steps` are those that another trace shows.
    Raises InputError and UsageError."""
    from nsysdiag import pipeline

    with progress_bar(quiet=quiet) as progress:
        if steps is None:
            return pipeline.analyze(path, settings, progress)
        return pipeline.analyze(path, settings, progress, steps=steps)


def load_report(path: Path, settings: Settings, *, named: bool) -> Report:
    """The report of a trace or of a saved report, for other processes too, which find this function by its name.

    Where the settings' file was not `named` but found, a saved report takes only prices from it. Raises InputError, and
    UsageError where the settings ask a saved report for another analysis than its own.
    """
    from nsysdiag.cli.settings import only_prices, refuse_analysis_settings
    from nsysdiag.pipeline.loading import priced_again

    if not is_saved_report(path):
        return analyze_trace(path, settings, quiet=True)
    report = read_report(path)
    if not named:
        settings = only_prices(settings)
    refuse_analysis_settings(path, report, settings, settings)
    return priced_again(report, settings)
