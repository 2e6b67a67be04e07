"""Pipelines of GPUs, which pass their work on with send and receive."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, ranged, varied, without
from tests.replay.pairs.ranks import LIKE_MEDIAN
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Collective, Neighbours
from tests.simulator.host import Body

LOST = "lost_"
SEND_RECEIVE = "ncclDevKernel_SendRecv"


def pipeline(
    sim: Simulation,
    marks: Marks,
    *,
    stages: int,
    micro: int,
    work: tuple[int, ...],
    backward: bool = False,
    factor: float = 1.0,
    host: int = 0,
    read: int = 0,
    together: bool = False,
    transfer: int = 60 * US,
    recorded: bool = True,
) -> None:
    """Each stage receives, computes and sends, `micro` times a step, and the other way round afterwards (`backward`).
    Each is a process, or a thread of one process (`together`). The first stage has host code or reads in each step. It
    may be the only one that is `recorded`.

    gpu0   [stage 0][send][stage 0][send]
    gpu1   [recv, waits  ][stage 1][recv ][stage 1]
    """
    passes = 2 if backward else 1
    meet = {
        (number, turn, part, stage): sim.collective(2)
        for number in range(STEPS)
        for turn in range(passes)
        for part in range(micro)
        for stage in range(stages - 1)
    }
    one = solver(sim) if together else None

    def step(t: Thread, number: int, *, stage: int, device: int) -> Body:
        context = t.process.contexts[device]
        lost = "" if recorded or stage == 0 else LOST
        if stage == 0 and read:
            yield from t.read_file(varied(read, "read", number))
        if stage == 0 and host:
            yield from ranged(t, "prepare", t.compute(varied(host, "prepare", number), "prepare"))

        def exchange(turn: int, part: int, link: int) -> Body:
            met = meet[number, turn, part, link]
            yield from t.launch(lost + SEND_RECEIVE, transfer, context.null, collective=met, extended=True)

        for turn in range(passes):
            before, behind = (stage - 1, stage) if turn == 0 else (stage, stage - 1)
            for part in range(micro):
                if 0 <= before < stages - 1:
                    yield from exchange(turn, part, before)
                ns = round(varied(work[stage], "stage", stage, number, turn, part) * (factor if stage == 0 else 1))
                yield from t.launch(f"{lost}stage_{stage}", ns, context.null)
                if 0 <= behind < stages - 1:
                    yield from exchange(turn, part, behind)
        yield from t.synchronize(context.null)

    for stage in range(stages):
        process = one or solver(sim, [stage])
        own = marks if stage == 0 else Marks()
        loop(sim, own, partial(step, stage=stage, device=stage if together else 0), process=process)


def grouped(
    sim: Simulation, marks: Marks, *, members: int, late: int, work: int = 800 * US, everybody: bool = False
) -> None:
    """Each rank sends to the next one in a ring and receives from the one before, or exchanges with all (`everybody`),
    in one kernel. The host of the last rank takes longer.

    gpu0   [work][send, receive ..|==)
    gpu1   [work][send, receive ..|==)
    gpu2            [work][send, receive)
    """
    links = [(rank, (rank + 1) % members) for rank in range(members)]
    met = [Collective(members) if everybody else Neighbours(links) for _ in range(STEPS)]

    def step(t: Thread, number: int, *, rank: int) -> Body:
        if rank == members - 1:
            yield from t.compute(varied(late, "late", number), "prepare")
        yield from t.launch("work", varied(work, "work", rank, number))
        yield from t.launch(SEND_RECEIVE, 60 * US, collective=met[number], extended=True)
        yield from t.synchronize(t.process.null)

    for rank in range(members):
        loop(sim, marks if rank == 0 else Marks(), partial(step, rank=rank), process=solver(sim, [rank]))


HALVED, FIRST = {"factor": 0.5}, faster("kernel", "stage_0", 0.5)
PAIRS: tuple[Pair, ...] = (
    pair(
        "kernels halved of the first of two stages",
        partial(pipeline, stages=2, micro=4, work=(900 * US, 500 * US)),
        HALVED,
        FIRST,
        (0.1, 0.5),
        gpus=2,
    ),
    pair(
        "kernels halved of the first of two stages, forward and backward",
        partial(pipeline, stages=2, micro=3, work=(600 * US, 800 * US), backward=True),
        HALVED,
        FIRST,
        (0.02, 0.4),
        gpus=2,
    ),
    pair(
        "kernels halved of the first of four stages in one process",
        partial(pipeline, stages=4, micro=4, work=(800 * US, 400 * US, 400 * US, 400 * US), together=True),
        HALVED,
        FIRST,
        (0.1, 0.5),
        gpus=4,
    ),
    pair(
        "file read of the first of three stages",
        partial(pipeline, stages=3, micro=2, work=(400 * US, 400 * US, 400 * US), read=1 * MS),
        {"read": 0},
        without("io_wait"),
        (0.1, 0.6),
        gpus=3,
    ),
    pair(
        "kernels halved of a stage that is not the limit",
        partial(pipeline, stages=2, micro=4, work=(300 * US, 900 * US)),
        HALVED,
        FIRST,
        (-0.01, 0.1),
        gpus=2,
    ),
    pair(
        "kernels halved of the first of two stages, the second not recorded",
        partial(pipeline, stages=2, micro=4, work=(900 * US, 500 * US), recorded=False),
        HALVED,
        FIRST,
        (0.1, 0.5),
        gpus=2,
        capture=EVERYTHING.but(lost=LOST),
    ),
    pair(
        "kernels halved of a stage that is not the limit, the other not recorded",
        partial(pipeline, stages=2, micro=4, work=(600 * US, 900 * US), recorded=False),
        HALVED,
        FIRST,
        (-0.01, 0.1),
        gpus=2,
        capture=EVERYTHING.but(lost=LOST),
        tolerated=0.4,
    ),
    pair(
        "late rank in a ring of four that send and receive",
        partial(grouped, members=4, late=1 * MS),
        {"late": 0},
        LIKE_MEDIAN,
        (0.3, 0.7),
        gpus=4,
    ),
    pair(
        "late rank of three that send to all",
        partial(grouped, members=3, late=700 * US, everybody=True),
        {"late": 0},
        LIKE_MEDIAN,
        (0.2, 0.6),
        gpus=3,
    ),
)
