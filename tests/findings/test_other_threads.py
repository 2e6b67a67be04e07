"""Findings on what another thread does while the launching thread waits for it: its functions, and where it waits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from tests.diagnosis.programs.registry import MS, US
from tests.replay.pairs.host import before_each_step
from tests.replay.pairs.others import held_lock
from tests.replay.pairs.pair import Build, simulated
from tests.replay.pairs.workers import loading
from tests.unlike import CLASSES

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding


def largest(build: Build, folder: Path, bottleneck: str = "host") -> Finding:
    """The finding on a bottleneck with the largest share."""
    trace = simulated(build, 1)[0].write(folder / "trace.sqlite")
    found = [each for each in analyze(trace, Settings(timeline=False)).findings if each.bottleneck == bottleneck]
    return max(found, key=lambda each: each.share)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "where"), [("acquire", ", awaited in acquire"), ("", ", awaited in step #")])
def test_a_lock_that_another_thread_holds_while_it_computes(place: str, where: str, tmp_path: Path) -> None:
    """The launching thread runs `next_message`, but not while it waits."""
    found = largest(partial(held_lock, holding=3 * MS, range_name=place), tmp_path)
    assert (found.cause, found.call) == ("host_compute", "serialize")
    assert found.title == f"Host code on another thread{where}"
    assert found.summary == f"mostly serialize on another thread{where}"


def test_what_the_launching_thread_does_itself_has_no_other_thread(tmp_path: Path) -> None:
    found = largest(partial(before_each_step, what="clock_nanosleep", ns=1500 * US, kernel=1 * MS), tmp_path)
    assert found.cause == "sleep"
    assert "another thread" not in found.title + found.summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "decode", "by", "said"),
    [
        (500 * US, 6 * MS, "sem_wait", "the worker computes (jpeg_idct_islow), awaited in step #"),
        (5 * MS, 100 * US, "read", "the worker reads (read), awaited in step #"),
    ],
)
def test_what_a_worker_does(read: int, decode: int, by: str, said: str, tmp_path: Path) -> None:
    found = largest(partial(loading, read=read, decode=decode, work=MS, by=by), tmp_path, "input")
    assert (found.cause, found.summary) == ("data_loading", said)
    assert found.call is not None
    assert found.call in said


def test_samples_of_one_thread_name_no_code_of_another(tmp_path: Path) -> None:
    """The holder of a lock has no CPU sample in a pause; the launching thread has one behind it, in `prepare`."""
    kind = CLASSES["a_thread_that_holds_a_lock"]
    trace = kind.run(kind.made(13))[0].write(tmp_path / "trace.sqlite")
    said = [phase.sentence for phase in analyze(trace, Settings(timeline=False)).phases if phase.name == "pause"]
    assert ["host code" in each for each in said] == [True]
    assert "prepare" not in said[0]
