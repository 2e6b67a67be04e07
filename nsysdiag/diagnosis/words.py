"""Bottlenecks in words: inside a sentence, and as a label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import NOUNS, UNKNOWN, noun_of
from nsysdiag.phases.facts import done
from nsysdiag.units import capitalized, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.phases.facts import Phase
    from nsysdiag.report import Finding

LABELS = {name: capitalized(noun) for name, noun in NOUNS.items()} | {
    "parallelism": "Kernels on a mostly empty GPU",
    "profiler": "Profiler overhead",
}
UNSEEN_LABEL = "Host outside CUDA calls, not captured"
"""Unknown time in a trace without OS calls, scheduling events and CPU samples."""
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
"""Colours of the other bottlenecks: of their causes' colours those that differ most, also in grey and for colour-blind
readers."""
FIX_FIRST, LOOK_FIRST, IF_STARTS_MATTER = "Fix first", "Look at first", "If starts matter"


def label(bottleneck: str, *, host_unseen: bool = False) -> str:
    """A bottleneck as a label; one of a later version stands for itself."""
    if host_unseen and bottleneck == UNKNOWN:
        return UNSEEN_LABEL
    return LABELS.get(bottleneck, bottleneck.replace("_", " "))


def phase_label(phase: Phase, name: str, *, judged: bool = False, judged_ns: int = 0, host_unseen: bool = False) -> str:
    """`steady (425 ms, 30 steps, median 12.0 ms, judged)`; `judged`: judged phases are marked. One that is not judged
    says what it did: `start-up (863 ms: cudaHostAlloc 308 ms)`, and the reason if it repeats. One that is longer than
    the judged time `judged_ns`, and whose work has no name, has its bottleneck."""
    facts = [format_ns(phase.counted_ns), *([phase.steps.words] if phase.steps else [])]
    facts += ["judged"] if judged and phase.judged else []
    facts += ["too short to judge"] if phase.name == "steady" and not phase.judged else []
    did = "" if phase.judged else done(phase.devices)
    if not did and judged_ns and not phase.judged and phase.end_ns - phase.start_ns > judged_ns:
        did = f"{noun_of(phase.bottleneck, host_unseen=host_unseen)} {format_share(phase.share, 1)}"
    return f"{name} ({', '.join(facts)}{did and f': {did}'})"


def phase_verdict(phase: Phase, name: str, *, host_unseen: bool = False) -> str:
    """`steady 1 (3.50 s, 1,000 steps, median 3.50 ms): kernels 98.6%`."""
    noun = noun_of(phase.bottleneck, host_unseen=host_unseen)
    return f"{phase_label(phase, name)}: {noun} {format_share(phase.share, 1)}"


def naming(host_code: Finding, *, sampled: bool) -> str:
    """What would name host code: CPU samples if there are none, else NVTX ranges."""
    what = f"the host code ({format_share(host_code.share, 1)} of the time)"
    if not sampled:
        return f"The trace has no CPU samples that name {what}."
    if not host_code.call:
        return f"CPU samples do not name {what}: build it with symbols (-g)."
    return f"CPU samples name {what} only as {host_code.call}: add NVTX ranges."
