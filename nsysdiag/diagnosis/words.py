"""Bottlenecks in words: as the subject of a sentence, and as a label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.units import format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.phases.facts import Phase

LABELS = {
    "kernels": "Kernels",
    "parallelism": "Kernels on a mostly empty GPU",
    "communication": "Communication",
    "copies": "Copies",
    "input": "Waiting for input",
    "host": "Waiting for the host",
    "sync": "Synchronization",
    "launch": "Launching work",
    "memory": "Memory management",
    "startup": "Start-up",
    "other_process": "Another process",
    "profiler": "Profiler overhead",
    "unknown": "No evidence",
}
OF_WORK = ("kernels", "parallelism", "communication", "copies")
"""Bottlenecks that are mostly work of the device, not idle time."""


def label(bottleneck: str) -> str:
    """A bottleneck as a label; one of a later version stands for itself."""
    return LABELS.get(bottleneck, bottleneck.replace("_", " "))


def phase_label(phase: Phase) -> str:
    """`steady 425 ms, 30 steps of 12.0 ms (judged)`."""
    steps = phase.steps
    repeats = f", {format_count(steps.count)} steps of {format_ns(steps.median_ns)}" if steps else ""
    return f"{phase.name} {format_ns(phase.end_ns - phase.start_ns)}{repeats}{' (judged)' if phase.judged else ''}"
