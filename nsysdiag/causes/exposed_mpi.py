"""Inside MPI calls: the launching thread sends, receives or waits for other ranks."""

from __future__ import annotations

import re

from msgspec.structs import replace

from nsysdiag.arrays.intervals import Intervals, pieces, subtract, union
from nsysdiag.causes import context_init, memory_allocation, module_load
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Lookalike, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, named

START_UP = re.compile(r"P?MPI_(Init\w*|Finalize\w*|Session_(init|finalize))")
"""Calls that start and end processes: the calls inside them show what the thread does."""
_NOT_MESSAGES = (memory_allocation, context_init, module_load)


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """MPI calls with all that the library does in them, CUDA calls too, except for what no message needs: allocation,
    CUDA initialization and code loading."""
    mpi = evidence.host.mpi
    calls = layer_of(mpi.take(~named(mpi, START_UP)))
    row, spans = pieces(subtract(calls.spans, _other_work(evidence)), calls.spans)
    return [replace(calls, spans=spans, name=calls.name[row])]


def _other_work(evidence: HostEvidence) -> Intervals:
    api = evidence.host.api
    first = api.spans[evidence.facts.first_use[api.row]]
    rules = [rule for module in _NOT_MESSAGES for rule in (module.CAUSE.host, module.CAUSE.call)]
    return union(first, *(layer.spans for rule in rules if rule for layer in rule(evidence)))


CAUSE = Cause(
    id="exposed_mpi",
    title="GPU idle inside MPI calls",
    meaning="The launching thread was inside an MPI call: it sent, received, or waited for other ranks.",
    side="host",
    tables=("MPI_OTHER_EVENTS", "MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "NVTX_EVENTS"),
    advice=Advice(
        (
            "First trace all ranks (nsysdiag ranks) to tell transfer from a late rank. For transfer, compute the "
            "boundary first, and exchange it with non-blocking MPI while the interior computes.",
            "Call reductions less often, or without blocking (MPI_Iallreduce): compute a residual every n steps, for "
            "example.",
        )
    ),
    picture="""
device  [==A==).........................[==next==)
thread     [MPI_Sendrecv        ][launch]
""",
    bottleneck="communication",
    shade=0,
    sources=("mpi_cuda", "nsight_osrt"),
    variants=(Variant("other", "", "exchange boundaries while the interior computes"),),
    confirm=(
        "The MPI row, or the NVTX row of the domain MPI, shows the launching thread inside a call for all of the gap.",
        "Compare the ranks: where one enters the call last, and the others leave when it does, that one is late.",
    ),
    confused_with=(
        Lookalike("host_compute", "MPI libraries poll, so the thread runs on a CPU inside the call, too."),
        Lookalike("io_wait", "Without MPI calls in the trace, only the poll or read inside them shows."),
        Lookalike("memory_allocation", "Buffers that the library registers inside a call stay with allocation."),
    ),
    rows=(EvidenceRows.MPI_CALL,),
    overlapped=True,
    names_call=True,
    host=evidence,
    call=evidence,
    call_order=35,
    opening="{thread} is inside {call}",
)
