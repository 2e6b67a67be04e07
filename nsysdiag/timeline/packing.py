"""Chosen rows of a source as a lane of the report: packed columns, names kept once for the whole timeline."""

from __future__ import annotations

import json

import numpy as np
from msgspec import Struct, structs
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.buckets import bucket_coverage, bucket_edges, coarser
from nsysdiag.arrays.codes import to_planes, to_text
from nsysdiag.arrays.intervals import IntArray, union
from nsysdiag.timeline.facts import TimelineLane
from nsysdiag.timeline.source import Source

FINEST, COARSEST = 11, 9
FULL = 255
LEFT_OUT, LONGEST = "(name left out)", 1_000
_EFFORT = 6


class NameTable:
    """Names by number, each stored once, up to `characters` in all: further ones are left out. Very long ones are cut.
    `sentences` are those with names in them, by their displayed text."""

    def __init__(self, characters: int) -> None:
        self._known: dict[str, int] = {LEFT_OUT: 0}
        self.sentences: dict[str, str] = {}
        self._room = characters

    def fork(self) -> NameTable:
        """A table of its own with the same names and the same room."""
        made = NameTable(self._room)
        made._known, made.sentences = dict(self._known), dict(self.sentences)
        return made

    def size(self) -> int:
        """What the names take in a report, in bytes."""
        return len(self.packed())

    def packed(self) -> str:
        """All names by number."""
        return encoded(json.dumps(list(self._known), ensure_ascii=False).encode("utf-8", "backslashreplace"))

    def numbers(self, code: IntArray, names: list[str]) -> IntArray:
        """The number of each row's name. New names get theirs by the alphabet: codes depend on the order in which the
        trace holds its rows, which means nothing."""
        shown = [typed.plain(name) for name in names]
        for name, text in zip(names, shown, strict=True):
            if name is not text:
                self.sentences.setdefault(text[:LONGEST], typed.cut(name, LONGEST))
        own = {name: self._number(name[:LONGEST]) for name in sorted(set(shown))}
        return np.array([own[name] for name in shown], dtype=np.int64)[code] if len(code) else code

    def _number(self, name: str) -> int:
        known = self._known.get(name)
        if known is None and len(name) <= self._room:
            self._room -= len(name)
            known = self._known[name] = len(self._known)
        return known or 0


class Packing(Struct, frozen=True):
    """The parameters for packing lanes of one timeline: its names, its time [low, high), and the edges of the finest
    buckets, which are added up in pairs."""

    names: NameTable
    low: int
    high: int
    edges: IntArray

    @classmethod
    def over(cls, names: NameTable, low: int, high: int) -> Packing:
        """For lanes over [low, high)."""
        return cls(names, low, high, bucket_edges(low, high, FINEST))

    def fork(self) -> Packing:
        """The same with names of its own."""
        return replace(self, names=self.names.fork())

    def lane(self, source: Source, rows: IntArray) -> TimelineLane:
        """The lane with the exact `rows`, and the shares of all."""
        return structs.replace(self.slices(source, rows), levels=self.shares(source))

    def slices(self, source: Source, rows: IntArray) -> TimelineLane:
        """The lane with the exact `rows`; what began before the timeline begins with it."""
        start = np.maximum(source.start[rows], self.low)
        named = self.names.numbers(*source.named(rows)) if source.named is not None else None
        return TimelineLane(
            kind=source.kind,
            label=source.label,
            thread=source.thread,
            depth=source.depth,
            levels=[],
            count=len(rows),
            starts=_column(np.diff(start, prepend=np.int64(self.low))),
            lengths=_column(source.end[rows] - start),
            names=_column(named) if named is not None else "",
            kinds=_column(source.kinds[rows]) if source.kinds is not None else "",
        )

    def shares(self, source: Source) -> list[str]:
        """How much of each bucket all rows cover, where that says anything."""
        if not source.shares:
            return []
        covered = coarser(bucket_coverage(union(source.spans), self.edges), COARSEST)
        sizes = coarser(np.diff(self.edges), COARSEST)
        return [share_bytes(part, size) for part, size in zip(covered, sizes, strict=True)]


def exact_size(lanes: list[TimelineLane]) -> int:
    """What the exact rows of lanes take in a report, in bytes."""
    return sum(len(column) for lane in lanes for column in (lane.starts, lane.lengths, lane.names, lane.kinds))


def share_bytes(covered: IntArray, size: IntArray) -> str:
    """`covered` of `size` as bytes, 0 for nothing, 255 for all, at least 1 for anything."""
    return encoded(np.ceil(covered / np.maximum(size, 1) * FULL).astype("<u1").tobytes())


def _column(values: IntArray) -> str:
    return encoded(to_planes(values))


def encoded(data: bytes) -> str:
    """Bytes as text: compressed, in base64."""
    return to_text(data, _EFFORT) if data else ""
