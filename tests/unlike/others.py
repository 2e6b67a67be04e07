"""Programs in which others work at the same time, or whose steps are no plain loop: stages, streams, recursion."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, solver
from tests.replay.pairs.pair import faster, ranged, waking, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import CudaEvent, Stream
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back


def _shared_sizes(chance: random.Random) -> Made:
    return Made(
        slice=some(chance, 150),
        pause=some(chance, 500),
        host=some(chance, 100),
        kernel=some(chance, 200),
        sync=chance.random() < 0.6,
        order=chance.randint(0, 999),
        names=chance.choice(("steps", "none")),
    )


def _shared_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "update", "host"), gone("update", "host")]
    return [*found, Fix("no sync", {"sync": False}, without("sync"), "sync")] if made.sync else found


@programs(
    _shared_fixes,
    _shared_sizes,
    capture=EVERYTHING.but(context_switches=False),
    leads=("other_process", "unknown"),
)
def a_gpu_shared_with_an_untraced_process(sim: Simulation, loops: Loops, made: Made) -> None:
    """Another process has the GPU for slices of time, and is not in the trace."""
    process, stranger = solver(sim), object()
    chance, at = random.Random(f"slices {made.order}"), 0
    while at < 500 * MS:
        at += round(made.pause * chance.lognormvariate(0, 0.4))
        end = at + round(made.slice * chance.lognormvariate(0, 0.4))
        sim.gpus[0].slices.append((at, end, stranger))  # type: ignore[arg-type]
        at = end

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        for part in range(2):
            yield from t.launch("solve", varied(made.kernel, number, part))
        if made.sync:
            yield from t.synchronize()

    in_steps(sim, process, loops, made, step)


def _priority_sizes(chance: random.Random) -> Made:
    return Made(
        small=some(chance, 40),
        large=some(chance, 200),
        host=some(chance, 80),
        other=some(chance, 150),
        nap=some(chance, 200),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _priority_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "large_gemm", "large", "kernel"), halved(made, "tokenize", "host"), gone("tokenize", "host")]


@programs(_priority_fixes, _priority_sizes, levels=("step", "small"))
def streams_of_two_priorities(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread runs large requests one behind the other; another one small requests, in a stream of high priority."""
    process, over = solver(sim), []
    high, low = process.stream(), process.stream()

    def urgent(t: Thread) -> Body:
        number = 0
        while not over:
            loops.step(t, "small")
            yield from t.compute(varied(made.other, "other", number), "parse")
            yield from t.launch("small_gemm", varied(made.small, "small", number), high)
            yield from t.synchronize(high)
            yield from t.sleep(varied(made.nap, "nap", number, spread=0.5))
            number += 1

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "tokenize", t.compute(varied(made.host, "host", number), "tokenize"))
        yield from t.copy("HtoD", SIZE, 30 * US, low)
        for part in range(3):
            yield from t.launch("large_gemm", varied(made.large, number, part), low)
        yield from t.synchronize(low)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"request {number}" if made.names == "steps" else "", step(t, number))
        over.append(True)
        loops.end(t)

    threads = sim.thread(process, urgent, name="urgent"), sim.thread(process, main, name="batch")
    for each in threads if made.slow else ():
        waking(each)


def _pipeline_sizes(chance: random.Random) -> Made:
    return Made(
        micro=chance.choice((2, 4, 8)),
        near=some(chance, 120),
        far=some(chance, 120),
        host=some(chance, 40),
        update=some(chance, 100),
        apart=False,
        sync=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _pipeline_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "stage_0", "near", "kernel"), halved(made, "stage_1", "far", "kernel")]
    found += [halved(made, "schedule", "host"), gone("schedule", "host")]
    found += [Fix("copies apart", {"apart": True}, (Transform("overlap", "copies"),), "exposed_copy")]
    return [*found, Fix("no sync", {"sync": False}, without("sync"), "sync")] if made.sync else found


@programs(_pipeline_fixes, _pipeline_sizes, gpus=2, levels=("step", "micro"))
def a_pipeline_over_two_gpus(sim: Simulation, loops: Loops, made: Made) -> None:
    """Micro batches go from one GPU to the next by events; one stage may be slow."""
    process = solver(sim)
    near, far, link = process.stream(), process.stream(1), process.stream()

    def meet(t: Thread, before: Stream, behind: Stream) -> Body:
        event: CudaEvent = t.event()
        yield from t.record(event, before)
        yield from t.wait_event(behind, event)

    def step(t: Thread, number: int) -> Body:
        for part in range(made.micro):
            loops.step(t, "micro")
            yield from ranged(t, "schedule", t.compute(varied(made.host, "host", number, part), "schedule"))
            yield from t.launch("stage_0", varied(made.near, "first", number, part), near)
            if made.apart:
                yield from meet(t, near, link)
            yield from t.copy("PtoP", SIZE, 15 * US, link if made.apart else near)
            yield from meet(t, link if made.apart else near, far)
            yield from t.launch("stage_1", varied(made.far, "second", number, part), far)
        yield from t.launch("update_1", varied(made.update, "u1", number), far)
        yield from meet(t, far, near)
        yield from t.launch("update_0", varied(made.update, "u0", number), near)
        if made.sync:
            yield from t.synchronize(near)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
        loops.end(t)
        yield from t.synchronize(near)

    sim.thread(process, main, name="driver")


def _yield_sizes(chance: random.Random) -> Made:
    return Made(
        before=some(chance, 120),
        kernel=some(chance, 250),
        second=some(chance, 60),
        look=chance.choice((2, 5, 20)) * US,
        names=chance.choice(("steps", "none")),
    )


def _yield_fixes(made: Made) -> Sequence[Fix]:
    return [
        halved(made, "solve", "kernel", "kernel"),
        halved(made, "before", "before"),
        gone("before", "before"),
        halved(made, "second", "second"),
        gone("second", "second"),
    ]


@programs(_yield_fixes, _yield_sizes, leads=("sync",))
def queries_that_yield(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host asks an event again and again, and yields its CPU between."""
    process = solver(sim)
    stream = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "before", t.compute(varied(made.before, "before", number), "before"))
        yield from t.launch("solve", varied(made.kernel, "kernel", number), stream)
        event = t.event()
        yield from t.record(event, stream)
        yield from ranged(t, "second", t.compute(varied(made.second, "second", number), "second"))
        while True:
            ready = event.complete
            yield from t.query(event)
            if ready:
                break
            yield from t.os_call("sched_yield", made.look, "lock_wait")

    in_steps(sim, process, loops, made, step)


def _convoy_sizes(chance: random.Random) -> Made:
    return Made(
        outside=some(chance, 80),
        inside=some(chance, 60),
        launches=chance.choice((1, 4)),
        kernel=some(chance, 60),
        sync=chance.random() < 0.5,
        slow=chance.random() < 0.6,
        names=chance.choice(("steps", "none")),
    )


def _convoy_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "outside", "outside"), gone("outside", "outside")]
    found += [halved(made, "inside", "inside"), gone("inside", "inside")]
    return [*found, Fix("no sync", {"sync": False}, without("sync"), "sync")] if made.sync else found


@programs(_convoy_fixes, _convoy_sizes, levels=("step", "any"))
def a_convoy_of_launching_threads(sim: Simulation, loops: Loops, made: Made) -> None:
    """Three threads with a stream each launch under one lock."""
    process, mutex = solver(sim), sim.mutex()

    def step(t: Thread, number: int, stream: Stream) -> Body:
        yield from ranged(t, "outside", t.compute(varied(made.outside, t.name, number), "outside"))
        yield from t.lock(mutex)
        yield from ranged(t, "inside", t.compute(varied(made.inside, t.name, "in", number), "inside"))
        for part in range(made.launches):
            yield from t.launch("solve", varied(made.kernel, t.name, number, part), stream)
        yield from t.unlock(mutex)
        if made.sync:
            yield from t.synchronize(stream)

    def runs(first: bool) -> object:
        def main(t: Thread) -> Body:
            stream = process.stream()
            if first:
                loops.begin(t)
            for number in range(STEPS):
                loops.step(t, "any")
                if first:
                    loops.step(t)
                name = f"step {number}" if made.names == "steps" else ""
                yield from ranged(t, name, step(t, number, stream))
            if first:
                loops.end(t)

        return main

    threads = [sim.thread(process, runs(not number), name=f"launcher {number}") for number in range(3)]  # type: ignore[arg-type]
    for each in threads if made.slow else ():
        waking(each)


def _recursion_sizes(chance: random.Random) -> Made:
    return Made(
        depth=chance.choice((2, 3, 4)),
        kernel=some(chance, 30),
        leaf=some(chance, 60),
        host=some(chance, 60),
        waits=chance.random() < 0.6,
        names=chance.choice(("recursive", "none")),
    )


def _recursion_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "merge", "kernel", "kernel"), halved(made, "sort_leaf", "leaf", "kernel")]
    return [*found, *no_read_back(made)]


@programs(_recursion_fixes, _recursion_sizes)
def recursion(sim: Simulation, loops: Loops, made: Made) -> None:
    """Divide and conquer, with ranges of one name inside each other."""
    process = solver(sim)

    def solve(t: Thread, depth: int, *key: int) -> Body:
        if not depth:
            yield from t.launch("sort_leaf", varied(made.leaf, "leaf", *key))
            return
        for part in range(2):
            yield from ranged(t, "solve" if made.names == "recursive" else "", solve(t, depth - 1, *key, part))
        yield from t.compute(varied(made.host // 8, "host", *key), "split")
        yield from t.launch("merge", varied(made.kernel, "merge", *key) * 2**depth)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from t.compute(varied(made.host, "input", number), "input")
            yield from ranged(t, "solve" if made.names == "recursive" else "", solve(t, made.depth, number))
            if made.waits:
                yield from t.blocking_copy("DtoH", 4096, 3 * US)
        loops.end(t)
        yield from t.synchronize()

    sim.thread(process, main, name="solver")


def _names_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((4, 12)),
        host=some(chance, 80),
        each=some(chance, 8, 0.5),
        kernel=some(chance, 50),
        waits=chance.random() < 0.6,
        names=chance.choice(("step is a layer", "one name", "epochs")),
    )


def _names_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "layer_gemm", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]
    return [*found, *no_read_back(made)]


@programs(_names_fixes, _names_sizes)
def names_that_mislead(sim: Simulation, loops: Loops, made: Made) -> None:
    """Ranges say `step` of a layer, are all of one name, or say `epoch` of ten steps."""
    process = solver(sim)

    def layer(t: Thread, *key: int) -> Body:
        loops.step(t, "layer")
        yield from t.compute(made.each, "dispatch")
        yield from t.launch("layer_gemm", varied(made.kernel, *key))
        yield from t.launch("layer_norm", 12 * US)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for at in range(made.layers):
            name = f"step {at}" if made.names == "step is a layer" else "block" if made.names == "one name" else ""
            yield from ranged(t, name, layer(t, number, at))
        yield from t.launch("head", 80 * US)
        if made.waits:
            yield from t.blocking_copy("DtoH", 4096, 3 * US)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            if made.names == "epochs" and number % 10 == 0:
                t.push(f"epoch {number // 10}")
            loops.step(t)
            yield from ranged(t, "block" if made.names == "one name" else "", step(t, number))
            if made.names == "epochs" and number % 10 == 9:
                t.pop()
        loops.end(t)
        yield from t.synchronize()

    sim.thread(process, main, name="runner")


__all__ = ["faster"]
