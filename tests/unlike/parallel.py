"""Programs of several threads, processes or GPUs: a team of threads, gathered shards, tensor parallel tokens,
simulators in processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Collective, CudaEvent, Stream
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _team_sizes(chance: random.Random) -> Made:
    return Made(
        threads=chance.choice((2, 4)),
        sample=some(chance, 300),
        spread=chance.choice((0.1, 0.5)),
        kernel=some(chance, 100),
        ahead=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _team_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "gather_neighbours", "sample"), halved(made, "aggregate", "kernel", "kernel")]
    return [*found, gone("gather_neighbours", "sample"), *no_read_back(made)]


@programs(_team_fixes, _team_sizes)
def a_team_of_threads(sim: Simulation, loops: Loops, made: Made) -> None:
    """A team of threads, as of OpenMP, prepares each batch with the thread that launches, which waits for the last."""
    process, over = solver(sim), sim.channel()
    asked = [sim.channel() for _ in range(made.threads - 1)]

    def part(t: Thread, number: int, index: int) -> Body:
        ns = varied(made.sample, "sample", number, index, spread=made.spread)
        yield from ranged(t, "gather_neighbours", t.compute(ns, "gather_neighbours"))

    def member(index: int) -> Callable[[Thread], Body]:
        def run(t: Thread) -> Body:
            for number in range(STEPS):
                yield from t.get(asked[index], "futex")
                yield from part(t, number, index + 1)
                yield from t.put(over, "futex")

        return run

    def step(t: Thread, number: int) -> Body:
        for each in asked:
            yield from t.put(each, "futex")
        yield from part(t, number, 0)
        for _ in asked:
            yield from t.get(over, "futex")
        yield from t.copy("HtoD", SIZE, 40 * US)
        for each in range(3):
            yield from t.launch("aggregate", varied(made.kernel, number, each))
        yield from t.launch("adam", 30 * US)
        yield from read_back(t, made)

    for index in range(made.threads - 1):
        thread = sim.thread(process, member(index), name=f"omp_{index}")
        if made.slow:
            waking(thread)
    in_steps(sim, process, loops, made, step)


def _shards_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((3, 6)),
        host=some(chance, 80),
        kernel=some(chance, 100),
        gather=some(chance, 60),
        reduce=some(chance, 60),
        ahead=chance.choice((1, 2)),
        late=chance.choice((1.0, 1.0, 2.0)),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _shards_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward_gemm|backward_gemm", "kernel", "kernel"), halved(made, "collate", "host")]
    return [*found[1:], *no_read_back(made)]


@programs(_shards_fixes, _shards_sizes, gpus=2, leads=("communication",))
def shards_gathered_ahead(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two ranks gather the weights of a layer while they compute the one before, forward and backward, and reduce
    gradients behind."""
    joined: dict[tuple[object, ...], Collective] = {}

    def exchange(t: Thread, name: str, ns: int, side: Stream, after: CudaEvent | None, *key: object) -> Body:
        if after is not None:
            yield from t.wait_event(side, after)
        both = joined.setdefault((name, *key), sim.collective(2))
        yield from t.launch(f"ncclDevKernel_{name}_RING_LL", ns, side, collective=both)

    def layers(t: Thread, number: int, rank: int, backward: bool, streams: tuple[Stream, Stream]) -> Body:
        own, side = streams
        gathered, computed = list[CudaEvent](), list[CudaEvent]()
        name = "backward_gemm" if backward else "forward_gemm"
        for at in range(made.layers + made.ahead):
            if at < made.layers:
                free = computed[at - made.ahead - 1] if at > made.ahead else None
                yield from exchange(t, "AllGather", made.gather, side, free, number, backward, at)
                gathered.append(t.event())
                yield from t.record(gathered[-1], side)
            if at >= made.ahead:
                layer = at - made.ahead
                yield from t.wait_event(own, gathered[layer])
                yield from t.launch(name, varied(made.kernel * (1 + backward), rank, number, layer, name), own)
                computed.append(t.event())
                yield from t.record(computed[-1], own)
                if backward:
                    yield from exchange(t, "ReduceScatter", made.reduce, side, computed[-1], number, layer)

    def step(t: Thread, number: int, rank: int, streams: tuple[Stream, Stream]) -> Body:
        ns = round(varied(made.host, "host", rank, number) * (made.late if rank else 1))
        yield from ranged(t, "collate", t.compute(ns, "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US, streams[0])
        for backward in (False, True):
            yield from layers(t, number, rank, backward, streams)
        done = t.event()
        yield from t.record(done, streams[1])
        yield from t.wait_event(streams[0], done)
        yield from t.launch("adam", 50 * US, streams[0])
        yield from read_back(t, made, stream=streams[0])

    _ranks(sim, loops, made, step)


def _ranks(sim: Simulation, loops: Loops, made: Made, step: Callable[..., Body]) -> None:
    """Two processes take all steps, each with two streams; those of the first are counted."""

    def main(t: Thread, rank: int, streams: tuple[Stream, Stream]) -> Body:
        if not rank:
            loops.begin(t)
        for number in range(STEPS):
            if not rank:
                loops.step(t)
            yield from ranged(
                t, f"step {number}" if made.names == "steps" else "", step(t, number, rank=rank, streams=streams)
            )
        if not rank:
            loops.end(t)
        yield from t.synchronize()

    for rank in range(2):
        process = solver(sim, [rank])
        streams = process.stream(), process.stream()
        sim.thread(process, partial(main, rank=rank, streams=streams), name=f"rank{rank}")


def _tokens_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((2, 5)),
        kernel=some(chance, 40, 0.5),
        comm=some(chance, 15, 0.4),
        schedule=some(chance, 80),
        sample=some(chance, 60),
        graphs=chance.random() < 0.4,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _tokens_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "schedule", "schedule"), gone("schedule", "schedule")]
    return [*found, halved(made, "sampling", "sample"), gone("sampling", "sample")]


@programs(_tokens_fixes, _tokens_sizes, gpus=2, leads=("communication", "host"))
def tokens_of_two_ranks(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two processes share each layer, and sum up behind it. The first one schedules, tells the other through a pipe,
    and samples."""
    joined: dict[tuple[object, ...], Collective] = {}
    asked = sim.channel()

    def forward(t: Thread, number: int, rank: int) -> Body:
        yield from t.copy("HtoD", 4096, 3 * US)
        for layer in range(made.layers):
            for name in ("attention", "mlp"):
                yield from t.launch(f"{name}_gemm", varied(made.kernel, rank, number, layer, name))
                both = joined.setdefault((number, layer, name), sim.collective(2))
                yield from t.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", made.comm, collective=both)

    def driver(t: Thread, number: int) -> Body:
        yield from ranged(t, "schedule", t.compute(varied(made.schedule, "schedule", number), "schedule"))
        yield from t.put(asked, "write")
        yield from forward(t, number, 0)
        yield from t.launch("argmax", 8 * US)
        yield from t.blocking_copy("DtoH", 256, 2 * US)
        yield from ranged(t, "sampling", t.compute(varied(made.sample, "sample", number), "append_tokens"))

    def worker(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "read")
            yield from t.compute(varied(15 * US, "unpack", number), "unpickle")
            yield from forward(t, number, 1)

    in_steps(sim, solver(sim, [0]), loops, made, driver)
    thread = sim.thread(solver(sim, [1]), worker, name="worker")
    if made.slow:
        waking(thread)


def _environments_sizes(chance: random.Random) -> Made:
    return Made(
        simulators=chance.choice((2, 4)),
        physics=some(chance, 300),
        spread=chance.choice((0.1, 0.6)),
        kernel=some(chance, 60),
        every=chance.choice((0, 8)),
        update=some(chance, 300),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _environments_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "actor_gemm", "kernel", "kernel"), halved(made, "physics", "physics")]


@programs(
    _environments_fixes, _environments_sizes, levels=("step", "rollout"), leads=("input", "host", "sync", "unknown")
)
def simulators_in_processes(sim: Simulation, loops: Loops, made: Made) -> None:
    """Simulators in processes of their own get actions by pipes; the GPU waits for the state of the slowest one. Every
    few steps the policy is updated."""
    process, states = solver(sim), sim.channel()
    asked = [sim.channel() for _ in range(made.simulators)]

    def simulator(index: int) -> Callable[[Thread], Body]:
        def run(t: Thread) -> Body:
            for number in range(STEPS):
                yield from t.get(asked[index], "read")
                ns = varied(made.physics, "physics", number, index, spread=made.spread)
                yield from ranged(t, "physics", t.compute(ns, "mj_step"))
                yield from t.put(states, "write")

        return run

    def step(t: Thread, number: int) -> Body:
        if made.every and number % made.every == 0:
            loops.step(t, "rollout")
        yield from t.copy("HtoD", 65536, 6 * US)
        for part in range(3):
            yield from t.launch("actor_gemm", varied(made.kernel, number, part))
        yield from t.blocking_copy("DtoH", 2048, 2 * US)
        for each in asked:
            yield from t.put(each, "write")
        for _ in asked:
            yield from t.get(states, "read")
        if made.every and number % made.every == made.every - 1:
            for part in range(4):
                yield from t.launch("ppo_update", varied(made.update, number, part))

    for index in range(made.simulators):
        thread = sim.thread(sim.process(gpus=[]), simulator(index), name=f"simulator_{index}")
        if made.slow:
            waking(thread)
    in_steps(sim, process, loops, made, step)
