"""Wake chains of chosen gaps as records: who ended the longest wait, what they did meanwhile, and where that leads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.background import Deferred
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before
from nsysdiag.causes import CAUSES, INPUT_WAIT, input_output, places
from nsysdiag.causes.thread_states import BY_FUNCTIONS, BY_SAMPLES, BY_SCHEDULING
from nsysdiag.events.identity import tid_of
from nsysdiag.fields import Sentence
from nsysdiag.ledger.ledger import Slices
from nsysdiag.report import Hop, Root
from nsysdiag.stacks.samples import LeafSymbols, leaf_text
from nsysdiag.typed import joined, say
from nsysdiag.units import format_ns
from nsysdiag.wakeups.levels import ChainLevel, Chains, vague
from nsysdiag.wakeups.loaders import ThreadNames
from nsysdiag.wakeups.waits import How

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


MOST_FILES = 2
"""Files that a hop names, those that were read for longest. A round number: only the length of the sentence depends on
it."""


class OpenFiles(Struct, frozen=True):
    """When threads were in files, by thread (`tid`) and start, in ns. `reach` is the latest end so far of the thread;
    `paths` are those of the files by number."""

    tid: IntArray
    start: IntArray
    end: IntArray
    file: IntArray
    reach: IntArray
    paths: dict[int, str]

    @classmethod
    def read(cls, trace: Trace) -> OpenFiles | None:
        """None if the trace does not tell."""
        rows = trace.read("OSRT_FILE_ACCESS_EVENTS", "fileAccessId", "startedAt", "endedAt", "threadId")
        if len(rows) == 0:
            return None
        known = trace.read("OSRT_FILE_ACCESS_DESCRIPTORS", "fileAccessId", "filePath").tuples()
        # The thread may be written as the system's number or as a globalTid: both end in it.
        order = np.lexsort((rows["startedAt"], tid_of(rows["threadId"])))
        tid, end = tid_of(rows["threadId"])[order], rows["endedAt"][order]
        reach = end.copy()  # what ends before a stretch is skipped without a look
        for mine in np.split(np.arange(len(order)), np.flatnonzero(np.diff(tid)) + 1):
            reach[mine] = np.maximum.accumulate(end[mine])
        paths = {number: path for number, path in known if path}
        return cls(tid, rows["startedAt"][order], end, rows["fileAccessId"][order], reach, paths)


class Files:
    """Paths by thread and time, read on demand; several threads may ask."""

    def __init__(self, trace: Trace) -> None:
        self._opened = Deferred(partial(OpenFiles.read, trace))

    def read_by(self, thread: IntArray, start: IntArray, end: IntArray) -> Sentence:
        """The files that threads were in during stretches [start, end), longest first: ` of data.bin, labels.bin`;
        empty if the trace does not tell."""
        opened = self._opened.result()
        if opened is None:
            return ""
        found: dict[str, int] = {}
        for who, low, high in zip(tid_of(thread).tolist(), start.tolist(), end.tolist(), strict=True):
            first, behind = np.searchsorted(opened.tid, (who, who + 1)).tolist()
            behind = first + int(np.searchsorted(opened.start[first:behind], high))
            first += int(np.searchsorted(opened.reach[first:behind], low, side="right"))
            rows = np.arange(first, behind)
            overlap = np.minimum(opened.end[rows], high) - np.maximum(opened.start[rows], low)
            for row, ns in zip(rows[overlap > 0].tolist(), overlap[overlap > 0].tolist(), strict=True):
                path = opened.paths.get(int(opened.file[row]), "")
                found[path] = found.get(path, 0) + ns
        ranked = sorted(((ns, path) for path, ns in found.items() if path), reverse=True)[:MOST_FILES]
        return " of " + joined(", ", (typed.file(path) for _, path in ranked)) if ranked else ""


MOST_PARTS = 3
"""Activities that a hop names, longest first. A round number: only the length of the sentence depends on it."""
_IDS = list(CAUSES)
_SAMPLED = places(lambda cause: cause.sampled)
_HOW = {
    How.CALL: "woke it by {call}",
    How.CALL_OF_SEVERAL: "one of several that may have woken it by {call}",
    How.RAN: "the only thread that ran until then",
    How.RAN_OFTEN: "ran until then, as at nearly every end of such waits",
    How.RAN_NEAREST: "of several threads, the one that stopped running closest to it",
    How.RETURNED: "the only thread whose call ended or began then",
    How.ENDED: "ended just before",
    How.USUAL: "its calls end nearly all such waits",
}


Step = tuple[ChainLevel, int, IntArray | None]
"""A level, a piece of it, and the pieces of what the thread did that ended its wait; None if that thread is not
known."""


class WakeChains:
    """Tells the chains of one device's gaps."""

    def __init__(
        self,
        slices: Slices,
        chains: Chains,
        names: ThreadNames,
        files: Files,
        symbols: LeafSymbols,
        calls: list[str],
        floor: float,
    ) -> None:
        self._chains = chains
        self._names = names
        self._files = files
        self._symbols = symbols
        self._calls = calls
        self._floor = floor
        self._words, self._labels = list(chains.words.known), list(chains.words.labels.known)
        self._children = [np.argsort(level.pieces.parent, kind="stable") for level in chains.levels]
        self._parents = [level.pieces.parent[order] for level, order in zip(chains.levels, self._children, strict=True)]
        first = chains.levels[0].pieces if chains.levels else None
        gap = slices.rows.gap[first.slice] if first is not None else np.zeros(0, dtype=np.int64)
        self._by_gap = np.argsort(gap, kind="stable")
        self._gap = gap[self._by_gap]

    def root(self, gap: int, cause: int, ns: int) -> Root | None:
        """The chain of the longest wait in a gap; None where `cause`, which leads in the gap with `ns`, is mostly no
        waiting."""
        low, high = np.searchsorted(self._gap, (gap, gap + 1))
        pieces = self._by_gap[low:high]
        if low < high:
            rows = self._chains.levels[0].pieces
            pieces = pieces[rows.cause[pieces] == cause]
            pieces = pieces if 2 * (rows.end - rows.start)[pieces].sum() >= ns else pieces[:0]
        return self._as_root(self._longest(0, pieces)) if len(pieces) else None

    def samples(self, spans: Intervals) -> tuple[BoolArray, IntArray, int]:
        """Which stretches of time in gaps were followed to other threads, and the ids of these threads' CPU samples in
        them. Also the longest of their sampling periods."""
        period = 0
        followed, ids = np.zeros(len(spans), dtype=np.bool_), [np.empty(0, dtype=np.int64)]
        for level in reversed(self._chains.levels[1:]):
            pieces, mine = level.pieces, np.flatnonzero(~level.aside)
            mine = mine[np.argsort(pieces.start[mine], kind="stable")]
            at = np.append(mine, -1)[nearest_before(pieces.start[mine], spans.start)]
            here = np.flatnonzero(~followed & (at >= 0) & (np.append(pieces.end, 0)[at] > spans.start))
            axis, samples = level.view.host.axis, level.view.host.samples
            inside = axis.place(axis.lane(pieces.thread[at[here]]), spans[here])
            ids.append(samples.inside(inside))
            period = max(period, samples.period_ns if len(ids[-1]) else 0)
            followed[here] = True
        return followed, np.concatenate(ids), period

    def _longest(self, hop: int, pieces: IntArray) -> int:
        rows = self._chains.levels[hop].pieces
        length = rows.end[pieces] - rows.start[pieces]
        return int(pieces[np.lexsort((rows.start[pieces], -length))[0]])

    def _as_root(self, piece: int) -> Root:
        """The chain from a wait on, in words; every hop also as a record."""
        way = self._way(piece)
        first = self._chains.levels[0]
        length = format_ns(int(first.pieces.end[piece] - first.pieces.start[piece]))
        waiting = self._names.named(int(first.pieces.thread[piece]))
        chain: list[Sentence] = [say("{} waited {} in {}", waiting, length, self._text(first, piece))]
        hops = []
        # A wait that leads to no other thread is its own root for certain.
        confidence = 1.0
        for at, (level, waited, did) in enumerate(way):
            if did is not None:
                hop = self._hop(level, waited, at + 1, did)
                hops.append(hop)
                waker = self._names.named(int(level.wakers.thread[waited]))
                chain.append(say("{}: {}; {}{}", waker, hop.how, "meanwhile " if len(did) else "", hop.did))
                confidence = float(level.confidence[waited])
        cause, kind = self._end(way)
        return Root(chain=[*chain, f"root: {kind}"], confidence=round(confidence, 4), cause=cause, hops=hops)

    def _way(self, piece: int) -> list[Step]:
        """From a wait to its root."""
        way: list[Step] = []
        for hop, level in enumerate(self._chains.levels):
            if level.wakers.thread[piece] == 0 or level.confidence[piece] < self._floor or level.aside[piece]:
                break
            inner = self._inner(hop + 1, piece)
            way.append((level, piece, inner))
            if len(inner) == 0:
                return way
            did = self._chains.levels[hop + 1].pieces.take(inner)
            leading = np.argmax(np.bincount(did.cause, did.end - did.start))
            piece = self._longest(hop + 1, inner[did.cause == leading])
        return [*way, (self._chains.levels[len(way)], piece, None)]

    def _end(self, way: list[Step]) -> tuple[str, str]:
        """The cause where a way ends, and its kind in words: the title, with the label where that says more. Where a
        loading worker is on the way, that is the cause."""
        level, piece = next((level, piece) for level, piece, _ in reversed(way) if not level.aside[piece])
        if vague(level.pieces.take(np.array([piece])), self._chains.words)[0]:
            level, piece = way[0][:2]
        cause, code = _IDS[int(level.pieces.cause[piece])], int(level.pieces.label[piece])
        title = CAUSES[cause].title
        label = self._labels[code] if code >= 0 else None
        # The last thread is known, and nothing that it did.
        unseen = way[-1][2] is not None
        label = input_output.PEERS if unseen and label is input_output.READS else label
        kind = f"{title}: {label.words}" if label and label not in (BY_SCHEDULING, BY_SAMPLES, BY_FUNCTIONS) else title
        kind = f"{kind}; what that was for is not in the trace" if unseen else kind
        return (INPUT_WAIT, f"{CAUSES[INPUT_WAIT].title} ({kind})") if level.loader[piece] else (cause, kind)

    def _text(self, level: ChainLevel, piece: int) -> Sentence:
        code = int(level.pieces.text[piece])
        return self._words[code] if code >= 0 else CAUSES[_IDS[int(level.pieces.cause[piece])]].title

    def _hop(self, level: ChainLevel, piece: int, hop: int, inner: IntArray) -> Hop:
        wakers = level.wakers
        call = int(wakers.call[piece])
        how = say(_HOW[How(int(wakers.how[piece]))], call=typed.api(self._calls[call]) if call >= 0 else "a call")
        return Hop(
            thread=self._names.thread(int(wakers.thread[piece])),
            how=how,
            did=self._did(hop, inner) if len(inner) else "what it did is uncertain",
            confidence=round(float(wakers.confidence[piece]), 4),
            at_ns=int(wakers.at[piece]),
        )

    def _inner(self, hop: int, piece: int) -> IntArray:
        """What the waker of a piece did: pieces of the next level."""
        if hop >= len(self._chains.levels):
            return np.zeros(0, dtype=np.int64)
        low, high = np.searchsorted(self._parents[hop], (piece, piece + 1))
        return self._children[hop][low:high]

    def _did(self, hop: int, inner: IntArray) -> Sentence:
        """`on a CPU 3.10 ms (memcpy × 3), pread64 2.00 ms of data.bin`, longest first."""
        level = self._chains.levels[hop]
        rows = level.pieces.take(inner)
        total: dict[Sentence, int] = {}
        for at, ns in enumerate((rows.end - rows.start).tolist()):
            text = self._text(level, int(inner[at]))
            total[text] = total.get(text, 0) + ns
        ranked = sorted(total.items(), key=lambda item: (-item[1], typed.plain(item[0])))[:MOST_PARTS]
        did = joined(", ", (say("{} {}", text, format_ns(ns)) for text, ns in ranked))
        sampled, host = rows.take(np.isin(rows.cause, _SAMPLED)), level.view.host
        samples: Sentence = ""
        if len(sampled):
            lane = host.axis.lane(sampled.thread)
            low, high = (host.axis.position(lane, side) for side in (sampled.start, sampled.end))
            samples = leaf_text(host.samples, low, high, self._symbols)
        did += say("; samples in {}", samples) if samples else ""
        return did + self._files.read_by(rows.thread, rows.start, rows.end)
