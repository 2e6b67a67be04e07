"""The stage runner: order, the second thread, and what becomes of results that are not needed any more."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from threading import Event, current_thread, main_thread

import numpy as np
import pytest

from nsysdiag.arrays import spill as spilling
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.pipeline.stages import Stages


class Large:
    """Something whose end can be seen."""


def test_steps_get_what_they_name_in_the_order_in_which_they_are_written() -> None:
    steps, done = Stages(), []

    @steps.step()
    def doubled(number: int) -> int:
        done.append("doubled")
        return 2 * number

    @steps.step()
    def shown(doubled: int, number: int) -> str:
        done.append("shown")
        return f"{number} {doubled}"

    assert steps.run(shown, number=3) == "3 6"
    assert done == ["doubled", "shown"]
    assert shown(8, 4) == "4 8", "a step stays a function"


def test_only_what_leads_to_the_goal_is_done() -> None:
    steps = Stages()

    @steps.step()
    def wanted(number: int) -> int:
        return number + 1

    @steps.step()
    def unwanted(wanted: int) -> int:
        raise AssertionError

    assert steps.run(wanted, number=1) == 2


def test_work_in_the_background_goes_on_beside_the_next_steps_and_is_waited_for() -> None:
    steps, go_on = Stages(), Event()

    @steps.step(background=True)
    def waiting() -> str:
        assert go_on.wait(60)
        return current_thread().name

    @steps.step(background=True)
    def second(waiting: str) -> tuple[str, str]:
        return waiting, current_thread().name

    @steps.step()
    def meanwhile() -> str:
        go_on.set()
        return current_thread().name

    @steps.step()
    def all_of_it(meanwhile: str, second: tuple[str, str]) -> tuple[str, str, str]:
        return meanwhile, *second

    here, first, behind = steps.run(all_of_it)
    assert here == main_thread().name
    assert first == behind != here
    assert steps.run(second) == (first, behind), "a goal may be of the background"


@pytest.mark.parametrize("background", [False, True])
def test_errors_end_the_run(background: bool) -> None:
    steps = Stages()

    @steps.step(background=background)
    def broken(text: str) -> int:
        return int(text)

    @steps.step()
    def late(broken: int) -> int:
        return broken

    with pytest.raises(ValueError, match="invalid literal"):
        steps.run(late, text="x")


@pytest.mark.parametrize("background", [False, True])
def test_what_no_later_step_needs_is_freed(background: bool) -> None:
    steps = Stages()
    seen: list[weakref.ref[Large]] = []

    @steps.step()
    def large() -> Large:
        found = Large()
        seen.append(weakref.ref(found))
        return found

    @steps.step(background=background)
    def used(large: Large) -> int:
        return 1

    @steps.step()
    def still(large: Large, used: int) -> bool:
        return seen[0]() is large

    @steps.step()
    def gone(still: bool) -> tuple[bool, bool]:
        return still, seen[0]() is None

    assert steps.run(gone) == (True, True)


def test_a_deferred_step_runs_when_it_is_first_called_for_and_once() -> None:
    steps, done = Stages(), []

    @steps.step(background=True)
    def number() -> int:
        return 2

    @steps.step(deferred=True)
    def doubled(number: int) -> int:
        done.append("doubled")
        return 2 * number

    @steps.step(deferred=True)
    def never(doubled: Callable[[], int]) -> int:
        raise AssertionError

    @steps.step()
    def twice(doubled: Callable[[], int], never: Callable[[], int]) -> list[str]:
        done.append("twice")
        assert (doubled(), doubled()) == (4, 4)
        return done

    assert steps.run(twice) == ["twice", "doubled"]


def test_the_last_of_several_uses_up_what_they_share() -> None:
    inner, outer = Stages(), Stages()
    seen: list[weakref.ref[Large]] = []

    @inner.step()
    def used(item: int, shared: Large) -> int:
        return item * 10

    @inner.step()
    def alive(used: int) -> tuple[int, bool]:
        return used, seen[0]() is not None

    @outer.step()
    def items() -> list[int]:
        return [1, 2, 3]

    @outer.step()
    def shared() -> Large:
        found = Large()
        seen.append(weakref.ref(found))
        return found

    outer.for_each("made", "item", "items", inner, alive)

    @outer.step()
    def all_of_them(made: list[tuple[int, bool]], items: list[int]) -> list[tuple[int, bool]]:
        assert items == [1, 2, 3]
        return made

    assert outer.run(all_of_them) == [(10, True), (20, True), (30, False)]


def test_of_nothing_there_is_none() -> None:
    inner, outer = Stages(), Stages()

    @inner.step()
    def made(item: int) -> int:
        return item

    outer.for_each("every", "item", "items", inner, made)

    @outer.step()
    def count(every: list[int]) -> int:
        return len(every)

    assert outer.run(count, items=[]) == 0
    assert outer.run(count, items=[5, 5]) == 2


def test_progress_is_reported_before_a_step() -> None:
    steps = Stages()
    told: list[tuple[str, float]] = []

    @steps.step()
    def quiet() -> int:
        return len(told)

    @steps.step(progress=("counting", 0.5))
    def counted(quiet: int) -> int:
        return quiet + len(told)

    assert steps.run(counted, lambda step, share: told.append((step, share))) == 1
    assert told == [("counting", 0.5)]
    assert steps.run(counted) == 2, "without anyone to report to"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere arrays stay in memory")
@pytest.mark.parametrize("background", [False, True])
def test_what_a_step_spills_lies_in_files(monkeypatch: pytest.MonkeyPatch, background: bool) -> None:
    monkeypatch.setattr(spilling, "LEAST_BYTES", 8)
    steps = Stages()

    @steps.step(background=background, spills=True)
    def large() -> IntArray:
        return np.arange(3)

    @steps.step(trims=True)
    def small() -> IntArray:
        return np.arange(3)

    @steps.step(deferred=True, spills=True)
    def late() -> IntArray:
        return np.arange(3)

    @steps.step()
    def writeable(large: IntArray, small: IntArray, late: Callable[[], IntArray]) -> list[bool]:
        assert large.tolist() == late().tolist() == [0, 1, 2]
        return [each.flags.writeable for each in (large, small, late())]

    assert steps.run(writeable) == [False, True, False]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere arrays stay in memory")
def test_a_step_spills_what_it_makes_and_not_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "LEAST_BYTES", 8)
    steps = Stages()

    @steps.step(spills=True)
    def both(given: IntArray) -> tuple[IntArray, IntArray]:
        return given, given + 1

    given = np.arange(3)
    kept, made = steps.run(both, given=given)
    assert kept is given, "a copy in a file would free nothing"
    assert not made.flags.writeable
