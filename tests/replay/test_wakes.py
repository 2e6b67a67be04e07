"""Who ended the waits of threads, over whole threads."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.replay.wakes import SEMAPHORE, Wakes, _told_apart
from tests.replay.making import model_of_pair, modelled, replay_of_pair

US = 1_000


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["worker that decodes", "file read behind two threads"])
def test_a_wake_up_is_within_its_wait(name: str) -> None:
    woken = modelled(replay_of_pair(name)).threads.woken
    assert len(woken)
    assert ((woken.begin < woken.at) & (woken.at <= woken.end)).all()
    assert (woken.thread != woken.waker).all()
    assert ((woken.confidence > 0) & (woken.confidence <= 1)).all()


@pytest.mark.slow
def test_a_wait_is_there_once() -> None:
    woken = model_of_pair("file read behind two threads").threads.woken
    assert len(np.unique(np.stack((woken.thread, woken.begin)), axis=1).T) == len(woken)


@pytest.mark.slow
def test_the_chain_of_wake_ups_is_followed() -> None:
    """A reader wakes a stage, which wakes the next one, which wakes the launching thread."""
    model = model_of_pair("file read behind two threads")
    woken, threads = model.threads.woken, model.host.host.api_calls.rows.thread[model.threads.launches]
    links = set(zip(woken.waker.tolist(), woken.thread.tolist(), strict=True))
    chain = [int(threads[0])]
    while before := [waker for waker, thread in links if thread == chain[-1] and waker not in chain]:
        chain.append(before[0])
    assert len(chain) >= 3


def test_a_loader_is_told_from_another_thread() -> None:
    assert model_of_pair("worker that decodes").threads.woken.loader.all()
    assert not model_of_pair("file read behind two threads").threads.woken.loader.any()


@pytest.mark.slow
def test_waits_inside_cuda_calls_are_the_call_s_own_affair() -> None:
    """A synchronization that sleeps in poll is a wait for the device."""
    model = model_of_pair("sync that sleeps after each kernel")
    assert len(model.threads.woken) == 0
    assert len(model.threads.held)


def _in_turns(waits_again: list[int]) -> Wakes:
    """As many threads wait for each other in a circle, for 20 rounds: each is woken by the one before it 250 µs after
    that one was, works, and `waits_again` so many µs after it has posted."""
    count, rounds = len(waits_again), 20
    number = np.arange(count * rounds)
    thread, end = number % count, (number + 1) * 250 * US
    posted = end + 230 * US
    begin = np.concatenate((np.zeros(count, dtype=np.int64), (posted + np.array(waits_again)[thread] * US)[:-count]))
    sure, none, same = np.full(len(number), 0.9), np.zeros(len(number), dtype=np.int64), np.ones(len(number), np.int64)
    return Wakes(thread, begin, end, (thread - 1) % count, end - 20 * US, sure, none, none, same * SEMAPHORE, none)


@pytest.mark.parametrize(
    ("waits_again", "locks"), [([60, 40], True), ([60, 1], False), ([60, 40, 30], True), ([60, 40, 1], False)]
)
def test_a_semaphore_of_threads_that_rest_may_be_a_lock(waits_again: list[int], locks: bool) -> None:
    lock = _told_apart(_in_turns(waits_again)).lock
    assert (lock == (SEMAPHORE if locks else 0)).all()


def test_who_never_waits_is_in_no_circle() -> None:
    woken = _in_turns([60, 40])
    assert not _told_apart(woken.take(woken.thread == 0)).lock.any()
