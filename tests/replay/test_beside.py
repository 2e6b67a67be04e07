"""Threads that follow the steps: how long each of them works, and who is done before the last steps."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.events.scheduling import Cpus
from nsysdiag.replay.beside import ANSWER_NS, _carrying, _regular, _running, _works_ns
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


PROCESS = 7 << 24
LAUNCHING, OTHER = PROCESS | 1, PROCESS | 2


def running(thread: int, *spans: tuple[int, int], known: tuple[int, ...] = ()) -> dict[int, int]:
    """The followers among the threads of a CPU on which this one runs in these spans, and how long each works."""
    begin, end = np.array(spans, dtype=np.int64).T
    cpus = Cpus(np.zeros(1, np.int64), np.array([0, len(spans)]), Intervals(begin, end), np.full(len(spans), thread))
    found = _running(cpus, np.array([LAUNCHING]), np.array(known, dtype=np.int64), [], STEPWISE)
    return {each.thread: each.works_ns for each in found}


def test_a_thread_that_runs_all_the_time_may_be_waited_for() -> None:
    assert running(OTHER, (-MS, 3 * MS), (3 * MS + 100, 9 * MS)) == {OTHER: MS}
    assert running(OTHER, (0, 5 * MS)) == {OTHER: MS}, "it was ahead, and is done"


def test_other_threads_are_not_waited_for_because_they_run() -> None:
    whole = (0, STEPS * MS)
    assert running(LAUNCHING, whole) == {}
    assert running((8 << 24) | 2, whole) == {}, "of a process that launches nothing"
    assert running(OTHER, whole, known=(OTHER,)) == {}
    assert running(OTHER, (0, 2 * MS), (4 * MS, 8 * MS)) == {}, "it waits for a quarter of the time"
    assert running(OTHER, (0, 2 * MS)) == {}, "in the first steps alone"
    assert running(OTHER, (9 * MS, 12 * MS)) == {}, "later"


def test_threads_that_carry_messages_are_known_by_their_names() -> None:
    names = {1: "NCCL Progress 0", 2: "python", 3: "nccl", 4: "ncclient", 5: "UCX async"}
    assert sorted(_carrying(names)) == [1, 3, 5]
