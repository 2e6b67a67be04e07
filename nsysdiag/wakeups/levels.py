"""Wake chains, hop by hop: what the threads did that the launching threads waited for.

```
level 0   T       [ sem_wait ------------------------------)     a slice of a gap
level 1   waker W      [ sem_wait ---------)[ compute ----]      what W did during it
level 2   waker X      [ pread -----------]                      what X did while W waited
root      X read, then W computed; what is left of the wait stays what it is
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import CodeTable, EvidenceLabel, Owned, claim
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals
from nsysdiag.causes import CAUSES, INPUT_WAIT, PLACE, PREEMPTION, places, thread_states, thread_waits
from nsysdiag.events.rows import Rows
from nsysdiag.fields import Sentence
from nsysdiag.ledger.ledger import Slices
from nsysdiag.wakeups.loaders import Finder, HostTrace, Loaders, WaitingThreads
from nsysdiag.wakeups.waits import Ends, Waits, Wakers

MOST_HOPS = 4
"""From a waiting thread to the one that woke it, and on: longer chains end in the last wait. With a confidence of 0.85
a hop, a fifth one would be below the usual floor of 0.5. More hops read the activity of more threads."""
_WAITS = places(lambda cause: cause.follows_wakeups)
_OFF_CPU = PLACE[PREEMPTION]


class TextTable(CodeTable[Sentence]):
    """Texts, each kept once, and the call that a text names, by text."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[Sentence, Sentence] = {}
        self.labels: CodeTable[EvidenceLabel] = CodeTable()

    def recoded(self, words: Sequence[Sentence], calls: Sequence[Sentence] = ()) -> IntArray:
        """For each old code its new one; -1 stays. `calls` are those that the words name, empty for none."""
        self.calls.update((word, call) for word, call in zip(words, calls, strict=bool(calls)) if call)
        return self.codes(words).astype(np.int32)


class Pieces(Rows, frozen=True):
    """Time [start, end) in ns of `thread`, with `cause`, `label` and `text`. `parent` is the piece of the level before
    that waited for it (at level 0: the slice), `slice` its original slice."""

    parent: IntArray
    slice: IntArray
    thread: IntArray
    start: IntArray
    end: IntArray
    cause: IntArray
    label: IntArray
    text: IntArray


def vague(pieces: Pieces, words: TextTable) -> BoolArray:
    """True for time off the CPU for no known reason: no cause that another's wait could lead to."""
    return (pieces.cause == _OFF_CPU) & (pieces.label == words.labels.code(thread_states.UNTRACED))


class ChainLevel(Struct, frozen=True):
    """The pieces of one hop; for those that wait who ended the wait, and the confidence of all hops so far. `loader`
    marks waits for a worker that loads data. `aside` marks what a holder of the interpreter lock did: it is shown, but
    the lock itself is the root. `view` are the threads of the pieces."""

    pieces: Pieces
    wakers: Wakers
    confidence: FloatArray
    loader: BoolArray
    aside: BoolArray
    view: WaitingThreads


class Chains(Struct, frozen=True):
    """All levels of a device's wait slices, and the words that their codes stand for."""

    levels: list[ChainLevel]
    words: TextTable


def follow(
    slices: Slices,
    lane: IntArray,
    host: WaitingThreads,
    host_trace: HostTrace,
    finder: Finder,
    floor: float,
    disabled: tuple[str, ...] = (),
) -> Chains:
    """The wake chains of all slices in which the launching thread (lane of `host` for each gap) waited for others.

    A hop less sure than `floor`, all before it counted, is not followed; what a waker did by a `disabled` cause is not
    known."""
    words = TextTable()
    search = _WakerSearch(finder, Loaders(host_trace), words, floor, disabled)
    pieces, view = _first(slices, lane, host, words), host
    before = _Before.nothing(len(pieces))
    levels: list[ChainLevel] = []
    while len(pieces) and len(levels) <= MOST_HOPS:
        level = search.level(pieces, view, before, last=len(levels) == MOST_HOPS)
        levels.append(level)
        followed = np.flatnonzero((level.wakers.thread > 0) & (level.confidence >= floor) & ~level.aside)
        if len(followed) == 0:
            break
        view = host_trace.waiting(distinct_values(level.wakers.thread[followed]))
        pieces = _next(level, followed, view, words, disabled)
        before = _Before.of(level, pieces.parent, pieces_aside=level.pieces.label == search.interpreter)
    return Chains(levels, words)


class _Before(Rows, frozen=True):
    """What is known of the pieces of a level from the one before; `until` is when their threads woke others, in ns."""

    confidence: FloatArray
    loader: BoolArray
    aside: BoolArray
    until: IntArray

    @classmethod
    def nothing(cls, count: int) -> _Before:
        """Of launching threads: they are sure."""
        no = np.zeros(count, dtype=np.bool_)
        return cls(np.ones(count), no, no.copy(), np.full(count, np.iinfo(np.int64).max))

    @classmethod
    def of(cls, level: ChainLevel, parent: IntArray, pieces_aside: BoolArray) -> _Before:
        """Of pieces whose parents are in `level`."""
        return cls(
            level.confidence[parent],
            level.loader[parent],
            (level.aside | pieces_aside)[parent],
            level.wakers.at[parent],
        )


def _first(slices: Slices, lane: IntArray, host: WaitingThreads, words: TextTable) -> Pieces:
    """The slices in which a launching thread waited, as the pieces of level 0."""
    rows = slices.rows
    waits = np.isin(rows.cause, _WAITS) | (
        (rows.cause == _OFF_CPU) & (rows.label == thread_states.untraced_code(slices.labels))
    )
    chosen = np.flatnonzero(waits)
    chosen = chosen[lane[rows.gap[chosen]] >= 0]
    chosen = chosen[np.argsort(rows.start[chosen], kind="stable")]
    mine = rows.take(chosen)
    labels, texts = words.labels.codes(slices.labels).astype(np.int16), words.recoded(slices.texts, slices.calls)
    threads = host.host.axis.threads
    return Pieces(
        parent=chosen,
        slice=chosen,
        thread=threads[lane[mine.gap]] if len(threads) else mine.gap,
        start=mine.start,
        end=mine.end,
        cause=mine.cause,
        label=labels[mine.label],
        text=texts[mine.text],
    )


class _WakerSearch(Struct, frozen=True):
    """Who ended the waits of a level."""

    finder: Finder
    loaders: Loaders
    words: TextTable
    floor: float
    disabled: tuple[str, ...]

    @property
    def interpreter(self) -> int:
        """The label of waits for the interpreter lock."""
        return self.words.labels.code(thread_waits.INTERPRETER_LOCK)

    def level(self, pieces: Pieces, view: WaitingThreads, before: _Before, *, last: bool) -> ChainLevel:
        """The level of these pieces; at the last one no waker is looked for."""
        lane = view.host.axis.lane(pieces.thread)
        away = vague(pieces, self.words)
        waits = view.waits(lane, pieces.start, away)
        asks = (np.isin(pieces.cause, _WAITS) | away) & (waits.ends != Ends.NO_THREAD) & (not last)
        # A waker has been woken itself by then: a wait that ends later cannot have led to this wake-up.
        asks &= waits.end <= before.until
        wakers = wakers_of(waits, np.flatnonzero(asks), pieces.end, self.finder)
        confidence = before.confidence * np.where(asks, wakers.confidence, 1.0)
        sure = np.where(confidence >= self.floor, wakers.thread, 0)
        loader = self.loaders.by_waker(waits, sure, wakers.at)
        loader |= self.loaders.in_range(pieces.thread, Intervals(pieces.start, pieces.end)) & (sure > 0)
        loader = before.loader | (loader & (pieces.label != self.interpreter) & (INPUT_WAIT not in self.disabled))
        return ChainLevel(pieces, wakers, confidence, loader, before.aside, view)


def wakers_of(waits: Waits, rows: IntArray, until: IntArray, finder: Finder) -> Wakers:
    """The wakers of the waits at `rows`, none for the others. A wait of many pieces is looked up once."""
    wakers = Wakers.none(until)
    if len(rows) == 0:
        return wakers
    wanted = waits.take(rows)
    keys = np.stack((wanted.thread, wanted.start, wanted.name))
    _, first, place = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    found = finder().find(wanted.take(first)).take(place.reshape(-1))
    wakers.put(rows, found)
    return wakers


def _next(
    level: ChainLevel, followed: IntArray, view: WaitingThreads, words: TextTable, disabled: tuple[str, ...]
) -> Pieces:
    """What the wakers did during the pieces that waited for them, until they woke them."""
    waiting, wakers = level.pieces.take(followed), level.wakers.take(followed)
    axis = view.host.axis
    lane = axis.lane(wakers.thread)
    time = Intervals(waiting.start, np.minimum(waiting.end, wakers.at))
    left = Owned.of(axis.place(lane, time), np.arange(len(followed)))
    parts = [waiting.take(followed[:0])]
    for cause, layers in view.layers.items():
        number = PLACE[cause]
        for layer in layers:
            if len(left) == 0 or len(layer) == 0:
                continue
            claimed, left, source = claim(left, layer.spans)
            text = words.recoded(layer.names, layer.names if layer.are_calls else ())[layer.name[source]]
            start = axis.time(claimed.spans.start)
            label = words.labels.code(layer.label)
            # Where the trace cannot tell what a waker did, the wait stays what it is.
            if not CAUSES[cause].unresolved and cause not in disabled:
                parts.append(_pieces(waiting, followed, wakers, start, claimed, number, label, text))
    found = Pieces.joined(parts)
    return found.take(np.argsort(found.start, kind="stable"))


def _pieces(
    waiting: Pieces,
    followed: IntArray,
    wakers: Wakers,
    start: IntArray,
    claimed: Owned,
    cause: int,
    label: int,
    text: int | IntArray,
) -> Pieces:
    owner = claimed.owner
    return Pieces(
        parent=followed[owner],
        slice=waiting.slice[owner],
        thread=wakers.thread[owner],
        start=start,
        end=start + claimed.spans.end - claimed.spans.start,
        cause=np.full(len(owner), cause, dtype=np.int8),
        label=np.full(len(owner), label, dtype=np.int16),
        text=np.broadcast_to(np.asarray(text, dtype=np.int32), (len(owner),)),
    )
