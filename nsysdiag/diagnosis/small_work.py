"""Batches too small for the chip: kernels that leave most of it empty while they run; and work that is simply small."""

from __future__ import annotations

from nsysdiag.causes.cause import Loss
from nsysdiag.diagnosis.facts import TriageKind
from nsysdiag.diagnosis.inputs import Given
from nsysdiag.diagnosis.workload import BURSTS
from nsysdiag.units import format_bytes, format_ns, format_share

_UNKNOWN = "How much of the chip the kernels fill is unknown: neither counters nor the chip's size are in the trace."


def batch(given: Given) -> TriageKind:
    """Whether the kernels that compute fill the chip while they run; larger ones would make better use of their time
    and of the time in which they are launched."""
    filling = given.filling
    share = given.share(given.split.compute_ns + given.lost_ns(Loss.LAUNCHING) + given.between_launches_ns)
    holds: bool | None = share >= given.limits.batch
    if holds:
        holds = None if filling is None else filling.share < given.limits.filled
    said = [_UNKNOWN]
    if filling is not None:
        filled = f"{format_share(filling.share, 1)} of the multiprocessors at work ({filling.source})"
        said = [f"While they run, the kernels that compute keep {filled}."]
    median, tiny = given.launch.median_kernel_ns, given.limits.tiny_kernel_ns
    if median is not None:
        word = "shorter" if median < tiny else "not shorter"
        said.append(f"The median kernel runs {format_ns(median)}, {word} than {format_ns(tiny)}.")
    return TriageKind(
        id="batch",
        title="Batches too small for the chip",
        holds=holds,
        share=round(share, 6),
        evidence=said,
        advice=_advice(given) if holds else [],
    )


def _advice(given: Given) -> list[str]:
    larger = "Larger batches: more work for each kernel, and fewer kernels for the same work."
    if given.headroom_bytes is None:
        larger += " Whether they fit, allocations would tell: --cuda-memory-usage=true."
    elif given.headroom_bytes > 0:
        larger += f" {format_bytes(given.headroom_bytes)} of the device's memory are free at the peak."
    else:
        larger += " There is no room for them now: mixed precision or checkpointing of activations makes some."
    if given.workload.kind == BURSTS:
        larger = f"Collect requests into batches (dynamic batching) before they are launched. {larger}"
    return [
        larger,
        "Fuse small kernels (torch.compile, fused optimizers), or run independent ones side by side on streams.",
    ]


def sizing(given: Given) -> TriageKind:
    """Whether the work is simply small: all of it would keep only a little of the chip at work, and next to nothing of
    the judged time is idle or lost to copies and communication. Then there is nothing to tune."""
    window = given.split.window_ns
    running = given.split.compute_ns / window if window else 0.0
    used = running * (1.0 if given.filling is None else given.filling.share)
    small = given.split.compute_ns > 0 and used < given.limits.small
    held_up = sum(given.idle.values()) + given.split.exposed_copy_ns + given.split.exposed_comm_ns
    holds = small and given.share(held_up) < given.limits.feed
    bound = "" if given.filling else "at most "
    said = [f"All kernels that compute would keep {bound}{format_share(used, 1)} of the chip at work over the window."]
    if small and not holds:
        said.append("Something else holds the work up, or may: repair that first.")
    return TriageKind(
        id="sizing",
        title="The work is small for this GPU",
        holds=holds,
        share=None,
        evidence=said,
        advice=[
            "Sizing, not tuning: a smaller GPU, a part of this one (MIG), or several processes on it (MPS).",
            "Where more work could be asked for, ask for it: the device has room.",
        ]
        if holds
        else [],
    )
