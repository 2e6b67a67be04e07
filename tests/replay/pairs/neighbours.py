"""Programs in which others work at the same time, at a pace of their own."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks
from tests.replay.pairs.pair import STEPS, Pair, loop, pair, ranged, varied, waking
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def own_reads(
    sim: Simulation, marks: Marks, *, own: int, batch: int, work: int, ranges: bool = True, decode: int = 0
) -> None:
    """The launching thread reads something in each step, and takes a batch that a loading worker has read.

    worker  [read ........](post)[read ........](post)
    T       [wait              ][read][l][sync][wait
    """
    trainer, batches = sim.process(), sim.channel()

    def load(t: Thread) -> Body:
        for number in range(STEPS):
            if batch:
                yield from t.read_file(varied(batch, "batch", number), "pread64")
            yield from t.compute(varied(decode, "decode", number) + 1 * US, "jpeg_idct_islow")
            yield from t.put(batches, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(batches, "sem_wait")
        if own:
            yield from ranged(t, "read_labels" if ranges else "", t.read_file(varied(own, "own", number)))
        yield from t.copy("HtoD", 1 << 20, 80 * US)
        for kernel in range(4):
            yield from t.launch("ampere_sgemm_128x64_tn", varied(work // 4, "gemm", number, kernel))
        yield from t.synchronize(t.process.null)

    waking(sim.thread(trainer, load, name="pt_data_worker", loads="name"))
    waking(loop(sim, marks, step, process=trainer, ranges=ranges))


NO_OWN = {"own": 0}
PAIRS: tuple[Pair, ...] = (
    pair(
        "own file read before a slower loader that reads",
        partial(own_reads, own=400 * US, batch=4 * MS, work=800 * US),
        NO_OWN,
        (),
        (-0.01, 0.03),
        finding="io_wait",
    ),
    pair(
        "own file read before a slower loader that reads, without ranges",
        partial(own_reads, own=700 * US, batch=3 * MS, work=600 * US, ranges=False, decode=500 * US),
        NO_OWN,
        (),
        (-0.01, 0.03),
        finding="io_wait",
    ),
    pair(
        "own file read beside a loader that is ahead",
        partial(own_reads, own=2 * MS, batch=300 * US, work=600 * US),
        NO_OWN,
        (),
        (0.6, 0.8),
        finding="io_wait",
    ),
)
