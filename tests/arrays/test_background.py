"""The second thread: what it gives back, and how it ends."""

from __future__ import annotations

from threading import Event, current_thread

import pytest

from nsysdiag.arrays.background import Background


def test_work_is_done_in_another_thread_in_its_order() -> None:
    done: list[int] = []
    with Background() as background:
        threads = [
            background.begin(lambda each=each: (done.append(each), current_thread().name)[1]) for each in range(5)
        ]
        names = {each.result() for each in threads}
    assert done == [0, 1, 2, 3, 4]
    assert len(names) == 1
    assert current_thread().name not in names


def test_errors_reach_who_asks_for_the_result() -> None:
    with Background() as background:
        broken = background.begin(int, "x")
        with pytest.raises(ValueError, match="invalid literal"):
            broken.result()


def test_what_was_not_begun_yet_is_dropped_at_the_end() -> None:
    started, go_on, never = Event(), Event(), Event()

    def first() -> bool:
        started.set()
        return go_on.wait(60)

    with Background() as background:
        running = background.begin(first)
        waiting = background.begin(never.set)
        assert started.wait(60)
        waiting.add_done_callback(lambda _: go_on.set())
    assert running.result()
    assert waiting.cancelled()
    assert not never.is_set()
