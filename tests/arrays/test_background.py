"""The second thread: what it gives back, and how it ends."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Event, Thread, current_thread
from time import sleep
from typing import Any
from weakref import ref

import pytest

from nsysdiag.arrays.background import Background, Deferred


def test_work_is_done_in_another_thread_in_its_order() -> None:
    done: list[int] = []
    all_done = Event()
    with Background() as background:
        threads = [
            background.begin(lambda each=each: (done.append(each), current_thread().name)[1]) for each in range(5)
        ]
        last = background.begin(all_done.set)
        assert all_done.wait(60)
        last.result()
        names = {each.result() for each in threads}
    assert done == [0, 1, 2, 3, 4]
    assert len(names) == 1
    assert current_thread().name not in names


def test_what_has_not_begun_is_done_by_who_asks_for_it() -> None:
    started, go_on = Event(), Event()
    with Background() as background:
        running = background.begin(lambda: (started.set(), go_on.wait(60))[1])
        waiting = background.begin(current_thread)
        assert started.wait(60)
        assert waiting.result() is current_thread()
        go_on.set()
        assert running.result()
        assert waiting.result() is current_thread(), "it is done once"


def test_the_second_thread_goes_on_while_another_does_its_work() -> None:
    started, begun, go_on, behind = Event(), Event(), Event(), Event()
    with Background() as background:
        first = background.begin(lambda: (started.set(), begun.wait(60)))
        taken = background.begin(lambda: (begun.set(), go_on.wait(60)))
        last = background.begin(behind.set)
        assert started.wait(60)
        asking = Thread(target=taken.result)
        asking.start()
        assert behind.wait(60), "what comes next does not wait for it"
        go_on.set()
        asking.join(60)
        last.result()
    assert first.result()[1]


def test_who_waits_does_what_comes_next() -> None:
    started, helped = Event(), Event()
    with Background() as background:
        running = background.begin(lambda: (started.set(), helped.wait(60))[1])
        next_one = background.begin(lambda: (helped.set(), current_thread())[1])
        assert started.wait(60)
        assert running.result()
        assert next_one.result() is current_thread()


def test_who_waits_leaves_long_work_to_the_second_thread() -> None:
    started, helped = Event(), Event()
    with Background() as background:
        running = background.begin(lambda: (started.set(), helped.wait(60))[1])
        long = background.begin_long(current_thread)
        short = background.begin(lambda: (helped.set(), current_thread())[1])
        assert started.wait(60)
        assert running.result()
        assert short.result() is current_thread()
        while long._work is not None:
            sleep(0.001)
        assert long.result() is not current_thread()


def test_a_signal_ends_who_does_what_comes_next() -> None:
    started, go_on = Event(), Event()

    def interrupted() -> None:
        go_on.set()
        raise KeyboardInterrupt

    with Background() as background:
        running = background.begin(lambda: (started.set(), go_on.wait(60)))
        behind = background.begin(interrupted)
        assert started.wait(60)
        with pytest.raises(KeyboardInterrupt):
            running.result()
        with pytest.raises(KeyboardInterrupt):
            behind.result()


def test_who_waits_inside_other_work_does_nothing_else() -> None:
    started, go_on, waits = Event(), Event(), Event()
    with Background() as background:
        running = background.begin(lambda: (started.set(), go_on.wait(60))[1])
        asks = background.begin(lambda: (waits.set(), running.result())[1])
        last = background.begin(current_thread)
        assert started.wait(60)
        asking = Thread(target=asks.result)
        asking.start()
        assert waits.wait(60)
        asking.join(0.05)
        go_on.set()
        asking.join(60)
        assert last.result() is not asking


def test_the_second_thread_does_the_first_ones_of_many_and_the_caller_the_last() -> None:
    with Background() as background:
        started, go_on = Event(), Event()

        def work(number: int) -> tuple[int, bool]:
            if number == 0:
                started.set()
                assert go_on.wait(60)
            elif number == 2:
                assert started.wait(60)
                go_on.set()
            return number, current_thread().name.startswith("nsysdiag")

        given = [0, 1, 2]
        assert background.each(work, given)[::2] == [(0, True), (2, False)]
        assert not given
        assert background.each(work, []) == []


def test_a_result_that_was_let_go_takes_no_memory() -> None:
    started, go_on = Event(), Event()
    with Background() as background:
        running = background.begin(lambda: (started.set(), go_on.wait(60)))
        assert started.wait(60)
        asked = background.begin(Event)
        made = ref(asked.result())
        del asked
        assert made() is None
        go_on.set()
        assert running.result()


def test_small_work_is_done_by_who_asks_for_it() -> None:
    with Background(small=True) as background:
        asked, _never = background.begin(current_thread), background.begin(int, "x")
        assert asked.result() is current_thread()


def test_errors_reach_who_asks_for_the_result() -> None:
    with Background() as background:
        broken = background.begin(int, "x")
        with pytest.raises(ValueError, match="invalid literal"):
            broken.result()


def _set_once_dropped(queue: SimpleQueue[Deferred[Any] | None], event: Event) -> None:
    """Set the event once what was not begun is dropped, and the end is in the queue."""
    while (task := queue.get()) is not None:
        queue.put(task)
        sleep(0.001)
    queue.put(None)
    event.set()


def test_what_was_not_begun_yet_is_dropped_at_the_end() -> None:
    started, go_on, never = Event(), Event(), Event()

    def first() -> bool:
        started.set()
        return go_on.wait(60)

    with Background() as background:
        running = background.begin(first)
        background.begin(never.set)
        assert started.wait(60)
        Thread(target=_set_once_dropped, args=(background._queue, go_on)).start()
    assert running.result()
    assert not never.is_set()
