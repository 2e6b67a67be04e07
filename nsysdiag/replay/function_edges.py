"""The edges of a replay into what is behind host functions in streams: operations, and waits of threads."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.rows import last_before
from nsysdiag.replay.edges import EdgeKind, Edges
from nsysdiag.replay.functions import Behind
from nsysdiag.replay.work import Work


def into_operations(
    behind: Behind, work: Work, length: IntArray, operation: IntArray, ends: IntArray, launch: IntArray, gap: IntArray
) -> Edges:
    """The edges into operations that are behind functions. `operation`, `ends` and `launch` are the moments at which
    operations begin, from which their length counts, and of their launches, -1 for none; `gap` is the usual one."""
    row, ran = behind.row, behind.end - behind.start
    waited = work.issued[row] < behind.end
    ran = ran + np.where(waited, np.maximum(work.start[row] - behind.end, 0), gap[row])
    after_end, after_issue = behind.begins_after(work)
    follows = np.flatnonzero(behind.before >= 0)
    before = behind.before[follows]
    launched = np.flatnonzero((launch[row] >= 0) & (behind.issued > 0))
    since = behind.issued[launched] - work.issued[row[launched]] + after_issue[launched]
    return Edges.concatenate(
        [
            Edges.of(
                ends[before], operation[row[follows]], length[before] + (after_end + ran)[follows], EdgeKind.FUNCTION
            ),
            Edges.of(launch[row[launched]], operation[row[launched]], since + ran[launched], EdgeKind.FUNCTION),
        ]
    )


def into_waits(
    behind: Behind,
    work: Work,
    length: IntArray,
    held: IntArray,
    ends: IntArray,
    lag: IntArray,
    launches: tuple[IntArray, IntArray],
    calls: CallRows,
    thread: IntArray,
) -> Edges:
    """The edges into waits that functions hold. `held` are the moments at which waits end, and `lag` what is left of
    each then. `launches` are the calls that launch and their moments; `thread` is that of each wait."""
    row, ran = behind.row, behind.end - behind.start + lag[behind.row]
    after_end, after_issue = behind.begins_after(work)
    call, moment = launches
    last = last_before(calls.thread[call], calls.start[call], thread[row], behind.issued)
    known = np.flatnonzero((last >= 0) & (behind.issued > 0))
    last = last[known]
    since = behind.issued[known] - calls.start[call[last]] + after_issue[known]
    before = behind.before
    return Edges.concatenate(
        [
            Edges.of(ends[before], held[row], length[before] + after_end + ran, EdgeKind.FUNCTION, row),
            Edges.of(moment[last], held[row[known]], since + ran[known], EdgeKind.FUNCTION, row[known]),
        ]
    )
