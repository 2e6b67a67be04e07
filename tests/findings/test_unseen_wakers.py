"""Reads that another thread ended, of which the trace does not show what it did meanwhile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from tests.diagnosis.programs.registry import MS, Marks
from tests.replay.pairs.pair import STEPS, loop, simulated, varied, waking
from tests.simulator import EVERYTHING

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.simulator import Simulation
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

NO_SCHEDULING = EVERYTHING.but(sched=False, samples=False)
"""Then what a thread computes leaves no row."""


def handed_on(sim: Simulation, marks: Marks, *, reads: int, by: str, forked: bool, os_calls: bool) -> None:
    """A thread parses for 3 ms, or reads a file for some of that, and writes into a pipe that the launching one reads.

    helper  [parses ..................][write]
    T       [read                          ][l][sync]
    """
    trainer, pipe = sim.process(), sim.channel()
    process = sim.process(gpus=[]) if forked else trainer
    process.os_calls = os_calls

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            if reads:
                yield from t.read_file(varied(reads, "read", number), "pread64")
            yield from t.compute(varied(3 * MS - reads, "parse", number), "parse")
            yield from t.put(pipe)

    def step(t: Thread, number: int) -> Body:
        yield from t.get(pipe, by)
        yield from t.launch("solve", varied(MS, "solve", number))
        yield from t.synchronize(t.process.null)

    waking(sim.thread(process, helper, name="helper"))
    waking(loop(sim, marks, step, process=trainer))


def reported(folder: Path, *, reads: int = 0, by: str = "read", forked: bool = False, os_calls: bool = True) -> Report:
    """The report on it, without scheduling events unless the helper's calls are not traced."""
    program = partial(handed_on, reads=reads, by=by, forked=forked, os_calls=os_calls)
    capture = NO_SCHEDULING if os_calls else EVERYTHING
    return analyze(simulated(program, 1)[0].write(folder / "trace.sqlite", capture), Settings(timeline=False))


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("by", ["read", "poll"])
def test_what_was_waited_for_is_not_in_the_trace(by: str, tmp_path: Path) -> None:
    report = reported(tmp_path, by=by)
    (device,) = report.devices
    assert list(device.root_labels["io_wait"]) == ["waits for the other end"]
    root = device.gaps[0].root
    assert root is not None
    assert root.chain[-1].endswith("waits for the other end; what that was for is not in the trace")
    found = next(each for each in report.findings if each.cause == "io_wait")
    assert found.title.startswith("File and network I/O: waits for a pipe or socket")
    assert "disk" not in " ".join(found.advice)
    saves = report.diagnosis.saves
    assert saves is not None
    assert (saves.cannot_tell, saves.low_ns) == (True, 0)
    assert saves.high_ns == pytest.approx(2 * MS, rel=0.1)


@pytest.mark.slow
def test_a_read_that_ends_with_what_the_other_thread_read(tmp_path: Path) -> None:
    """What that did is known: it reads files, and no doubt is left of the saving."""
    report = reported(tmp_path, reads=2900 * 1000)
    (device,) = report.devices
    assert device.root_labels["io_wait"]["reads"] >= 0.9 * device.root_ledger["io_wait"]
    saves = report.diagnosis.saves
    assert saves is not None
    assert not saves.cannot_tell


@pytest.mark.slow
@pytest.mark.parametrize(("reads", "os_calls"), [(0, True), (2 * MS, False)])
def test_a_worker_that_is_not_seen_does_not_read(reads: int, os_calls: bool, tmp_path: Path) -> None:
    """The launching thread reads a pipe."""
    report = reported(tmp_path, reads=reads, forked=True, os_calls=os_calls)
    found = next(each for each in report.findings if each.cause == "data_loading")
    assert "the worker reads" not in found.title + found.summary
    assert found.variant != "reads"
