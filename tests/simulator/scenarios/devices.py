"""Idle time although the work had been issued: waits, barriers, other contexts, stalls, graphs, migrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.actions import Node
from tests.simulator.capture import EVERYTHING
from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation


@register("dispatch")
def healthy(sim: Simulation) -> None:
    """The host is far ahead: between queued kernels there is only the device's own turn-around.

    T    [l][l][l][l][l]........................[sync]
    gpu    [ k ][ k ][ k ][ k ][ k ]
    """

    def body(t: Thread) -> Body:
        for _ in range(300):
            yield from t.launch("gemm", 40 * US)
        yield from t.synchronize()

    sim.thread(sim.process(), body)


@register("stream_wait", gpus=2)
def stream_wait(sim: Simulation) -> None:
    """GPU 0 waits for an event of GPU 1; its kernel was launched long before.

    gpu 1  [======== producer ========]
    gpu 0  [k].........................[k]
    T      [l][l][record][wait][l][sync ........
    """

    def body(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        for _ in range(8):
            event = t.event()
            yield from t.launch("short", 50 * US, first)
            yield from t.launch("producer", 2 * MS, second)
            yield from t.record(event, second)
            yield from t.wait_event(first, event)
            yield from t.launch("consumer", 100 * US, first)
            yield from t.synchronize(first)

    sim.thread(sim.process(), body)


@register("stream_wait", gpus=2)
def stream_wait_through_another(sim: Simulation) -> None:
    """GPU 0 waits for an event of GPU 1, as before, but through a stream that does nothing else.

    gpu 1         [======== producer ========]
    gpu 0         [k].........................[k]
    third stream  wait for the producer, record
    """

    def body(t: Thread) -> Body:
        first, second, third = t.process.stream(0), t.process.stream(1), t.process.stream(0)
        for _ in range(8):
            produced, passed_on = t.event(), t.event()
            yield from t.launch("short", 50 * US, first)
            yield from t.launch("producer", 2 * MS, second)
            yield from t.record(produced, second)
            yield from t.wait_event(third, produced)
            yield from t.record(passed_on, third)
            yield from t.wait_event(first, passed_on)
            yield from t.launch("consumer", 100 * US, first)
            yield from t.synchronize(first)

    sim.thread(sim.process(), body)


@register("stream_barrier")
def stream_barrier(sim: Simulation) -> None:
    """Kernels alternate between the legacy default stream and a blocking stream.

    default   [k]....     [k]....
    blocking      ....[k]    ....[k]
    """

    def body(t: Thread) -> Body:
        other = t.process.stream(blocking=True)
        for _ in range(80):
            yield from t.launch("gemm", 60 * US, t.process.null)
            yield from t.launch("gemm", 60 * US, other)

    sim.thread(sim.process(), body)


@register("gpu_context_switch", tolerated=("device_stall",))
def gpu_context_switch(sim: Simulation) -> None:
    """Another process has the GPU for 2 ms of every 5 and uses little of it.

    slices   [ A      ][ B    ][ A      ][ B    ]
    gpu      [k][k][k ][b].....[k][k][k ][b].....
    """
    trainer, other = sim.process(), sim.process()
    sim.gpus[0].slices = [(start * MS, (start + 2) * MS, other) for start in range(3, 28, 5)]

    def train(t: Thread) -> Body:
        for _ in range(60):
            yield from t.launch("gemm", 250 * US)
        yield from t.synchronize()

    def disturb(t: Thread) -> Body:
        for start in range(3, 28, 5):
            yield from t.sleep(start * MS - t.clock.now)
            yield from t.launch("other", 150 * US)

    sim.thread(trainer, train)
    sim.thread(other, disturb)


@register("device_stall")
def device_stall(sim: Simulation) -> None:
    """Queued kernels that do not start, for no recorded reason."""

    def body(t: Thread) -> Body:
        for step in range(100):
            yield from t.launch("gemm", 100 * US, stall=2 * MS if step % 20 == 15 else 0)
        yield from t.synchronize()

    sim.thread(sim.process(), body)


@register("device_stall")
def issued_before_the_capture(sim: Simulation) -> None:
    """A kernel launched before the capture began starts late, in the middle of it.

    capture        [...............................
    T      [launch][launch]
    gpu            [k]................[late kernel]
    """

    def body(t: Thread) -> Body:
        yield from t.launch("late", 500 * US, t.process.stream(), stall=4 * MS, recorded=False)
        for _ in range(10):
            yield from t.launch("gemm", 30 * US)
        yield from t.sleep(5 * MS)
        yield from t.launch("gemm", 30 * US)

    sim.thread(sim.process(), body)


@register("device_stall")
def copy_set_up(sim: Simulation) -> None:
    """Queued copies with 30 µs of set-up between them."""

    def body(t: Thread) -> Body:
        for _ in range(100):
            yield from t.copy("DtoH", 1 << 20, 60 * US, stall=30 * US)
        yield from t.synchronize()

    sim.thread(sim.process(), body)


def _graphs(sim: Simulation, gap: int) -> None:
    nodes = [Node("first", 60 * US), *(Node(f"node_{number}", 60 * US, gap) for number in range(8))]

    def body(t: Thread) -> Body:
        yield from t.launch("setup", 200 * US)
        for _ in range(10):
            yield from t.launch_graph(nodes)
        yield from t.synchronize(t.process.null)
        yield from t.launch("last", 100 * US)
        yield from t.synchronize(t.process.null)

    sim.thread(sim.process(), body)


@register("intra_graph")
def intra_graph(sim: Simulation) -> None:
    """Node by node: 30 µs pass between the nodes of one graph launch.

    gpu  [node]....[node]....[node]
    """
    _graphs(sim, 30 * US)


@register("dispatch", capture=EVERYTHING.but(graphs="graph"))
def whole_graphs(sim: Simulation) -> None:
    """The same graphs as one row a launch: what happens inside is theirs."""
    _graphs(sim, 30 * US)


def _hidden_graphs(sim: Simulation) -> None:
    nodes = [Node("node", 90 * US) for _ in range(12)]

    def body(t: Thread) -> Body:
        for _ in range(8):
            yield from t.launch("gather", 100 * US)
            yield from t.synchronize(t.process.null)
            yield from t.launch_graph(nodes)
            yield from t.synchronize(t.process.null)
            yield from t.compute(400 * US)
        yield from t.launch("gather", 100 * US)

    sim.thread(sim.process(), body)


@register("graph_untraced", capture=EVERYTHING.but(graphs="none"))
def graph_untraced(sim: Simulation) -> None:
    """Graph launches that left no row: the device ran them all the same.

    T    [graph launch][sync ............][compute][launch]
    gpu  [k]...(ran unseen)........................[k]
    """
    _hidden_graphs(sim)


@register("host_compute")
def node_graphs(sim: Simulation) -> None:
    """The same graphs, recorded node by node."""
    _hidden_graphs(sim)


@register("unified_memory")
def unified_memory(sim: Simulation) -> None:
    """A prefetch moves pages in chunks while the kernel behind it waits.

    T    [prefetch][launch][sync ........
    gpu  [m]..[m]..[m]..[m].[k]
    """

    def body(t: Thread) -> Body:
        yield from t.launch("first", 400 * US)
        for _ in range(6):
            yield from t.prefetch(30, 100 * US, 40 * US)
            yield from t.launch("uses_pages", 500 * US)
        yield from t.synchronize()

    sim.thread(sim.process(), body)


@register("launch_unknown")
def launch_unknown(sim: Simulation) -> None:
    """Every second API row got lost: nobody knows who launched those kernels, or when."""

    def body(t: Thread) -> Body:
        for step in range(31):
            yield from t.launch("gemm", 200 * US, recorded=step % 2 == 0)
            yield from t.synchronize(t.process.null)
            yield from t.compute(300 * US)

    sim.thread(sim.process(), body)
