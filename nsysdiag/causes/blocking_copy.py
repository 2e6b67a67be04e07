"""Blocking copies: the thread stays until the copy is done."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes.cause import Cause, EvidenceRows, OwnCall, Variant
from nsysdiag.causes.evidence import DRAINED, READ_BACK, EvidenceLayer, HostEvidence, layer_of, named, named_rows
from nsysdiag.events.rows import NamedRows

COPIES = re.compile(r"(cuda|cu)Memcpy.*")
READS_BACK = EvidenceLabel("read-back of at most 64 bytes")
PAGEABLE, SYNCHRONOUS = EvidenceLabel("pageable memory"), EvidenceLabel("synchronous call")
LABELS = (READS_BACK, PAGEABLE, SYNCHRONOUS)
_ASYNC = re.compile(r".*Async.*")


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost copy calls that block: without Async in their name, or with a pageable side."""
    return _layers(evidence, evidence.calls(COPIES))


def nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Blocking copies inside another call."""
    return _layers(evidence, evidence.calls(COPIES, nested=True))


def is_blocking(evidence: HostEvidence, copies: NamedRows) -> BoolArray:
    """True for the copy calls that hold their thread."""
    return ~named(copies, _ASYNC) | evidence.facts.pageable[copies.row]


def _layers(evidence: HostEvidence, copies: NamedRows) -> list[EvidenceLayer]:
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
    copies = named_rows(evidence.host.api, COPIES)
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
    bottleneck="copies",
    shade=0,
    thresholds=(READ_BACK, DRAINED),
    rows=(EvidenceRows.CALL,),
    variants=(
        Variant(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            labels=(READS_BACK,),
            bottleneck="sync",
        ),
        Variant(
            "pageable",
            "from or to pageable memory",
            "pin the host memory: cudaHostAlloc, cudaHostRegister",
            labels=(PAGEABLE,),
        ),
        Variant(
            "synchronous", "a synchronous call", "use cudaMemcpyAsync on a stream of its own", labels=(SYNCHRONOUS,)
        ),
        Variant("other", "", "copy asynchronously from pinned memory"),
    ),
    host=evidence,
    call=nested_evidence,
    own_call=own_call,
    call_order=60,
)
