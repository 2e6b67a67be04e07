"""Bottlenecks in words: inside a sentence, and as a label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import NOUNS
from nsysdiag.units import capitalized, format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.phases.facts import Phase

LABELS = {name: capitalized(noun) for name, noun in NOUNS.items()} | {
    "parallelism": "Kernels on a mostly empty GPU",
    "profiler": "Profiler overhead",
}
WORK = {"kernels": "compute", "communication": "communication", "copies": "copies"}
"""Bottlenecks with the colour of a part of the window."""
COLORS = {
    "parallelism": "#bcd9f7",
    "input": "#64ca9e",
    "host": "#c32d3e",
    "sync": "#0a38e7",
    "launch": "#497970",
    "memory": "#927859",
    "startup": "#705672",
    "other_process": "#4d500d",
    "profiler": "#8a8f7e",
    "unknown": "#8e9eaa",
}
"""Those of the others: of the colours of their causes the ones that differ most, in grey and by colour-blind eyes."""
FIX_FIRST, LOOK_FIRST, IF_STARTS_MATTER = "Fix first", "Look at first", "If starts matter"


def label(bottleneck: str) -> str:
    """A bottleneck as a label; one of a later version stands for itself."""
    return LABELS.get(bottleneck, bottleneck.replace("_", " "))


def phase_label(phase: Phase, name: str, *more: str) -> str:
    """`steady (425 ms, 30 steps of 12.0 ms, judged)`, where `more` is that it is judged."""
    steps = phase.steps
    facts = [format_ns(phase.end_ns - phase.start_ns)]
    facts += [f"{format_count(steps.count)} steps of {format_ns(steps.median_ns)}"] if steps else []
    return f"{name} ({', '.join([*facts, *more])})"


def phase_verdict(phase: Phase, name: str) -> str:
    """`steady 1 (3.50 s, 1,000 steps of 3.50 ms): kernels 98.6%`."""
    noun = NOUNS.get(phase.bottleneck) or label(phase.bottleneck)
    return f"{phase_label(phase, name)}: {noun} {format_share(phase.share, 1)}"
