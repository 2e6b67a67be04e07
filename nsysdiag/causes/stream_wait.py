"""Stream waits: the next operation had to wait for an event of another stream."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause
from nsysdiag.gaps.launch_frame import DeviceSide, Explained
from nsysdiag.gaps.stream_waits import LABELS


def explain(side: DeviceSide) -> Explained:
    """All that is left of a gap whose next operation waited for an event that explains it."""
    return Explained(side.frame.event_wait, side.waits.label, LABELS, [])


CAUSE = Cause(
    id="stream_wait",
    title="Waiting for another stream",
    meaning="The operation was launched, and cudaStreamWaitEvent held its stream until work elsewhere was done.",
    side="device",
    tables=("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
    advice=(
        "The dependency is real or too coarse: record the event right after the producer, and let independent work run in between.",
    ),
    color="#0ea5e9",
    picture="""
stream 7  [==producer==)
stream 9  (wait event)       [==next==)
""",
    accepted=True,
    device=explain,
)
