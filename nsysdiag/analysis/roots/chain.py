"""Wake chains of chosen gaps as records: who ended the longest wait, what they did meanwhile, and where that leads."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.analysis.assignment import Slices
from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.causes.host_compute import BY_SAMPLES, BY_SCHEDULING
from nsysdiag.analysis.leaves import LeafSymbols, leaf_texts
from nsysdiag.analysis.roots.files import Files
from nsysdiag.analysis.roots.levels import Chains, Level
from nsysdiag.analysis.roots.people import People
from nsysdiag.analysis.roots.wakers import How
from nsysdiag.model import Hop, Root
from nsysdiag.units import format_ns

MOST_PARTS = 3
_IDS = list(CAUSES)
_LOADING = "data_loading"
_LOADING_TITLE = CAUSES[_LOADING].title
_HOW = {
    How.CALL: "woke it by {call}",
    How.CALL_OF_SEVERAL: "one of several that may have woken it by {call}",
    How.RAN: "the only thread that ran until then",
    How.RAN_OFTEN: "ran until then, as at the end of nearly every such wait",
    How.RAN_NEAREST: "of several threads the one that stopped running closest to it",
    How.RETURNED: "the only thread whose call ended or began then",
    How.ENDED: "ended just before",
}


class ChainTeller:
    """Tells the chains of one device's gaps."""

    def __init__(
        self,
        slices: Slices,
        chains: Chains,
        people: People,
        files: Files,
        symbols: LeafSymbols,
        calls: list[str],
        floor: float,
    ) -> None:
        self._chains = chains
        self._people = people
        self._files = files
        self._symbols = symbols
        self._calls = calls
        self._floor = floor
        self._words = list(chains.words.known)
        self._children = [np.argsort(level.pieces.parent, kind="stable") for level in chains.levels]
        first = chains.levels[0].pieces if chains.levels else None
        self._gap = slices.rows.gap[first.slice] if first is not None else np.zeros(0, dtype=np.int64)
        self._by_gap = np.argsort(self._gap, kind="stable")

    def root(self, gap: int, cause: int, ns: int) -> Root | None:
        """The chain of the longest wait in a gap; None where `cause`, which leads in the gap with `ns`, is mostly no
        waiting."""
        low, high = np.searchsorted(self._gap[self._by_gap], (gap, gap + 1))
        pieces = self._by_gap[low:high]
        if low < high:
            rows = self._chains.levels[0].pieces
            pieces = pieces[rows.cause[pieces] == cause]
            pieces = pieces if 2 * (rows.end - rows.start)[pieces].sum() >= ns else pieces[:0]
        return self._told(self._longest(0, pieces)) if len(pieces) else None

    def _longest(self, hop: int, pieces: IntArray) -> int:
        rows = self._chains.levels[hop].pieces
        length = rows.end[pieces] - rows.start[pieces]
        return int(pieces[np.lexsort((rows.start[pieces], -length))[0]])

    def _told(self, piece: int) -> Root:
        level = self._chains.levels[0]
        chain, hops, seen = [self._wait(level, piece)], [], [(level, piece)]
        confidence, hop = 1.0, 0
        while level.wakers.thread[piece] > 0 and level.confidence[piece] >= self._floor and not level.aside[piece]:
            inner = self._inner(hop + 1, piece)
            hops.append(self._hop(level, piece, hop + 1, inner))
            meanwhile = "meanwhile " if len(inner) else ""
            name = self._people.named(int(level.wakers.thread[piece]))
            chain.append(f"{name}: {hops[-1].how}; {meanwhile}{hops[-1].did}")
            confidence = float(level.confidence[piece])
            if len(inner) == 0:
                break
            hop, level = hop + 1, self._chains.levels[hop + 1]
            piece = self._longest(hop, inner[level.pieces.cause[inner] == self._leading(level, inner)])
            seen.append((level, piece))
        level, piece = next((level, piece) for level, piece in reversed(seen) if not level.aside[piece])
        cause = _IDS[int(level.pieces.cause[piece])]
        loads = bool(level.loader[piece])
        chain.append(
            f"root: {_LOADING_TITLE} ({self._kind(level, piece)})" if loads else f"root: {self._kind(level, piece)}"
        )
        return Root(chain=chain, confidence=round(confidence, 4), cause=_LOADING if loads else cause, hops=hops)

    def _kind(self, level: Level, piece: int) -> str:
        """The title of a piece's cause, with its label where that says more."""
        title, code = CAUSES[_IDS[int(level.pieces.cause[piece])]].title, int(level.pieces.label[piece])
        label = self._words[code] if code >= 0 else ""
        return f"{title}: {label}" if label and label not in (BY_SCHEDULING, BY_SAMPLES) else title

    def _wait(self, level: Level, piece: int) -> str:
        rows = level.pieces
        length = format_ns(int(rows.end[piece] - rows.start[piece]))
        return f"{self._people.named(int(rows.thread[piece]))} waited {length} in {self._text(level, piece)}"

    def _text(self, level: Level, piece: int) -> str:
        code = int(level.pieces.text[piece])
        return self._words[code] if code >= 0 else CAUSES[_IDS[int(level.pieces.cause[piece])]].title

    def _hop(self, level: Level, piece: int, hop: int, inner: IntArray) -> Hop:
        wakers = level.wakers
        call = int(wakers.call[piece])
        how = _HOW[How(int(wakers.how[piece]))].format(call=self._calls[call] if call >= 0 else "a call")
        return Hop(
            thread=self._people.thread(int(wakers.thread[piece])),
            how=how,
            did=self._did(hop, inner) if len(inner) else "what it did is not known for sure",
            confidence=round(float(wakers.confidence[piece]), 4),
        )

    def _inner(self, hop: int, piece: int) -> IntArray:
        """What the waker of a piece did: pieces of the next level."""
        if hop >= len(self._chains.levels):
            return np.zeros(0, dtype=np.int64)
        order = self._children[hop]
        low, high = np.searchsorted(self._chains.levels[hop].pieces.parent[order], (piece, piece + 1))
        return order[low:high]

    def _leading(self, level: Level, pieces: IntArray) -> int:
        total = np.bincount(level.pieces.cause[pieces], level.pieces.end[pieces] - level.pieces.start[pieces])
        return int(np.argmax(total))

    def _did(self, hop: int, inner: IntArray) -> str:
        """`on a CPU 3.10 ms (memcpy × 3), pread64 2.00 ms of data.bin`, longest first."""
        level = self._chains.levels[hop]
        rows = level.pieces.take(inner)
        total: dict[str, int] = {}
        for at, ns in enumerate((rows.end - rows.start).tolist()):
            text = self._text(level, int(inner[at]))
            total[text] = total.get(text, 0) + ns
        ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:MOST_PARTS]
        did = ", ".join(f"{text} {format_ns(ns)}" for text, ns in ranked)
        return did + self._samples(level, inner) + self._files.read_by(rows.thread, rows.start, rows.end)

    def _samples(self, level: Level, inner: IntArray) -> str:
        rows, host = level.pieces.take(inner), level.view.host
        mine = rows.take(rows.cause == _IDS.index("host_compute"))
        if len(mine) == 0:
            return ""
        lane = host.axis.rank(mine.thread)
        low, high = (host.axis.position(lane, side) for side in (mine.start, mine.end))
        texts = [text for text in leaf_texts(host.samples, low, high, self._symbols) if text]
        return f"; samples in {max(texts, key=len)}" if texts else ""
