"""Programs of several streams or loops inside each other: uploads by a thread, weights that stream in, allocations in
each step, and tokens of requests."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import CudaEvent
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved


def _uploads_sizes(chance: random.Random) -> Made:
    return Made(
        decode=some(chance, 250),
        copy=some(chance, 100),
        kernel=some(chance, 150),
        host=some(chance, 40),
        depth=chance.choice((1, 2)),
        call=chance.choice(("pthread_cond_wait", "sem_wait")),
        names=chance.choice(("steps", "none")),
    )


def _uploads_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train", "kernel", "kernel"), halved(made, "prepare", "host")]
    return [*found, halved(made, "augment", "decode"), gone("augment", "decode")]


@programs(_uploads_fixes, _uploads_sizes, leads=("input",))
def a_thread_that_uploads(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread decodes batches and uploads them in a stream of its own; another one waits for them, and launches."""
    process, full, free = solver(sim), sim.channel(), sim.channel()
    own, upload = process.stream(), process.stream()
    post = "pthread_cond_signal" if made.call == "pthread_cond_wait" else "sem_post"
    ready: list[CudaEvent] = []

    def feeder(t: Thread) -> Body:
        for number in range(STEPS):
            if number >= made.depth:
                yield from t.get(free, made.call)
            yield from ranged(t, "augment", t.compute(varied(made.decode, "decode", number), "augment"))
            yield from t.copy("HtoD", SIZE, varied(made.copy, "copy", number), upload)
            ready.append(t.event())
            yield from t.record(ready[-1], upload)
            yield from t.put(full, post)

    def step(t: Thread, number: int) -> Body:
        yield from t.get(full, made.call)
        yield from t.wait_event(own, ready[number])
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for part in range(2):
            yield from t.launch("train", varied(made.kernel, number, part), own)
        yield from t.synchronize(own)
        yield from t.put(free, post)

    in_steps(sim, process, loops, made, step)
    sim.thread(process, feeder, name="feeder")


def _weights_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((3, 6)),
        copy=some(chance, 150),
        kernel=some(chance, 150),
        host=some(chance, 15),
        ahead=chance.choice((1, 2)),
        sync=True,
        names=chance.choice(("steps", "none")),
    )


def _weights_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "layer", "kernel", "kernel"), halved(made, "schedule", "host"), gone("schedule", "host")]
    return [*found, Fix("no sync", {"sync": False}, without("sync"), "sync")]


@programs(_weights_fixes, _weights_sizes, levels=("step", "layer"))
def weights_that_stream_in(sim: Simulation, loops: Loops, made: Made) -> None:
    """The weights of each layer come from the host, a layer or two ahead."""
    process = solver(sim)
    own, upload = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        used: list[CudaEvent] = []
        for layer in range(made.layers):
            loops.step(t, "layer")
            yield from ranged(t, "schedule", t.compute(varied(made.host, "host", number, layer), "schedule"))
            if layer >= made.ahead:
                yield from t.wait_event(upload, used[layer - made.ahead])
            yield from t.copy("HtoD", SIZE, varied(made.copy, "copy", number, layer), upload)
            came = t.event()
            yield from t.record(came, upload)
            yield from t.wait_event(own, came)
            yield from t.launch("layer", varied(made.kernel, number, layer), own)
            used.append(t.event())
            yield from t.record(used[-1], own)
        if made.sync:
            yield from t.synchronize(own)

    in_steps(sim, process, loops, made, step)


def _allocations_sizes(chance: random.Random) -> Made:
    return Made(
        alloc=some(chance, 80),
        frees=some(chance, 60),
        kernel=some(chance, 200),
        host=some(chance, 50),
        tensors=chance.choice((1, 3)),
        names=chance.choice(("steps", "none")),
    )


def _allocations_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "solve", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]


@programs(_allocations_fixes, _allocations_sizes)
def allocations_in_each_step(sim: Simulation, loops: Loops, made: Made) -> None:
    """cudaMalloc and cudaFree around the work of each step."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        for part in range(made.tensors):
            yield from t.api("cudaMalloc", varied(made.alloc, "alloc", number, part), "memory_allocation")
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for part in range(3):
            yield from t.launch("solve", varied(made.kernel, number, part))
        for part in range(made.tensors):
            yield from t.free(varied(made.frees, "free", number, part))

    in_steps(sim, process, loops, made, step)


def _tokens_sizes(chance: random.Random) -> Made:
    return Made(
        tokens=chance.choice((5, 8, 10)),
        prefill=some(chance, 300),
        kernel=some(chance, 30),
        grow=chance.choice((0, 2, 8)) * US,
        layers=chance.choice((3, 8)),
        host=some(chance, 40),
        sample=some(chance, 25),
        names=chance.choice(("steps", "none")),
    )


def _tokens_fixes(made: Made) -> Sequence[Fix]:
    found = [
        halved(made, "sampling", "sample"),
        gone("sampling", "sample"),
        halved(made, "prefill", "prefill", "kernel"),
    ]
    return [*found, *([] if made.grow else [halved(made, "decode_layer", "kernel", "kernel")])]


@programs(_tokens_fixes, _tokens_sizes, levels=("step", "token"))
def tokens_of_requests(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each request has a prefill, and then tokens, each of which the host samples."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "tokenize", t.compute(varied(made.host, "host", number), "tokenize"))
        yield from t.copy("HtoD", 65536, 10 * US)
        yield from t.launch("prefill", varied(made.prefill, "prefill", number))
        yield from t.blocking_copy("DtoH", 1024, 2 * US)
        for token in range(made.tokens):
            loops.step(t, "token")
            yield from ranged(t, "sampling", t.compute(varied(made.sample, "sample", number, token), "sample"))
            for layer in range(made.layers):
                yield from t.launch("decode_layer", varied(made.kernel, number, token, layer) + token * made.grow)
            yield from t.blocking_copy("DtoH", 1024, 2 * US)

    in_steps(sim, process, loops, made, step)
