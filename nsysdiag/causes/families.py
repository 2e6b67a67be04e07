"""The bottlenecks that time is counted to, over idle time and work."""

from __future__ import annotations

from typing import Literal, get_args

Family = Literal[
    "kernels",
    "parallelism",
    "communication",
    "copies",
    "input",
    "host",
    "sync",
    "launch",
    "memory",
    "startup",
    "other_process",
    "profiler",
    "unknown",
]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""All of them; a family's number in columns is its place here."""
