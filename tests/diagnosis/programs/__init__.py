"""The programs, by subject. Each says what is true of it and what must never be said about it."""

from __future__ import annotations

from tests.diagnosis.programs import (
    bottlenecks,
    chips,
    copies,
    devices,
    frameworks,
    launching,
    neighbours,
    short_runs,
    starts,
    steps,
    synchronizations,
)
from tests.diagnosis.programs.registry import PROGRAMS, Program

__all__ = [
    "PROGRAMS",
    "Program",
    "bottlenecks",
    "chips",
    "copies",
    "devices",
    "frameworks",
    "launching",
    "neighbours",
    "short_runs",
    "starts",
    "steps",
    "synchronizations",
]
