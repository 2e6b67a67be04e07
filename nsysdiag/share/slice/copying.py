"""The way from a trace to a part of it. The order of steps: names come last, for only those in use are copied."""

from __future__ import annotations

from pathlib import Path

from nsysdiag.share.slice.cut import MARGIN_NS, Cut
from nsysdiag.share.slice.nvtx import copy_nvtx
from nsysdiag.share.slice.operations import copy_calls, copy_operations
from nsysdiag.share.slice.program import copy_call_chains, copy_people, copy_samples, find_own_processes
from nsysdiag.share.slice.rows import Span, copy_switches
from nsysdiag.share.slice.session import copy_files, copy_other_events, copy_session, copy_strings
from nsysdiag.share.slice.target import target_of
from nsysdiag.trace.trace import Trace


def write_cut(trace: Trace, path: Path, cut: Cut) -> None:
    """Write what `cut` asks for of an open trace into a new database at `path`.

    Tables and columns are those that the package reads, under the names that they have in the trace; rows are whole.
    The environment, the command line, the host, programs that were not traced and names that nothing refers to are
    never copied. Raises InputError where the trace cannot be read, OutputError where the database cannot be written.
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
        find_own_processes(target, cut)
        copy_samples(target, cut, host)
        copy_call_chains(target, cut)
        copy_people(target)
        copy_session(target, slice_of=cut.start_ns is not None)
        copy_strings(target)
