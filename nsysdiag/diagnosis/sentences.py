"""The sentences of a diagnosis: what takes the time, of which time, and what to repair first."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag import typed
from nsysdiag.diagnosis.facts import KERNELS, NOUNS, Part
from nsysdiag.iterations.host_ranges import HostLoop
from nsysdiag.phases.phases import FoundPhase
from nsysdiag.report import Finding
from nsysdiag.units import capitalized, format_count, format_ns, format_share

RANGE_LENGTH = 60
"""Of a long range a headline shows the beginning."""
TAKES = {
    "kernels": "Kernels take",
    "parallelism": "Kernels that leave most of the GPU empty take",
    "communication": "Communication takes",
    "copies": "Copies take",
    "input": "Waiting for input takes",
    "host": "The host keeps the GPU waiting for",
    "sync": "Synchronization keeps the GPU idle for",
    "launch": "Launch overhead takes",
    "memory": "Memory management takes",
    "startup": "Start-up takes",
    "other_process": "Another process uses the GPU for",
    "profiler": "The profiler itself takes",
    "unknown": "Unexplained idle time takes",
}
TOO_FEW = "too few to call it steady"
SMALL_PART = 0.05
"""Of the capture: less is said first, with how little it is."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a headline needs beside the account: the basis, the judged phase, the length of what is judged, and by
    bottleneck what stands behind it, as the end of a sentence; a sentence on unused GPUs; how long the capture is, None
    where the trace does not say; and which of several steady phases is judged."""

    basis: str
    phase: FoundPhase | None
    judged_ns: int
    details: dict[str, str]
    unused: str = ""
    duration_ns: int | None = None
    which: str = ""


def headline(said: Said, bottleneck: str, share: float, second: Part | None, action: Finding | None) -> str:
    """The bottleneck with its share and what it is made of, the next one, and what can be fixed first where that
    is something else."""
    first = f"{TAKES[bottleneck]} {format_share(share, 1)} of {_time(said)}"
    detail = said.details.get(bottleneck)
    sentences = [f"{first}: {detail}." if detail else f"{first}."]
    if said.basis == "cold":
        sentences.insert(0, "The trace shows only the start of a program, no steady state.")
    if said.duration_ns and said.judged_ns < SMALL_PART * said.duration_ns:
        part, whole = format_share(said.judged_ns, said.duration_ns), format_ns(said.duration_ns)
        sentences.insert(0, f"The {format_ns(said.judged_ns)} judged are {part} of the {whole} captured.")
    if second is not None:
        sentences.append(f"Second: {NOUNS[second.bottleneck]}, {format_share(second.share, 1)}.")
    other = action is not None and action.bottleneck not in (bottleneck, second.bottleneck if second else "")
    if action is not None and other and not (bottleneck in KERNELS and action.bottleneck in KERNELS):
        what, share_of_it = capitalized(NOUNS[action.bottleneck]), format_share(action.share, 1)
        sentences.append(f"{what} ({share_of_it}) can be fixed first.")
    sentences += [said.unused] if said.unused else []
    if said.basis == "cold":
        sentences.append("To see more, capture a later part: nsys profile --delay, or --capture-range.")
    return " ".join(sentences)


def unrecorded(loop: HostLoop | None) -> str:
    """That no GPU activity was recorded, and what repeats on the host."""
    first = "No GPU activity was recorded, so what the GPU did is unknown."
    if loop is None:
        return first
    longest, *others = loop.ranges
    takes = f"{typed.nvtx(longest.name, RANGE_LENGTH)} takes {format_share(longest.share, 1)} of the host's time"
    also = [f"{typed.nvtx(each.name, RANGE_LENGTH)} {format_share(each.share, 1)}" for each in others]
    repeats = f"On the host a loop repeats {format_count(longest.count)} times, every {format_ns(loop.period_ns)}"
    return f"{first} {repeats}: {', '.join([takes, *also])}."


def phase_sentence(phase: FoundPhase, bottleneck: str, share: float) -> str:
    """One phase in a sentence."""
    length = format_ns(phase.end - phase.start)
    steps = ""
    if phase.steps is not None:
        steps = f", {format_count(phase.steps.count)} steps of {format_ns(phase.steps.median_ns)}"
    return f"{capitalized(phase.name)}, {length}{steps}: {NOUNS[bottleneck]} {format_share(share, 1)}."


def verdict_sentence(bottleneck: str, share: float, second: Part | None) -> str:
    """One device in a sentence."""
    text = f"{TAKES[bottleneck]} {format_share(share, 1)} of the judged time"
    return f"{text}; second: {NOUNS[second.bottleneck]}, {format_share(second.share, 1)}." if second else f"{text}."


def action_sentence(action: Finding) -> str:
    """What to repair first, and what that saves."""
    advice = action.advice[0] if action.advice else action.title
    return f"{action.title}: saves {action.saves.words}. {advice}" if action.saves else f"{action.title}. {advice}"


def _time(said: Said) -> str:
    phase = said.phase
    if phase is not None and phase.steps is not None and said.basis in ("steady", "phase"):
        few = f"{format_count(phase.steps.count)} of them, {TOO_FEW}" if said.basis == "phase" else ""
        which = ": ".join(filter(None, (said.which, few)))
        return f"each {format_ns(phase.steps.median_ns)} step" + (f" ({which})" if which else "")
    length = format_ns(said.judged_ns)
    if said.basis == "steady":
        return f"{said.which or 'the steady phase'} ({length})"
    if said.basis == "phase":
        return f"{said.which or 'the part that repeats'} ({length}, {TOO_FEW})"
    return f"the {length} judged"


def details_of(findings: list[Finding]) -> dict[str, str]:
    """By bottleneck what stands behind it: that of the finding with most time, of those that say it."""
    said = sorted((each.share, detail, each.bottleneck) for each in findings if (detail := detail_of(each)))
    return {bottleneck: detail for _, detail, bottleneck in said}


def detail_of(finding: Finding) -> str | None:
    """What stands behind a bottleneck, by its largest finding: the call, and where in the program."""
    if finding.summary:
        return finding.summary
    what = finding.call
    where = typed.nvtx(finding.nvtx[-1]) if finding.nvtx else None
    if what and where:
        return f"mostly {what} in {where}"
    return f"mostly {what}" if what else (f"mostly in {where}" if where else None)
