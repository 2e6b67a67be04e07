"""Programs shaped by the system around them: launches that block, a shared default stream, a quota of CPU time, a
scheduler ahead, actors, two GPUs with loops of their own, stragglers, work that doubles."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import Collective
from tests.simulator.host import Body, Stop
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _blocking_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((4, 12)),
        kernel=some(chance, 40),
        dispatch=some(chance, 20, 0.5),
        load=some(chance, 100),
        blocks=True,
        waits=True,
        names=chance.choice(("steps", "none")),
    )


def _blocking_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "layer", "kernel", "kernel"), halved(made, "dispatch", "dispatch")]
    found += [halved(made, "load", "load"), gone("load", "load")]
    found += [Fix("no sync", {"blocks": False}, without("sync"))]
    # The value is read back next to the last wait, for the same kernel: a finding on one is about both.
    return [*found, Fix("no waits", {"blocks": False, "waits": False}, without("sync", "blocking_copy"), "sync")]


@programs(_blocking_fixes, _blocking_sizes, leads=("sync", "host", "launch"))
def launches_that_block(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each launch waits for its kernel, as a variable is set that helps to look for faults."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "load", t.compute(varied(made.load, "load", number), "load"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for at in range(made.layers):
            ns = varied(made.dispatch, "dispatch", number, at)
            yield from ranged(t, "dispatch", t.compute(ns, "dispatch"))
            yield from t.launch("layer", varied(made.kernel, number, at))
            if made.blocks:
                yield from t.synchronize(process.null)
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _default_sizes(chance: random.Random) -> Made:
    return Made(
        streams=chance.choice((2, 4)),
        kernel=some(chance, 80),
        host=some(chance, 40),
        merge=some(chance, 30),
        every=chance.choice((1, 3)),
        blocking=True,
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _default_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "part", "kernel", "kernel"), halved(made, "merge", "merge", "kernel")]
    return [*found, halved(made, "prepare", "host"), gone("prepare", "host"), *no_read_back(made)]


@programs(_default_fixes, _default_sizes, levels=("step", "merge"), leads=("sync", "launch", "host"))
def results_through_the_default_stream(sim: Simulation, loops: Loops, made: Made) -> None:
    """Parts run in streams that stop for the default stream, in which their results are merged every few steps."""
    process = solver(sim)
    streams = [process.stream(blocking=True) for _ in range(made.streams)]

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for at, stream in enumerate(streams):
            yield from t.copy("HtoD", SIZE, 20 * US, stream)
            for part in range(2):
                yield from t.launch("part", varied(made.kernel, number, at, part), stream)
        if number % made.every == made.every - 1:
            loops.step(t, "merge")
            yield from t.launch("merge", varied(made.merge, "merge", number))
            yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _quota_sizes(chance: random.Random) -> Made:
    host, kernel, waits = some(chance, 150), some(chance, 100), chance.random() < 0.5
    busy = host / (host + 3 * kernel if waits else max(host, 3 * kernel))
    share, period = chance.uniform(0.3, 0.8) * busy, chance.choice((400 * US, 900 * US))
    names = chance.choice(("steps", "none"))
    return Made(share=share, period=period, host=host, kernel=kernel, waits=waits, names=names)


def _quota_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward", "kernel", "kernel"), halved(made, "augment", "host"), gone("augment", "host")]
    return [*found, *no_read_back(made), Fix("no limit", {"share": 9.0}, without("off_cpu"), "off_cpu")]


@programs(_quota_fixes, _quota_sizes, levels=("step", "period"), leads=("host",))
def a_quota_of_cpu_time(sim: Simulation, loops: Loops, made: Made) -> None:
    """A container has a share of a CPU: once it is used up, the thread stops until the next period begins."""
    process, used = solver(sim), [0, 0]

    def compute(t: Thread, ns: int) -> Body:
        while ns:
            now = t.clock.now // made.period
            if now != used[1]:
                used[:] = [0, now]
            left = round(made.period * made.share) - used[0]
            if left <= 0:
                yield Stop((now + 1) * made.period)
                continue
            part = min(ns, left)
            yield from t.compute(part, "augment")
            used[0] += part
            ns -= part

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "augment", compute(t, varied(made.host, "host", number)))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(3):
            yield from t.launch("forward", varied(made.kernel, number, part))
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _ahead_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        ahead=chance.choice((1, 2)),
        schedule=some(chance, 120),
        detokenize=some(chance, 80),
        layer=some(chance, 25, 0.5),
        layers=chance.choice((4, 10)),
        chunk=some(chance, 400),
        prefills=chance.choice((0.0, 0.15, 0.4)),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _ahead_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "schedule", "schedule"), gone("schedule", "schedule")]
    return [*found, halved(made, "detokenize", "detokenize"), halved(made, "prefill_attention", "chunk", "kernel")]


@programs(_ahead_fixes, _ahead_sizes, leads=("host",))
def a_scheduler_ahead(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread makes the next batches while the GPU decodes; another one launches a graph, or a chunk of a prefill and
    then the graph, and a third one makes text of the tokens, and frees the place of the batch."""
    process, batches, tokens, free = solver(sim), sim.channel(), sim.channel(), sim.channel()
    free.items = made.ahead + 1

    def scheduler(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(free, "pthread_cond_wait")
            yield from ranged(t, "schedule", t.compute(varied(made.schedule, "schedule", number), "schedule"))
            yield from t.put(batches, "pthread_cond_signal")

    def answer(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(tokens, "pthread_cond_wait")
            yield from t.put(free, "pthread_cond_signal")
            ns = varied(made.detokenize, "detokenize", number)
            yield from ranged(t, "detokenize", t.compute(ns, "detokenize"))

    def step(t: Thread, number: int) -> Body:
        yield from t.get(batches, "pthread_cond_wait")
        yield from t.copy("HtoD", 8192, 4 * US)
        if random.Random(f"{made.order} {number}").random() < made.prefills:
            yield from t.launch("prefill_attention", varied(made.chunk, "chunk", number))
        nodes = [Node("decode_layer", varied(made.layer, number, at)) for at in range(made.layers)]
        yield from t.launch_graph(nodes, number=1)
        yield from t.blocking_copy("DtoH", 512, 2 * US)
        yield from t.put(tokens, "pthread_cond_signal")

    threads = [sim.thread(process, scheduler, name="scheduler"), sim.thread(process, answer, name="detokenizer")]
    for each in threads if made.slow else ():
        waking(each)
    in_steps(sim, process, loops, made, step)


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
    found = [halved(made, "forward|backward", "kernel", "kernel"), halved(made, "collate", "host")]
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
