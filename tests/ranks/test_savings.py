"""What a fix saves of a job whose ranks have a trace each: no more than on the rank that is late."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from nsysdiag import analyze_ranks
from tests.diagnosis.programs.devices import ALL_REDUCE
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.levels import examples
from tests.replay.pairs.pair import STEPS, length, loop, simulated, varied
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

Times = tuple[int, ...]


def job(sim: Simulation, marks: Marks, *, host: Times, work: Times, synchronized: bool) -> None:
    """Each rank computes on the host and on the device, synchronizes, and comes to a collective.

    rank 0   [host][launch][sync    )[launch]          [sync)
    gpu 0                  [= gemm =)        [AllReduce )
    rank 1   [host ..............][launch][sync    )[launch]
    gpu 1                                 [= gemm =)     [==)
    """
    together = [sim.collective(len(host)) for _ in range(STEPS)]

    def step(t: Thread, number: int, *, rank: int) -> Body:
        yield from t.compute(varied(host[rank], "host", rank, number), "update")
        yield from t.launch("gemm", varied(work[rank], "gemm", rank, number))
        if synchronized:
            yield from t.synchronize(t.process.null)
        yield from t.launch(ALL_REDUCE, 200 * US, collective=together[number], extended=True)
        if synchronized:
            yield from t.synchronize(t.process.null)

    for rank in range(len(host)):
        loop(sim, marks if rank == 0 else Marks(), partial(step, rank=rank), process=solver(sim, [rank]))


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [0, 4, 6, *range(10, examples(14))])
def test_the_late_rank_bounds_what_a_synchronization_costs(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    members = chance.choice((2, 3))
    host, work = (tuple(chance.randint(50, most) * US for _ in range(members)) for most in (1500, 2500))
    made = partial(job, host=host, work=work)
    simulation, marks = simulated(partial(made, synchronized=True), members)
    before = length(simulation, marks, STEPS, 2)
    after = length(*simulated(partial(made, synchronized=False), members), STEPS, 2)
    report = analyze_ranks(simulation.write_each(tmp_path, [chance.randrange(10**9) for _ in range(members)]))
    (found,) = (each for each in report.findings if each.cause == "sync")
    assert found.saves is not None
    assert -0.01 <= found.saves.high_ns / found.saves.of_ns - (1 - after / before) <= 0.03
