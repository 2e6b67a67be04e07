"""Loops whose levels share the names of their kernels, so that only order, time or the host tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.iterations.known_loops.known import Loops, family
from tests.iterations.programs import graph, kernels, layers
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

DECODER = (("rms_norm_kernel", 6), ("gemm_kernel", 30), ("attention_kernel", 20), ("gemm_kernel", 25))


def _decoder(t: Thread, loops: Loops, depth: int, scale: int = 1) -> Body:
    loops.begin("layer")
    yield from kernels(t, *((name, scale * ns) for name, ns in DECODER))
    for _ in range(depth - 1):
        loops.begin("layer")
        yield from kernels(t, *((name, scale * ns) for name, ns in DECODER))


@family("request")
def server_of_shared_kernels(t: Thread, loops: Loops) -> Body:
    """The prefill and each token run the same kernels; requests come at any time and have any number of tokens."""
    depth = loops.size(2, 8)
    for _ in range(loops.size(30, 60)):
        yield from t.os_call("epoll_wait", int(loops.chance.expovariate(1) * 3 * MS) + 1000, "io_wait")
        loops.begin("request")
        yield from t.blocking_copy("HtoD", 4096, 4 * US)
        yield from _decoder(t, loops, depth, 4)
        for _ in range(loops.size(2, 16)):
            loops.begin("token")
            yield from _decoder(t, loops, depth)
            yield from kernels(t, ("sample_kernel", 8))
            if loops.waits:
                yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from t.blocking_copy("DtoH", 4096, 4 * US)


@family("request", "token")
def decode_of_fixed_length(t: Thread, loops: Loops) -> Body:
    """10 requests of 8 tokens, say: each token is a pass over the layers and a sample."""
    depth, tokens = loops.size(4, 8), loops.size(6, 10)
    for _ in range(loops.size(8, 12)):
        loops.begin("request")
        yield from t.copy("HtoD", 4096, 4 * US)
        yield from _decoder(t, loops, depth, 3)
        for number in range(tokens):
            if number:
                loops.push("decode")
            loops.begin("token")
            yield from _decoder(t, loops, depth)
            yield from kernels(t, ("sample_kernel", 8))
            yield from t.blocking_copy("DtoH", 8, 2 * US)
            if number:
                loops.pop()
        yield from t.compute(300 * US, "detokenize")


@family("step")
def one_name(t: Thread, loops: Loops) -> Body:
    """All kernels of a step are of one template; the host waits behind each step, or works there."""
    times = loops.size(2, 9)
    lengths = [loops.size(20, 200) for _ in range(times)]
    for _ in range(loops.size(30, 80)):
        loops.begin("step")
        yield from kernels(t, *(("elementwise_kernel", ns) for ns in lengths))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from t.compute(loops.size(200, 400) * US)
        yield from t.synchronize()


@family("step")
def tasks_in_turn(t: Thread, loops: Loops) -> Body:
    """One of several heads in each step, always in the same order."""
    heads, depth = loops.size(2, 4), loops.size(2, 5)
    for step in range(loops.size(40, 80)):
        loops.push(f"step {step}")
        loops.begin("step")
        yield from t.copy("HtoD", 1 << 18, 20 * US)
        yield from layers(t, depth, (("trunk_gemm", 80), ("gelu", 15)))
        yield from kernels(t, (f"head_{step % heads}", 70), ("loss", 15))
        yield from layers(t, depth, (("trunk_gemm_bw", 120), ("gelu_bw", 20)))
        yield from layers(t, 3, (("elementwise_kernel", 25),))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        loops.pop()


@family("request")
def requests_of_kinds(t: Thread, loops: Loops) -> Body:
    """Each request asks one of three models."""
    for _ in range(loops.size(60, 120)):
        yield from t.os_call("epoll_wait", loops.size(20, 900) * US, "io_wait")
        loops.begin("request")
        yield from t.blocking_copy("HtoD", 4096, 4 * US)
        kind = loops.chance.choice(["small", "small", "large", "vision"])
        yield from kernels(t, ("preprocess", 20))
        yield from layers(t, {"small": 3, "large": 8, "vision": 5}[kind], ((f"{kind}_gemm", 70), ("bias_act", 15)))
        yield from t.blocking_copy("DtoH", 4096, 4 * US)


@family("epoch", "step")
def epochs(t: Thread, loops: Loops) -> Body:
    """Epochs of batches, each with an evaluation of a good part of its time."""
    batches, tests, depth = loops.size(10, 20), loops.size(6, 15), loops.size(2, 4)
    for _ in range(loops.size(4, 7)):
        loops.begin("epoch")
        for batch in range(batches):
            loops.push(f"batch {batch}")
            loops.begin("step")
            yield from t.copy("HtoD", 1 << 20, 60 * US)
            yield from layers(t, depth, (("conv", 100), ("relu", 20)))
            yield from layers(t, depth, (("conv_bw", 180), ("relu_bw", 25)))
            yield from layers(t, 4, (("sgd_update", 20),))
            if loops.waits:
                yield from t.blocking_copy("DtoH", 4, 2 * US)
            loops.pop()
        loops.push("validate")
        for _ in range(tests):
            loops.begin("test")
            yield from t.copy("HtoD", 1 << 20, 60 * US)
            yield from layers(t, depth, (("conv", 100), ("relu", 20)))
            yield from kernels(t, ("top_k", 15))
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        loops.pop()


@family("pass")
def passes_without_copies(t: Thread, loops: Loops) -> Body:
    """A benchmark: the same input again and again; only a wait at the end of a pass, or none."""
    depth = loops.size(4, 24)
    for _ in range(loops.size(10, 30)):
        loops.begin("pass")
        yield from _decoder(t, loops, depth)
        yield from kernels(t, ("rms_norm_kernel", 6), ("gemm_kernel", 150))
        if loops.waits:
            yield from t.synchronize()


@family("repeat")
def benchmark_of_sizes(t: Thread, loops: Loops) -> Body:
    """A kernel in several sizes, each so many times; a wait behind each size."""
    each = loops.size(10, 40)
    for size in range(loops.size(3, 6)):
        loops.begin("size")
        for _ in range(each):
            loops.begin("repeat")
            yield from kernels(t, ("gemm_kernel", 50 << size), ("reduce_kernel", 10 << size))
        yield from t.synchronize()
        yield from t.compute(400 * US)


@family("step")
def measurements(t: Thread, loops: Loops) -> Body:
    """A Monte Carlo walk: several updates, then a measurement of its own kernels, which is read."""
    updates = loops.size(3, 12)
    for _ in range(loops.size(12, 40)):
        loops.begin("step")
        for _ in range(updates):
            loops.begin("update")
            yield from kernels(t, ("heatbath_even", 60), ("heatbath_odd", 60))
        yield from kernels(t, ("plaquette", 40), ("reduce", 15), ("polyakov", 30))
        yield from t.blocking_copy("DtoH", 16, 2 * US)


@family("step")
def graph_of_micro_batches(t: Thread, loops: Loops) -> Body:
    """A graph for each micro batch, another one for the update."""
    micro = loops.size(2, 8)
    work, update = graph("forward_k", "backward_k", each=loops.size(60, 200)), graph("clip_k", "update_k", each=30)
    for _ in range(loops.size(15, 40)):
        loops.begin("step")
        for _ in range(micro):
            loops.begin("micro")
            yield from t.copy("HtoD", 1 << 18, 20 * US)
            yield from t.launch_graph(work, number=1)
        yield from t.launch_graph(update, number=2)
        if loops.waits:
            yield from t.synchronize()
