"""Sources outside of the program that are ahead of it, and limit it once it is faster."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import Pair, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def ahead(
    sim: Simulation,
    marks: Marks,
    *,
    call: str = "recv",
    period: int = 4 * MS,
    host: int = 5 * MS,
    at_once: int = 25 * US,
) -> None:
    """Each step takes a frame, which is there at once as the steps take longer than the period of the source.

    T    [recv][prepares ........][l][sync][recv][prepares ........]
    """
    waking(loop(sim, marks, partial(_frame, call=call, period=period, host=host, at_once=at_once), process=solver(sim)))


def _frame(t: Thread, number: int, *, call: str, period: int, host: int, at_once: int) -> Body:
    yield from t.os_call(call, max(number * period - t.clock.now, at_once), "io_wait", blocked=True)
    yield from ranged(t, "prepare", t.compute(varied(host, "host", number), "convert"))
    yield from t.launch("detect", varied(500 * US, "detect", number))
    yield from t.synchronize()


WIDE = {"tolerated": 1.0}
NONE, HOST = {"host": 1 * US}, without("host_compute")
PAIRS: tuple[Pair, ...] = (
    pair("frames of a socket pile up", ahead, NONE, HOST, (0.1, 0.4), quick=True, **WIDE),
    pair("frames of a driver pile up", partial(ahead, call="ioctl", at_once=60 * US), NONE, HOST, (0.1, 0.4), **WIDE),
    pair("frames are polled for", partial(ahead, call="epoll_wait", period=5 * MS), NONE, HOST, (0.0, 0.2), **WIDE),
    pair("clients are always there", partial(ahead, call="accept4", period=1 * MS), NONE, HOST, (0.7, 1.0), **WIDE),
)
