"""The settings and budgets of a command: those of a file, named or found by itself, and the options, which win."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.cli.console import progress_bar
from nsysdiag.config.settings import BaselineSettings
from nsysdiag.messages import UsageError, note
from nsysdiag.saved import is_saved_report, read_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.budgets import Budget
    from nsysdiag.cli.options import Budgets, SettingsFile
    from nsysdiag.config.settings import CostSettings, Settings
    from nsysdiag.iterations.chosen import CarriedSteps
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.report import Report


AFTER_THE_VERDICT = {"config", "cost", "gaps"}
"""Settings that change no verdict: the name of the file, prices, and how many gaps are listed."""


class FromFile(Struct, frozen=True):
    """What a settings file says; the defaults and no budgets if there is none. `found` is the path, to be shown, of
    a file that was found by itself, empty for one that was named. `baseline` says where baselines are from here."""

    settings: Settings
    budgets: list[Budget]
    found: str = ""
    baseline: BaselineSettings = BaselineSettings()


def settings_of_file(given: SettingsFile, *, saved: bool = False, quiet: bool = False) -> FromFile:
    """The settings of the file, with causes that exist, and its budgets.

    Without a name a file is looked for unless that is refused; what it gives is said, unless `quiet`. Inputs that are
    all `saved` take prices and budgets from such a file, as no analysis is left to be set. Raises UsageError.
    """
    from nsysdiag.config.file import find_settings
    from nsysdiag.config.settings import Settings

    if given.config is not None:
        return _read(Path(given.config))
    found = None if given.no_config else find_settings(Path.cwd())
    if found is None:
        return FromFile(Settings(), [])
    shown = Path(os.path.relpath(found))
    file = replace(_read(shown), found=str(shown if shown.parts[0] == os.pardir else f"./{shown}"))
    if saved:
        file = replace(file, settings=only_prices(file.settings))
    if not quiet:
        say_found(file, settings=file.settings.config is not None, budgets=bool(file.budgets))
    return file


def _read(path: Path) -> FromFile:
    from nsysdiag.ci.budgets import budgets_of
    from nsysdiag.config.file import parse_step, read_file

    settings, entries = read_file(path)
    try:
        settings = replace(settings, disabled=known_causes(settings.disabled))
    except UsageError as error:
        raise UsageError(f"{path}: disabled: {error.message}", hint=error.hint) from error
    try:
        parse_step(settings.step or "any")
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error
    # The folder of the baselines is meant from the file on, wherever the program is started.
    baseline = replace(settings.baseline, folder=str(path.parent / settings.baseline.folder))
    settings = _without_idle_file(replace(settings, baseline=type(baseline)()))
    return FromFile(settings, budgets_of(entries, str(path)), baseline=baseline)


def only_prices(settings: Settings) -> Settings:
    """What a saved report can take of the settings of a file that was found by itself."""
    return _without_idle_file(type(settings)(cost=settings.cost, config=settings.config))


def _without_idle_file(settings: Settings) -> Settings:
    """Without the name of the file if it sets nothing: budgets change no report."""
    return replace(settings, config=None) if settings.changed().keys() <= {"config"} else settings


def changes_analysis(file: Settings, settings: Settings) -> bool:
    """Whether a setting of the file, which no option has replaced in `settings`, may change a verdict."""
    names = file.changed().keys() - AFTER_THE_VERDICT
    return any(getattr(settings, name) == getattr(file, name) for name in names)


def say_found(file: FromFile, *, settings: bool, budgets: bool) -> None:
    """Name a file that was found by itself, and what of it counts."""
    parts = [*(["settings"] if settings else []), *(["budgets"] if budgets else [])]
    if file.found and parts:
        note(f"{' and '.join(parts)} of {file.found}")


def known_causes(ids: Sequence[str]) -> tuple[str, ...]:
    """The ids themselves. Raises UsageError for one that no cause has."""
    from nsysdiag.causes import CAUSES
    from nsysdiag.cli.rule_pages import known_id

    return tuple(known_id(id, CAUSES, "cause") for id in ids)


def with_price(cost: CostSettings, price: float | None) -> CostSettings:
    """The price of an hour of any GPU, which takes the place of all prices in the file."""
    from nsysdiag.config.settings import MOST_MONEY

    if price is None:
        return cost
    if not (math.isfinite(price) and 0 < price <= MOST_MONEY):
        raise UsageError(f"--gpu-hour-cost must be a number above 0, {MOST_MONEY:,} at most, not {price:g}")
    return replace(cost, gpu_hour_cost=price, gpus={})


def refuse_analysis_settings(path: Path, report: Report | WhatIf, file: Settings, given: Settings) -> None:
    """Raise UsageError if options, or settings of the file, ask a saved report for another analysis than its own."""
    from nsysdiag.config.settings import AFTERWARDS, OPTION_OF_SETTING

    asked, of_file = given.changed(), file.changed()
    options = [
        OPTION_OF_SETTING[name]
        for name, text in asked.items()
        if name in OPTION_OF_SETTING and name not in AFTERWARDS and text != of_file.get(name)
    ]
    if options:
        raise UsageError(
            f"{', '.join(options)} cannot be used with {path}: it is a saved report, already analyzed",
            hint="analyze the trace itself again",
        )
    others = [name for name, text in of_file.items() if name not in AFTERWARDS and report.settings.get(name) != text]
    if others:
        raise UsageError(
            f"{', '.join(others)} of {file.config} cannot be used with {path}: it is a saved report, made without",
            hint="analyze the trace itself again, or name a file that has nothing but [cost]",
        )


def say_unpriced(report: Report, settings: Settings) -> None:
    """A note if there are prices and none of them is for a device of this report."""
    cost = settings.cost
    if (
        cost.gpus
        and cost.gpu_hour_cost is None
        and report.devices
        and all(device.cost is None for device in report.devices)
    ):
        names = ", ".join(sorted({device.name for device in report.devices}))
        note(f"no price in [cost.gpus] is for {names}, so nothing is said of costs")


def budgets_of_options(given: Budgets) -> list[Budget]:
    """Those of --fail-on and --warn-on. Raises UsageError with the place of a mistake."""
    if not given.fail_on and not given.warn_on:
        return []
    from nsysdiag.ci.budgets import parse_budgets
    from nsysdiag.ci.facts import FAIL, WARN

    return [
        *parse_budgets(given.fail_on or (), FAIL, "--fail-on"),
        *parse_budgets(given.warn_on or (), WARN, "--warn-on"),
    ]


# Gets a report: from a trace by analysis, or from a saved report.


def analyze_trace(path: Path, settings: Settings, *, quiet: bool, steps: CarriedSteps | None = None) -> Report:
    """Analyze a trace, with a progress bar if stderr is a terminal. `steps` are those that another trace shows.
    Raises InputError and UsageError."""
    from nsysdiag import pipeline

    with progress_bar(quiet=quiet) as progress:
        if steps is None:
            return pipeline.analyze(path, settings, progress)
        return pipeline.analyze(path, settings, progress, steps=steps)


def report_of(path: Path, settings: Settings, file: Settings, *, quiet: bool) -> Report:
    """The report of a trace, or a saved one with today's prices. Raises InputError, and UsageError if the settings,
    of which those of `file` are a part, ask a saved report for another analysis than its own."""
    if not is_saved_report(path):
        return analyze_trace(path, settings, quiet=quiet)
    from nsysdiag.pipeline.loading import priced_again

    report = read_report(path)
    refuse_analysis_settings(path, report, file, settings)
    return priced_again(report, settings)


def load_report(path: Path, settings: Settings, *, named: bool) -> Report:
    """The same for other processes, which find this function by its name. If the settings' file was not `named` but
    found, a saved report takes only prices from it."""
    its = settings if named or not is_saved_report(path) else only_prices(settings)
    return report_of(path, its, its, quiet=True)
