"""Which of several calls with one correlation id launched an operation."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nsysdiag.events.calls import ApiCalls, CallRows, match_launches

PROCESS = 1 << 48 | 4242 << 24
SEVEN = 7


def calls(*rows: tuple[int, int, int, int]) -> CallRows:
    """Calls of correlation id 7: start, end, tid, code of the name."""
    start, end, tid, name = np.array(rows, dtype=np.int64).T
    same = np.full(len(rows), SEVEN, dtype=np.int64)
    return CallRows(start, end, PROCESS | tid, same, name, np.zeros(len(rows), dtype=np.int64))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((10, 30, 1, 5), (12, 25, 1, 4), id="the outer before the inner"),
        pytest.param((10, 30, 1, 5), (10, 25, 1, 4), id="both begin together: the longer"),
        pytest.param((10, 30, 2, 4), (10, 30, 1, 5), id="the very same time: by name"),
        pytest.param((10, 30, 1, 4), (10, 30, 2, 4), id="the same name too: by thread"),
    ],
)
def test_the_call_is_the_same_in_any_order_of_rows(
    first: tuple[int, int, int, int], second: tuple[int, int, int, int]
) -> None:
    for rows in ((first, second), (second, first)):
        (found,) = match_launches(np.array([PROCESS]), np.array([SEVEN]), calls(*rows)).tolist()
        assert rows[found] == first


def of_threads(*threads: int) -> CallRows:
    """A call of each of these threads after the other."""
    other = np.arange(len(threads), dtype=np.int64)
    return CallRows(other, other, np.array(threads, dtype=np.int64), other, other, other)


ELSEWHERE = 1 << 48 | 77 << 24


@pytest.mark.parametrize(
    "threads",
    [
        pytest.param((), id="no calls"),
        pytest.param((PROCESS | 1,) * 3, id="one thread"),
        pytest.param((PROCESS | 2, PROCESS | 1, PROCESS | 2), id="two threads of one process"),
        pytest.param((PROCESS | 2, ELSEWHERE | 1, PROCESS | 2), id="two processes"),
        pytest.param(tuple(PROCESS | each for each in range(300)), id="more threads than fit in a byte"),
    ],
)
def test_the_threads_of_calls(threads: tuple[int, ...]) -> None:
    """Whatever the number of threads, and whether one value stands for all rows."""
    rows = of_threads(*threads)
    assert rows.threads.tolist() == sorted(set(threads))
    assert rows.process.tolist() == [each & ~0xFFFFFF for each in threads]
    assert rows.threads_at(np.arange(len(threads))[1:]).tolist() == sorted(set(threads[1:]))
    named = rows.of_threads(np.arange(len(set(threads))), np.arange(len(threads))[1:])
    assert named.tolist() == [sorted(set(threads)).index(each) for each in threads[1:]]
    for wanted in ((), threads[:1], (*threads[1:3], PROCESS | 999)):
        made = rows.made_by(np.array(wanted, dtype=np.int64)).tolist()
        assert made == [each in wanted for each in threads]


def test_calls_by_name_and_whether_they_share_ids() -> None:
    rows = calls((10, 30, 1, 0), (12, 25, 1, 1), (40, 50, 1, 0))
    every = ApiCalls(rows, ["cudaLaunchKernel", "cuLaunchKernel"], 0, np.empty(0, dtype=np.int64))
    assert every.called(re.compile("cudaLaunch.*")).tolist() == [0, 2]
    assert every.called(re.compile("Launch")).tolist() == []
    assert rows.share_ids
    assert not of_threads(5, 3, 5).share_ids
