"""Without scheduling events no wait for another thread can be followed, and the headline says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from nsysdiag.diagnosis.sentences import NOT_FOLLOWED
from tests.simulator.capture import EVERYTHING
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

WAITS = ("decoding_worker", "two_hops")
"""The launching thread waits for a semaphore that another thread posts late."""


def captured(name: str, folder: Path, *, sched: bool) -> Report:
    trace = SCENARIOS[name].run().write(folder / "trace.sqlite", EVERYTHING.but(sched=sched, samples=sched))
    return analyze(trace)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", WAITS)
def test_a_wait_that_cannot_be_followed_says_so(name: str, tmp_path: Path) -> None:
    found = captured(name, tmp_path, sched=False).diagnosis
    assert found.bottleneck == "host"
    assert NOT_FOLLOWED in found.headline


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITS)
def test_a_wait_that_was_followed_does_not(name: str, tmp_path: Path) -> None:
    found = captured(name, tmp_path, sched=True).diagnosis
    assert found.bottleneck == "input"
    assert NOT_FOLLOWED not in found.headline


def test_other_host_time_waits_for_no_thread(tmp_path: Path) -> None:
    assert NOT_FOLLOWED not in captured("os_memory", tmp_path, sched=False).diagnosis.headline
