"""Which rules bound a prediction."""

from __future__ import annotations

from functools import partial

import pytest

from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.replay import bounds
from nsysdiag.replay.bounds import MOST_STREAMS, Prediction, computing
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import predict
from nsysdiag.replay.run import Run
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.making import modelled, replay_of_program
from tests.replay.pairs.windows import irregular
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

EXACT = Identity(exact=True, length_error=0.0)
ANOTHER = "Another thread has a loop of its own, and no range says which of both is meant."


def beside(sim: Simulation, marks: Marks, *, kernels: int) -> None:
    """Another thread launches so many kernels, a millisecond apart, while a window of kernels in no order runs."""
    irregular(sim, marks, host=1.0)
    process = solver(sim)
    stream = process.stream()

    def other(t: Thread) -> Body:
        yield from t.compute(20 * MS, "wait_a_moment")
        for number in range(kernels):
            yield from t.launch(f"log_{number % 7}", 20 * US, stream)
            yield from t.compute(1 * MS, "write_a_line")

    sim.thread(process, other, name="other")


def over_streams(sim: Simulation, marks: Marks, *, streams: int) -> None:
    """Twenty steps, in each of which a kernel of every stream is launched: some run at the same time."""
    process = solver(sim)
    every = [process.stream() for _ in range(streams)]

    def steps(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(20):
            for stream in every:
                yield from t.launch("tile", 100 * US, stream)
            yield from t.synchronize()
            yield from t.compute(1 * MS, "next_tiles")
        marks.end(t)

    sim.thread(process, steps, name="main")


def without_host_code(kernels: int) -> Prediction:
    model = modelled(replay_of_program(partial(beside, kernels=kernels)))
    assert not model.stretch.stepwise
    return predict(model, [Transform("without", "host_compute")], EXACT)


@pytest.mark.parametrize(("kernels", "bounds"), [(3, False), (90, True)])
def test_who_launches_for_a_moment_has_no_loop(kernels: int, bounds: bool) -> None:
    """What a thread does for a few ms of a window says nothing of the window."""
    assert (ANOTHER in without_host_code(kernels).why) is bounds


@pytest.mark.parametrize("streams", [2, MOST_STREAMS, 3 * MOST_STREAMS])
def test_of_many_streams_a_few_are_looked_at(streams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []

    def counted(model: Model, run: Run, among: BoolArray | bool = True) -> float:
        looked.append(among is not True)
        return computing(model, run, among)

    model = modelled(replay_of_program(partial(over_streams, streams=streams)))
    monkeypatch.setattr(bounds, "computing", counted)
    chosen = bounds._at_once.__wrapped__(model)  # type: ignore[attr-defined]
    assert len(chosen) == min(streams, MOST_STREAMS)
    assert sum(looked) == len(chosen) + 1
