"""Blocking copies: the thread stays until the copy is done."""

from __future__ import annotations

import re

from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of, named
from nsysdiag.events.axis import Lane

COPIES = re.compile(r"(cuda|cu)Memcpy.*")
LABELS = ("read-back of at most 64 bytes", "pageable memory", "synchronous call")
_ASYNC = re.compile(r".*Async.*")


def evidence(evidence: HostEvidence) -> list[Layer]:
    """Outermost copy calls that block: without Async in their name, or with a pageable side."""
    return _layers(evidence, evidence.calls(COPIES))


def nested_evidence(evidence: HostEvidence) -> list[Layer]:
    """Blocking copies inside another call."""
    return _layers(evidence, evidence.calls(COPIES, nested=True))


def is_blocking(evidence: HostEvidence, copies: Lane) -> BoolArray:
    """True for the copy calls that hold their thread."""
    return ~named(copies, _ASYNC) | evidence.facts.pageable[copies.row]


def _layers(evidence: HostEvidence, copies: Lane) -> list[Layer]:
    copies = copies.take(is_blocking(evidence, copies))
    back, pageable = evidence.facts.read_back[copies.row], evidence.facts.pageable[copies.row]
    return [
        layer_of(copies.take(back), LABELS[0]),
        layer_of(copies.take(pageable & ~back), LABELS[1]),
        layer_of(copies.take(~pageable & ~back), LABELS[2]),
    ]


CAUSE = Cause(
    id="blocking_copy",
    title="Blocking copy",
    meaning="The launching thread was inside a copy call that returns only when the copy is done or staged: a synchronous call, or pageable memory.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    advice=(
        "Copy from pinned memory with cudaMemcpyAsync on a stream of its own (PyTorch: pin_memory=True and non_blocking=True).",
        "Read-backs of a few bytes (.item(), loss printing) stop the queue: keep values on the device, read them every n steps.",
    ),
    color="#7c3aed",
    picture="""
device  [==A==)[=copy=)...........[==next==)
thread    [cudaMemcpy     ]   [launch]
""",
    host=evidence,
    call=nested_evidence,
)
