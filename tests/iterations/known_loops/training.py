"""Loops that train: micro batches, optimizers, evaluations, two networks in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.iterations.known_loops.known import Loops, family
from tests.iterations.programs import BACKWARD, FORWARD, kernels, layers
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

OPTIMIZERS = ("multi_tensor_apply_kernel", "adam_update", "fused_elementwise", "vectorized_elementwise_kernel")
"""Kernels that update weights: some of them have a name that says so."""


def _pass(t: Thread, loops: Loops, depth: int, *, backward: bool = True) -> Body:
    yield from t.copy("HtoD", 1 << 20, 60 * US)
    loops.push("forward")
    yield from layers(t, depth, FORWARD)
    yield from kernels(t, ("cross_entropy", 30))
    loops.pop()
    if backward:
        loops.push("backward")
        yield from layers(t, depth, BACKWARD)
        loops.pop()


def _update(t: Thread, loops: Loops, name: str, count: int) -> Body:
    loops.push("optimizer")
    yield from layers(t, count, ((name, 25),))
    loops.pop()


@family("step")
def accumulation(t: Thread, loops: Loops) -> Body:
    """Micro batches in a step, an update at its end, a loss that is read now and then."""
    micro, depth, each = loops.chance.choice([1, 2, 4, 8]), loops.size(2, 6), loops.chance.choice([1, 5, 10, 1000])
    name, updates, steps = loops.chance.choice(OPTIMIZERS), loops.size(2, 10), loops.size(12, 40)
    for step in range(steps):
        loops.begin("step")
        for _ in range(micro):
            loops.begin("micro")
            yield from _pass(t, loops, depth)
        yield from _update(t, loops, name, updates)
        if step % each == 0:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        if loops.waits:
            yield from t.synchronize()
            yield from t.compute(loops.size(50, 400) * US)


@family("step")
def layers_in_training(t: Thread, loops: Loops) -> Body:
    """Blocks of the same kernels; the host takes its input from a worker at the start of a step."""
    depth, steps, name = loops.size(8, 32), loops.size(8, 25), loops.chance.choice(OPTIMIZERS)
    block = (("layer_norm", 20), ("gemm_a", 100), ("softmax_fw", 40), ("gemm_b", 80))
    for step in range(steps):
        loops.push(f"step {step}")
        loops.begin("step")
        yield from t.copy("HtoD", 1 << 18, 20 * US)
        for _ in range(depth):
            loops.begin("layer")
            yield from kernels(t, *block)
        for _ in range(depth):
            yield from kernels(t, *((f"{each}_bw", ns * 2) for each, ns in block))
        yield from layers(t, loops.chance.choice([1, depth]), ((name, 30),))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        loops.pop()


@family("step")
def evaluation(t: Thread, loops: Loops) -> Body:
    """An evaluation of some batches behind each n-th step."""
    depth, each, batches = loops.size(2, 5), loops.size(8, 20), loops.size(3, 12)
    name, steps = loops.chance.choice(OPTIMIZERS), loops.size(40, 80)
    for step in range(steps):
        loops.begin("step")
        yield from _pass(t, loops, depth)
        yield from _update(t, loops, name, 4)
        if loops.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        if step % each == each - 1:
            loops.push("evaluate")
            for _ in range(batches):
                yield from _pass(t, loops, depth, backward=False)
                yield from kernels(t, ("accuracy", 10))
            yield from t.blocking_copy("DtoH", 4, 2 * US)
            loops.pop()


@family("step")
def checkpoints(t: Thread, loops: Loops) -> Body:
    """Parameters are copied to the host and written behind each n-th step, and a full step is timed there."""
    depth, each, name = loops.size(2, 5), loops.size(10, 25), loops.chance.choice(OPTIMIZERS)
    for step in range(loops.size(50, 90)):
        loops.begin("step")
        yield from _pass(t, loops, depth)
        yield from _update(t, loops, name, 5)
        if loops.waits:
            yield from t.synchronize()
        if step % each == each - 1:
            for _ in range(loops.size(4, 12)):
                yield from t.blocking_copy("DtoH", 1 << 22, 300 * US)
            yield from t.os_call("write", loops.size(1, 15) * MS, "io_wait")


@family("step")
def two_networks(t: Thread, loops: Loops) -> Body:
    """The discriminator k times, then the generator; each has its optimizer."""
    times, depth, name = loops.size(1, 4), loops.size(2, 4), loops.chance.choice(OPTIMIZERS)
    for step in range(loops.size(15, 40)):
        loops.push(f"iteration {step}")
        loops.begin("step")
        for _ in range(times):
            loops.begin("discriminator")
            yield from t.copy("HtoD", 1 << 19, 30 * US)
            yield from layers(t, depth, (("conv_d", 120), ("leaky_relu", 20)))
            yield from layers(t, depth, (("conv_d_bw", 150), ("leaky_relu_bw", 25)))
            yield from layers(t, 3, ((name, 20),))
        yield from layers(t, depth, (("conv_transpose_g", 130), ("batch_norm", 25), ("conv_d", 120)))
        yield from layers(t, depth, (("conv_g_bw", 170), ("batch_norm_bw", 30)))
        yield from layers(t, 3, ((name, 22),))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        loops.pop()


@family("step")
def policy_gradient(t: Thread, loops: Loops) -> Body:
    """A rollout of small steps, each with an action read back; then updates by minibatches."""
    rollout, epochs = loops.size(8, 40), loops.size(2, 6)
    for _ in range(loops.size(8, 15)):
        loops.begin("step")
        loops.push("rollout")
        for _ in range(rollout):
            loops.begin("action")
            yield from t.copy("HtoD", 1 << 10, 3 * US)
            yield from kernels(t, ("linear_small", 15), ("tanh", 5), ("sample", 6))
            yield from t.blocking_copy("DtoH", 64, 2 * US)
            yield from t.compute(loops.size(20, 60) * US, "environment")
        loops.pop()
        loops.push("learn")
        for _ in range(epochs):
            loops.begin("minibatch")
            yield from kernels(t, ("gather", 20), ("linear_large", 200), ("tanh_bw", 60), ("linear_large_bw", 350))
            yield from layers(t, 3, (("adam", 15),))
        loops.pop()


@family("step")
def random_load(t: Thread, loops: Loops) -> Body:
    """Steps of any length: sometimes the loader is late, and sequences differ in length."""
    kinds = loops.size(1, 4)
    for step in range(loops.size(30, 70)):
        loops.push(f"batch {step}")
        loops.begin("step")
        yield from t.os_call("read", int(loops.chance.expovariate(1) * 2 * MS) + 1000, "io_wait")
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from layers(t, loops.size(3, 3 + 4 * kinds), (("lstm_cell", 50), ("gates", 15)))
        yield from kernels(t, ("projection", 90), ("loss", 20), ("sgd_update", 40))
        if loops.waits:
            yield from t.synchronize()
        loops.pop()
