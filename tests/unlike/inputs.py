"""Programs whose input or memory is uneven: lengths, jitter, first steps that allocate or compile, far memory."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back


def _lengths_sizes(chance: random.Random) -> Made:
    return Made(
        pad=some(chance, 100),
        kernel=some(chance, 120),
        quadratic=chance.random() < 0.5,
        spread=chance.choice((0.5, 1.0, 1.5)),
        order=chance.randint(0, 999),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _lengths_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "attention", "kernel", "kernel"), halved(made, "pad", "pad"), gone("pad", "pad")]
    return [*found, *no_read_back(made)]


@programs(_lengths_fixes, _lengths_sizes)
def mixed_lengths(sim: Simulation, loops: Loops, made: Made) -> None:
    """Sequences of any length, which the host pads."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        scale = random.Random(f"{made.order} {number}").lognormvariate(0, made.spread / 2)
        yield from ranged(t, "pad", t.compute(round(made.pad * scale), "pad_sequence"))
        yield from t.copy("HtoD", round(SIZE * scale), round(40 * US * scale))
        for _ in range(3):
            yield from t.launch("attention", round(made.kernel * (scale**2 if made.quadratic else scale)))
            yield from t.launch("mlp", round(50 * US * scale))
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    in_steps(sim, process, loops, made, step)


def _prefetch_sizes(chance: random.Random) -> Made:
    return Made(
        load=some(chance, 350, 0.6),
        jitter=chance.choice((0.3, 0.6, 0.9)),
        order=chance.randint(0, 999),
        depth=2,
        reads=chance.random() < 0.5,
        host=some(chance, 60),
        kernel=some(chance, 300, 0.6),
        waits=chance.random() < 0.6,
        slow=chance.random() < 0.5,
        call=chance.choice(("sem_wait", "pthread_cond_wait")),
        names=chance.choice(("steps", "none")),
    )


def _prefetch_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "collate", "host"), gone("collate", "host")]
    loads = Fix("no reads", {"load": 0}, without("io_wait")) if made.reads else halved(made, "decode", "load")
    found += [loads, Fix("loader ahead", {"load": 0}, without("data_loading"), "data_loading")]
    return [*found, Fix("no sync", {"waits": False}, without("sync"), "sync")] if made.waits else found


@programs(_prefetch_fixes, _prefetch_sizes, leads=("input",))
def a_prefetch_of_two(sim: Simulation, loops: Loops, made: Made) -> None:
    """A loader with jitter, two batches ahead at most."""
    process, full, free = solver(sim), sim.channel(), sim.channel()
    free.items = made.depth
    post = {"sem_wait": "sem_post", "pthread_cond_wait": "pthread_cond_signal"}[made.call]

    def load(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(free, made.call)
            ns = round(made.load * random.Random(f"{made.order} {number}").lognormvariate(0, made.jitter))
            if ns and made.reads:
                yield from t.read_file(ns, "pread64")
            elif ns:
                yield from ranged(t, "decode", t.compute(ns, "jpeg_idct_islow"))
            yield from t.put(full, post)

    def step(t: Thread, number: int) -> Body:
        yield from t.get(full, made.call)
        yield from t.put(free, post)
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number), "collate"))
        yield from t.copy("HtoD", SIZE, 60 * US)
        yield from t.launch("solve", varied(made.kernel, "kernel", number))
        if made.waits:
            yield from t.synchronize()

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
        loops.end(t)
        yield from t.synchronize()

    threads = sim.thread(process, load, name="pt_data_worker", loads="name"), sim.thread(process, main, name="runner")
    for each in threads if made.slow else ():
        waking(each)


def _first_sizes(chance: random.Random) -> Made:
    return Made(
        first=chance.choice((3, 6, 10)),
        cost=some(chance, 2_000),
        host=some(chance, 80),
        kernel=some(chance, 150),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _first_fixes(made: Made) -> Sequence[Fix]:
    found = [
        halved(made, "fused_kernel", "kernel", "kernel"),
        halved(made, "dispatch", "host"),
        gone("dispatch", "host"),
    ]
    return [*found, Fix("no sync", {"waits": False}, without("sync"), "sync")] if made.waits else found


def _first_steps(sim: Simulation, loops: Loops, made: Made, *, compiles: bool) -> None:
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "dispatch", t.compute(varied(made.host, "host", number), "dispatch"))
        late = round(made.cost * 0.7**number) if number < made.first else 0
        if late and not compiles:
            yield from t.api("cudaMalloc", late, "memory_allocation", ioctl=late // 2)
        for part in range(4):
            overhead = [("jit", late // 4)] if late and compiles else []
            yield from t.launch("fused_kernel", varied(made.kernel, number, part), overhead=overhead)
        if made.waits:
            yield from t.synchronize()

    in_steps(sim, process, loops, made, step)


@programs(_first_fixes, _first_sizes, leads=("startup",))
def compiles_in_first_steps(sim: Simulation, loops: Loops, made: Made) -> None:
    """Kernels are compiled in the first steps, less and less."""
    _first_steps(sim, loops, made, compiles=True)


@programs(_first_fixes, _first_sizes, leads=("memory",))
def a_pool_that_grows(sim: Simulation, loops: Loops, made: Made) -> None:
    """A memory pool grows in the first steps, less and less."""
    _first_steps(sim, loops, made, compiles=False)


def _far_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((2, 3, 7)),
        copy=some(chance, 150),
        far=chance.choice((2, 4)),
        host=some(chance, 60),
        kernel=some(chance, 150),
        asynchronous=False,
        back=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _far_fixes(made: Made) -> Sequence[Fix]:
    return [
        halved(made, "solve", "kernel", "kernel"),
        halved(made, "fill", "host"),
        gone("fill", "host"),
        Fix("asynchronous copies", {"asynchronous": True}, (Transform("async-copies"),)),
    ]


@programs(_far_fixes, _far_sizes)
def copies_from_far_memory(sim: Simulation, loops: Loops, made: Made) -> None:
    """Uploads from pageable memory, in some steps from that of the other CPU."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "fill", t.compute(varied(made.host, "host", number), "fill"))
        ns = varied(made.copy, "copy", number) * (made.far if number % made.every == 0 else 1)
        if made.asynchronous:
            yield from t.copy("HtoD", SIZE, ns)
        else:
            yield from t.blocking_copy("HtoD", SIZE, ns, staging=ns // 2)
        for part in range(2):
            yield from t.launch("solve", varied(made.kernel, number, part))
        if made.back:
            yield from t.synchronize()

    in_steps(sim, process, loops, made, step)


def _graph_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((3, 5, 9)),
        nodes=chance.choice((6, 20, 60)),
        kernel=some(chance, 12, 0.5),
        host=some(chance, 60),
        each=some(chance, 6, 0.3),
        waits=chance.random() < 0.6,
        names=chance.choice(("steps", "none")),
    )


def _graph_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "node_gemm", "kernel", "kernel"), halved(made, "sample", "host"), gone("sample", "host")]
    return [*found, *no_read_back(made)]


@programs(_graph_fixes, _graph_sizes)
def graphs_in_some_steps(sim: Simulation, loops: Loops, made: Made) -> None:
    """A graph in most steps; in every few the shapes fit none, and each kernel is launched."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "sample", t.compute(varied(made.host, "host", number), "sample"))
        yield from t.copy("HtoD", 4096, 4 * US)
        kernels = [Node("node_gemm", varied(made.kernel, number, each)) for each in range(made.nodes)]
        if number % made.every:
            yield from t.launch_graph(kernels)
        else:
            for node in kernels:
                yield from t.compute(made.each, "dispatch")
                yield from t.launch(node.name, node.duration)
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    in_steps(sim, process, loops, made, step)
