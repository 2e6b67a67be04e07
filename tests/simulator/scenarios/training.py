"""Whole training runs, as PyTorch makes them: the traces behind the fixtures and the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.actions import Node
from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Channel, Thread
    from tests.simulator.device import Collective
    from tests.simulator.host import Body, Process
    from tests.simulator.simulation import Simulation

STEPS, LAYERS, BUCKETS, PARAMETERS = 30, 8, 3, 32
FORWARD = (
    ("ampere_sgemm_128x64_tn", 160 * US),
    ("vectorized_elementwise_kernel", 24 * US),
    ("vectorized_layer_norm_kernel", 38 * US),
)
BACKWARD = (
    ("ampere_sgemm_128x64_nt", 170 * US),
    ("ampere_sgemm_128x64_nn", 165 * US),
    ("layer_norm_grad_input_kernel", 44 * US),
)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


class Rank:
    """One rank of a data-parallel run: the main thread, its autograd thread, and a worker process that loads data.

    worker    [read file .....][decode ...][put]
    main      [wait for batch ............][copy][forward][wait for backward][clip][optimizer]
    autograd                                             [backward, buckets]
    """

    def __init__(self, sim: Simulation, process: Process, buckets: list[Collective], slow: int) -> None:
        self.process = process
        self.slow = slow
        self.buckets = iter(buckets)
        self.comm = process.stream()
        self.batches: Channel = sim.channel()
        self.forward_done: Channel = sim.channel()
        self.backward_done: Channel = sim.channel()

    def load(self, t: Thread) -> Body:
        """The worker: every eighth file is not in the page cache."""
        for step in range(STEPS):
            yield from t.os_call("open64", 25 * US, "io_wait")
            yield from t.read_file((22 if step % 8 == self.slow else 5) * MS)
            yield from t.compute(7 * MS, "jpeg_idct_islow")
            yield from t.put(self.batches)

    def main(self, t: Thread) -> Body:
        yield from t.launch("distribution_elementwise_grid_stride_kernel", 90 * US)
        for step in range(STEPS):
            t.push(f"step {step}")
            yield from self._next_batch(t)
            yield from self._forward(t)
            t.push("backward")
            yield from t.put(self.forward_done, "pthread_cond_signal")
            yield from t.get(self.backward_done, "pthread_cond_wait")
            t.pop()
            yield from self._clip_gradients(t)
            yield from self._optimizer(t)
            t.pop()

    def _next_batch(self, t: Thread) -> Body:
        t.push("next(dataloader)")
        yield from t.get(self.batches)
        yield from t.compute(180 * US, "unpickle")
        yield from t.copy("HtoD", 38 << 20, 1_600 * US)
        t.pop()

    def _forward(self, t: Thread) -> Body:
        t.push("forward")
        for _ in range(LAYERS):
            for name, duration in FORWARD:
                yield from t.compute(14 * US)
                yield from t.launch(name, duration)
        t.pop()

    def _clip_gradients(self, t: Thread) -> Body:
        """The norm of all gradients, read back: the queue runs empty."""
        t.push("clip_grad_norm_")
        yield from self._after_communication(t)
        yield from t.compute(40 * US)
        yield from t.launch("lpnorm_cleanup_kernel", 18 * US)
        yield from t.blocking_copy("DtoH", 4, 2 * US, staging=12 * US, asynchronous=True)
        yield from t.synchronize(self.process.null)
        t.pop()

    def _optimizer(self, t: Thread) -> Body:
        t.push("optimizer")
        for _ in range(PARAMETERS):
            yield from t.compute(21 * US, "adam_step")
            yield from t.launch("multi_tensor_apply_kernel", 6 * US)
        t.pop()

    def _after_communication(self, t: Thread) -> Body:
        event = t.event()
        yield from t.record(event, self.comm)
        yield from t.wait_event(self.process.null, event)

    def autograd(self, t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(self.forward_done, "pthread_cond_wait")
            for layer in range(LAYERS):
                for name, duration in BACKWARD:
                    yield from t.compute(11 * US, "torch::autograd::Engine::evaluate_function")
                    yield from t.launch(name, duration)
                if layer % BUCKETS == BUCKETS - 1 or layer == LAYERS - 1:
                    yield from self._all_reduce(t)
            yield from t.put(self.backward_done, "pthread_cond_signal")

    def _all_reduce(self, t: Thread) -> Body:
        event = t.event()
        yield from t.record(event, self.process.null)
        yield from t.wait_event(self.comm, event)
        yield from t.launch(ALL_REDUCE, 420 * US, self.comm, collective=next(self.buckets), extended=True)


@register("io_wait", gpus=2)
def starved_data_parallel(sim: Simulation) -> None:
    """Two ranks train; each waits for its own loader at every step, and through the all-reduce for the other's."""
    buckets = [sim.collective(2) for _ in range(STEPS * BUCKETS)]
    for number in range(2):
        trainer = sim.process(gpus=[number])
        loader = sim.process(gpus=[])
        rank = Rank(sim, trainer, buckets, slow=3 + 4 * number)
        sim.thread(loader, rank.load, name="pt_data_worker", loads="name")
        sim.thread(trainer, rank.main)
        sim.thread(trainer, rank.autograd, name="pt_autograd_0")


@register("launch_call")
def launch_bound(sim: Simulation) -> None:
    """An eager loop over kernels that are shorter than the Python between them.

    T    .......[launch].......[launch].......[launch]
    gpu               [k]            [k]            [k]
    """

    def main(t: Thread) -> Body:
        for step in range(20):
            t.push(f"step {step}")
            for _ in range(40):
                yield from t.compute(9 * US)
                yield from t.launch("vectorized_elementwise_kernel", 3 * US, call=6 * US)
            yield from t.synchronize(t.process.null)
            t.pop()

    sim.thread(sim.process(), main)


@register("stream_wait", gpus=2)
def two_gpus(sim: Simulation) -> None:
    """A pipeline over two GPUs of one process: the second stage waits for the first by an event.

    gpu 0  [ stage 0 ][ stage 0 ][ stage 0 ]
    gpu 1            .[s1]......[s1].......[s1]
    """

    def main(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        yield from t.launch("stage_1", 300 * US, second)
        for step in range(40):
            t.push(f"microbatch {step}")
            event = t.event()
            yield from t.launch("stage_0", 900 * US, first)
            yield from t.record(event, first)
            yield from t.wait_event(second, event)
            yield from t.launch("stage_1", 300 * US, second)
            yield from t.compute(60 * US)
            t.pop()
        yield from t.synchronize(second)

    sim.thread(sim.process(), main)


@register("host_compute")
def graph_replay(sim: Simulation) -> None:
    """A graph built once and replayed: inside it the device is busy, between the replays Python decides.

    T    [capture][instantiate][graph launch]......[graph launch]
    gpu                          [n][n][n][n]        [n][n][n][n]
    """
    nodes = [Node("ampere_sgemm_128x64_tn", 90 * US)] + [
        Node(f"fused_kernel_{number}", 20 * US, 18 * US if number == 5 else 1_200) for number in range(10)
    ]

    def main(t: Thread) -> Body:
        yield from t.launch("warm_up", 50 * US)
        yield from t.build_graph(len(nodes))
        for step in range(30):
            t.push(f"decode {step}")
            yield from t.launch_graph(nodes)
            yield from t.synchronize(t.process.null)
            yield from t.compute(150 * US, "sample_token")
            t.pop()

    sim.thread(sim.process(), main)
