"""Which call started a thread."""

from __future__ import annotations

import numpy as np
import pytest

from tests.replay.making import model_of_pair, modelled, replay_of_program
from tests.replay.pairs import PAIRS
from tests.simulator import EVERYTHING


def started(name: str, **capture: bool) -> tuple[int, int]:
    """How many threads of the program of a pair were started, and how many waits for threads there are."""
    model = modelled(replay_of_program(PAIRS[name].before, capture=EVERYTHING.but(**capture)))
    woken = model.threads.woken
    return int((woken.begin == woken.at).sum()), len(woken)


@pytest.mark.slow
def test_a_thread_of_each_step_is_started_in_it() -> None:
    births, waits = started("host code before a thread of each step")
    assert births >= 30
    assert waits >= 2 * births


@pytest.mark.slow
def test_a_thread_behind_others_leads_to_the_first() -> None:
    model = model_of_pair("host code before a launching thread behind two others")
    woken = model.threads.woken
    born = woken.take(woken.begin == woken.at)
    links = dict(zip(born.thread.tolist(), born.waker.tolist(), strict=True))
    launching = np.unique(model.host.host.api_calls.rows.thread[model.threads.launches]).tolist()
    first = {links.get(links.get(links.get(each))) for each in launching} - {None}
    assert len(first) == 1


@pytest.mark.slow
def test_without_system_calls_nothing_starts_a_thread() -> None:
    assert started("host code before a launching thread", osrt=False)[0] == 0


@pytest.mark.slow
def test_threads_that_were_there_before_were_not_started() -> None:
    woken = model_of_pair("semaphore of a thread that computes").threads.woken
    assert not (woken.begin == woken.at).any()
