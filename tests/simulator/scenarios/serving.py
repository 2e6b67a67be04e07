"""Servers: work comes when somebody asks for it, at times that follow no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Channel, Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation

ARRIVALS = [18, 64, 9, 41, 87, 23, 55, 12, 70, 33, 96, 15]
"""Milliseconds from the answer to one request to the next request."""


@register("io_wait")
def rarely_asked(sim: Simulation) -> None:
    """Two short kernels for each request, and long waits between requests: the GPU is too large, not too slow.

    T    [epoll_wait ......][launch][launch][sync][epoll_wait ...
    gpu                         [k]     [k]
    """

    def body(t: Thread) -> Body:
        yield from t.launch("warm_up", 200 * US)
        yield from t.synchronize(t.process.null)
        for wait in ARRIVALS:
            yield from t.os_call("epoll_wait", wait * MS, "io_wait", blocked=True)
            for _ in range(2):
                yield from t.launch("decoder_layer", 900 * US)
            yield from t.synchronize(t.process.null)

    sim.thread(sim.process(), body)


@register("lock_wait", root="io_wait", tolerated=("host_compute",))
def late_when_asked(sim: Simulation) -> None:
    """A front end reads requests and hands them to the thread of the GPU, which prepares each of eight kernels on the
    CPU for longer than the kernel runs: inside its bursts the GPU waits for the host.

    front  [epoll_wait ......][signal][epoll_wait ...
    T      [pthread_cond_wait        ][compute][launch][compute][launch]
    gpu                                           [k]             [k]
    """
    asked: Channel = sim.channel()
    process = sim.process()

    def front(t: Thread) -> Body:
        for wait in ARRIVALS:
            yield from t.os_call("epoll_wait", wait * MS, "io_wait", blocked=True)
            yield from t.put(asked, "pthread_cond_signal")

    def body(t: Thread) -> Body:
        yield from t.launch("warm_up", 200 * US)
        yield from t.synchronize(t.process.null)
        for _ in ARRIVALS:
            yield from t.get(asked, "pthread_cond_wait")
            for _ in range(8):
                yield from t.compute(500 * US, "tokenize")
                yield from t.launch("decoder_layer", 300 * US)
            yield from t.synchronize(t.process.null)

    sim.thread(process, body)
    sim.thread(process, front)
