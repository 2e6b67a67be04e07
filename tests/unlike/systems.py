"""Programs shaped by the system around them: launches that block, a shared default stream, a limit of CPU time, a
scheduler ahead."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
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
