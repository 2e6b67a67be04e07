"""The feed path: whether work reaches the device in time; and communication that nothing hides."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.causes import CAUSES, HOST_CODE
from nsysdiag.causes.cause import Loss
from nsysdiag.diagnosis.facts import TriageKind
from nsysdiag.diagnosis.inputs import Given
from nsysdiag.units import format_ns, format_share

FEED = (Loss.INPUT, Loss.HOST, Loss.PAGES)

_INPUT_ADVICE = (
    "Input: more data loader workers with prefetching (num_workers, prefetch_factor, persistent_workers=True), data in "
    "shards on a local disk, decoding in the workers or on the GPU; logs and checkpoints written by another thread."
)
_HOST_ADVICE = (
    "Host: take synchronizations and read-backs (.item(), .cpu(), print) out of the step, prepare the next step while "
    "this one runs, give the launching thread a CPU of its own."
)
_COPY_ADVICE = (
    "Copies: while kernels run, from pinned memory, with non_blocking=True, on a stream of their own, the next batch "
    "while this one computes."
)
_PAGES_ADVICE = "Unified memory: move pages ahead of their use with cudaMemPrefetchAsync and cudaMemAdvise."


@dataclass(frozen=True, slots=True)
class _Part:
    """One way for the feed path to lose time."""

    what: str
    ns: int
    advice: str


def feed(given: Given) -> TriageKind:
    """Idle time for which input or the host is the root, and copies that no kernel hides. Idle time without evidence
    may be the same: where it would decide, the trace cannot tell."""
    parts = (
        _Part(Loss.INPUT.value, given.lost_ns(Loss.INPUT), _INPUT_ADVICE),
        _Part(Loss.HOST.value, given.lost_ns(Loss.HOST) - given.between_launches_ns, _HOST_ADVICE),
        _Part("copying with no kernel beside it", given.split.exposed_copy_ns, _COPY_ADVICE),
        _Part(Loss.PAGES.value, given.lost_ns(Loss.PAGES), _PAGES_ADVICE),
    )
    named = [part for part in parts if given.share(part.ns) >= LEAST_NAMED]
    total, unknown = sum(part.ns for part in parts), given.unresolved_ns
    holds: bool | None = given.share(total) >= given.limits.feed
    if not holds and given.share(total + unknown) >= given.limits.feed:
        holds = None
    said = [*lost_in_all(given, {part.what: part.ns for part in parts}), *_led_by(given)]
    if holds is None or given.share(unknown) >= LEAST_NAMED:
        said.append(lost(given, "idle time that has no evidence", unknown))
    return TriageKind(
        id="feed",
        title="The feed path: input, host, copies",
        holds=holds,
        share=round(given.share(total), 6),
        evidence=said or ["Next to no time is lost to input, to the host or to copies."],
        advice=[part.advice for part in named] if holds else [],
    )


def _led_by(given: Given) -> list[str]:
    """The root causes that make up most of the idle part, the three largest."""
    idle = {cause: ns for cause, ns in given.idle.items() if CAUSES[cause].loss in FEED}
    idle[HOST_CODE] = idle.get(HOST_CODE, 0) - given.between_launches_ns
    total = sum(idle.values())
    if given.share(total) < LEAST_NAMED:
        return []
    found = sorted((-ns, cause) for cause, ns in idle.items() if ns)
    named = [f"{CAUSES[cause].title.lower()} {format_share(-ns, total)}" for ns, cause in found[:3]]
    return [f"Root causes of this idle time: {', '.join(named)}."]


def communication(given: Given) -> TriageKind:
    """Communication kernels with no compute beside them."""
    exposed, hidden = given.split.exposed_comm_ns, given.split.overlapped_comm_ns
    holds = given.share(exposed) >= given.limits.communication
    text = lost(given, "communication with no compute beside it", exposed)[:-1]
    said = [f"{text}; compute hides another {format_ns(hidden)}."]
    return TriageKind(
        id="communication",
        title="Communication",
        holds=holds,
        share=round(given.share(exposed), 6),
        evidence=said if exposed or hidden else ["No communication kernels ran."],
        advice=[
            "Look for a late rank first: the others wait for it inside the collective (nsysdiag ranks).",
            "Overlap communication with the backward pass: buckets of another size, a stream of its own; send less.",
        ]
        if holds
        else [],
    )


LEAST_NAMED = 0.01


def lost(given: Given, what: str, ns: int) -> str:
    """How much of the judged time it is, and in ns."""
    return f"{format_share(given.share(ns), 1)} of the time ({format_ns(ns)}): {what}."


def lost_in_all(given: Given, parts: dict[str, int]) -> list[str]:
    """The sum where there are several parts of at least a hundredth of the time, then these."""
    named = sorted(((ns, what) for what, ns in parts.items() if given.share(ns) >= LEAST_NAMED), reverse=True)
    said = [lost(given, what, ns) for ns, what in named]
    return [lost(given, f"most of it {named[0][1]}", sum(parts.values())), *said] if len(said) > 1 else said
