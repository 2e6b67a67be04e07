"""Which operations are work of the steps."""

from __future__ import annotations

import numpy as np

from nsysdiag.replay.beside import StepWork, at_own_pace, step_work
from nsysdiag.replay.orders import Before
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Stretch
from tests.replay.making import Row, work_of

PROCESS = 1 << 24
MAIN, HELPER, OTHER = PROCESS, PROCESS + 1, 7 * PROCESS
STEPS = Stretch(np.arange(0, 500, 100), stepwise=True, named=True)


def parts(
    *rows: tuple[Row, int], stretch: Stretch = STEPS, kernel: int = 0, events: tuple[list[int], list[int]] = ([], [])
) -> list[int]:
    """By thread, the first of each, what its operations are; those of MAIN begin the steps on stream 0 of device 0.
    The second ones of `events` wait for the first ones: places among all, by their start."""
    own = [((0, start, 20, 0, 0, 5), MAIN) for start in range(0, 400, 100)]
    every = sorted([*own, *rows])
    work = work_of([row for row, _ in every])
    thread = np.array([thread for _, thread in every])
    waits = Before(*(np.array(each, dtype=np.int64) for each in events))
    found = step_work(work, thread, stretch, np.where(thread == MAIN, 0, kernel), waits)
    assert set(found[thread == MAIN].tolist()) == {StepWork.OWN}
    return found[thread != MAIN].tolist()


def beside(thread: int, starts: list[int], device: int = 0, stream: int = 1, kind: int = 0) -> list[tuple[Row, int]]:
    return [((device, start, 10, stream, kind, 5), thread) for start in starts]


def test_another_thread_with_a_pace_of_its_own_is_beside_the_steps() -> None:
    assert parts(*beside(HELPER, [10, 20, 250]), kernel=1) == [StepWork.BESIDE] * 3


def test_a_thread_that_does_as_much_in_each_step_may_belong_to_them() -> None:
    assert parts(*beside(HELPER, [40, 140, 240, 340]), kernel=1) == [StepWork.MAYBE] * 4


def test_a_thread_that_takes_what_the_steps_make_belongs_to_them() -> None:
    """Its streams wait for that in each step; once is not enough, nor is the other way round."""
    own, its = [0, 2, 4, 6], [1, 3, 5, 7]
    rows = beside(HELPER, [40, 140, 240, 340])
    assert parts(*rows, kernel=1, events=(own, its)) == [StepWork.OWN] * 4
    assert parts(*rows, kernel=1, events=(own[:1], its[:1])) == [StepWork.MAYBE] * 4
    assert parts(*rows, kernel=1, events=(its[:3], own[1:])) == [StepWork.MAYBE] * 4


def test_another_process_on_the_device_is_beside_the_steps() -> None:
    assert parts(*beside(OTHER, [40, 140, 240, 340]), kernel=1) == [StepWork.BESIDE] * 4


def test_what_is_in_a_stream_of_the_steps_is_their_work() -> None:
    assert parts(*beside(HELPER, [40, 250], stream=0), kernel=1) == [StepWork.OWN] * 2


def test_other_devices_of_the_job_count() -> None:
    """By the same process, with the same kernels, or with communication; not those of a process of another kind."""
    assert parts(*beside(HELPER, [40, 250], device=1), kernel=1) == [StepWork.OWN] * 2
    assert parts(*beside(OTHER, [40, 250], device=1), kernel=0) == [StepWork.OWN] * 2
    assert parts(*beside(OTHER, [40, 250], device=1, kind=1), kernel=1) == [StepWork.OWN] * 2
    assert parts(*beside(OTHER, [40, 250], device=1), kernel=1) == [StepWork.BESIDE] * 2


def test_a_window_is_all_that_is_in_it() -> None:
    window = Stretch(np.array([0, 500]), stepwise=False)
    assert parts(*beside(OTHER, [40, 250]), stretch=window, kernel=1) == [StepWork.OWN] * 2


def others_work(starts: list[int], locks: list[bool]) -> set[int]:
    """What operations of HELPER at these times are, which ends waits of MAIN in some steps, for locks or not."""
    own = [((0, start, 20, 0, 0, 5), MAIN) for start in range(0, 400, 100)]
    every = sorted([*own, *beside(HELPER, starts, stream=0)])
    thread = np.array([thread for _, thread in every])
    at, none = np.arange(len(locks)) * 100 + 50, np.zeros(len(locks), dtype=np.int64)
    woken = Wakes(
        none + MAIN, at - 9, at, none + HELPER, at, none + 0.9, none, none, np.array(locks, dtype=np.int64), none
    )
    found = at_own_pace(work_of([row for row, _ in every]), thread, STEPS, woken)
    assert set(found[thread == MAIN].tolist()) == {StepWork.OWN}
    return set(found[thread == HELPER].tolist())


def test_a_thread_that_launches_now_and_then_has_a_pace_of_its_own() -> None:
    assert others_work([40, 250, 260], []) == {StepWork.BESIDE}
    assert others_work([40, 140, 240, 340], []) == {StepWork.OWN}


def test_a_thread_that_is_met_at_locks_only_may_have_a_pace_of_its_own() -> None:
    assert others_work([40, 140, 240, 340], [True] * 4) == {StepWork.MAYBE}
    assert others_work([40, 140, 240, 340], [True, False, False, False, False]) == {StepWork.OWN}


def test_a_thread_that_the_steps_wait_for_is_tied_to_them() -> None:
    assert others_work([40, 250, 260], [False] * 4) == {StepWork.OWN}
