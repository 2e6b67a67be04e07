"""Stream barrier: the legacy default stream waits for all others, and they for it."""

from __future__ import annotations

import numpy as np

from nsysdiag.causes.cause import Advice, Cause, FrameworkAdvice, Lookalike, Variant
from nsysdiag.causes.evidence import LATENCY_LIMIT
from nsysdiag.gaps.launch_frame import DeviceSide, Explained


def explain(side: DeviceSide) -> Explained:
    """Gaps between two streams of one context of which one is its legacy default stream; streams that were made
    non-blocking take no part."""
    gaps, streams = side.frame.gaps, side.activity.streams
    operations, code = side.device.operations, side.device.stream_code
    before, after = code[gaps.previous], code[gaps.next]
    same_context = operations.context[gaps.previous] == operations.context[gaps.next]
    same_context &= operations.process[gaps.previous] == operations.process[gaps.next]
    one_is_null = streams.null[before] | streams.null[after]
    blocking = ~(streams.non_blocking[before] | streams.non_blocking[after])
    known = (operations.stream[gaps.previous] >= 0) & (operations.stream[gaps.next] >= 0)
    whole = known & (before != after) & same_context & one_is_null & blocking
    return Explained(whole, np.full(len(gaps), -1, dtype=np.int64), [], [])


CAUSE = Cause(
    id="stream_barrier",
    title="Barrier of the default stream",
    meaning="The operations run on different streams, one of them the legacy default stream. It waits for all blocking "
    "streams, and they wait for it.",
    side="device",
    tables=("TARGET_INFO_CUDA_STREAM",),
    advice=Advice(
        plain=(
            "Use explicit non-blocking streams (cudaStreamCreateWithFlags), or compile with --default-stream per-thread.",
        ),
        pytorch=FrameworkAdvice(
            (
                "Put the work of both sides on separate streams (with torch.cuda.stream(...)). The default stream "
                "waits for blocking streams, and they wait for it.",
            ),
            source="cuda_semantics",
        ),
        cupy=FrameworkAdvice(
            ("Use cupy.cuda.Stream(non_blocking=True), or CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1.",),
            source="cupy_speed",
        ),
    ),
    picture="""
default   [==A==)
stream 9          ....[==next==)      barrier between them
""",
    bottleneck="sync",
    shade=2,
    sources=("stream_sync",),
    thresholds=(LATENCY_LIMIT,),
    confirm=(
        "One operation is in the legacy default stream (stream 7 in Nsight Systems), the other in a blocking stream. "
        "They never overlap.",
        "Compile with --default-stream per-thread, or create streams with cudaStreamNonBlocking: the gap disappears.",
    ),
    confused_with=(
        Lookalike("stream_wait", "There, an event orders the streams."),
        Lookalike("dispatch", "Operations of one stream."),
    ),
    variants=(Variant("other", "", "use explicit non-blocking streams"),),
    accepted=True,
    device=explain,
)
