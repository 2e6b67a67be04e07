"""Host compute: the thread was on a CPU, in code of the program."""

from __future__ import annotations

from nsysdiag.arrays.intervals import union
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_inside, plain_layer

INSIDE_MPI = "inside MPI calls"
BY_SCHEDULING, BY_SAMPLES = "by scheduling events", "by CPU samples"
"""Labels that say how it is known, not what it is."""


def evidence(evidence: HostEvidence) -> list[Layer]:
    """Time on a CPU by the scheduler; where it says nothing, by CPU samples. NVTX never proves it, but it
    names it, and MPI libraries poll: time inside MPI calls is told apart."""
    host = evidence.host
    return [
        layer_inside(union(host.scheduling.on_cpu, host.samples.time), host.mpi, INSIDE_MPI),
        plain_layer(host.scheduling.on_cpu, "on a CPU by scheduling events", BY_SCHEDULING),
        plain_layer(host.samples.time, "on a CPU by samples", BY_SAMPLES),
    ]


CAUSE = Cause(
    id="host_compute",
    title="Host code",
    meaning="The launching thread was running on a CPU, in no CUDA or OS call: the program itself, an interpreter, a library.",
    side="host",
    tables=("SCHED_EVENTS", "COMPOSITE_EVENTS"),
    advice=(
        "Profile the host code of this phase (samples with --python-backtrace, py-spy); move it off the launching thread or ahead of time.",
        "Interpreter overhead between small kernels: torch.compile, CUDA graphs, larger batches.",
        "Garbage collection: gc.freeze(), or gc.disable() and collect at a chosen moment.",
    ),
    color="#16a34a",
    picture="""
device  [==A==)................[==next==)
thread         ~~ computes ~~[launch]
""",
    host=evidence,
)
