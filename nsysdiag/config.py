"""The settings of one analysis: what the options say, with the defaults that the rules document."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ns. `device` selects by key, index or name part; `window` and `nvtx` narrow the time."""

    device: str | None = None
    same_gpu: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    nvtx: str | None = None
    gaps: int = 200
    disabled: tuple[str, ...] = ()
    communication_patterns: tuple[str, ...] = ("nccl", "nvshmem", "rccl")
    full_hash: bool = False
    timeline: bool = True
    reader: str = "adbc"
