"""The threads whose lanes are worth drawing: those that launch, and those that ended the waits of the longest gaps."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.activity.identity import pid_of, tid_of
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.grouping import group_totals
from nsysdiag.model import Gap
from nsysdiag.model_timeline import TimelineThread
from nsysdiag.timeline.intervals import IntArray

MOST_LAUNCHING, MOST_WAKING = 4, 6
_THREAD_BITS = 48


@dataclass(frozen=True, slots=True)
class Threads:
    """globalTids: the `launching` ones with most idle time behind them first, then the `waking` ones; `left_out` counts
    further ones that launched."""

    launching: list[int]
    waking: list[int]
    left_out: int

    @property
    def all(self) -> list[int]:
        """Every one, in the order of their places."""
        return [*self.launching, *self.waking]


def threads_of(context: GapContext, launching: IntArray, gaps: list[Gap]) -> Threads:
    """The threads for a device; `launching` are the lanes of those that launched on it."""
    idle = _by_idle(context)
    told = set(idle)
    lanes = [*idle, *(lane for lane in launching.tolist() if lane >= 0 and lane not in told)]
    chosen = [int(context.axis.threads[lane]) for lane in lanes[:MOST_LAUNCHING]]
    waking = _waking(gaps, chosen[0] >> _THREAD_BITS if chosen else 0, {int(t) for t in context.axis.threads[lanes]})
    return Threads(chosen, waking, len(lanes) - len(chosen))


def _by_idle(context: GapContext) -> list[int]:
    known = context.lane >= 0
    gaps = context.frame.gaps
    groups = group_totals(context.lane[known], (gaps.end - gaps.start)[known])
    return [int(code) for code in groups.code.tolist()]


def _waking(gaps: list[Gap], machine: int, known: set[int]) -> list[int]:
    """The threads of the hops, by the length of the gaps; `machine` are the bits that all threads of it share."""
    total: dict[int, int] = {}
    for gap in gaps:
        for hop in gap.root.hops if gap.root else ():
            identity = machine << _THREAD_BITS | hop.thread.pid << 24 | hop.thread.tid
            if identity not in known:
                total[identity] = total.get(identity, 0) + gap.end_ns - gap.start_ns
    return sorted(total, key=lambda identity: (-total[identity], identity))[:MOST_WAKING]


def described(threads: Threads, names: dict[int, str], key: str, home: dict[int, str]) -> list[TimelineThread]:
    """The threads as records, in the order of their places; `home` is the device with the lanes of each, `key` this
    one."""
    return [
        TimelineThread(
            pid=pid_of(each),
            tid=tid_of(each),
            name=names.get(each),
            launches=each in threads.launching,
            lanes_of=None if home[each] == key else home[each],
        )
        for each in threads.all
    ]
