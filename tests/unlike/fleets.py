"""Programs of several loops or GPUs at a pace of their own, or whose work changes: actors, prompts and tokens apart,
stragglers, work that grows, a decoder behind."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import faster, ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import Collective
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _actors_sizes(chance: random.Random) -> Made:
    return Made(
        actors=chance.choice((1, 2)),
        acts=chance.choice((3, 6)),
        env=some(chance, 100),
        policy=some(chance, 20, 0.4),
        learn=some(chance, 150),
        room=chance.choice((1, 4)),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _actors_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "learner_gemm", "learn", "kernel"), halved(made, "environment", "env")]


@programs(_actors_fixes, _actors_sizes, levels=("step", "act", "rollout"), leads=("host", "sync", "input", "launch"))
def actors_and_a_learner(sim: Simulation, loops: Loops, made: Made) -> None:
    """Actors with a stream each take actions and hand rollouts to a learner on the same GPU, some ahead at most."""
    process, rollouts, free = solver(sim), sim.channel(), sim.channel()
    free.items = made.room

    def actor(t: Thread, index: int) -> Body:
        stream = process.stream()
        for number in range(index, STEPS, made.actors):
            yield from t.get(free, "pthread_cond_wait")
            loops.step(t, "rollout")
            for at in range(made.acts):
                loops.step(t, "act")
                ns = varied(made.env, "env", number, at)
                yield from ranged(t, "environment", t.compute(ns, "env_step"))
                yield from t.copy("HtoD", 65536, 6 * US, stream)
                yield from t.launch("policy_mlp", varied(made.policy, number, at), stream)
                yield from t.blocking_copy("DtoH", 256, 2 * US, stream)
            yield from t.put(rollouts, "pthread_cond_signal")

    own = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.get(rollouts, "pthread_cond_wait")
        yield from t.put(free, "pthread_cond_signal")
        yield from t.copy("HtoD", SIZE, 40 * US, own)
        for part in range(4):
            yield from t.launch("learner_gemm", varied(made.learn, number, part), own)
        yield from t.launch("adam", 30 * US, own)
        yield from t.blocking_copy("DtoH", 4, 2 * US, own)

    for index in range(made.actors):
        thread = sim.thread(process, partial(actor, index=index), name=f"actor {index}")
        if made.slow:
            waking(thread)
    in_steps(sim, process, loops, made, step)


def _apart_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        every=chance.choice((2, 4)),
        prefill=some(chance, 300),
        decode=some(chance, 60),
        sample=some(chance, 60),
        tokenize=some(chance, 100),
        move=some(chance, 60),
        room=chance.choice((1, 2)),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _apart_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "decode_layer", "decode", "kernel"), halved(made, "prefill_layer", "prefill", "kernel")]
    return [*found, halved(made, "sample", "sample"), halved(made, "tokenize", "tokenize")]


@programs(_apart_fixes, _apart_sizes, levels=("step", "request"), gpus=2, leads=("host", "sync", "launch", "input"))
def prefill_and_decode_apart(sim: Simulation, loops: Loops, made: Made) -> None:
    """A GPU computes prompts, another one tokens: each request's cache is copied from the first, and then takes some
    tokens. Each GPU has a process with a loop of its own."""
    ready, free = sim.channel(), sim.channel()
    free.items = made.room

    def prefill(t: Thread) -> Body:
        for number in range(STEPS // made.every + 1):
            loops.step(t, "request")
            yield from ranged(t, "tokenize", t.compute(varied(made.tokenize, "tokenize", number), "tokenize"))
            yield from t.get(free, "read")
            yield from t.copy("HtoD", 65536, 8 * US)
            for layer in range(4):
                yield from t.launch("prefill_layer", varied(made.prefill, number, layer))
            yield from t.copy("DtoD", SIZE, made.move)
            yield from t.synchronize()
            yield from t.put(ready, "write")

    def step(t: Thread, number: int) -> Body:
        if number % made.every == 0:
            yield from t.get(ready, "read")
            yield from t.put(free, "write")
            yield from t.launch("insert_cache", 10 * US)
        for layer in range(4):
            yield from t.launch("decode_layer", varied(made.decode, number, layer))
        yield from t.blocking_copy("DtoH", 128, 2 * US)
        yield from ranged(t, "sample", t.compute(varied(made.sample, "sample", number), "sample"))

    thread = sim.thread(solver(sim, [0]), prefill, name="prefill")
    if made.slow:
        waking(thread)
    in_steps(sim, solver(sim, [1]), loops, made, step)


def _straggler_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        late=some(chance, 300),
        often=chance.choice((0.3, 0.8)),
        host=some(chance, 60),
        kernel=some(chance, 120),
        reduce=some(chance, 60),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _straggler_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "collate", "host"), gone("decode", "late"), *no_read_back(made)]


@programs(_straggler_fixes, _straggler_sizes, gpus=3, leads=("communication", "host"))
def a_straggler_that_changes(sim: Simulation, loops: Loops, made: Made) -> None:
    """Three ranks sum up gradients; in many steps one of them, by chance, has a longer batch to decode."""
    joined: dict[int, Collective] = {}

    def step(t: Thread, number: int, rank: int) -> Body:
        chance = random.Random(f"{made.order} {number}")
        late = chance.random() < made.often and chance.randrange(3) == rank
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", rank, number), "collate"))
        if late and made.late:
            yield from ranged(t, "decode", t.compute(varied(made.late, "late", number), "decode"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(3):
            yield from t.launch("gemm", varied(made.kernel, rank, number, part))
        both = joined.setdefault(number, sim.collective(3))
        yield from t.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", made.reduce, collective=both)
        yield from t.launch("adam", 30 * US)
        yield from read_back(t, made)

    def other(t: Thread, rank: int) -> Body:
        for number in range(STEPS):
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number, rank))
        yield from t.synchronize()

    in_steps(sim, solver(sim, [0]), loops, made, partial(step, rank=0))
    for rank in (1, 2):
        sim.thread(solver(sim, [rank]), partial(other, rank=rank), name=f"rank{rank}")


def _doubles_sizes(chance: random.Random) -> Made:
    return Made(
        at=chance.choice((10, 20, 30)),
        ramp=chance.choice(("batch", "accumulate", "context", "power")),
        host=some(chance, 100),
        kernel=some(chance, 80),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _doubles_fixes(made: Made) -> Sequence[Fix]:
    if made.ramp == "accumulate":
        return []  # steps before and behind the change are not alike, and either may be those that are judged
    found = [
        Fix(
            "kernel halved",
            {"kernel": made.kernel // 2},
            tuple(faster("kernel", each, 0.5) for each in ("forward", "backward")),
        ),
        halved(made, "collate", "host"),
    ]
    return [*found, gone("collate", "host"), *no_read_back(made)]


@programs(_doubles_fixes, _doubles_sizes, levels=("step", "micro"))
def work_that_grows(sim: Simulation, loops: Loops, made: Made) -> None:
    """A schedule doubles the batch, or the micro batches, at some step; or kernels take a little longer with each step,
    as contexts grow, or power is short: the program may be bound by its host at first and by its GPU in the end."""
    process = solver(sim)

    def micro(t: Thread, number: int, at: int) -> Body:
        loops.step(t, "micro")
        late = number >= made.at
        size = {"batch": 1 + late, "context": 0.3 + number / STEPS * 2, "power": 1 + 0.6 * number / STEPS}
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number, at), "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part, name in enumerate(("forward", "forward", "backward", "backward")):
            longer = size.get(made.ramp, 1) if name == "backward" or made.ramp != "context" else 1
            yield from t.launch(name, round(varied(made.kernel, number, at, part) * longer))

    def step(t: Thread, number: int) -> Body:
        for at in range(2 if made.ramp == "accumulate" and number >= made.at else 1):
            yield from micro(t, number, at)
        yield from t.launch("adam", 30 * US)
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _images_sizes(chance: random.Random) -> Made:
    return Made(
        passes=chance.choice((4, 6)),
        nodes=chance.choice((3, 8)),
        kernel=some(chance, 40),
        decode=some(chance, 600),
        text=some(chance, 100),
        room=chance.choice((1, 2)),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _images_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "decode_latents", "decode"), halved(made, "encode_text", "text")]
    return [*found, gone("encode_text", "text")]


@programs(_images_fixes, _images_sizes, levels=("step", "pass"), leads=("host",))
def a_decoder_on_the_cpu(sim: Simulation, loops: Loops, made: Made) -> None:
    """Graphs of passes make latents, which are copied to the host and decoded there by a thread, an image or two
    behind."""
    process, full, free = solver(sim), sim.channel(), sim.channel()
    free.items = made.room

    def decoder(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(full, "pthread_cond_wait")
            ns = varied(made.decode, "decode", number)
            yield from ranged(t, "decode_latents", t.compute(ns, "vae_decode"))
            yield from t.put(free, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "encode_text", t.compute(varied(made.text, "text", number), "encode_text"))
        yield from t.copy("HtoD", 65536, 6 * US)
        for at in range(made.passes):
            loops.step(t, "pass")
            nodes = [Node("unet", varied(made.kernel, number, at, node)) for node in range(made.nodes)]
            yield from t.launch_graph(nodes, number=1)
        yield from t.get(free, "pthread_cond_wait")
        yield from t.blocking_copy("DtoH", 65536, 8 * US)
        yield from t.put(full, "pthread_cond_signal")

    thread = sim.thread(process, decoder, name="decoder")
    if made.slow:
        waking(thread)
    in_steps(sim, process, loops, made, step)
