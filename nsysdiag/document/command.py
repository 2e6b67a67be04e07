"""The command line that makes a report, from its settings, so that a saved report has it too."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from nsysdiag.comparison.facts import Comparison
from nsysdiag.config.settings import OPTION_OF_SETTING, TIMES, setting_text
from nsysdiag.ranks.report import RanksReport
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.options import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nsysdiag.fields import SettingValue
    from nsysdiag.replay.facts import Transform
    from nsysdiag.report import Report

REDACTED = "redacted"

FLAGS = ("same_gpu", "full_hash", "replay")
OF_WHATIF = ("device", "same_gpu", "start_ns", "end_ns", "nvtx", "iterations", "step", "config", REDACTED)
"""The settings that `whatif` has options for."""


def command_of(document: Report | RanksReport | Comparison | WhatIf) -> str:
    """`nsysdiag analyze`, `ranks`, `compare` or `whatif` with the files, by their names alone, and the options
    that differ from their defaults."""
    if isinstance(document, Comparison):
        (before, *more_before), (after, *more_after) = (
            [trace.given or trace.file for trace in side] for side in (document.before, document.after)
        )
        if document.baseline is not None:
            words = ["compare", "--baseline", document.baseline.name, after]
        else:
            words = ["compare", before, after]
            words += [word for file in more_before for word in ("--before", file)]
        words += [word for file in more_after for word in ("--after", file)]
        words += ["--across-gpus"] if document.across_gpus else []
    elif isinstance(document, RanksReport):
        words = ["ranks", *(trace.file for trace in document.traces)]
    elif isinstance(document, WhatIf):
        return whatif_command(document.trace.file, document.transforms, document.settings)
    else:
        words = ["analyze", document.trace.file]
    return shlex.join(["nsysdiag", *words, *options_of(document.settings)])


def options_of(settings: Mapping[str, SettingValue]) -> list[str]:
    """The options that give these settings."""
    return [word for name, value in settings.items() for word in _option(name, value)]


def whatif_command(file: str, transforms: Iterable[Transform], settings: Mapping[str, SettingValue]) -> str:
    """The command that predicts these changes of a trace, within the same part of it."""
    changes = [word for each in transforms for word in words_of(each)]
    held = {name: value for name, value in settings.items() if name in OF_WHATIF}
    return shlex.join(["nsysdiag", "whatif", file, *changes, *options_of(held)])


def _option(name: str, value: SettingValue) -> Iterator[str]:
    option = OPTION_OF_SETTING.get(name)
    if name == REDACTED:
        yield "--redact"
    if option is None:
        return
    if name in FLAGS:
        yield option
    elif name == "cost":
        # Prices by name come from a file, and then the general one does too.
        if isinstance(value, dict) and "gpu_hour_cost" in value and "gpus" not in value:
            yield from (option, str(value["gpu_hour_cost"]))
    elif name == "disabled" and isinstance(value, list):
        for cause in value:
            yield from (option, str(cause))
    else:
        yield from (option, setting_text(name, value) + ("ns" if name in TIMES else ""))
