"""A result in one line: what it is, for the prompt of Python, and the command line that makes it, from its settings."""

from __future__ import annotations

import shlex
from functools import singledispatch
from typing import TYPE_CHECKING

from nsysdiag.comparison.facts import Comparison, SideTrace
from nsysdiag.config.settings import OPTION_OF_SETTING, TIMES, setting_text
from nsysdiag.document.names import brief, clip, visible
from nsysdiag.document.view import slices_by_time
from nsysdiag.document.words import counted
from nsysdiag.findings.facts import Finding
from nsysdiag.ranks.report import RanksReport
from nsysdiag.replay.facts import Transform, WhatIf, words_of
from nsysdiag.report import DeviceReport, Gap, Report
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsysdiag.diagnosis.facts import Diagnosis
    from nsysdiag.fields import SettingValue
    from nsysdiag.record import Shown

LONGEST = 120
NAME, TITLE = 30, 50
"""How long a name among other facts may be, and a title."""


def one_line(record: Shown) -> str:
    """At most LONGEST characters, all of which print, whatever the names of the trace hold."""
    line = f"<{type(record).__name__} {visible(_facts(record))}>"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 2]}…>"


@singledispatch
def _facts(_record: object) -> str:
    return ""


@_facts.register(Report)
def _(report: Report) -> str:
    facts = f"{counted(len(report.devices), 'GPU')}, {counted(len(report.findings), 'finding')}"
    return f"'{_name(report.trace.file)}': {facts}{_headline(report.diagnosis)}"


@_facts.register(DeviceReport)
def _(device: DeviceReport) -> str:
    times = f"{format_ns(device.window_ns)}, {format_share(device.idle_ns, device.window_ns)} idle"
    return f"{_name(device.key)} '{_name(device.name)}': {times}, {counted(device.gap_count, 'gap')}"


@_facts.register(Gap)
def _(gap: Gap) -> str:
    cause = next((f", {_name(each.cause)}" for each in slices_by_time(gap)), "")
    place = f" in {_name(gap.nvtx[-1])}" if gap.nvtx else ""
    before = f" before {_name(brief(gap.next_op.name))}" if gap.next_op else ""
    return f"{format_ns(gap.end_ns - gap.start_ns)} at {gap.start_ns:,} ns{cause}{place}{before}"


@_facts.register(Finding)
def _(finding: Finding) -> str:
    devices = finding.devices or [finding.device]
    more = f" and {len(devices) - 1:,} more" if len(devices) > 1 else ""
    facts = f"{_name(finding.severity)} on {_name(devices[0])}{more}: {clip(finding.title, TITLE)}"
    if finding.lost_ns:
        return f"{facts}, {format_ns(finding.lost_ns)} lost"
    return f"{facts}, saves {finding.saves.figure}" if finding.saves else facts


@_facts.register(Comparison)
def _(comparison: Comparison) -> str:
    said = comparison.headline or comparison.sentence
    return f"'{_files(comparison.before)}' → '{_files(comparison.after)}': {said}"


@_facts.register(RanksReport)
def _(report: RanksReport) -> str:
    ranks, traces = counted(len(report.comparison.ranks), "rank"), counted(len(report.traces), "trace")
    return f"{ranks} in {traces}{_headline(report.diagnosis)}"


@_facts.register(WhatIf)
def _(found: WhatIf) -> str:
    times = "refused" if found.refused else f"{format_ns(found.now_ns)} → {format_ns(found.predicted_ns)}"
    return f"'{_name(found.trace.file)}': {_name(found.per)} {times}"


def _headline(diagnosis: Diagnosis | None) -> str:
    return f"; {diagnosis.headline}" if diagnosis else ""


def _files(traces: Sequence[SideTrace]) -> str:
    more = f" and {len(traces) - 1:,} more" if len(traces) > 1 else ""
    return f"{_name(traces[0].file)}{more}" if traces else ""


def _name(name: str) -> str:
    return clip(name, NAME)


# The command line that makes a report, so that a saved report has it too.

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
    """The options that give these settings, in the same order whatever theirs is."""
    named = [name for name in (*OPTION_OF_SETTING, REDACTED) if name in settings]
    return [word for name in named for word in _option(name, settings[name])]


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
