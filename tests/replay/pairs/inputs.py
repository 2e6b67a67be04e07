"""Programs that wait for input of which the trace does not show all: disks that are shared, processes that were not
captured, sources that workers ask in turns, requests that are collected."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.chance_inputs import Input, program
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.engine import Signal
from tests.simulator.host import Block, Body

FED = Input(
    source="queue",
    by="sem_wait",
    workers=2,
    depth=4,
    read=0,
    decode=2 * MS,
    second=0,
    shared=False,
    recorded=True,
    process=False,
    named=True,
    paced="",
    period=0,
    jitter=0.0,
    host=300 * US,
    kernel=500 * US,
    kernels=1,
    pause=0,
    noise=0,
    spread=0.1,
    synchronized=True,
    ranges=True,
)
"""A loop that two workers feed."""
DISK = replace(FED, read=3 * MS, decode=1 * MS, shared=True)
TURNS = replace(FED, workers=3, depth=6, decode=1 * MS, paced="recv", period=2 * MS)


def late_frames(sim: Simulation, marks: Marks, *, host: int = 4500 * US, period: int = 4 * MS) -> None:
    """Frames at fixed times. Every fourth step is short and waits for its frame; the others come too late to wait.

    T    [prepares .......][l][prepares .......][l][poll][prepares
    """
    due = [number * period for number in range(2 * STEPS)]

    def step(t: Thread, number: int) -> Body:
        if due[number] > t.clock.now:
            yield from t.until(due[number], "poll", "io_wait")
        took = host // 8 if number % 4 == 3 else host
        yield from ranged(t, "prepare", t.compute(varied(took, "host", number), "convert"))
        yield from t.launch("detect", varied(200 * US, "detect", number))
        yield from t.synchronize()

    waking(loop(sim, marks, step))


def collecting(sim: Simulation, marks: Marks, *, think: int, clients: int = 4, most: int = 3 * MS) -> None:
    """A server waits for a request, and then for one of each client, or until a time. Clients ask again once they are
    answered.

    client  [think ...](request)                 [think ...](request)
    T       [cond_wait][cond_timedwait ....][l][sync](answers)
    """
    process = solver(sim)
    requests, answers = sim.channel(), [sim.channel() for _ in range(clients)]

    def client(t: Thread, place: int) -> Body:
        for number in range(STEPS):
            yield from ranged(t, "think", t.compute(varied(think * (place + 1), place, number), "tokenize"))
            yield from t.put(requests, "pthread_cond_signal")
            yield from t.get(answers[place], "sem_wait")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(requests, "pthread_cond_wait")
        until = t.clock.now + most
        with t.inside("os", "pthread_cond_timedwait", "lock_wait"):
            while requests.items < clients - 1 and t.clock.now < until:
                arrived = Signal()
                requests.waiting.append(arrived)
                t.clock.at(until, lambda signal=arrived: None if signal.fired else signal.fire())
                yield Block(arrived)
        taken, requests.items = min(requests.items, clients - 1), 0
        yield from t.launch("infer", varied(800 * US, "infer", number))
        yield from t.synchronize()
        for place in range(taken + 1):
            yield from t.put(answers[place], "sem_post")

    for place in range(clients):
        waking(sim.thread(process, partial(client, place=place), name=f"client {place}"))
    waking(loop(sim, marks, step, process=process))


def _pair(name: str, before: Input, transforms: Transform | tuple[Transform, ...], **fix: object) -> Pair:
    after = replace(before, **fix)  # type: ignore[arg-type]
    return pair(name, partial(program, made=before), {"made": after}, transforms, (-0.02, 1.0), tolerated=1.0)


PAIRS: tuple[Pair, ...] = (
    _pair("four workers that read from the disk of two", DISK, Transform("workers", factor=4), workers=4),
    _pair("decoding halved of workers that share a disk", DISK, faster("host", "decode", 0.5), decode=500 * US),
    _pair(
        "decoding halved before a second stage",
        replace(FED, named=False, depth=1, decode=3 * MS, second=400 * US),
        faster("host", "decode", 0.5),
        decode=1500 * US,
    ),
    _pair(
        "decoding halved of workers that ask a source in turns", TURNS, faster("host", "decode", 0.5), decode=500 * US
    ),
    _pair(
        "kernel halved behind workers whose source is ahead",
        replace(TURNS, kernel=3 * MS),
        faster("kernel", "detect", 0.5),
        kernel=1500 * US,
    ),
    _pair(
        "files no longer read in a process that was not captured",
        replace(FED, by="recv", read=3 * MS, recorded=False, process=True),
        without("io_wait"),
        read=0,
    ),
    _pair(
        "kernel halved in a loop about as fast as its source",
        replace(FED, source="camera", paced="poll", period=1 * MS, spread=0.02),
        faster("kernel", "detect", 0.5),
        kernel=250 * US,
    ),
    pair(
        "host code of a loop that is mostly late for its frames",
        late_frames,
        {"host": 500 * US},
        faster("host", "prepare", 0.1),
        (-0.02, 0.3),
        tolerated=1.0,
    ),
    pair(
        "clients of a server that collects requests, twice as fast",
        partial(collecting, think=1 * MS),
        {"think": 500 * US},
        faster("host", "think", 0.5),
        (0.2, 0.6),
        tolerated=1.0,
    ),
)
