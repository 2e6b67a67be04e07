"""How often names happen in the repeats of a loop, beside a table of all names and all repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.iterations.counts import LEAST_HELD, USUAL, RepeatCounts
from nsysdiag.iterations.happened import NameKinds

if TYPE_CHECKING:
    from nsysdiag.arrays.intervals import BoolArray, IntArray

NAMES, REPEATS = 5, 8


@dataclass(frozen=True)
class Case:
    """Events by repeat and name, so many repeats, which names are of the host, and some of the repeats."""

    events: list[tuple[int, int]]
    size: int
    host: list[bool]
    at: list[int]

    @property
    def table(self) -> IntArray:
        """A row for each name, a column for each repeat."""
        found = np.zeros((NAMES, self.size), np.int64)
        for repeat, name in self.events:
            found[name, repeat] += 1
        return found

    def counted(self) -> RepeatCounts:
        """The same without a table."""
        host, none = np.array(self.host), np.zeros(NAMES, np.bool_)
        others = dict.fromkeys(("upload", "download", "update", "network", "attention", "wait"), none)
        names = NameKinds(code=np.arange(NAMES), anchor=np.arange(NAMES), host=host, kernel=~host, **others)
        repeat, name = (np.array(each, np.int64) for each in zip(*self.events, strict=True))
        return RepeatCounts.counted(names, repeat, name, self.size)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(2, REPEATS))
    repeats = st.integers(0, size - 1)
    return Case(
        events=draw(st.lists(st.tuples(repeats, st.integers(0, NAMES - 1)), min_size=1, max_size=60)),
        size=size,
        host=draw(st.lists(st.booleans(), min_size=NAMES, max_size=NAMES)),
        at=draw(st.lists(repeats, min_size=1, unique=True).map(sorted)),
    )


def _usual(row: IntArray) -> int:
    numbers, times = np.unique(row, return_counts=True)
    often = numbers[times >= USUAL * len(row)]
    return int(often[0] if len(often) else numbers[np.argmax(times)])


@given(cases())
def test_names_by_repeat_are_those_of_a_table(case: Case) -> None:
    found, every = case.counted(), np.argsort(-case.table.sum(axis=1), kind="stable")
    table = case.table[[name for name in every if case.table[name].any()]]
    assert found.counts(np.arange(len(table))).tolist() == table.tolist()
    whole, names, usual = table[:, :-1], ~found.names.host, np.array([_usual(row[:-1]) for row in table])
    assert found.usual.tolist() == usual.tolist()
    assert found.held.tolist() == (whole > 0).sum(axis=1).tolist()
    assert (found.least.tolist(), found.most.tolist()) == (whole.min(axis=1).tolist(), whole.max(axis=1).tolist())
    assert found.operations.tolist() == table[names].sum(axis=0).tolist()
    assert found.names_in(names).tolist() == (table[names] > 0).sum(axis=0).tolist()
    assert found.lacks.tolist() == _lacks(table, names, usual).tolist()
    often = names & (usual > 0)
    assert found.alike().tolist() == (whole[often] == usual[often, None]).all(axis=0).tolist()
    assert found.with_usual(case.size).tolist() == (table == usual[:, None]).sum(axis=1).tolist()
    assert found.medians(np.array(case.at)).tolist() == [int(np.median(row)) for row in table[:, case.at]]


def _lacks(table: IntArray, names: BoolArray, usual: IntArray) -> BoolArray:
    held = np.minimum(table, usual[:, None])[names].sum(axis=0)
    return np.asarray(held < LEAST_HELD * usual[names].sum(), np.bool_)
