"""Queue full: the host is so far ahead that the launch queue has no room."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Lookalike, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, described
from nsysdiag.trace.enums import OverheadType


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Command-buffer-full rows of the thread."""
    overhead = evidence.host.overhead
    return [described(overhead.take(overhead.kind == OverheadType.COMMAND_BUFFER_FULL))]


nested_evidence = evidence


CAUSE = Cause(
    id="queue_full",
    title="Launch queue full",
    meaning="The launch queue of a device was full, so the launching thread had to wait: the host is ahead, not late.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_OVERHEAD",),
    advice=Advice(
        (
            "The host is ahead: this costs nothing on a device that is busy. A thread that feeds several GPUs should use one thread or process for each.",
        )
    ),
    picture="""
device 0 [==A==)..................[==next==)
device 1 [==========================)
thread     [launch to 1, buffer full][launch]
""",
    bottleneck="launch",
    shade=1,
    sources=("overhead",),
    rows=(EvidenceRows.OVERHEAD,),
    confirm=(
        'A launch call lasts as long as kernels of another device or stream, and CUPTI reports "Command buffer full". The thread is thousands of launches ahead of one device while another one is idle.',
    ),
    confused_with=(
        Lookalike("launch_call", "A launch call that is slow with an empty queue."),
        Lookalike("sync", "Both wait for the device; here, the program did not ask for it."),
    ),
    variants=(Variant("other", "", "one launching thread for each GPU"),),
    host=evidence,
    call=nested_evidence,
    call_order=90,
)
