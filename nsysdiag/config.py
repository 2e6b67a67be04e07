"""The settings of one analysis: what the options say, with the defaults that the rules document."""

from __future__ import annotations

import msgspec


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """From which share on a verdict holds: of the window for `busy`, `copies` and `communication`, else of idle time.

    `likely` and `unresolved_claim` are coverages: below them a sentence says so. `root_floor` is the confidence from
    which on a wait is followed to the thread that ended it.

    A gap of more than `bubble_gap_ns` is no part of a launch bubble, nor is a run of more than `bubble_run` launches in
    a row that found the device at work; a bubble has at least `bubble_launches` launches. A queue that runs dry
    collapses if at least `collapse_depth` operations were outstanding at the last launch before.
    """

    busy: float = 0.05
    copies: float = 0.10
    communication: float = 1 / 3
    unresolved: float = 0.5
    input: float = 1 / 3
    contended: float = 1 / 3
    sync: float = 0.5
    launch: float = 0.5
    leading: float = 0.30
    likely: float = 0.5
    unresolved_claim: float = 0.2
    root_floor: float = 0.5
    bubble_gap_ns: int = 50_000
    bubble_run: int = 8
    bubble_launches: int = 20
    collapse_depth: int = 4


class FindingThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """When something is a finding, and how much of it is said.

    `smallest`, `high`, `medium` and `low` are shares of the window; `empty` is the share of iterations without work;
    `collector` and `interpreter` are shares of the CPU samples of a place. `most` findings are kept of a report,
    `places` of one cause and device, `rows` of evidence for each.
    """

    most: int = 12
    places: int = 3
    rows: int = 3
    smallest: float = 0.01
    high: float = 0.20
    medium: float = 0.05
    low: float = 0.01
    empty: float = 0.10
    collector: float = 0.25
    interpreter: float = 0.50


class MemoryThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes and shares. Copies of at least `large_copy` are limited by their link, those below `tiny_copy` by
    what a copy costs at least; a copy is slow below `slow_copy` of what is possible.

    Blocks of unified memory thrash that moved `thrash_moves` times, to and fro. Memory is suspected to leak if over at
    least `leak_iterations` steady iterations it grows by more than `leak_share` of its level and `leak_bytes`. A peak
    of `near_limit` of the device's memory is near the limit.
    """

    large_copy: int = 1 << 20
    tiny_copy: int = 4096
    slow_copy: float = 0.5
    thrash_moves: int = 3
    leak_iterations: int = 5
    leak_share: float = 0.01
    leak_bytes: int = 1 << 20
    near_limit: float = 0.90


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ns. `device` selects by key, number or name part; `start_ns`, `end_ns`, `nvtx` and `iterations`
    (from the first, up to but not including the second) narrow the window."""

    device: str | None = None
    same_gpu: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    nvtx: str | None = None
    iterations: tuple[int | None, int | None] | None = None
    gaps: int = 200
    disabled: tuple[str, ...] = ()
    communication_patterns: tuple[str, ...] = ("nccl", "nvshmem", "rccl")
    thresholds: Thresholds = Thresholds()
    findings: FindingThresholds = FindingThresholds()
    memory: MemoryThresholds = MemoryThresholds()
    full_hash: bool = False
    timeline: bool = True
    reader: str = "adbc"

    def changed(self) -> dict[str, str]:
        """The settings that differ from their defaults, as text; how a trace was read changes no result."""
        default = Settings()
        return {
            name: _text(name, value)
            for name in self.__struct_fields__
            if name != "reader" and (value := getattr(self, name)) != getattr(default, name)
        }


def _text(name: str, value: object) -> str:
    if isinstance(value, Thresholds | FindingThresholds | MemoryThresholds):
        plain = type(value)()
        changed = {each: getattr(value, each) for each in value.__struct_fields__}
        return ", ".join(f"{each} {new}" for each, new in changed.items() if new != getattr(plain, each))
    if isinstance(value, tuple):
        return (":" if name == "iterations" else ", ").join("" if part is None else str(part) for part in value)
    return str(value)
