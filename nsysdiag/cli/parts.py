"""What of each side `nsysdiag compare` compares: a device, ranges, a time or a phase."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.cli import options
from nsysdiag.messages import UsageError

if TYPE_CHECKING:
    from nsysdiag.config.settings import Settings
    from nsysdiag.iterations.chosen import CarriedSteps
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.report import Report


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


def part_of_each(
    device: list[str] | None,
    nvtx: list[str] | None,
    start: list[str] | None,
    end: list[str] | None,
    phase: list[str] | None,
) -> tuple[ComparedPart, ComparedPart]:
    """What of the side before, and of that after, is compared. Raises UsageError."""
    given = {"--device": device, "--nvtx": nvtx, "--from": start, "--to": end, "--phase": phase}
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


def report_of(path: Path, settings: Settings, file: Settings, part: ComparedPart, *, quiet: bool) -> Report | WhatIf:
    """The report of a part of a trace, or what was saved, to which no other settings than its own fit. Raises
    InputError and UsageError."""
    from nsysdiag.cli.settings import analyze_trace, refuse_analysis_settings
    from nsysdiag.saved.files import is_saved_report, read_side

    settings, phase = part.of(settings), part.phase
    if not is_saved_report(path):
        if phase is not None:
            settings = _of_phase(path, settings, phase, quiet=quiet)
        return analyze_trace(path, settings, quiet=quiet, steps=_steps(path, settings))
    if phase is not None:
        raise UsageError(
            f"--phase cannot be used with {path}: it is a saved report, already analysed",
            hint="analyse the trace itself again",
        )
    report = read_side(path)
    refuse_analysis_settings(path, report, file, settings)
    return report


def _of_phase(path: Path, settings: Settings, phase: str, *, quiet: bool) -> Settings:
    """The settings with the time of a phase of the whole trace."""
    from nsysdiag.cli.settings import analyze_trace
    from nsysdiag.pipeline.windows import phase_named

    whole = analyze_trace(path, replace(settings, replay=False, timeline=False), quiet=quiet)
    found = phase_named(whole, phase)
    return replace(settings, start_ns=found.start_ns, end_ns=found.end_ns)


def _steps(path: Path, settings: Settings) -> CarriedSteps | None:
    """The steps of the whole trace, where only a part of the time is compared and no steps are named."""
    from nsysdiag.pipeline.windows import steps_inside

    if settings.step is not None or (settings.start_ns is None and settings.end_ns is None):
        return None
    return steps_inside(path, settings)
