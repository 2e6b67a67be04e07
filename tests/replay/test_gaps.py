"""How soon queued operations follow each other, where none was queued."""

from __future__ import annotations

from functools import partial

import pytest

from nsysdiag.replay.changes import Changes
from nsysdiag.replay.device_rules import gaps
from nsysdiag.replay.entangled import BoundCase
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.orders import GAP_NS, LONGEST_GAP_NS, SHORTEST_GAP_NS
from nsysdiag.replay.predict import predict
from nsysdiag.replay.transforms import apply
from tests.diagnosis.programs.registry import US, Marks
from tests.replay.making import modelled, replay_of_program
from tests.replay.pairs.pair import length, loop, simulated
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

KERNELS, STEPS = 50, 8
UNKNOWN = "Hardly any operation was queued: how soon queued ones follow each other is not known."
WITHOUT_CALLS = Transform("without", "launch_call")


def one_by_one(sim: Simulation, marks: Marks, *, call: int = 9 * US, turnaround: int = 1_200, queued: int = 0) -> None:
    """Each launch takes longer than its kernel. At the end of a step some kernels are queued behind a long one."""
    sim.gpus[0].turnaround = turnaround

    def step(t: Thread, number: int) -> Body:
        for _ in range(KERNELS):
            yield from t.launch("small", 4 * US, call=call)
        for place in range(queued):
            yield from t.launch("long", (4 if place else 200) * US)
        yield from t.synchronize()

    loop(sim, marks, step, steps=STEPS)


@pytest.mark.parametrize("turnaround", [900, 1_200, 1_900, 2_400])
def test_the_truth_is_within_the_bounds_whatever_the_gap_is(turnaround: int) -> None:
    program = partial(one_by_one, turnaround=turnaround)
    model = modelled(replay_of_program(program))
    found = predict(model, [WITHOUT_CALLS], Identity(exact=True, length_error=0.0))
    true = length(*simulated(partial(program, call=100), 1), STEPS, 2)
    assert found.low_ns <= true <= found.high_ns
    assert UNKNOWN in found.why


@pytest.mark.parametrize("queued", [0, 20])
def test_lengths_with_other_gaps(queued: int) -> None:
    """Each of the kernels is a gap apart from the one before; where the trace shows the gap, there is no other."""
    model = modelled(replay_of_program(partial(one_by_one, queued=queued)))
    changes = Changes.none(model)
    apply(changes, WITHOUT_CALLS)
    case = BoundCase.of(changes)
    found = [ns - case.run.ns for ns in gaps(case)]
    expected = [KERNELS * (ns - GAP_NS) for ns in (SHORTEST_GAP_NS, LONGEST_GAP_NS)]
    assert len(found) == (0 if queued else 2)
    assert all(abs(ns - other) < 3 * US for ns, other in zip(found, expected, strict=not queued))


@pytest.mark.slow
def test_unchanged_nothing_is_queued() -> None:
    assert gaps(BoundCase.of(Changes.none(modelled(replay_of_program(one_by_one))))) == []
