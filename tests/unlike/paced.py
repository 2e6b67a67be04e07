"""Programs whose host is a step ahead or behind, or keeps time: tokens read a step later, a clock, an encoder, a
tuner."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import MS, US, solver
from tests.replay.pairs.pair import ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import CudaEvent
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _behind_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((3, 8)),
        kernel=some(chance, 40, 0.5),
        schedule=some(chance, 80),
        text=some(chance, 80),
        graphs=chance.random() < 0.5,
        blocking=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _behind_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "schedule", "schedule"), gone("schedule", "schedule"), halved(made, "make_text", "text")]
    return [*found, gone("make_text", "text")] + ([] if made.graphs else [halved(made, "layer", "kernel", "kernel")])


@programs(_behind_fixes, _behind_sizes)
def tokens_a_step_behind(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host launches the next step of a decoder before it waits for the tokens of the last one, by an event."""
    process = solver(sim)
    side, copied = process.stream(), list[CudaEvent]()

    def forward(t: Thread, number: int) -> Body:
        nodes = [Node("layer", varied(made.kernel, number, at)) for at in range(made.layers)]
        yield from t.copy("HtoD", 4096, 3 * US)
        if made.graphs:
            yield from t.launch_graph(nodes)
        for node in () if made.graphs else nodes:
            yield from t.launch(node.name, node.duration)
        yield from t.launch("sample", 10 * US)
        ready, done = t.event(), t.event()
        yield from t.record(ready, process.null)
        yield from t.wait_event(side, ready)
        yield from t.copy("DtoH", 1024, 2 * US, side)
        yield from t.record(done, side)
        copied.append(done)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "schedule", t.compute(varied(made.schedule, "schedule", number), "schedule"))
        yield from forward(t, number)
        if number:
            yield from t.synchronize(copied[number - 1], blocking=made.blocking)
            yield from ranged(t, "make_text", t.compute(varied(made.text, "text", number), "detokenize"))

    in_steps(sim, process, loops, made, step)


def _clock_sizes(chance: random.Random) -> Made:
    return Made(
        period=chance.choice((1, 2, 5)) * MS,
        sense=some(chance, 200),
        kernel=some(chance, 60),
        plan=some(chance, 200),
        call=chance.choice(("clock_nanosleep", "read", "poll")),
        names=chance.choice(("steps", "none")),
    )


def _clock_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "policy", "kernel", "kernel"), halved(made, "sense", "sense"), halved(made, "plan", "plan")]
    return [*found, gone("sense", "sense"), gone("plan", "plan")]


@programs(_clock_fixes, _clock_sizes, leads=("input", "host", "sync", "unknown"))
def a_control_loop_by_a_clock(sim: Simulation, loops: Loops, made: Made) -> None:
    """A controller waits for the tick of a clock, runs a policy, and acts on its result; it may miss a tick."""
    process, begun = solver(sim), list[int]()

    def step(t: Thread, number: int) -> Body:
        begun[:] = begun or [t.clock.now]
        tick = begun[0] + (-(-(t.clock.now - begun[0]) // made.period)) * made.period
        if tick > t.clock.now:
            yield from t.until(tick, made.call, "sleep" if made.call == "clock_nanosleep" else "io_wait")
        yield from ranged(t, "sense", t.compute(varied(made.sense, "sense", number), "filter_sensors"))
        yield from t.copy("HtoD", 8192, 3 * US)
        for part in range(4):
            yield from t.launch("policy", varied(made.kernel, number, part))
        yield from t.blocking_copy("DtoH", 512, 2 * US)
        yield from ranged(t, "plan", t.compute(varied(made.plan, "plan", number), "solve_qp"))

    in_steps(sim, process, loops, made, step)


def _encoder_sizes(chance: random.Random) -> Made:
    return Made(
        room=chance.choice((1, 2, 4)),
        decode=some(chance, 100),
        kernel=some(chance, 100),
        encode=some(chance, 500),
        spread=chance.choice((0.1, 0.3)),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _encoder_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "upscale", "kernel", "kernel"), halved(made, "decode", "decode"), gone("decode", "decode")]
    return [*found, halved(made, "encode", "encode")]


@programs(_encoder_fixes, _encoder_sizes, leads=("host", "sync"))
def an_encoder_behind(sim: Simulation, loops: Loops, made: Made) -> None:
    """Frames go through the GPU and then to a thread that encodes them; a few may wait for it, not more."""
    process, full, free = solver(sim), sim.channel(), sim.channel()
    free.items = made.room

    def encoder(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(full, "pthread_cond_wait")
            ns = varied(made.encode, "encode", number, spread=made.spread)
            yield from ranged(t, "encode", t.compute(ns, "x264_encode"))
            yield from t.put(free, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "decode", t.compute(varied(made.decode, "decode", number), "decode"))
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(3):
            yield from t.launch("upscale", varied(made.kernel, number, part))
        yield from t.get(free, "pthread_cond_wait")
        yield from t.blocking_copy("DtoH", SIZE, 40 * US)
        yield from t.put(full, "pthread_cond_signal")

    in_steps(sim, process, loops, made, step)
    thread = sim.thread(process, encoder, name="encoder")
    if made.slow:
        waking(thread)


def _tuner_sizes(chance: random.Random) -> Made:
    return Made(
        shapes=chance.choice((2, 5)),
        configs=chance.choice((4, 12)),
        times=chance.choice((3, 10)),
        kernel=some(chance, 120),
        host=some(chance, 60),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _tuner_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "prepare", "host"), gone("prepare", "host")]
    return [*found, *no_read_back(made)]


@programs(_tuner_fixes, _tuner_sizes, leads=("startup",))
def a_tuner_before_the_steps(sim: Simulation, loops: Loops, made: Made) -> None:
    """For each shape some configurations of a kernel are timed by events; then steps use the best ones."""
    process = solver(sim)

    def tune(t: Thread, shape: int) -> Body:
        for config in range(made.configs):
            for part in range(made.times):
                name = f"matmul_{shape}_config_{config}"
                yield from t.launch(name, varied(round(made.kernel * (1 + 0.3 * config)), shape, config, part))
            done = t.event()
            yield from t.record(done, process.null)
            yield from t.synchronize(done)

    def step(t: Thread, number: int) -> Body:
        for shape in range(made.shapes if not number else 0):
            yield from tune(t, shape)
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for shape in range(made.shapes):
            yield from t.launch(f"matmul_{shape}_config_0", varied(made.kernel, number, shape))
            yield from t.launch("relu", 15 * US)
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)
