"""Ranks that exchange with one other rank in calls of MPI: the trace does not say which call waits for which."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, loop, pair, varied
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.engine import Signal
from tests.simulator.host import Body, Run, Spin


def halo(
    sim: Simulation,
    marks: Marks,
    *,
    call: str,
    members: int = 2,
    late: int,
    usual: int = 500 * US,
    ring: bool = True,
    told: bool = False,
) -> None:
    """Each rank computes, packs and exchanges with its neighbour: with the one before it in a ring, or the first rank
    only receives from the second. The host of the last rank takes longer. The trace may tell of each message who sends
    it to whom (`told`).

    rank 0   [k][pack][MPI_Sendrecv .....]
    rank 1   [k][pack ............][MPI_S]
    """
    sent = [[Signal() for _ in range(members)] for _ in range(STEPS)]

    def step(t: Thread, number: int, *, rank: int) -> Body:
        yield from t.launch("stencil", varied(1500 * US, "stencil", rank, number))
        yield from t.synchronize()
        packing = late if rank == members - 1 else usual
        if packing:
            yield from t.compute(varied(packing, "pack", rank, number), "pack_halo")
        sends = told and not ring and rank > 0
        with t.inside("mpi", "MPI_Send" if sends else call, "") as made:
            near = dict.fromkeys(((rank + 1) % members, (rank - 1) % members))
            made.messages = tuple((other, number, 0) for other in near) if told else ()
            yield Run(2 * US)
            sent[number][rank].fire(t)
            if ring or rank == 0:
                yield Spin(sent[number][rank - 1])
            yield Run(60 * US)

    for rank in range(members):
        own, process = marks if rank == 0 else Marks(), solver(sim, [rank])
        process.rank = rank
        loop(sim, own, partial(step, rank=rank), process=process)


PACKED: dict[str, object] = {"late": 0, "usual": 0}
PAIRS: tuple[Pair, ...] = (
    pair(
        "halo exchange", partial(halo, call="MPI_Sendrecv", late=3 * MS), PACKED, (), (0.5, 0.7), finding="host", gpus=2
    ),
    pair(
        "halo by Waitall",
        partial(halo, call="MPI_Waitall", late=2 * MS),
        PACKED,
        (),
        (0.4, 0.7),
        finding="host",
        gpus=2,
    ),
    pair(
        "receives from a rank that packs",
        partial(halo, call="MPI_Recv", late=3 * MS, ring=False),
        PACKED,
        (),
        (0.5, 0.7),
        finding="host",
        gpus=2,
    ),
    pair(
        "halo exchange in a ring",
        partial(halo, call="MPI_Sendrecv_replace", members=3, late=2 * MS),
        PACKED,
        (),
        (0.3, 0.7),
        finding="host",
        gpus=3,
    ),
)
