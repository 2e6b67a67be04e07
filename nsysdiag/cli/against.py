"""Both sides of `nsysdiag compare`: captures, or the runs of a baseline and what that accepts; which part of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.acceptances import EXCEEDED, EXPIRED, Acceptance, accept, anchors, command_to_accept, today
from nsysdiag.ci.facts import FAIL
from nsysdiag.cli import options
from nsysdiag.cli.settings import analyze_trace, changes_analysis, refuse_analysis_settings
from nsysdiag.comparison.sides import read_from
from nsysdiag.comparison.units import CutAlike
from nsysdiag.document.words import counted
from nsysdiag.messages import NotComparableError, UsageError, note, printable
from nsysdiag.saved import is_saved_report, read_side
from nsysdiag.share.names import FILE, setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsysdiag.baselines import Held
    from nsysdiag.ci.budgets import Judgement
    from nsysdiag.ci.facts import BudgetResult
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.comparison.units import OneRun
    from nsysdiag.config.settings import Settings
    from nsysdiag.fields import SettingValue
    from nsysdiag.iterations.chosen import CarriedSteps
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.report import Report
    from nsysdiag.share.names import Names


class Base(Struct, frozen=True):
    """A baseline: what its folder holds, and the options with which it is found again."""

    name: str
    held: Held
    accepted: list[Acceptance]
    options: list[str]


def base_of(name: str, baselines: str | None, found: FromFile, *, if_new: str = "fail") -> Base:
    """The baseline of this name. Raises UsageError if it has no run that can be read, or what it accepts cannot be
    read. Where it has no run at all and `if_new` is `pass`, it says so and ends with 0."""
    from nsysdiag.baselines import folder_of, held_in, read_accepted

    folder = folder_of(Path(baselines or found.baseline.folder), name)
    held = held_in(folder)
    if not held.runs and not held.damaged and if_new == "pass":
        note(f"baseline {name} has no run yet: nothing is compared")
        raise typer.Exit
    if not held.runs:
        damaged = f" that can be read: {', '.join(held.damaged)}" if held.damaged else ""
        raise UsageError(
            f"baseline {name} has no run{damaged} in {folder}", hint=f"nsysdiag baseline add {name} report.json"
        )
    return Base(name, held, read_accepted(folder), ["--baselines", baselines] if baselines else [])


def anchored(base: Base, accepted: Acceptance) -> Acceptance:
    """The acceptance from what the runs of the baseline take now; as it is if they cannot tell."""
    if not accepted.expression.of_change or not base.held.runs:
        return accepted
    try:
        made = compared(base, runs_of(base)[1], runs_of(base)[1][-1:], None, across_gpus=True)
    except NotComparableError:
        return accepted
    return replace(accepted, before_ns=anchors(made, accepted.expression))


def runs_of(base: Base) -> tuple[list[Path], list[Report]]:
    """The files of its runs and their reports, the oldest first."""
    return [run.path for run, _report in base.held.runs], [report for _run, report in base.held.runs]


def compared(
    base: Base | None,
    before: Sequence[Report | WhatIf],
    after: Sequence[Report | WhatIf],
    names: Names | None,
    *,
    across_gpus: bool,
    same_work: Mapping[str, OneRun] | None = None,
) -> Comparison:
    """Both sides compared; with a baseline, by the runs of it that belong together. Raises what `compare_sides` does,
    and UsageError for a prediction together with a baseline."""
    from nsysdiag.comparison.compare import BaselineRuns, compare_with_baseline
    from nsysdiag.comparison.predicted import compare_sides
    from nsysdiag.report import Report

    if base is None:
        return compare_sides(before, after, across_gpus=across_gpus, same_work=same_work)
    reports, latest = ([each for each in side if isinstance(each, Report)] for side in (before, after))
    if len(latest) < len(after):
        raise UsageError("a prediction is not compared with a baseline", hint="compare it with a capture")

    def shown(file: str) -> str:
        return names.of(FILE, file) if names else file

    files = [shown(path.name) for path in runs_of(base)[0]]
    runs = BaselineRuns(shown(base.name), files, reports, [shown(file) for file in base.held.damaged])
    return compare_with_baseline(runs, latest, across_gpus=across_gpus)


def with_accepted(
    base: Base | None, judged: Judgement, made: Comparison, *, redact: bool
) -> tuple[Judgement, Comparison]:
    """The judgement without what the baseline accepts, and the comparison that says so; nothing of it with `redact`: a
    reason may hold names. What is accepted no more is said on stderr."""
    if base is None or made.baseline is None or not base.accepted:
        return judged, made
    judged, told = accept(judged, made, base.accepted, today())
    for each in told:
        if each.status in (EXPIRED, EXCEEDED):
            note(f"{each.status}: {each.sentence} (reason: {each.reason})")
    accepted = [] if redact else told
    return judged, replace(made, baseline=replace(made.baseline, accepted=accepted))


def accepting(base: Base | None, judged: Judgement) -> dict[str, str]:
    """The command that accepts a broken budget that fails, by its id, if the baseline can."""
    if base is None:
        return {}
    broken = [each for each in judged.results if each.broken and each.level == FAIL]
    found = {each.id: command_to_accept(each, base.name, base.options, today()) for each in broken}
    return {id: command for id, command in found.items() if command}


def against(made: Comparison, accept: Mapping[str, str]) -> Callable[[BudgetResult], str]:
    """What a broken budget was held against, and the command that accepts it."""
    use = made.baseline
    if use is None:
        first, *more = [trace.given or trace.file for trace in made.before]
        text = f"; against {first}{f' and {len(more):,} more' if more else ''}"
    else:
        text = f"; against baseline {use.name} ({counted(use.runs, 'run')})"
    return lambda result: f"{text}; to accept it: {accept[result.id]}" if result.id in accept else text


class ComparedPart(Struct, frozen=True):
    """What of a side is compared: settings of the analysis, and the name of a phase."""

    settings: dict[str, Any]
    phase: str | None

    @property
    def narrows(self) -> bool:
        """Whether it is a part of the time."""
        return self.phase is not None or any(self.settings[each] is not None for each in ("nvtx", "start_ns", "end_ns"))

    def of(self, settings: Settings) -> Settings:
        """The settings with those of this part."""
        return replace(settings, **self.settings)


def part_of_each(of: options.PartOfEach) -> tuple[ComparedPart, ComparedPart]:
    """What of the side before, and of that after, is compared. Raises UsageError."""
    given = {"--device": of.device, "--nvtx": of.nvtx, "--from": of.start, "--to": of.end, "--phase": of.phase}
    both = {option: _of_each_side(option, values or []) for option, values in given.items()}
    before, after = (_part(*(values[at] for values in both.values())) for at in (0, 1))
    return before, after


def _of_each_side(option: str, values: list[str]) -> tuple[str | None, str | None]:
    """One value is that of both sides, two are those before and after."""
    if len(values) > 2:
        raise UsageError(f"{option} is given {len(values)} times", hint="give it once for both sides, or once for each")
    return (values[0], values[-1]) if values else (None, None)


def _part(device: str | None, nvtx: str | None, start: str | None, end: str | None, phase: str | None) -> ComparedPart:
    if phase is not None and (nvtx or start or end):
        raise UsageError("--phase excludes --nvtx, --from and --to", hint="choose one of them")
    start_ns, end_ns = options.narrowed_window(start, end, nvtx, None)
    return ComparedPart({"device": device, "nvtx": nvtx, "start_ns": start_ns, "end_ns": end_ns}, phase)


def reports_of(
    left: list[Path],
    right: list[Path],
    settings: Settings,
    file: Settings,
    parts: tuple[ComparedPart, ComparedPart],
    *,
    whole: bool,
    quiet: bool,
) -> CutAlike:
    """The reports of both sides, and notes. If `whole` captures are compared, and only one of them shows steps, these
    are found in the other. Raises InputError and UsageError."""
    sides = [(path, parts[0]) for path in left] + [(path, parts[1]) for path in right]
    reports = [_report(path, settings, file, part, quiet=quiet) for path, part in sides]
    traces = [None if is_saved_report(path) else path for path, _part in sides]
    if not whole or any(part.narrows for part in parts) or not any(traces):
        return CutAlike(reports, [])
    from nsysdiag.pipeline.aligning import Given, cut_alike

    given = [Given(*each) for each in zip(reports, traces, strict=True)]

    def again(path: Path, its: Settings, steps: CarriedSteps) -> Report:
        return analyze_trace(path, its, quiet=quiet, steps=steps)

    return cut_alike(given[: len(left)], given[len(left) :], [part.of(settings) for _path, part in sides], again)


def _report(path: Path, settings: Settings, file: Settings, part: ComparedPart, *, quiet: bool) -> Report | WhatIf:
    """The report of a part of a trace, or what was saved, to which no other settings than its own fit."""
    settings, phase = part.of(settings), part.phase
    if is_saved_report(path):
        if phase is not None:
            raise UsageError(
                f"--phase cannot be used with {path}: it is a saved report, already analyzed",
                hint="analyze the trace itself again",
            )
        report = read_side(path)
        refuse_analysis_settings(path, report, file, settings)
        return report
    try:
        if phase is not None:
            settings = _of_phase(path, settings, phase, quiet=quiet)
        return analyze_trace(path, settings, quiet=quiet, steps=_steps(path, settings))
    except UsageError as error:  # about one of the sides
        raise UsageError(f"{printable(path)}: {error}", hint=error.hint) from error


def _of_phase(path: Path, settings: Settings, phase: str, *, quiet: bool) -> Settings:
    """The settings with the time of a phase of the whole trace."""
    from nsysdiag.pipeline.aligning import phase_named

    whole = analyze_trace(path, replace(settings, replay=False, timeline=False), quiet=quiet)
    found = phase_named(whole, phase)
    return replace(settings, start_ns=found.start_ns, end_ns=found.end_ns)


def _steps(path: Path, settings: Settings) -> CarriedSteps | None:
    """The steps of the whole trace, if only a part of the time is compared and no steps are named."""
    if settings.step is not None or (settings.start_ns is None and settings.end_ns is None):
        return None
    from nsysdiag.pipeline.aligning import steps_inside

    return steps_inside(path, settings)


def with_files(made: Comparison, sides: tuple[list[Path], list[Path]], names: Names | None) -> Comparison:
    """The comparison with the files that its captures were read from. A side without files keeps its own."""
    return read_from(made, *([names.of(FILE, path.name) if names else path.name for path in side] for side in sides))


def with_settings(made: Comparison, file: Settings, settings: Settings, names: Names | None) -> Comparison:
    """The comparison with the steps asked for, and the name of the settings file that its traces were analyzed by, if
    it set anything."""
    more: dict[str, SettingValue] = {}
    if settings.step is not None:
        more["step"] = setting(names, "step", settings.step) if names else settings.step
    if file.config is not None and changes_analysis(file, settings):
        more["config"] = names.of(FILE, file.config) if names else file.config
    return replace(made, settings={**made.settings, **more})
