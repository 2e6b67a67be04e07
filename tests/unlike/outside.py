"""Programs whose host does what others leave to the GPU, or that wait for what is outside of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import MS, US, solver
from tests.replay.pairs.pair import ranged, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import CudaEvent
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back


def _offload_sizes(chance: random.Random) -> Made:
    return Made(
        chunks=chance.choice((2, 4, 8)),
        host=some(chance, 150),
        kernel=some(chance, 200),
        pull=some(chance, 60),
        memory=chance.choice(("pinned", "pageable")),
        names=chance.choice(("steps", "none")),
    )


def _offload_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "backward", "kernel", "kernel"), halved(made, "adam", "host"), gone("adam", "host")]


@programs(_offload_fixes, _offload_sizes)
def an_optimizer_on_the_cpu(sim: Simulation, loops: Loops, made: Made) -> None:
    """Gradients come to the host in chunks, the host updates each, and parameters go back in another stream."""
    process = solver(sim)
    own, back = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        for part in range(made.chunks):
            yield from t.launch("backward", varied(made.kernel, number, part), own)
            pull = varied(made.pull, "pull", number, part)
            yield from t.blocking_copy("DtoH", SIZE, pull, own, host=made.memory)
            yield from ranged(t, "adam", t.compute(varied(made.host, "host", number, part), "cpu_adam"))
            yield from t.copy("HtoD", SIZE, varied(made.pull, "push", number, part), back)
        yield from t.synchronize(back)
        yield from t.launch("norm", 20 * US, own)

    in_steps(sim, process, loops, made, step)


def _collections_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        often=chance.choice((0.05, 0.15, 0.3)),
        pause=some(chance, 900),
        host=some(chance, 60),
        kernel=some(chance, 150),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _collections_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "collect", "pause"), gone("collect", "pause")]
    return [*found, *no_read_back(made)]


@programs(_collections_fixes, _collections_sizes)
def garbage_collections(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host stops in some steps, by chance, to collect garbage."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(made.host, "host", number), "prepare")
        if made.pause and random.Random(f"{made.order} {number}").random() < made.often:
            yield from ranged(t, "collect", t.compute(varied(made.pause, "pause", number), "gc_collect"))
        for part in range(3):
            yield from t.launch("solve", varied(made.kernel, number, part))
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    in_steps(sim, process, loops, made, step)


def _requests_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        between=some(chance, 400),
        host=some(chance, 80),
        kernel=some(chance, 150),
        call=chance.choice(("epoll_wait", "recv", "poll")),
        names=chance.choice(("steps", "none")),
    )


def _requests_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "infer", "kernel", "kernel"), halved(made, "decode", "host"), gone("decode", "host")]


@programs(_requests_fixes, _requests_sizes, leads=("input",))
def requests_by_chance(sim: Simulation, loops: Loops, made: Made) -> None:
    """A server takes requests as they come, and waits if there are none."""
    process, chance = solver(sim), random.Random(f"arrivals {made.order}")
    times = [2 * MS]
    while len(times) < STEPS:
        times.append(times[-1] + round(made.between * chance.expovariate(1)))

    def step(t: Thread, number: int) -> Body:
        if times[number] > t.clock.now:
            yield from t.until(times[number], made.call, "io_wait")
        yield from ranged(t, "decode", t.compute(varied(made.host, "host", number), "decode"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(2):
            yield from t.launch("infer", varied(made.kernel, number, part))
        yield from t.blocking_copy("DtoH", 4096, 3 * US)

    in_steps(sim, process, loops, made, step)


def _buffers_sizes(chance: random.Random) -> Made:
    return Made(
        depth=chance.choice((1, 2, 3)),
        copy=some(chance, 200),
        kernel=some(chance, 200),
        host=some(chance, 40),
        names=chance.choice(("steps", "none")),
    )


def _buffers_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "filter", "kernel", "kernel"), halved(made, "read_frame", "host"), gone("read_frame", "host")]


@programs(_buffers_fixes, _buffers_sizes)
def buffers_in_turn(sim: Simulation, loops: Loops, made: Made) -> None:
    """Frames go through a few buffers: an upload waits for the kernel that had its buffer, a kernel for its upload."""
    process = solver(sim)
    own, upload = process.stream(), process.stream()
    free: dict[int, CudaEvent] = {}

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "read_frame", t.compute(varied(made.host, "host", number), "read_frame"))
        if number >= made.depth:
            yield from t.wait_event(upload, free[number - made.depth])
        yield from t.copy("HtoD", SIZE, varied(made.copy, "copy", number), upload)
        full = t.event()
        yield from t.record(full, upload)
        yield from t.wait_event(own, full)
        yield from t.launch("filter", varied(made.kernel, "kernel", number), own)
        free[number] = t.event()
        yield from t.record(free[number], own)

    in_steps(sim, process, loops, made, step)


def _log_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((1, 5, 10)),
        write=some(chance, 300),
        host=some(chance, 60),
        kernel=some(chance, 250),
        waits=chance.random() < 0.7,
        names=chance.choice(("steps", "none")),
    )


def _log_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train", "kernel", "kernel"), halved(made, "prepare", "host")]
    return [*found, Fix("no writes", {"write": 0}, without("io_wait"), "io_wait"), *no_read_back(made)]


@programs(_log_fixes, _log_sizes, leads=("input",))
def a_log_that_is_written(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host reads the loss back and writes a line to a file, now and then."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for part in range(3):
            yield from t.launch("train", varied(made.kernel, number, part))
        if made.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        if made.write and number % made.every == 0:
            yield from t.read_file(varied(made.write, "write", number), "write")

    in_steps(sim, process, loops, made, step)
