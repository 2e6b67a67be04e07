"""The settings of one analysis: what the options say, with the defaults that the rules document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from nsysdiag.fields import SettingValue

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=10**15)]
MOST_MONEY = 1_000_000
Money = Annotated[float, Meta(gt=0, le=MOST_MONEY)]
Hours = Annotated[float, Meta(gt=0, le=1_000_000)]
Word = Annotated[str, Meta(min_length=1)]
"""What a settings file may hold: a limit is checked where a value is read, see `nsysdiag.config.file`."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """`busy`, `copies` and `communication` are shares of the window: from these on, idle time, exposed copies and
    exposed communication are reported next to the dashboard's figure.

    `root_floor` is the smallest confidence for following a wait to the thread that ended it. A launch-bound phase has
    at least `launch_bound_launches` launches. It excludes gaps of more than `launch_bound_gap_ns`, and sequences of
    more than `launch_bound_run` launches that found the device busy. A queue counts as drained if at least
    `drain_depth` operations were outstanding at the last launch before. `clock` is the share of the highest clock below
    which a clock is low. `gap_sm_active` is the mean share of active SMs from which on gaps hold work that the trace
    does not show.
    """

    busy: Share = 0.05
    copies: Share = 0.10
    communication: Share = 1 / 3
    root_floor: Share = 0.5
    launch_bound_gap_ns: Count = 50_000
    launch_bound_run: Count = 8
    launch_bound_launches: Count = 20
    drain_depth: Count = 4
    clock: Share = 0.90
    gap_sm_active: Share = 0.20


class FindingThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of findings and of their length.

    `smallest`, `high`, `medium` and `low` are shares of the window; `empty` is the share of iterations without work;
    `collector` and `interpreter` are shares of the CPU samples of a place. `most` findings are kept of a report,
    `places` of one cause and device, `rows` of evidence for each.
    """

    most: Count = 12
    places: Count = 3
    rows: Count = 3
    smallest: Share = 0.01
    high: Share = 0.20
    medium: Share = 0.05
    low: Share = 0.01
    empty: Share = 0.10
    collector: Share = 0.25
    interpreter: Share = 0.50


class CostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a GPU hour: `gpus` by a part of the name (case-insensitive, the longest match wins), `gpu_hour_cost`
    for all others. `run_hours` is the length of the whole run that the trace is a part of."""

    gpu_hour_cost: Money | None = None
    currency: Annotated[str, Meta(min_length=1, max_length=8)] = "USD"
    run_hours: Hours | None = None
    gpus: dict[Word, Money] = {}


class UtilizationThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """How a dashboard samples, and when its figure is misleading.

    `sample_ns` is the period of NVML's counter, `poll_ns` that of a poll for any running work. From
    `hollow_utilization` on with SM activity below `hollow_activity`, the figure hides that most of the chip is idle. A
    poll misleads if its share of periods is at least `poll_factor` times the share of time and `poll_difference` above
    it.
    """

    sample_ns: Count = 166_666_667
    poll_ns: Count = 50_000_000
    hollow_utilization: Share = 0.80
    hollow_activity: Share = 0.30
    poll_factor: Annotated[float, Meta(ge=1)] = 2.0
    poll_difference: Share = 0.20


class MemoryThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes and shares. Copies of at least `large_copy` are limited by their link, those below `tiny_copy` by
    the fixed cost of a copy; a copy is slow below `slow_copy` of the possible rate.

    Blocks of unified memory thrash if they moved back and forth at least `thrash_moves` times. A peak of `near_limit`
    of the device's memory is near the limit.
    """

    large_copy: Count = 1 << 20
    tiny_copy: Count = 4096
    slow_copy: Share = 0.5
    thrash_moves: Count = 3
    near_limit: Share = 0.90


MOST_RUNS = 1000


class BaselineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where baselines are: `folder` has a folder for each, by its name, which keeps the last `runs` ones. No report
    depends on them."""

    folder: Word = ".nsysdiag/baselines"
    runs: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = 10


class BudgetEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A budget in a settings file: an expression that `fail`s or `warn`s if it is true, one of the two. `device`
    (key or part of the name), `nvtx` (a range) and `trace` (a pattern for its path) limit what it is about."""

    fail: Word | None = None
    warn: Word | None = None
    device: Word | None = None
    nvtx: Word | None = None
    trace: Word | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ns, `memory_limit` in bytes. `device` selects by key, number or name part; `start_ns`, `end_ns`, `nvtx`
    and `iterations` (from the first, up to but not including the second) narrow the window. `step` says what a step is
    (`nsysdiag.config.file`), None to find it. `config` is the settings file that was read, None for none. `nsys` is the
    program that exports a report, None for that on the PATH. Without `replay` findings have upper bounds of their
    savings and no predictions."""

    device: str | None = None
    same_gpu: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    nvtx: str | None = None
    iterations: tuple[int | None, int | None] | None = None
    step: Word | None = None
    gaps: Count = 200
    disabled: tuple[Word, ...] = ()
    communication_patterns: tuple[Word, ...] = (
        "nccl",
        "nvshmem",
        "rccl",
        "multimem_",
        "one_shot_all_",
        "two_shot_all_",
        "cross_device_reduce",
    )
    thresholds: Thresholds = Thresholds()
    findings: FindingThresholds = FindingThresholds()
    memory: MemoryThresholds = MemoryThresholds()
    full_hash: bool = False
    memory_limit: int | None = None
    timeline: bool = True
    replay: bool = True
    reference_step_ns: int | None = None
    flops_per_step: Word | None = None
    reader: str = "adbc"
    nsys: str | None = None
    utilization: UtilizationThresholds = UtilizationThresholds()
    cost: CostSettings = CostSettings()
    baseline: BaselineSettings = BaselineSettings()
    config: str | None = None

    def changed(self, *, partial: bool = False) -> dict[str, SettingValue]:
        """The settings that differ from their defaults. The way a trace was read changes no result, nor do baselines,
        nor a memory limit, unless only a part of the trace was read."""
        without_effect = ("reader", "nsys", "baseline") if partial else ("reader", "nsys", "baseline", "memory_limit")
        return {name: value for name, value in _changed(self).items() if name not in without_effect}


def _changed(settings: msgspec.Struct) -> dict[str, SettingValue]:
    """The fields that differ from their defaults."""
    default = type(settings)()
    return {
        name: _plain(value)
        for name in settings.__struct_fields__
        if (value := getattr(settings, name)) != getattr(default, name)
    }


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return _changed(value)
    return list(value) if isinstance(value, tuple) else value


AFTERWARDS = ("config", "cost", "reference_step_ns", "flops_per_step")
"""The settings that a saved report can still be given: a price, a step without the profiler, and the operations of a
step. The others change the analysis."""


def disabled_causes(changed: Mapping[str, SettingValue]) -> set[str]:
    """The causes that were disabled for a report, by its stored settings (`Settings.changed`)."""
    causes = changed.get("disabled", [])
    return {str(each) for each in causes} if isinstance(causes, list) else set()


def most_findings(changed: Mapping[str, SettingValue]) -> int:
    """How many findings a report may hold, by its stored settings."""
    given = changed.get("findings")
    most = given.get("most") if isinstance(given, dict) else None
    return most if isinstance(most, int) else FindingThresholds().most


OPTION_OF_SETTING = {
    "device": "--device",
    "same_gpu": "--same-gpu",
    "start_ns": "--from",
    "end_ns": "--to",
    "nvtx": "--nvtx",
    "iterations": "--iterations",
    "step": "--step",
    "gaps": "--gaps",
    "disabled": "--disable",
    "full_hash": "--full-hash",
    "memory_limit": "--memory-limit",
    "config": "--config",
    "replay": "--no-replay",
    "cost": "--gpu-hour-cost",
    "reference_step_ns": "--reference-step",
    "flops_per_step": "--flops-per-step",
}
"""The options that a report remembers; `timeline` is not one, since it can be left out of a saved report too."""
TIMES = ("start_ns", "end_ns", "reference_step_ns")


def setting_text(name: str, value: SettingValue) -> str:
    """A setting as users write it: `nccl, rccl`, `2:12`, `poll_ns 20000000, hollow_activity 0.5`."""
    if isinstance(value, dict):
        return ", ".join(_text_within(each, inner) for each, inner in sorted(value.items()))
    if isinstance(value, list):
        return (":" if name == "iterations" else ", ").join("" if part is None else str(part) for part in value)
    return str(value)


def _text_within(name: str, value: SettingValue) -> str:
    """A value of several; one that has several itself as one of them after the other."""
    if not isinstance(value, dict):
        return f"{name} {value}"
    if name == "gpus":
        return ", ".join(f"{name}.{key} {each}" for key, each in sorted(value.items()))
    return f"{name} ({setting_text(name, value)})"
