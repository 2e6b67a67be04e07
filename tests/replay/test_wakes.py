"""Who ended the waits of threads, over whole threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.replay.making import model_of_pair, modelled, replay_of_pair


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["worker that decodes", "file read behind two threads"])
def test_a_wake_up_is_within_its_wait(name: str) -> None:
    woken = modelled(replay_of_pair(name)).threads.woken
    assert len(woken)
    assert ((woken.begin < woken.at) & (woken.at <= woken.end)).all()
    assert (woken.thread != woken.waker).all()
    assert ((woken.confidence > 0) & (woken.confidence <= 1)).all()


def test_a_wait_is_there_once() -> None:
    woken = model_of_pair("file read behind two threads").threads.woken
    assert len(np.unique(np.stack((woken.thread, woken.begin)), axis=1).T) == len(woken)


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
