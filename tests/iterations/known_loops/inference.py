"""Loops that infer: requests of tokens, images of denoising steps, replayed graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.iterations.known_loops.known import Loops, family
from tests.iterations.programs import LAYER, graph, kernels, layers
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body


def _prefill(t: Thread, depth: int, length: int) -> Body:
    yield from t.copy("HtoD", 1 << 12, 4 * US)
    yield from kernels(t, ("embedding", 10 + length))
    yield from layers(t, depth, (("rms_norm", 20), ("gemm_prefill", 100 * length), ("flash_fwd", 60 * length)))
    yield from kernels(t, ("lm_head", 120))


def _token(t: Thread, loops: Loops, depth: int) -> Body:
    yield from layers(t, depth, (("rms_norm", 5), ("gemv", 25), ("paged_attention", 15)))
    yield from kernels(t, ("lm_head", 60), ("argmax", 8))
    if loops.waits:
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@family("request")
def requests_of_any_length(t: Thread, loops: Loops) -> Body:
    """A server: a prefill, then tokens of any number; requests come at any time."""
    depth = loops.size(2, 6)
    for request in range(loops.size(25, 60)):
        yield from t.os_call("epoll_wait", int(loops.chance.expovariate(1) * 2 * MS) + 1000, "io_wait")
        loops.push(f"request {request}")
        loops.begin("request")
        yield from _prefill(t, depth, loops.size(1, 4))
        for _ in range(loops.size(2, 16)):
            loops.begin("token")
            yield from _token(t, loops, depth)
        yield from t.blocking_copy("DtoH", 4096, 4 * US)
        loops.pop()


@family("request")
def requests_of_one_length(t: Thread, loops: Loops) -> Body:
    """So many tokens each, in a row."""
    depth, tokens = loops.size(2, 6), loops.size(4, 16)
    for _ in range(loops.size(8, 25)):
        loops.begin("request")
        yield from _prefill(t, depth, 3)
        for number in range(tokens):
            loops.push(f"token {number}")
            loops.begin("token")
            yield from _token(t, loops, depth)
            loops.pop()
        yield from t.blocking_copy("DtoH", 4096, 4 * US)


@family("request")
def decode_by_graphs(t: Thread, loops: Loops) -> Body:
    """The prefill by kernels, each token by one replay."""
    nodes = graph("rms_norm", "gemv", "paged_attention", "lm_head", each=25)
    for _ in range(loops.size(8, 30)):
        loops.begin("request")
        yield from _prefill(t, loops.size(2, 2), 3)
        for _ in range(loops.size(3, 14)):
            loops.begin("token")
            yield from t.launch_graph(nodes, number=1)
            yield from kernels(t, ("argmax", 8))
            yield from t.blocking_copy("DtoH", 8, 2 * US)


@family("step")
def replays_in_steps(t: Thread, loops: Loops) -> Body:
    """Several replays of one graph for each input."""
    nodes, times = graph("attention", "mlp", "norm", each=loops.size(20, 80)), loops.size(2, 12)
    for _ in range(loops.size(20, 80)):
        loops.begin("step")
        yield from t.copy("HtoD", 4096, 3 * US)
        for _ in range(times):
            loops.begin("replay")
            yield from t.launch_graph(nodes, number=1)
        if loops.waits:
            yield from t.synchronize()
            yield from t.compute(80 * US)
        else:
            yield from kernels(t, ("gather_result", 20))


@family("image", "batch")
def diffusion(t: Thread, loops: Loops) -> Body:
    """Text encoder, k denoising steps of a network, decoder, then the picture goes to the host."""
    steps, depth = loops.chance.choice([4, 8, 20, 30]), loops.size(3, 8)
    for image in range(loops.size(6, 15)):
        loops.push(f"image {image}")
        loops.begin("image")
        yield from t.copy("HtoD", 1 << 10, 3 * US)
        yield from layers(t, 4, (("text_gemm", 40), ("text_attention", 20)))
        for _ in range(steps):
            loops.begin("denoise")
            yield from kernels(t, ("time_embedding", 6))
            yield from layers(t, depth, (("group_norm", 15), ("conv_unet", 90), ("attention", 50)))
            yield from kernels(t, ("scheduler_step", 8))
        yield from layers(t, 5, (("conv_vae", 160), ("upsample", 30)))
        yield from t.blocking_copy("DtoH", 3 << 18, 70 * US)
        if loops.waits:
            yield from t.os_call("write", loops.size(1, 4) * MS, "io_wait")
        loops.pop()


@family("pass")
def passes_of_layers(t: Thread, loops: Loops) -> Body:
    """Batches of offline inference; only every second one waits for its result."""
    depth = loops.size(6, 32)
    for _ in range(loops.size(8, 24)):
        loops.push("infer")
        loops.begin("pass")
        yield from t.copy("HtoD", 1 << 16, 8 * US)
        yield from kernels(t, ("embedding", 15))
        for _ in range(depth):
            loops.begin("layer")
            yield from kernels(t, *LAYER)
        yield from kernels(t, ("head", 80))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 1 << 12, 4 * US)
        loops.pop()


@family("step")
def speculation(t: Thread, loops: Loops) -> Body:
    """A small model drafts k tokens, the large one checks them."""
    drafts, depth = loops.size(2, 6), loops.size(3, 6)
    for _ in range(loops.size(30, 70)):
        loops.begin("step")
        for _ in range(drafts):
            loops.begin("draft")
            yield from kernels(t, ("draft_gemv", 15), ("draft_attention", 10), ("draft_argmax", 5))
        yield from layers(t, depth, (("verify_gemm", 70), ("verify_attention", 40)))
        yield from kernels(t, ("accept", 8))
        yield from t.blocking_copy("DtoH", 64, 2 * US)


@family("frame")
def frames_on_streams(t: Thread, loops: Loops) -> Body:
    """Tiles of a frame on several streams, the next frame's upload on another one."""
    count = loops.size(2, 4)
    streams, side = [t.process.stream() for _ in range(count)], t.process.stream()
    tiles = loops.size(1, 4)
    for frame in range(loops.size(20, 60)):
        loops.push(f"frame {frame}")
        loops.begin("frame")
        yield from t.copy("HtoD", 1 << 20, 60 * US, side)
        event = t.event()
        yield from t.record(event, side)
        for stream in streams:
            yield from t.wait_event(stream, event)
            for _ in range(tiles):
                yield from kernels(t, ("filter", 60), ("resize", 25), stream=stream)
        for stream in streams:
            done = t.event()
            yield from t.record(done, stream)
            yield from t.wait_event(side, done)
        yield from kernels(t, ("compose", 50), stream=side)
        if loops.waits:
            yield from t.synchronize(side)
        loops.pop()
