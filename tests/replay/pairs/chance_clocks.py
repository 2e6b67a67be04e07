"""Programs made by chance that wait for what no row names: a clock, a screen, memory, or a CPU that others take."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

BEGIN = 2 * MS
LOOK_NS = 2 * US
WAITS = ("spin", "lock", "screen", "sleeps", "memory", "queue", "neighbour")
"""What a step waits for: a time, asking for it or in a lock that is not traced; the next picture of a screen, or the
next time of equal distances; what another thread made, asking in memory or sleeping between; or a CPU."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A program. Times in ns: `period` is that of the clock, `work` that of the other thread. It waits in every `every`
    step; `each` is the sleep between two looks into a queue."""

    wait: str
    host: int
    kernel: int
    period: int
    work: int
    every: int
    each: int
    spread: float
    synchronized: bool
    steps: int = STEPS


def made(seed: int) -> Loop:
    """The program of a seed."""
    chance = random.Random(f"clocks {seed}")
    host, kernel = chance.randint(100, 900) * US, chance.randint(100, 900) * US
    grid = WAITS[seed % len(WAITS)] in ("screen", "sleeps")
    return Loop(
        wait=WAITS[seed % len(WAITS)],
        host=host,
        kernel=kernel,
        period=round((host + kernel) * (chance.uniform(0.3, 0.9) if grid else chance.uniform(1.1, 1.9))),
        work=round((host + kernel) * chance.uniform(0.5, 1.8)),
        every=chance.choice((1, 1, 2, 3)),
        each=chance.choice((60, 80, 150)) * US,
        spread=chance.choice((0.1, 0.2, 0.3)),
        synchronized=grid or chance.random() < 0.8,
    )


class Shared:
    """What the threads of a run share: how much is made and taken in memory, the queue, and whether it is over."""

    def __init__(self, sim: Simulation) -> None:
        self.ready = self.taken = 0
        self.over = False
        self.full, self.free = sim.channel(), sim.channel()
        self.free.items = 2


def program(sim: Simulation, marks: Marks, *, made: Loop) -> None:
    """The thread that takes the steps, and the one that works for it or takes its CPU."""
    process, shared = solver(sim), Shared(sim)

    def some(ns: int, *key: object) -> int:
        return varied(ns, *key, spread=made.spread)

    def maker(t: Thread) -> Body:
        for number in range(made.steps):
            while made.wait == "memory" and shared.ready - shared.taken > 1:
                yield from t.compute(LOOK_NS, "cpu_relax")
            if made.wait == "queue":
                yield from t.get(shared.free, "sem_wait")
            yield from ranged(t, "decode", t.compute(some(made.work, "work", number), "decode"))
            shared.ready += 1
            if made.wait == "queue":
                yield from t.put(shared.full, "sem_post")

    def neighbour(t: Thread) -> Body:
        number = 0
        while not shared.over:
            yield from t.compute(some(made.work, "work", number), "pack")
            yield from t.sleep(some(3 * made.period, "pause", number))
            number += 1

    def step(t: Thread, number: int) -> Body:
        yield from _wait(t, number, made, shared)
        yield from ranged(t, "prepare", t.compute(some(made.host, "host", number), "convert"))
        yield from t.launch("detect", some(made.kernel, "kernel", number))
        if made.synchronized:
            yield from t.synchronize()
        shared.over = number == made.steps - 1

    main = loop(sim, marks, step, process=process, steps=made.steps)
    if made.wait == "neighbour":
        sim.thread(process, neighbour, name=BACKGROUND, share=main)
    others = [sim.thread(process, maker, name="maker")] if made.wait in ("memory", "queue") else []
    for thread in (main, *others) if made.wait != "memory" else ():
        waking(thread)


def _wait(t: Thread, number: int, made: Loop, shared: Shared) -> Body:
    due = BEGIN + number * made.period
    after = BEGIN - (BEGIN - t.clock.now) // made.period * made.period
    if made.wait == "memory":
        while shared.ready <= shared.taken:
            yield from t.compute(LOOK_NS, "cpu_relax")
        shared.taken += 1
    elif made.wait == "queue":
        while not shared.full.items:
            yield from t.sleep(made.each, "usleep")
        yield from t.get(shared.full, "sem_trywait")
        yield from t.put(shared.free, "sem_post")
    elif number % made.every == 0 and made.wait == "spin":
        yield from t.compute(max(due - t.clock.now, 1), "steady_clock_now")
    elif number % made.every == 0 and made.wait == "lock":
        yield from t.until(due, "sem_clockwait", "lock_wait")
    elif number % made.every == 0 and made.wait == "screen":
        yield from t.until(after, "ioctl", "io_wait")
    elif number % made.every == 0 and made.wait == "sleeps":
        yield from t.until(after)


Fix = tuple[Sequence[Transform], Callable[[Loop], Loop]]


def fixes(made: Loop) -> dict[str, Fix]:
    """What may be fixed in a program, by name: what one asks for, and the program with it."""
    found: dict[str, Fix] = {
        "kernel": ((faster("kernel", "detect", 0.5),), lambda each: replace(each, kernel=each.kernel // 2)),
        "host": ((faster("host", "prepare", 0.5),), lambda each: replace(each, host=each.host // 2)),
    }
    if made.synchronized:
        found["sync"] = (without("sync"), lambda each: replace(each, synchronized=False))
    if made.wait == "queue":
        found["work"] = ((faster("host", "decode", 0.5),), lambda each: replace(each, work=each.work // 2))
    return found


def pairs(seed: int) -> list[Pair]:
    """A program and each fix of it. Where a screen is not waited for, the queue of the device fills instead."""
    before = made(seed)
    return [
        Pair(
            f"{seed}: {before.wait}: {what}",
            before=partial(program, made=before),
            after=partial(program, made=fixed(before)),
            transforms=tuple(transforms),
            saves=(-1, 1),
            refusable=True,
        )
        for what, (transforms, fixed) in fixes(before).items()
    ]
