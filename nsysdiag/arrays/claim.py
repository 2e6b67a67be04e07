"""Giving time away piece by piece, each with a label: what evidence claims is taken out of what is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, ascending, near, overlaps


class Owned(Struct, frozen=True):
    """Disjoint intervals, sorted by start, each with the index of the gap that it is a part of."""

    spans: Intervals
    owner: IntArray

    def __len__(self) -> int:
        return len(self.spans)

    @classmethod
    def of(cls, spans: Intervals, owner: IntArray) -> Owned:
        """Sorted by start; empty and reversed intervals are dropped."""
        kept = spans.end > spans.start
        if not kept.all():
            rows = np.flatnonzero(kept)
            spans, owner = spans[rows], owner[rows]
        if ascending(spans.start):
            return cls(spans, owner)
        order = np.argsort(spans.start, kind="stable")
        return cls(spans[order], owner[order])

    @classmethod
    def empty(cls) -> Owned:
        """No time at all."""
        return cls(Intervals.empty(), np.empty(0, dtype=np.int64))


def claim(left: Owned, evidence: Intervals) -> tuple[Owned, Owned, IntArray]:
    """Split `left` into what `evidence` (a set) covers and what it does not.

    ```
    left       0: [---------)   1: [----)
    evidence        [--)    [--------)
    claimed    0:   [--)[)      1: [-)
    rest       0: [)   [-)           1:[)
    ```

    Returns the claimed pieces, the rest, and for each claimed piece the index of its evidence.
    """
    claimed, target, source = _claimed(left, evidence)
    if len(source) == 0:
        return claimed, left, source
    return claimed, _without(left, target, claimed.spans), source


def within(left: Owned, evidence: Intervals) -> tuple[Owned, IntArray]:
    """As `claim`, without the rest: what `evidence` covers of `left`, and the index of the evidence of each piece."""
    among = near(evidence, left.spans)
    if _is_inside(left.spans, evidence[among]):
        return left, np.full(len(left), among.start)
    claimed, _, source = _claimed(left, evidence)
    return claimed, source


def _is_inside(spans: Intervals, evidence: Intervals) -> bool:
    """Whether all of the sorted spans are inside one interval, the only one near them: then nothing is cut."""
    one = len(evidence) == 1 and len(spans) > 0
    return one and bool(evidence.start[0] <= spans.start[0] and spans.end[-1] <= evidence.end[0])


def _claimed(left: Owned, evidence: Intervals) -> tuple[Owned, IntArray, IntArray]:
    """The claimed pieces, and for each the index in `left` and that of its evidence."""
    among = near(evidence, left.spans)
    evidence, place = evidence[among], among.start
    if len(evidence) > len(left):  # the few are looked up among the many
        target, source = overlaps(evidence, left.spans)
    else:
        source, target = overlaps(left.spans, evidence)
    start = np.maximum(left.spans.start[target], evidence.start[source])
    end = np.minimum(left.spans.end[target], evidence.end[source])
    source += place
    return Owned(Intervals(start, end), left.owner[target]), target, source


def _without(left: Owned, target: IntArray, taken: Intervals) -> Owned:
    """`left` minus the pieces `taken`, sorted, each out of the interval `target` of `left`."""
    untouched = np.ones(len(left), dtype=np.bool_)
    untouched[target] = False
    whole, changes = np.flatnonzero(untouched), np.flatnonzero(target[1:] != target[:-1])
    first, last = np.append(0, changes + 1), np.append(changes, len(target) - 1)
    before_end = taken.start
    before_start = np.append(0, taken.end[:-1])
    before_start[first] = left.spans.start[target[first]]
    tail = target[last]
    start = np.concatenate((left.spans.start[whole], before_start, taken.end[last]))
    end = np.concatenate((left.spans.end[whole], before_end, left.spans.end[tail]))
    owner = np.concatenate((left.owner[whole], left.owner[target], left.owner[tail]))
    return Owned.of(Intervals(start, end), owner)


# What the codes of columns stand for: labels, and tables of values that keep each once.


class EvidenceLabel(Struct, frozen=True, eq=False):
    """A kind of evidence that a cause tells apart. Rules compare the object; its words are for readers alone.

    `cause` is the id of the cause of a loading worker's time, if the label stands for that."""

    text: str
    cause: str = ""

    @property
    def words(self) -> str:
        """How reports word it."""
        return self.text


Value = TypeVar("Value")


class CodeTable(Generic[Value]):
    """Values by code, each kept once; the code of a value is its place in `known`, -1 for none."""

    def __init__(self) -> None:
        self.known: dict[Value, int] = {}

    def code(self, value: Value | None) -> int:
        """The code of a value."""
        return -1 if value is None else self.known.setdefault(value, len(self.known))

    def codes(self, values: Iterable[Value | None]) -> IntArray:
        """The code of each value, and behind them -1: so that -1 as an index stays -1."""
        return np.array([*(self.code(value) for value in values), -1], dtype=np.int64)
