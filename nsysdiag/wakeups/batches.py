"""What loading workers did over whole batches, also while nothing waited for them: what makes a batch take so long.

```
T        [launches, computes .......][waits ]      what overlaps the wait is a read,
worker   [computes =================][reads ]      but a batch takes long because the worker computes
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, union
from nsysdiag.causes import CAUSES, INPUT_WAIT, PLACE, io_wait, off_cpu, variant_of
from nsysdiag.units import format_ns
from nsysdiag.wakeups.host_trace import Finder, WaitingThreads
from nsysdiag.wakeups.levels import Chains, Level, wakers_of
from nsysdiag.wakeups.root_attribution import RootSlices
from nsysdiag.wakeups.waits import Ends

_KINDS = CAUSES[INPUT_WAIT].variants
_OTHER = len(_KINDS) - 1
SHORT_NS = 20_000
"""A shorter read was no wait for another thread."""


class Batches(Struct, frozen=True):
    """`worker` is the row in `ns` of the worker that each slice waited for, -1 for none. `ns` is the time of each
    worker by variants of input waits. Its own waits, for an index or for a free slot, are left out."""

    worker: IntArray
    ns: IntArray

    def longest(self, kinds: IntArray, cause: IntArray) -> IntArray:
        """The variants `kinds` of the slices with this `cause`; of input waits what the worker did longest, where that
        is known. Where it is not, the label says only how the launching thread waited."""
        result = np.where((cause == PLACE[INPUT_WAIT]) & (self.worker < 0), _OTHER, kinds)
        if len(self.ns):
            known = (self.worker >= 0) & (kinds < _OTHER) & (self.ns.sum(axis=1) > 0)[self.worker]
            result = np.where(known, self.ns.argmax(axis=1)[self.worker], result)
        return result.astype(kinds.dtype)

    def words(self, slices: IntArray) -> str:
        """What the workers of some slices did over whole batches; empty where they did one thing only."""
        workers = np.unique(self.worker[slices])
        ns = self.ns[workers[workers >= 0]].sum(axis=0)
        done = [at for at in np.argsort(-ns, kind="stable").tolist() if ns[at]]
        said = ", ".join(f"{_KINDS[at].title} {format_ns(int(ns[at]))}" for at in done)
        return f"over whole batches: {said}" if len(done) > 1 else ""


def batches_of(rooted: RootSlices, chains: Chains, finder: Finder, floor: float, time: Intervals) -> Batches:
    """What the workers behind slices did in the set `time`, in ns. Reads that another thread ended, surer than `floor`,
    are waits of the worker for that one."""
    ns = np.zeros((len(rooted.workers), len(_KINDS)), dtype=np.int64)
    left = np.ones(len(rooted.workers), dtype=np.bool_)
    for level in chains.levels[1:]:
        rank = level.view.host.axis.rank(rooted.workers)
        here = np.flatnonzero(left & (rank >= 0))
        left[here] = False
        if len(here):
            _add(ns, here, rank[here], level.view, _awaited(chains.levels, level), time, finder, floor)
    return Batches(rooted.worker, ns)


def _awaited(levels: list[Level], of: Level) -> Intervals:
    """When threads of a level were waited for, a set on its axis."""
    axis = of.view.host.axis
    found = [Intervals.empty()]
    for level in levels[1:]:
        lane = axis.rank(level.pieces.thread)
        mine = np.flatnonzero(level.loader & ~level.aside & (lane >= 0))
        found.append(axis.place(lane[mine], Intervals(level.pieces.start[mine], level.pieces.end[mine])))
    return union(*found)


def _add(
    ns: IntArray,
    rows: IntArray,
    lane: IntArray,
    view: WaitingThreads,
    awaited: Intervals,
    time: Intervals,
    finder: Finder,
    floor: float,
) -> None:
    axis = view.host.axis
    every = Intervals(np.tile(time.start, len(lane)), np.tile(time.end, len(lane)))
    left = Owned.of(axis.place(np.repeat(lane, len(time)), every), np.repeat(rows, len(time)))
    for cause, layers in view.layers.items():
        kind = variant_of(INPUT_WAIT, cause, "", None)
        for layer in layers:
            if len(left) == 0 or len(layer) == 0:
                continue
            claimed, left, _ = claim(left, layer.spans)
            if kind == _OTHER or CAUSES[cause].unresolved or layer.label == off_cpu.UNTRACED:
                continue
            if layer.label == io_wait.PEERS:  # the queue of the worker, unless the launching thread waits for it
                claimed, _, _ = claim(claimed, awaited)
            length = claimed.spans.end - claimed.spans.start
            if layer.label == io_wait.READS:
                length = np.where(_ended_by_threads(claimed, view, finder, floor), 0, length)
            np.add.at(ns[:, kind], claimed.owner, length)


def _ended_by_threads(reads: Owned, view: WaitingThreads, finder: Finder, floor: float) -> BoolArray:
    """Which reads are waits for what another thread writes."""
    axis, start = view.host.axis, reads.spans.start
    waits = view.waits(start // axis.stride, axis.time(start), np.zeros(len(start), dtype=np.bool_))
    asks = (waits.ends == Ends.WRITE) & (waits.end - waits.start >= SHORT_NS)
    found = wakers_of(waits, np.flatnonzero(asks), waits.end, finder)
    ended: BoolArray = (found.thread > 0) & (found.confidence >= floor)
    return ended
