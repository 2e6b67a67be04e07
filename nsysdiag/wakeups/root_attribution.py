"""The root ledger's slices: waits re-cut by what the threads at the end of their wake chains did."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.causes import CAUSES, INPUT_WAIT, PLACE, io_wait
from nsysdiag.events.rows import distinct
from nsysdiag.ledger.assignment import SliceRows, Slices
from nsysdiag.wakeups.host_trace import ThreadNames
from nsysdiag.wakeups.levels import Chains, Pieces, vague

_IDS = list(CAUSES)
BY = " by "
"""Between what another thread did, and that thread."""


class RootSlices(Struct, frozen=True):
    """The slices of the root ledger, and for each what the launching thread itself did then, by the ledger. `worker` is
    the place in `workers` (globalTids) of the loading worker that it is about, -1 for none."""

    slices: Slices
    own: IntArray
    worker: IntArray
    workers: IntArray


def attribute_roots(slices: Slices, chains: Chains, names: ThreadNames, floor: float) -> RootSlices:
    """The same gaps and the same total as `slices`. Waiting time of a launching thread counts to what the thread that
    ended the wait, surer than `floor`, did meanwhile. If that was a loading worker, it counts to data loading, with the
    worker's own cause as the label."""
    if not chains.levels:
        nothing = np.empty(0, dtype=np.int64)
        return RootSlices(slices, slices.rows.cause, np.full(len(slices.rows), -1, dtype=np.int32), nothing)
    words, rows = chains.words, slices.rows
    waited = np.zeros(len(rows), dtype=np.bool_)
    waited[chains.levels[0].pieces.slice] = True
    kept = rows.take(~waited)
    labels, texts = words.recoded(slices.labels), words.recoded(slices.texts)
    parts = [SliceRows(kept.gap, kept.cause, kept.start, kept.end, labels[kept.label], texts[kept.text])]
    own, worker = [kept.cause], [np.zeros(len(kept), dtype=np.int64)]
    for hop, level in enumerate(chains.levels):
        piece, spans = _rest(chains, hop)
        mine, loads = level.pieces.take(piece), level.loader[piece]
        text = mine.text if hop == 0 else _with_thread(mine, chains, names)
        unknown = vague(mine, words) & (hop > 0)
        cause = np.where(unknown, rows.cause[mine.slice], mine.cause)
        label = np.where(unknown, labels[rows.label[mine.slice]], mine.label)
        # A read that another thread ended is no read of a file, whatever that thread did.
        ended = (level.wakers.thread[piece] > 0) & (level.confidence[piece] >= floor)
        label = np.where(ended & (label == words.code(io_wait.READS)), words.code(io_wait.PEERS), label)
        own.append(rows.cause[mine.slice])
        worker.append(np.where(loads & (hop > 0) & ~unknown, mine.thread, 0))
        parts.append(
            SliceRows(
                gap=rows.gap[mine.slice],
                cause=np.where(loads, PLACE[INPUT_WAIT], cause),
                start=spans.start,
                end=spans.end,
                label=np.where(loads, words.recoded(_IDS)[cause], label),
                text=np.where(unknown, texts[rows.text[mine.slice]], text),
            )
        )
    found = SliceRows.concatenate(parts)
    cut = Slices(found, list(words.known), list(words.known))
    threads, code = distinct(np.append(0, np.concatenate(worker)))
    return RootSlices(cut, np.concatenate(own), (code[1:] - 1).astype(np.int32), threads[1:])


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
    threads, code = distinct(pieces.thread)
    key, place = np.unique(np.stack((pieces.text, code)), axis=1, return_inverse=True)
    known = list(chains.words.known)
    texts = [f"{known[text]}{BY}{names.named(int(threads[at]))}" for text, at in key.T.tolist()]
    words: IntArray = chains.words.recoded(texts)[place.reshape(-1)]
    return words
