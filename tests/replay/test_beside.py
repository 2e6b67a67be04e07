"""Threads that follow the steps: how long each of them works, and who is done before the last steps."""

from __future__ import annotations

import numpy as np

from nsysdiag.replay.beside import ANSWER_NS, _regular, _works_ns
from nsysdiag.replay.work import Stretch

MS, STEPS, WORK = 1_000_000, 8, 600_000
STEPWISE = Stretch(np.arange(STEPS + 1) * MS, stepwise=True)


def works(steps: int) -> int:
    """How long a thread works in a step that waits at the end of each of so many."""
    begin = np.arange(steps) * MS + WORK
    return _works_ns(begin, np.arange(1, steps + 1) * MS, STEPWISE)


def test_who_works_ahead_is_done_before_the_last_steps() -> None:
    assert [works(steps) - ANSWER_NS for steps in (STEPS, 6, 3)] == [WORK] * 3


def test_waits_in_the_first_steps_are_those_of_a_thread_that_follows() -> None:
    assert _regular(np.array([1, 1, 1, 1, 1, 1, 0, 0]))
    assert _regular(np.array([2, 1, 0, 0, 0, 0]))
    assert not _regular(np.array([1, 1, 0, 0, 0, 0, 0, 0, 0, 0])), "too few of the steps"
    assert not _regular(np.array([0, 3, 0, 0, 0, 4, 0, 0])), "not in each"


def test_waits_in_bursts_are_those_of_a_thread_that_fills_a_queue() -> None:
    assert _regular(np.array([3, 1, 0, 0] * 5))
    assert not _regular(np.array([3, 1, 0, 0, 3, 1, 0, 0])), "too few bursts"
    assert not _regular(np.array([3, 0, 0, 0, 0, 4, 0, 0, 3, 3, 0, 2, 3])), "more and more"
