"""Programs that decide on the host what comes next: experts by their counts, steps that are rejected, a mix of queries,
passes over chunks, and ranks that meet every few steps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Collective, CudaEvent
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _experts_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        layers=chance.choice((2, 4)),
        experts=chance.choice((4, 8)),
        attention=some(chance, 60),
        kernel=some(chance, 40),
        dispatch=some(chance, 25),
        pinned=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _experts_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "expert_gemm", "kernel", "kernel"), halved(made, "attention", "attention", "kernel")]
    return [*found, halved(made, "dispatch", "dispatch"), gone("dispatch", "dispatch")]


@programs(_experts_fixes, _experts_sizes, levels=("step", "layer"))
def experts_chosen_by_the_host(sim: Simulation, loops: Loops, made: Made) -> None:
    """In each layer the host reads how many tokens each expert has, and launches those that have some."""
    process = solver(sim)

    def layer(t: Thread, number: int, at: int) -> Body:
        chance = random.Random(f"{made.order} {number} {at}")
        yield from t.launch("attention", varied(made.attention, "attention", number, at))
        yield from t.launch("router", 8 * US)
        if made.pinned:
            yield from t.copy("DtoH", 64, 2 * US)
            yield from t.synchronize(process.null)
        else:
            yield from t.blocking_copy("DtoH", 64, 2 * US)
        yield from ranged(t, "dispatch", t.compute(varied(made.dispatch, "dispatch", number, at), "sort_tokens"))
        for _ in range(chance.randint(1, made.experts)):
            yield from t.launch("expert_gemm", round(made.kernel * chance.uniform(0.3, 1.7)))
        yield from t.launch("combine", 10 * US)

    def step(t: Thread, number: int) -> Body:
        yield from t.copy("HtoD", 4096, 3 * US)
        for at in range(made.layers):
            loops.step(t, "layer")
            yield from layer(t, number, at)
        yield from t.launch("sample", 12 * US)

    in_steps(sim, process, loops, made, step)


def _rejected_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        rejects=chance.choice((0.1, 0.3, 0.5)),
        stages=chance.choice((2, 4, 6)),
        kernel=some(chance, 60),
        control=some(chance, 40),
        accept=some(chance, 40),
        names=chance.choice(("steps", "none", "tries")),
    )


def _rejected_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "stage", "kernel", "kernel"), halved(made, "control", "control"), gone("control", "control")]
    return [*found, halved(made, "accept", "accept", "kernel")]


@programs(_rejected_fixes, _rejected_sizes, levels=("step", "try"))
def steps_that_are_rejected(sim: Simulation, loops: Loops, made: Made) -> None:
    """A solver tries a time step, reads the error back, and tries a shorter one until the error is small."""
    process = solver(sim)

    def attempt(t: Thread, number: int, at: int) -> Body:
        for stage in range(made.stages):
            yield from t.launch("stage", varied(made.kernel, number, at, stage))
        yield from t.launch("error_norm", 10 * US)
        yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from ranged(t, "control", t.compute(varied(made.control, "control", number, at), "choose_dt"))

    def step(t: Thread, number: int) -> Body:
        chance, at = random.Random(f"{made.order} {number}"), 0
        while True:
            loops.step(t, "try")
            yield from ranged(t, "try" if made.names == "tries" else "", attempt(t, number, at))
            if at == 4 or chance.random() >= made.rejects:
                break
            yield from t.copy("DtoD", SIZE, 15 * US)
            at += 1
        yield from t.launch("accept", varied(made.accept, "accept", number))

    in_steps(sim, process, loops, made, step)


def _queries_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        kinds=chance.choice((2, 3)),
        plan=some(chance, 80),
        kernel=some(chance, 60),
        join=some(chance, 200),
        copy=some(chance, 40),
        names=chance.choice(("steps", "none")),
    )


def _queries_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "plan", "plan"), gone("plan", "plan"), halved(made, "hash_join", "join", "kernel")]
    return [*found, halved(made, "scan|filter|aggregate", "kernel", "kernel")]


@programs(_queries_fixes, _queries_sizes)
def a_mix_of_queries(sim: Simulation, loops: Loops, made: Made) -> None:
    """A data base answers queries of some kinds by chance, each of other operators; the host reads sizes back."""
    process = solver(sim)

    def table(t: Thread, number: int, name: str, chunks: int) -> Body:
        for at in range(chunks):
            yield from t.copy("HtoD", SIZE, varied(made.copy, "copy", number, name, at))
            yield from t.launch("scan", varied(made.kernel, number, name, at))
        yield from t.launch("filter", varied(made.kernel, "filter", number, name))
        yield from t.blocking_copy("DtoH", 8, 2 * US)

    def step(t: Thread, number: int) -> Body:
        chance = random.Random(f"{made.order} {number}")
        kind = chance.randrange(made.kinds)
        yield from ranged(t, "plan", t.compute(varied(made.plan, "plan", number), "plan_query"))
        yield from table(t, number, "left", chance.randint(1, 3))
        if kind:
            yield from table(t, number, "right", chance.randint(1, 2))
            yield from t.launch("build_hash", 30 * US)
            yield from t.launch("hash_join", varied(made.join, "join", number))
        if kind == 2:
            for part in range(4):
                yield from t.launch("radix_sort", varied(40 * US, "sort", number, part))
        yield from t.launch("aggregate", varied(made.kernel, "aggregate", number))
        yield from t.blocking_copy("DtoH", 65536, 8 * US)

    in_steps(sim, process, loops, made, step)


def _chunks_sizes(chance: random.Random) -> Made:
    return Made(
        depth=chance.choice((2, 3)),
        every=chance.choice((5, 10, 20)),
        fill=some(chance, 60),
        drain=some(chance, 60),
        plan=some(chance, 300),
        up=some(chance, 100),
        kernel=some(chance, 150),
        down=some(chance, 100),
        names=chance.choice(("steps", "none", "passes")),
    )


def _chunks_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "merge", "kernel", "kernel"), halved(made, "fill", "fill"), gone("fill", "fill")]
    found += [halved(made, "drain", "drain"), gone("drain", "drain"), halved(made, "plan", "plan")]
    return [*found, halved(made, "HtoD*", "up", "kernel"), halved(made, "DtoH*", "down", "kernel")]


@programs(_chunks_fixes, _chunks_sizes, leads=("copies",))
def passes_over_chunks(sim: Simulation, loops: Loops, made: Made) -> None:
    """Chunks go up, through a kernel, and down again, in three streams and a few buffers, which the host fills and
    drains; each pass over all chunks waits for the one before."""
    process = solver(sim)
    up, own, down = (process.stream() for _ in range(3))
    came: dict[int, CudaEvent] = {}

    def follow(t: Thread, number: int) -> Body:
        for before, after in ((up, own), (own, down)):
            event = t.event()
            yield from t.record(event, before)
            yield from t.wait_event(after, event)
            if after is own:
                yield from t.launch("merge", varied(made.kernel, number), own)
        yield from t.copy("DtoH", SIZE, varied(made.down, "down", number), down)
        came[number] = t.event()
        yield from t.record(came[number], down)

    def drained(t: Thread, number: int) -> Body:
        yield from t.synchronize(came[number])
        yield from ranged(t, "drain", t.compute(varied(made.drain, "drain", number), "drain"))

    def step(t: Thread, number: int) -> Body:
        at = number % made.every
        if not at:
            loops.stopped.append(number)
            yield from ranged(t, "plan", t.compute(varied(made.plan, "plan", number), "plan_pass"))
        if at >= made.depth:
            yield from drained(t, number - made.depth)
        yield from ranged(t, "fill", t.compute(varied(made.fill, "fill", number), "fill"))
        yield from t.copy("HtoD", SIZE, varied(made.up, "up", number), up)
        yield from follow(t, number)
        if at == made.every - 1:
            for each in range(number - min(made.depth, made.every) + 1, number + 1):
                yield from drained(t, each)

    in_steps(sim, process, loops, made, step)


def _local_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((3, 5, 8)),
        host=some(chance, 80),
        spread=chance.choice((0.1, 0.7)),
        late=chance.choice((1.0, 1.2, 1.5)),
        kernel=some(chance, 120),
        comm=some(chance, 200),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _local_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "collate", "host"), gone("collate", "host")]
    return [*found, *no_read_back(made)]


@programs(_local_fixes, _local_sizes, levels=("step", "round"), gpus=2, leads=("communication", "host"))
def local_steps_of_two_ranks(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two ranks take some steps on their own and then average their weights; one may be late."""
    met = [sim.collective(2) for _ in range(STEPS)]

    def step(t: Thread, number: int, rank: int) -> Body:
        if not rank and number % made.every == 0:
            loops.step(t, "round")
        ns = round(varied(made.host, "host", rank, number, spread=made.spread) * (made.late if rank else 1))
        yield from ranged(t, "collate", t.compute(ns, "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(3):
            yield from t.launch("train_gemm", varied(made.kernel, rank, number, part))
        yield from t.launch("adam", 40 * US)
        if number % made.every == made.every - 1:
            yield from average(t, met[number])
        yield from read_back(t, made)

    def average(t: Thread, both: Collective) -> Body:
        yield from t.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", made.comm, collective=both)
        yield from t.launch("outer_update", 30 * US)

    def other(t: Thread) -> Body:
        for number in range(STEPS):
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number, 1))
        yield from t.synchronize()

    in_steps(sim, solver(sim, [0]), loops, made, partial(step, rank=0))
    sim.thread(solver(sim, [1]), other, name="rank1")
