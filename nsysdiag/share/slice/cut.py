"""Cuts a part out of a trace: what it is, and the order in which tables are copied."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from nsysdiag.share.slice.nvtx import copy_nvtx
from nsysdiag.share.slice.operations import copy_calls, copy_operations
from nsysdiag.share.slice.program import copy_call_chains, copy_people, copy_samples, find_own_processes
from nsysdiag.share.slice.roles import Rename
from nsysdiag.share.slice.session import copy_files, copy_other_events, copy_session, copy_strings, copy_switches
from nsysdiag.share.slice.sql import Span
from nsysdiag.share.slice.target import target_of
from nsysdiag.trace.trace import Trace

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


class Cut(Struct, frozen=True):
    """The rows about [start_ns, end_ns), on the trace's clock; all of them where both are None.

    It is one span, not several: time left out between two would look like idle time in the result.
    `owners` are the tables whose processes are the program's own; only those keep names and samples. `lean` leaves out
    call chains and the samples of threads that launch nothing. `rename` makes new names of those that are
    written; without one they stay, of paths the last part.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    lean: bool = False
    owners: tuple[str, ...] = PROGRAM_TABLES
    rename: Rename | None = None


def write_cut(trace: Trace, path: Path, cut: Cut) -> None:
    """Write the slice `cut` of an open trace into a new database at `path`.

    Tables and columns are those that the package reads, with their names in the trace; rows are whole. The environment,
    the command line, the host, programs that were not traced and names that nothing refers to are never copied. Raises
    InputError if the trace cannot be read, OutputError if the database cannot be written.
    """
    device = host = None
    if cut.start_ns is not None and cut.end_ns is not None:
        device = Span(cut.start_ns, cut.end_ns)
        host = Span(cut.start_ns - MARGIN_NS, cut.end_ns + MARGIN_NS)
    with target_of(trace, path, cut.rename) as target:
        copy_operations(target, device)
        copy_calls(target, host)
        copy_nvtx(target, host)
        copy_switches(target, host)
        copy_other_events(target, device, host)
        copy_files(target)
        find_own_processes(target, cut.owners)
        copy_samples(target, host, lean=cut.lean)
        if not cut.lean:
            copy_call_chains(target)
        copy_people(target)
        copy_session(target, slice_of=cut.start_ns is not None)
        copy_strings(target)  # last, for only those in use are copied
