"""What loading workers did over whole batches, also while nothing waited for them: what makes a batch take so long.

```
T        [launches, computes .......][waits ]      what overlaps the wait is a read,
worker   [computes =================][reads ]      but a batch takes long because the worker computes
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import Owned, claim, within
from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, union
from nsysdiag.causes import CAUSES, INPUT_WAIT, OF_WORKER, PLACE, input_output, thread_states, variant_of
from nsysdiag.events.rows import coded_tuples
from nsysdiag.ledger.ledger import SliceRows, Slices
from nsysdiag.typed import say
from nsysdiag.units import format_ns
from nsysdiag.wakeups.levels import ChainLevel, Chains, Pieces, vague, wakers_of
from nsysdiag.wakeups.loaders import Finder, ThreadNames, WaitingThreads
from nsysdiag.wakeups.waits import Ends

# The root ledger's slices: waits re-cut by what the threads at the end of their wake chains did.

_IDS = list(CAUSES)


class RootSlices(Struct, frozen=True):
    """The slices of the root ledger, and for each what the launching thread itself did then, by the ledger. `thread` is
    the place in `threads` (globalTids) of the other thread that it is about, -1 for none. `worker` is the same in
    `workers`, for loading workers only."""

    slices: Slices
    own: IntArray
    worker: IntArray
    workers: IntArray
    thread: IntArray
    threads: IntArray


def attribute_roots(slices: Slices, chains: Chains, names: ThreadNames, floor: float) -> RootSlices:
    """The same gaps and the same total as `slices`. Waiting time of a launching thread is charged to what the thread
    that ended the wait, surer than `floor`, did meanwhile. If that was a loading worker, it is charged to data loading,
    with the worker's own cause as the label."""
    if not chains.levels:
        nothing, none = np.empty(0, dtype=np.int64), constant(np.full(1, -1, dtype=np.int32), len(slices.rows))
        return RootSlices(slices, slices.rows.cause, none, nothing, none, nothing)
    words, rows = chains.words, slices.rows
    known = words.labels
    waited = np.zeros(len(rows), dtype=np.bool_)
    waited[chains.levels[0].pieces.slice] = True
    kept = rows.take(~waited)
    labels, texts = words.labels.codes(slices.labels).astype(np.int16), words.recoded(slices.texts, slices.calls)
    parts = [SliceRows(kept.gap, kept.cause, kept.start, kept.end, labels[kept.label], texts[kept.text])]
    own, other, loaded = [kept.cause], [np.zeros(len(kept), dtype=np.int64)], [np.zeros(len(kept), dtype=np.bool_)]
    for hop, level in enumerate(chains.levels):
        piece, spans = _rest(chains, hop)
        mine, loads = level.pieces.take(piece), level.loader[piece]
        text = mine.text if hop == 0 else _with_thread(mine, chains, names)
        unknown = vague(mine, words) & (hop > 0)
        cause = np.where(unknown, rows.cause[mine.slice], mine.cause)
        label = np.where(unknown, labels[rows.label[mine.slice]], mine.label)
        # A read that another thread ended is not a read of a file, whatever that thread did.
        ended = (level.wakers.thread[piece] > 0) & (level.confidence[piece] >= floor)
        label = np.where(ended & (label == known.code(input_output.READS)), known.code(input_output.PEERS), label)
        own.append(rows.cause[mine.slice])
        other.append(np.where((hop > 0) & ~unknown, mine.thread, 0))
        loaded.append(loads)
        parts.append(
            SliceRows(
                gap=rows.gap[mine.slice],
                cause=np.where(loads, PLACE[INPUT_WAIT], cause).astype(np.int8),
                start=spans.start,
                end=spans.end,
                label=np.where(loads, known.codes(OF_WORKER.values())[cause], label).astype(np.int16),
                text=np.where(unknown, texts[rows.text[mine.slice]], text).astype(np.int32),
            )
        )
    found = SliceRows.joined(parts)
    cut = Slices(found, list(known.known), list(words.known), [words.calls.get(word, "") for word in words.known])
    thread, loads = np.concatenate(other), np.concatenate(loaded)
    return RootSlices(cut, np.concatenate(own), *_placed(np.where(loads, thread, 0)), *_placed(thread))


def _placed(thread: IntArray) -> tuple[IntArray, IntArray]:
    """The place of each thread among all, -1 for none (0), and all of them."""
    threads, code = distinct(np.append(0, thread))
    return (code[1:] - 1).astype(np.int32), threads[1:]


def _rest(chains: Chains, hop: int) -> tuple[IntArray, Intervals]:
    """The time of a level's pieces that was not followed further, and whose each part is."""
    level = chains.levels[hop]
    mine = np.flatnonzero(~level.aside)
    owned = Owned.of(Intervals(level.pieces.start[mine], level.pieces.end[mine]), mine)
    further = Intervals.empty()
    if hop + 1 < len(chains.levels):
        inner = chains.levels[hop + 1]
        children = inner.pieces.take(~inner.aside)
        further = union(Intervals(children.start, children.end))
    _, rest, _ = claim(owned, further)
    return rest.owner, rest.spans


def _with_thread(pieces: Pieces, chains: Chains, names: ThreadNames) -> IntArray:
    """The activity and its thread, in words: `pread64 by thread 17 'pt_data_worker'`."""
    place, pairs = coded_tuples(pieces.text, pieces.thread)
    known = list(chains.words.known)
    texts = [say("{} by {}", known[text], names.named(thread)) for text, thread in pairs]
    calls = [chains.words.calls.get(known[text], "") for text, _ in pairs]
    return chains.words.recoded(texts, calls)[place]


_KINDS = CAUSES[INPUT_WAIT].variants
_OTHER = len(_KINDS) - 1
"""The place of the last variant of an input wait, which stands for no known kind."""
SHORT_NS = 20_000
"""A shorter read was not a wait for another thread."""


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
        """What the workers of some slices did over whole batches; empty if they did one thing only."""
        workers = distinct_values(self.worker[slices])
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
        rank = level.view.host.axis.lane(rooted.workers)
        here = np.flatnonzero(left & (rank >= 0))
        left[here] = False
        if len(here):
            _add(ns, here, rank[here], level.view, _awaited(chains.levels, level), time, finder, floor)
    return Batches(rooted.worker, ns)


def _awaited(levels: list[ChainLevel], of: ChainLevel) -> Intervals:
    """When threads of a level were waited for, a set on its axis."""
    axis = of.view.host.axis
    found = [Intervals.empty()]
    for level in levels[1:]:
        lane = axis.lane(level.pieces.thread)
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
        kind = variant_of(INPUT_WAIT, OF_WORKER[cause])
        for layer in layers:
            if len(left) == 0 or len(layer) == 0:
                continue
            claimed, left, _ = claim(left, layer.spans)
            if kind == _OTHER or CAUSES[cause].unresolved or layer.label is thread_states.UNTRACED:
                continue
            if layer.label is input_output.PEERS:  # the queue of the worker, unless the launching thread waits for it
                claimed, _ = within(claimed, awaited)
            length = claimed.spans.end - claimed.spans.start
            if layer.label is input_output.READS:
                length = np.where(_ended_by_threads(claimed, view, finder, floor), 0, length)
            np.add.at(ns[:, kind], claimed.owner, length)


def _ended_by_threads(reads: Owned, view: WaitingThreads, finder: Finder, floor: float) -> BoolArray:
    """Which reads are waits for what another thread writes."""
    axis, start = view.host.axis, reads.spans.start
    waits = view.waits(start // axis.stride, axis.time(start), np.zeros(len(start), dtype=np.bool_))
    asks = (waits.ends == Ends.WRITE) & (waits.end - waits.start >= SHORT_NS)
    found = wakers_of(waits, np.flatnonzero(asks), waits.end, finder)
    return (found.thread > 0) & (found.confidence >= floor)
