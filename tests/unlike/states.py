"""Programs whose steps differ by what the host finds: batches that fill, losses that branch, graphs captured again, and
a lock that another thread holds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body
from tests.simulator.interpreter import Gil
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back


def _batching_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        room=chance.choice((4, 8, 16)),
        schedule=some(chance, 40),
        sample=some(chance, 60),
        text=some(chance, 60),
        layers=chance.choice((2, 6)),
        kernel=some(chance, 40),
        each=chance.choice((0, 3, 10)) * US,
        prefill=some(chance, 300),
        graphs=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _batching_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "schedule", "schedule"), halved(made, "sampling", "sample"), gone("sampling", "sample")]
    return [*found, halved(made, "prefill", "prefill", "kernel")]


def _requests(made: Made) -> list[tuple[int, int]]:
    """How many requests run in each step, and how many of them are new."""
    chance, running, found = random.Random(f"requests {made.order}"), 1, []
    for _ in range(STEPS):
        stay = sum(chance.random() < 0.85 for _ in range(running))
        new = min(made.room - stay, chance.choice((0, 0, 0, 1, 1, 2, 4)))
        new = max(new, 1 - stay)
        running = stay + new
        found.append((running, new))
    return found


@programs(_batching_fixes, _batching_sizes)
def requests_in_one_batch(sim: Simulation, loops: Loops, made: Made) -> None:
    """A server decodes a token of all requests at once; some end and others join. Another thread makes text of tokens,
    under the lock of the interpreter."""
    process, gil, tokens = sim.process(), Gil(), sim.channel()
    batches = _requests(made)

    def detokenize(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(tokens, "pthread_cond_wait")
            yield from gil.acquire(t)
            yield from ranged(t, "detokenize", gil.compute(t, varied(made.text, "text", number)))
            yield from gil.release(t)

    def python(t: Thread, name: str, ns: int) -> Body:
        yield from gil.acquire(t)
        yield from ranged(t, name, gil.compute(t, ns))
        yield from gil.release(t)

    def step(t: Thread, number: int) -> Body:
        running, new = batches[number]
        yield from python(t, "schedule", varied(made.schedule, "schedule", number))
        for request in range(new):
            yield from t.copy("HtoD", 65536, 6 * US)
            yield from t.launch("prefill", varied(made.prefill, "prefill", number, request, spread=0.5))
        layer = made.kernel + running * made.each
        kernels = [Node("decode_layer", varied(layer, number, at)) for at in range(made.layers)]
        if made.graphs:
            yield from t.launch_graph(kernels, number=running)
        for node in () if made.graphs else kernels:
            yield from t.launch(node.name, node.duration)
        yield from t.blocking_copy("DtoH", 4096, 2 * US)
        yield from python(t, "sampling", varied(made.sample, "sample", number))
        yield from t.put(tokens, "pthread_cond_signal")

    in_steps(sim, process, loops, made, step)
    thread = sim.thread(process, detokenize, name="detokenizer")
    if made.slow:
        waking(thread)


def _loss_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        skips=chance.choice((0.1, 0.3, 0.6)),
        data=some(chance, 60),
        loss=some(chance, 150),
        kernel=some(chance, 100),
        back=some(chance, 200),
        update=some(chance, 60),
        pinned=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _loss_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward", "kernel", "kernel"), halved(made, "backward", "back", "kernel")]
    return [*found, halved(made, "cpu_loss", "loss"), gone("cpu_loss", "loss"), halved(made, "collate", "data")]


@programs(_loss_fixes, _loss_sizes)
def a_loss_that_branches(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host computes the loss of what it reads back; if it is small, the step has no backward pass and no update."""
    process = solver(sim)
    own = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "collate", t.compute(varied(made.data, "data", number), "collate"))
        yield from t.copy("HtoD", SIZE, 40 * US, own)
        for part in range(3):
            yield from t.launch("forward", varied(made.kernel, number, part), own)
        if made.pinned:
            yield from t.copy("DtoH", SIZE, 40 * US, own)
            yield from t.synchronize(own)
        else:
            yield from t.blocking_copy("DtoH", SIZE, 40 * US, own)
        yield from ranged(t, "cpu_loss", t.compute(varied(made.loss, "loss", number), "cpu_loss"))
        if random.Random(f"{made.order} {number}").random() < made.skips:
            return
        yield from t.copy("HtoD", SIZE // 4, 20 * US, own)
        for part in range(3):
            yield from t.launch("backward", varied(made.back, "back", number, part), own)
        yield from t.launch("adam", varied(made.update, "update", number), own)

    in_steps(sim, process, loops, made, step)


def _metrics_sizes(chance: random.Random) -> Made:
    return Made(
        held=some(chance, 600),
        pause=some(chance, 1500),
        host=some(chance, 60),
        kernel=some(chance, 80),
        launches=chance.choice((2, 5)),
        waits=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _metrics_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]
    return [*found, Fix("no flush", {"held": 0}, without("lock_wait"), "lock_wait"), *no_read_back(made)]


@programs(_metrics_fixes, _metrics_sizes)
def a_thread_that_holds_a_lock(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread flushes metrics now and then under the lock that each step takes to add its own."""
    process, mutex, over = solver(sim), sim.mutex(), []

    def flush(t: Thread) -> Body:
        number = 0
        while not over:
            yield from t.sleep(varied(made.pause, "pause", number, spread=0.5))
            yield from t.lock(mutex)
            if made.held:
                yield from ranged(t, "flush", t.compute(varied(made.held, "held", number), "format_metrics"))
            yield from t.unlock(mutex)
            number += 1

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for part in range(made.launches):
            yield from t.launch("solve", varied(made.kernel, number, part))
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)
        yield from t.lock(mutex)
        yield from t.compute(3 * US, "add_metric")
        yield from t.unlock(mutex)
        if number == STEPS - 1:
            over.append(True)

    in_steps(sim, process, loops, made, step)
    thread = sim.thread(process, flush, name="metrics")
    if made.slow:
        waking(thread)


def _captured_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        changes=chance.choice((0.05, 0.15, 0.4)),
        nodes=chance.choice((8, 30)),
        kernel=some(chance, 25, 0.5),
        host=some(chance, 60),
        instantiate=some(chance, 400),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _captured_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "node_gemm", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]
    return [*found, Fix("no captures", {"changes": 0.0}, without("graph_build"), "graph_build"), *no_read_back(made)]


@programs(_captured_fixes, _captured_sizes, leads=("startup",))
def graphs_captured_again(sim: Simulation, loops: Loops, made: Made) -> None:
    """The work of a step is one graph, which is captured again when the shape of the batch changes."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        if random.Random(f"{made.order} {number}").random() < made.changes:
            yield from t.build_graph(made.nodes, instantiate=made.instantiate)
        yield from t.copy("HtoD", SIZE, 30 * US)
        nodes = [Node("node_gemm", varied(made.kernel, number, at)) for at in range(made.nodes)]
        yield from t.launch_graph(nodes, number=1)
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    in_steps(sim, process, loops, made, step)
