"""Which of many like cases run: all with `--thorough`, else some of them, so that each value comes up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")
U = TypeVar("U")

THOROUGH = False
"""Set by `tests/conftest.py` before it imports any test."""


def some(cases: Sequence[T], part: int, turn: int = 0, *, thorough: int = 1) -> list[T]:
    """Every `part`-th of the cases, from the `turn`-th on; with `--thorough` every `thorough`-th."""
    part = thorough if THOROUGH else part
    return list(cases[turn % part :: part])


def crossed(rows: Sequence[T], columns: Sequence[U], part: int, *, thorough: int = 1) -> list[tuple[T, U]]:
    """Every `part`-th pair, so that every row and every column comes up; with `--thorough` every `thorough`-th."""
    part = thorough if THOROUGH else part
    return [(row, column) for i, row in enumerate(rows) for j, column in enumerate(columns) if (i + j) % part == 0]


def quick(cases: Sequence[object], part: int, turn: int = 0) -> list[ParameterSet]:
    """All of the cases as parameters, tuples as several; all but every `part`-th, from the `turn`-th on, are slow."""
    slow = [() if (at - turn) % part == 0 else (pytest.mark.slow,) for at in range(len(cases))]
    return [_marked(case, marks) for case, marks in zip(cases, slow, strict=True)]


def _marked(case: object, marks: Sequence[pytest.MarkDecorator]) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, *marks], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)


SLOW = 6
"""Every so many slow cases of a test run in the normal level."""
QUICK = 4
"""Every so many cases of a test that is not slow run in the quick level; all of them in the normal level."""


def marks(test: str, count: int, kwargs: Mapping[str, int] | None) -> Iterator[Sequence[pytest.MarkDecorator]]:
    """The marks of all cases of a test: by these arguments of `sampled`, or else as slow ones, in turns that depend on
    the name of the test, so that each of the same cases runs in some tests."""
    turn = 0 if kwargs is not None else crc32(test.encode()) % min(SLOW, count)
    yield from (sampled(at - turn, **({"normal": SLOW} if kwargs is None else kwargs)) for at in range(count))


def sampled(at: int, quick: int = 0, normal: int = 1) -> Sequence[pytest.MarkDecorator]:
    """The marks of the `at`-th case of a test marked `sampled`: every `quick`-th is quick, none where that is 0; others
    are slow, and all but every `normal`-th thorough as well."""
    if quick and at % quick == 0:
        return ()
    return (pytest.mark.slow,) if at % normal == 0 else (pytest.mark.thorough,)


def examples(count: int, part: int = 10) -> int:
    """How many examples a property is tried on: one in `part` of `count`, at least five, or all of them."""
    return count if THOROUGH else max(count // part, 5)
