"""What to cut out of a trace."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.share.slice.uses import Rename

MARGIN_NS = 1_000_000
"""What the host did just before the first operation and just after the last one belongs to them."""
PROGRAM_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "OSRT_API",
    "NVTX_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
)
"""Only a traced program leaves rows here. Scheduling and samples may be those of the whole machine."""
PROCESS_TREE_TABLES = (*PROGRAM_TABLES, "SCHED_EVENTS", "COMPOSITE_EVENTS")
"""The same of a capture whose scheduling and samples are those of the program's process tree alone."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows about [start_ns, end_ns), on the trace's clock; all of them where both are None.

    It is one span, not several: time left out between two would look like idle time to whoever reads the result.
    `owners` are the tables whose processes are the program's own; only those keep names and samples. `lean` leaves out
    call chains and the samples of threads that launch nothing. `rename` makes new names of those that are
    written; without one they stay, of paths the last part.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    lean: bool = False
    owners: tuple[str, ...] = PROGRAM_TABLES
    rename: Rename | None = None
