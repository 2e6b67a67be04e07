"""The settings of a command: those of the file that --config names, and the options, which win."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.config import CostSettings, Settings
    from nsysdiag.model import Report


def settings_of_file(name: str | None) -> Settings:
    """The settings of the file, with causes that exist; the defaults where there is no file."""
    from nsysdiag.config import Settings
    from nsysdiag.config_file import read_settings

    if name is None:
        return Settings()
    settings = read_settings(Path(name))
    try:
        return replace(settings, disabled=known_causes(settings.disabled))
    except UsageError as error:
        raise UsageError(f"{name}: disabled: {error.message}", hint=error.hint) from error


def known_causes(ids: Sequence[str]) -> tuple[str, ...]:
    """The ids themselves. Raises UsageError for one that no cause has."""
    from nsysdiag.cli.causes import find_cause

    return tuple(find_cause(id).id for id in ids)


def with_price(cost: CostSettings, price: float | None) -> CostSettings:
    """The price of an hour of any GPU, which takes the place of all prices in the file."""
    from nsysdiag.config import MOST_MONEY

    if price is None:
        return cost
    if not (math.isfinite(price) and 0 < price <= MOST_MONEY):
        raise UsageError(f"--gpu-hour-cost must be a number above 0, {MOST_MONEY:,} at most, not {price:g}")
    return replace(cost, gpu_hour_cost=price, gpus={})


def refuse_analysis_settings(path: Path, report: Report, file: Settings, given: Settings) -> None:
    """Raise UsageError where options, or settings of the file, ask a saved report for another analysis than its own."""
    from nsysdiag.cli.command import AFTERWARDS, OPTION_OF_SETTING

    asked, of_file = given.changed(), file.changed()
    options = [
        OPTION_OF_SETTING[name]
        for name, text in asked.items()
        if name in OPTION_OF_SETTING and name not in AFTERWARDS and text != of_file.get(name)
    ]
    if options:
        raise UsageError(
            f"{', '.join(options)} cannot be used with {path}: it is a saved report, already analysed",
            hint="analyse the trace itself again",
        )
    others = [name for name, text in of_file.items() if name not in AFTERWARDS and report.settings.get(name) != text]
    if others:
        raise UsageError(
            f"{', '.join(others)} of {file.config} cannot be used with {path}: it is a saved report, made without",
            hint="analyse the trace itself again, or name a file that has nothing but [cost]",
        )


def priced_again(report: Report, settings: Settings) -> Report:
    """A saved report with today's prices, which its settings tell then; as it is where there are none."""
    from nsysdiag.cli.command import AFTERWARDS
    from nsysdiag.cost import priced
    from nsysdiag.redaction import is_redacted

    made = priced(report, settings.cost)
    if made is report:
        return report
    told = {name: text for name, text in settings.changed().items() if name in AFTERWARDS}
    if is_redacted(report):
        told.pop("config", None)  # the name of a file
    return replace(made, settings={**report.settings, **told})


def say_unpriced(report: Report, settings: Settings) -> None:
    """A note where there are prices and none of them is for a device of this report."""
    from nsysdiag.cli.console import note

    cost = settings.cost
    if (
        cost.gpus
        and cost.gpu_hour_cost is None
        and report.devices
        and all(device.cost is None for device in report.devices)
    ):
        names = ", ".join(sorted({device.name for device in report.devices}))
        note(f"no price in [cost.gpus] is for {names}, so nothing is said of costs")
