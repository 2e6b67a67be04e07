"""Calls of MPI that wait for one other rank: whether they end sooner is not known."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.diagnosis.programs.registry import MS, US, Marks
from tests.replay.pairs import mpi, others
from tests.replay.pairs.pair import Pair, faster, loop, pair, varied, without
from tests.replay.pairs.prediction import predicted
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


@pytest.mark.slow
@pytest.mark.parametrize("each", mpi.PAIRS, ids=lambda each: each.name)
def test_ranks_may_hold_each_other_up(each: Pair, tmp_path: Path) -> None:
    outcome = predicted(each, tmp_path)
    assert outcome.low <= outcome.true <= outcome.high
    assert each.saves[0] <= outcome.true <= each.saves[1]


@pytest.mark.slow
def test_calls_that_hardly_wait_widen_nothing(tmp_path: Path) -> None:
    program = partial(others.exchanging, ns=20 * US, kernel=1 * MS)
    outcome = predicted(pair("short", program, {"factor": 0.0}, without("sync"), (0.0, 1.0)), tmp_path)
    assert outcome.high - outcome.low < 0.1


@pytest.mark.slow
def test_a_faster_call_is_as_fast_as_it_is_said(tmp_path: Path) -> None:
    program = partial(others.exchanging, ns=900 * US, kernel=1 * MS, ranges=True)
    halved = pair("halved", program, {"factor": 0.5}, faster("host", "MPI_Sendrecv", 0.5), (0.2, 0.27))
    outcome = predicted(halved, tmp_path)
    assert outcome.low - 0.01 <= outcome.true <= outcome.high + 0.01
    assert outcome.high - outcome.low < 0.1


def sending(sim: Simulation, marks: Marks, *, host: int, spread: float) -> None:
    """Each step computes on the host and sends a message, which takes 2 ms, up to `spread` more or less."""

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("saxpy", varied(1 * MS, "saxpy", number))
        yield from t.synchronize()
        if host:
            yield from t.compute(varied(host, "host", number), "prepare")
        yield from t.mpi("MPI_Send", varied(2 * MS, "send", number, spread=spread))

    loop(sim, marks, step)


@pytest.mark.parametrize(("spread", "beside"), [(0.004, False), (0.1, True)], ids=["a message", "a wait"])
def test_a_message_that_takes_its_time_does_not_end_sooner(spread: float, beside: bool, tmp_path: Path) -> None:
    """Only a send whose length varies may wait for a peer that is sooner, too."""
    program = partial(sending, host=3 * MS, spread=spread)
    outcome = predicted(pair("sends", program, {"host": 0}, (), (0.4, 0.6), finding="host"), tmp_path)
    assert outcome.low - 0.01 <= outcome.true <= outcome.high + 0.01
    assert (outcome.high > outcome.true + 0.2) == beside


def passing_pointers(sim: Simulation, marks: Marks, *, waits: bool, copies: bool) -> None:
    """Each step reads a value back, and passes what its kernel made to MPI, which copies it on the device itself."""

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("stencil", varied(400 * US, "stencil", number))
        if waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=4 * US)
        with t.inside("mpi", "MPI_Sendrecv", ""):
            yield from t.compute(20 * US)
            if copies:
                yield from t.copy("DtoD", 1 << 16, 4 * US, streams[0])
            yield from t.compute(varied(300 * US, "peer", number))

    streams = [loop(sim, marks, step).process.stream()]


@pytest.mark.parametrize(("copies", "most"), [(True, 0.03), (False, 1.0)])
def test_what_mpi_copies_from_the_device_is_waited_for(copies: bool, most: float, tmp_path: Path) -> None:
    """Without the value that is read back, MPI still needs what the kernel made."""
    program = partial(passing_pointers, waits=True, copies=copies)
    outcome = predicted(pair("pointers", program, {}, without("blocking_copy"), (0.0, 1.0)), tmp_path)
    assert outcome.high <= most
    assert (outcome.high > 0.2) != copies
