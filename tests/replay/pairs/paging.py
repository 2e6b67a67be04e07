"""Pages of unified memory that move before kernels: that takes as long as ever, whatever else is fixed."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import US, Marks
from tests.replay.pairs.pair import Pair, faster, loop, pair, ranged, varied, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def prefetching(
    sim: Simulation,
    marks: Marks,
    *,
    pages: int,
    host: int,
    kernel: int,
    before: bool = False,
    synchronized: bool = True,
    factor: float = 1.0,
) -> None:
    """Pages move in two parts of `pages` ns each, right behind the first kernel, or `before` it.

    T    [prepares ..][l][prefetch][l][sync ............]
    gpu                  [= solve =)[pages][pages][post)
    """

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(host, "host", number), "prepare"))
        if before:
            yield from t.prefetch(2, pages, 15 * US)
        yield from t.launch("solve", round(varied(kernel, "kernel", number) * factor))
        if not before:
            yield from t.prefetch(2, pages, 15 * US)
        yield from t.launch("post", 40 * US)
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step)


NO_SYNC = {"synchronized": False}
PAIRS: tuple[Pair, ...] = (
    pair(
        "sync behind pages that move after a kernel",
        partial(prefetching, pages=20 * US, host=150 * US, kernel=350 * US),
        NO_SYNC,
        without("sync"),
        (0.2, 0.35),
        quick=True,
    ),
    pair(
        "sync behind a kernel that waits for pages",
        partial(prefetching, pages=45 * US, host=240 * US, kernel=500 * US, before=True),
        NO_SYNC,
        without("sync"),
        (0.2, 0.4),
        tolerated=0.2,
    ),
    pair(
        "sync behind a short kernel that waits for pages",
        partial(prefetching, pages=48 * US, host=110 * US, kernel=168 * US, before=True),
        NO_SYNC,
        without("sync"),
        (0.2, 0.4),
    ),
    pair(
        "kernel halved behind pages that move",
        partial(prefetching, pages=60 * US, host=200 * US, kernel=400 * US),
        {"factor": 0.5},
        faster("kernel", "solve", 0.5),
        (0.15, 0.4),
    ),
)
