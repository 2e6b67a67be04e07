"""Programs that serve or evaluate: prefills among tokens, batches that wait for others, metrics, shapes, compilers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import MS, US, solver
from tests.replay.pairs.pair import ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _chunks_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        every=chance.choice((3, 6, 12)),
        chunks=chance.choice((1, 3)),
        prefill=some(chance, 400),
        layers=chance.choice((4, 12)),
        kernel=some(chance, 25, 0.5),
        blocks=some(chance, 30),
        sample=some(chance, 50),
        graphs=chance.random() < 0.6,
        pinned=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _chunks_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "prefill_chunk", "prefill", "kernel"), halved(made, "allocate_blocks", "blocks")]
    found += [gone("allocate_blocks", "blocks"), halved(made, "sampling", "sample"), gone("sampling", "sample")]
    return found if made.graphs else [*found, halved(made, "paged_decode", "kernel", "kernel")]


@programs(_chunks_fixes, _chunks_sizes)
def prefills_among_tokens(sim: Simulation, loops: Loops, made: Made) -> None:
    """A server with a cache of keys: each step decodes a token of all requests; a new request is prefilled in chunks,
    one in each of the next steps."""
    process = solver(sim)
    chance = random.Random(f"arrivals {made.order}")
    chunks = [0] * (STEPS + made.chunks)
    arrived = [number for number in range(STEPS) if chance.random() < 1 / made.every]
    for number in arrived:
        for at in range(made.chunks):
            chunks[number + at] += 1
    # The steps of a lone prefill are no kind of steps: the others are judged without them.
    loops.stopped = [number for number in range(STEPS) if chunks[number]] if len(arrived) == 1 else []

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "allocate_blocks", t.compute(varied(made.blocks, "blocks", number), "allocate_blocks"))
        yield from t.copy("HtoD", 4096, 3 * US)
        for part in range(chunks[number]):
            yield from t.launch("prefill_chunk", varied(made.prefill, "prefill", number, part))
        nodes = [Node("paged_decode", varied(made.kernel, number, at)) for at in range(made.layers)]
        if made.graphs:
            yield from t.launch_graph(nodes)
        for node in () if made.graphs else nodes:
            yield from t.launch(node.name, node.duration)
        yield from t.launch("sample_top_k", 12 * US)
        if made.pinned:
            yield from t.copy("DtoH", 1024, 2 * US)
            yield from t.synchronize(process.null)
        else:
            yield from t.blocking_copy("DtoH", 1024, 2 * US)
        yield from ranged(t, "sampling", t.compute(varied(made.sample, "sample", number), "append_tokens"))

    in_steps(sim, process, loops, made, step)


def _timeout_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        workers=chance.choice((1, 2, 3)),
        room=chance.choice((2, 4, 8)),
        timeout=some(chance, 300, 0.5),
        between=some(chance, 120),
        decode=some(chance, 40),
        kernel=some(chance, 80),
        post=some(chance, 60),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _timeout_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "trt_gemm", "kernel", "kernel"), halved(made, "postprocess", "post")]
    return [*found, gone("postprocess", "post"), halved(made, "assemble", "decode"), gone("assemble", "decode")]


def _batches(made: Made) -> list[tuple[int, int]]:
    """When each batch is full or its time is over, and how many requests it has."""
    chance, at, found = random.Random(f"arrivals {made.order}"), 2 * MS, []
    while len(found) < STEPS:
        first, size = at, 0
        while size < made.room and at - first <= made.timeout:
            size += 1
            at += round(made.between * chance.expovariate(1))
        found.append((at if size == made.room else first + made.timeout, size))
        at = max(at, found[-1][0])
    return found


@programs(_timeout_fixes, _timeout_sizes, levels=("step", "batch"), leads=("input", "host", "sync", "unknown"))
def batches_by_timeout(sim: Simulation, loops: Loops, made: Made) -> None:
    """Requests that come by chance are a batch if there are enough, or after some time; threads with a stream each run
    the batches in turn."""
    process, batches = solver(sim), _batches(made)
    asked = [sim.channel() for _ in range(made.workers)]

    def dispatch(t: Thread) -> Body:
        for number, (time, _) in enumerate(batches):
            if time > t.clock.now:
                yield from t.until(time, "epoll_wait", "io_wait")
            yield from t.put(asked[number % made.workers], "pthread_cond_signal")

    def batch(t: Thread, stream: Stream, number: int) -> Body:
        size = batches[number][1]
        yield from ranged(t, "assemble", t.compute(varied(made.decode, "decode", number), "assemble"))
        yield from t.copy("HtoD", 65536 * size, 4 * US * size, stream)
        for part in range(3):
            yield from t.launch("trt_gemm", varied(made.kernel, number, part), stream)
        yield from t.copy("DtoH", 4096 * size, 3 * US, stream)
        yield from t.synchronize(stream)
        yield from ranged(t, "postprocess", t.compute(varied(made.post, "post", number), "softmax_cpu"))

    def runs(index: int) -> object:
        def main(t: Thread) -> Body:
            stream = process.stream()
            if not index:
                loops.begin(t)
            for number in range(index, STEPS, made.workers):
                yield from t.get(asked[index], "pthread_cond_wait")
                loops.step(t, "batch")
                if not index:
                    loops.step(t)
                yield from ranged(t, f"batch {number}" if made.names == "steps" else "", batch(t, stream, number))
            if not index:
                loops.end(t)

        return main

    threads = [sim.thread(process, dispatch, name="batcher")]
    threads += [sim.thread(process, runs(index), name=f"worker {index}") for index in range(made.workers)]  # type: ignore[arg-type]
    for each in threads if made.slow else ():
        waking(each)


def _metrics_sizes(chance: random.Random) -> Made:
    return Made(
        values=chance.choice((1, 3, 6)),
        fetch=some(chance, 60),
        metric=some(chance, 80),
        every=chance.choice((1, 1, 4)),
        kernel=some(chance, 120),
        waits=True,
        names=chance.choice(("steps", "none")),
    )


def _metrics_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "infer_gemm", "kernel", "kernel"), halved(made, "fetch", "fetch"), gone("fetch", "fetch")]
    return [*found, halved(made, "update_metric", "metric"), gone("update_metric", "metric"), *no_read_back(made)]


@programs(_metrics_fixes, _metrics_sizes, levels=("step", "read"))
def metrics_that_block(sim: Simulation, loops: Loops, made: Made) -> None:
    """An evaluation reads back some values of each batch, or of every few, one by one, and adds them up on the host."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "fetch", t.compute(varied(made.fetch, "fetch", number), "fetch"))
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(3):
            yield from t.launch("infer_gemm", varied(made.kernel, number, part))
        if number % made.every == made.every - 1:
            loops.step(t, "read")
            for value in range(made.values):
                yield from t.launch("reduce_metric", 6 * US)
                yield from read_back(t, made)
                name = "update_metric" if not value else ""
                ns = made.metric if not value else 3 * US
                yield from ranged(t, name, t.compute(varied(ns, "metric", number, value), "update_metric"))

    in_steps(sim, process, loops, made, step)


def _shapes_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        often=chance.choice((0.1, 0.3, 0.6)),
        malloc=some(chance, 200),
        free=some(chance, 60),
        allocates=True,
        host=some(chance, 80),
        kernel=some(chance, 120),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _shapes_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "gather", "kernel", "kernel"), halved(made, "sample", "host"), gone("sample", "host")]
    found += [Fix("no allocations", {"allocates": False}, without("memory_allocation"), "memory_allocation")]
    return [*found, *no_read_back(made)]


@programs(_shapes_fixes, _shapes_sizes, leads=("memory",))
def shapes_that_allocate(sim: Simulation, loops: Loops, made: Made) -> None:
    """A sampler of graphs: if its result is larger than any before, memory is freed and allocated, in the middle of a
    step."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        chance = random.Random(f"{made.order} {number}")
        scale = chance.lognormvariate(0, 0.4)
        yield from ranged(t, "sample", t.compute(round(made.host * scale), "sample_neighbours"))
        yield from t.copy("HtoD", round(SIZE * scale), round(30 * US * scale))
        yield from t.launch("gather", round(made.kernel * scale))
        if chance.random() < made.often and made.allocates:
            yield from t.free(varied(made.free, "free", number))
            yield from t.api("cudaMalloc", varied(made.malloc, "malloc", number), "memory_allocation")
        for _ in range(3):
            yield from t.launch("gather", round(made.kernel * scale))
        yield from t.launch("adam", 30 * US)
        yield from read_back(t, made, 8)

    in_steps(sim, process, loops, made, step)


def _compile_sizes(chance: random.Random) -> Made:
    times = chance.choice((1, 2, 3))
    return Made(
        at=tuple(sorted(chance.sample(range(6, STEPS - 4), times))),
        compile=some(chance, 3_000, 1.0),
        modules=chance.choice((1, 4)),
        host=some(chance, 60),
        kernel=some(chance, 120),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _compile_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "triton_fused", "kernel", "kernel"), halved(made, "guards", "host"), gone("guards", "host")]
    return [*found, halved(made, "compile", "compile"), gone("compile", "compile"), *no_read_back(made)]


@programs(_compile_fixes, _compile_sizes, leads=("startup",))
def a_compile_in_the_middle(sim: Simulation, loops: Loops, made: Made) -> None:
    """Some steps have a new shape: the host compiles for it, and loads the modules."""
    process = sim.process()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "guards", t.compute(varied(made.host, "host", number), "check_guards"))
        if number in made.at:
            loops.stopped.append(number)
            yield from ranged(t, "compile", t.compute(varied(made.compile, "compile", number), "llvm_optimize"))
            for _ in range(made.modules):
                yield from t.api("cuModuleLoadDataEx", 150 * US, "module_load")
        shape = sum(each <= number for each in made.at)
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(4):
            yield from t.launch(f"triton_fused_{shape}", varied(made.kernel, number, part))
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)
