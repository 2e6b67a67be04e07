"""Time inside other calls: of CUDA and its libraries, of MPI, and of the profiler."""

from __future__ import annotations

import re

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import Intervals, pieces, subtract, union
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, described, layer_of, named, plain_layer
from nsysdiag.causes.memory_calls import MEMORY_ALLOCATION
from nsysdiag.causes.start_up import CONTEXT_INIT, MODULE_LOAD
from nsysdiag.events.host import OF_CUPTI, OVERHEAD_OF_NSYS

IN_LIBRARY = EvidenceLabel("inside a library call")


def cuda_api_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """All other outermost CUDA calls; cuBLAS and cuDNN calls take what the CUDA calls inside them left."""
    return [layer_of(evidence.calls()), layer_of(evidence.host.libraries, IN_LIBRARY)]


CUDA_API = Cause(
    id="cuda_api",
    title="Other CUDA calls before the launch",
    busy_title="Other CUDA calls",
    meaning="The launching thread was inside another CUDA call: launches of other work, queries, event records, or a library call.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUBLAS_EVENTS", "CUDNN_EVENTS"),
    bottleneck="launch",
    shade=2,
    rows=(EvidenceRows.CALL,),
    variants=(
        Variant(
            "launches",
            "launches of other work",
            "launch less: CUDA graphs, fused kernels",
            call=matching("Launch|MemcpyAsync|MemsetAsync|Memcpy|Memset"),
        ),
        Variant(
            "properties",
            "device properties are queried",
            "query once and keep the result",
            call=matching(
                "GetDeviceProperties|GetAttribute|FuncGetAttributes|Occupancy|PointerGetAttributes|MemGetInfo"
            ),
        ),
        Variant("other", "", "move the call out of the step, or cache its result"),
    ),
    host=cuda_api_evidence,
    names_call=True,
)


OVERHEAD_KINDS = (*OF_CUPTI, OVERHEAD_OF_NSYS)


def profiler_overhead_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """The thread's own overhead rows, and CUPTI's on other threads while this one is inside a CUDA call."""
    host = evidence.host
    own = host.overhead.take(np.isin(host.overhead.kind, OVERHEAD_KINDS))
    return [described(own), plain_layer(host.cupti, "CUPTI overhead of another thread")]


PROFILER_OVERHEAD = Cause(
    id="profiler_overhead",
    title="Profiler overhead",
    meaning="The profiler itself held the launching thread: buffer flushes, instrumentation, resource tracking.",
    side="host",
    tables=("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"),
    bottleneck="profiler",
    shade=0,
    rows=(EvidenceRows.OVERHEAD,),
    variants=(Variant("other", "", "trace less; leave this time out of any estimate"),),
    host=profiler_overhead_evidence,
    call=profiler_overhead_evidence,
    opening="the profiler holds {thread}",
    call_order=10,
)


START_UP = re.compile(r"P?MPI_(Init\w*|Finalize\w*|Session_(init|finalize))")
"""Calls that start and end processes: the calls inside them show what the thread does."""
_NOT_MESSAGES = (MEMORY_ALLOCATION, CONTEXT_INIT, MODULE_LOAD)


def exposed_mpi_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """MPI calls with all that the library does in them, CUDA calls too, except for what no message needs: allocation,
    CUDA initialization and code loading."""
    mpi = evidence.host.mpi
    calls = layer_of(mpi.take(~named(mpi, START_UP)))
    if not len(calls):
        return [calls]
    row, spans = pieces(subtract(calls.spans, _other_work(evidence)), calls.spans)
    return [replace(calls, spans=spans, name=calls.name[row])]


def _other_work(evidence: HostEvidence) -> Intervals:
    api = evidence.host.api
    first = api.spans[evidence.facts.first_use[api.row]]
    rules = [rule for cause in _NOT_MESSAGES for rule in (cause.host, cause.call)]
    return union(first, *(layer.spans for rule in rules if rule for layer in rule(evidence)))


EXPOSED_MPI = Cause(
    id="exposed_mpi",
    title="GPU idle inside MPI calls",
    busy_title="MPI calls",
    meaning="The launching thread was inside an MPI call: it sent, received, or waited for other ranks.",
    side="host",
    tables=("MPI_OTHER_EVENTS", "MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "NVTX_EVENTS"),
    bottleneck="communication",
    shade=0,
    variants=(Variant("other", "", "exchange boundaries while the interior computes"),),
    rows=(EvidenceRows.MPI_CALL,),
    overlapped=True,
    names_call=True,
    host=exposed_mpi_evidence,
    call=exposed_mpi_evidence,
    call_order=35,
    opening="{thread} is inside {call}",
)
