"""Blocking copies: the thread stays until the copy is done."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes.cause import Cause, OwnCall, Rows
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of, named
from nsysdiag.causes.threshold import DRAINED, READ_BACK
from nsysdiag.causes.variant import KEEP_ON_DEVICE, Variant, matching
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


def own_call(evidence: HostEvidence) -> OwnCall:
    """Copy calls that block, labelled as their layers are."""
    facts = evidence.facts
    copies = evidence.host.api.take(named(evidence.host.api, COPIES))
    blocks = np.zeros(len(facts.pageable), dtype=np.bool_)
    blocks[copies.row[is_blocking(evidence, copies)]] = True
    label = np.full(len(blocks), 2, dtype=np.int8)
    label[facts.pageable] = 1
    label[facts.read_back] = 0
    return OwnCall(blocks, label=label, labels=LABELS)


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
    color="#c641f3",
    picture="""
device  [==A==)[=copy=)...........[==next==)
thread    [cudaMemcpy     ]   [launch]
""",
    family="copies",
    sources=("api_sync", "pinned_memory"),
    thresholds=(READ_BACK, DRAINED),
    rows=(Rows.CALL,),
    variants=(
        Variant(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            KEEP_ON_DEVICE,
            label=matching(r"read-back"),
            family="sync",
        ),
        Variant(
            "pageable",
            "from or to pageable memory",
            "pin the host memory: pin_memory=True, non_blocking=True",
            (
                "Pin the host side: cudaHostAlloc once and reuse it (PyTorch: DataLoader(pin_memory=True) and "
                ".to(device, non_blocking=True)).",
            ),
            label=matching(r"pageable"),
        ),
        Variant(
            "synchronous",
            "a synchronous call",
            "use cudaMemcpyAsync on a stream of its own",
            label=matching(r"synchronous"),
        ),
        Variant("other", "", "copy asynchronously from pinned memory"),
    ),
    host=evidence,
    call=nested_evidence,
    own_call=own_call,
    call_order=60,
)
