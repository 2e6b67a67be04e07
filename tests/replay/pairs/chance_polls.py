"""Programs made by chance that poll a device, take what a timer posts, or move pages, and fixes of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body

ENDS = {"poll": 3, "sync": 3, "read back": 1, "": 1}
"""How a step waits for its kernels, and how often."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A program. Times in ns; 0 where something is left out. Pages move in two parts of `pages` before the kernels or
    behind the first. A timer posts each `period`. A thread in the background launches a kernel of `beside` each
    `every`. Kernels of `small` each follow, in a range, as a graph if it is one. `nap` is the sleep between queries."""

    host: int
    kernel: int
    pages: int
    before: bool
    period: int
    beside: int
    every: int
    small: int
    nap: int
    end: str
    spread: float
    graph: bool = False


def made(seed: int) -> Asking:
    """The program of a seed."""
    chance = random.Random(f"polls {seed}")

    def some(ns: int, often: float = 1.0) -> int:
        drawn = round(chance.lognormvariate(0, 0.7) * ns) + 5 * US
        return drawn if chance.random() < often else 0

    host, kernel = some(250 * US), some(350 * US)
    return Asking(
        host=host,
        kernel=kernel,
        pages=some(30 * US, 0.3),
        before=chance.random() < 0.5,
        period=round((host + kernel) * chance.uniform(0.4, 1.6)) if chance.random() < 0.3 else 0,
        beside=some(200 * US, 0.3),
        every=some(4 * (host + kernel)),
        small=some(8 * US, 0.3),
        nap=chance.choice((40, 60, 150, 400)) * US,
        end=chance.choices(list(ENDS), list(ENDS.values()))[0],
        spread=chance.choice((0.02, 0.1, 0.3)),
    )


def program(sim: Simulation, marks: Marks, *, made: Asking) -> None:
    """A thread that takes the steps, and those that a timer and work in the background need."""
    process, ticks, over = solver(sim), sim.channel(), []
    stream, other = process.stream(), process.stream()

    def some(ns: int, *key: object) -> int:
        return varied(ns, *key, spread=made.spread)

    def timer(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.until(number * made.period)
            yield from t.put(ticks, "sem_post")

    def background(t: Thread) -> Body:
        while not over:
            yield from t.sleep(made.every)
            yield from t.launch("monitor", made.beside, other)
            yield from t.synchronize(other)

    def step(t: Thread, number: int) -> Body:
        if made.period:
            yield from t.get(ticks, "sem_wait")
        yield from ranged(t, "prepare", t.compute(some(made.host, "host", number), "convert"))
        if made.pages and made.before:
            yield from t.prefetch(2, made.pages, 10 * US, stream)
        yield from t.launch("solve", some(made.kernel, "kernel", number), stream)
        if made.pages and not made.before:
            yield from t.prefetch(2, made.pages, 10 * US, stream)
        if made.small:
            yield from ranged(t, "layers", _small(t, [some(made.small, "small", number, each) for each in range(6)]))
        yield from t.launch("post", 20 * US, stream)
        yield from _end(t, number)
        over.extend([True] if number == STEPS - 1 else [])

    def _small(t: Thread, lengths: Sequence[int]) -> Body:
        if made.graph:
            yield from t.launch_graph([Node("relax", ns) for ns in lengths], stream)
            return
        for ns in lengths:
            yield from t.launch("relax", ns, stream)

    def _end(t: Thread, number: int) -> Body:
        if made.end == "poll":
            event = t.event()
            yield from t.record(event, stream)
            while not event.complete:
                yield from t.query(event)
                yield from t.sleep(made.nap, "usleep")
            yield from t.query(event)
        elif made.end == "sync":
            yield from t.synchronize(stream)
        elif made.end:
            yield from t.blocking_copy("DtoH", 4, 2 * US, stream, staging=1 * US)

    if made.period:
        waking(sim.thread(process, timer, name=BACKGROUND))
    if made.beside:
        waking(sim.thread(process, background, name=BACKGROUND))
    waking(loop(sim, marks, step, process=process))


Fix = tuple[Sequence[Transform], Callable[[Asking], Asking]]
OF_END = {"poll": "sleep", "sync": "sync", "read back": "blocking_copy"}
"""The cause that is fixed where nothing waits at the end of a step, or no longer sleeps."""


def fixes(made: Asking) -> dict[str, Fix]:
    """What may be fixed in a program, by name: what one asks for, and the program with it."""
    found: dict[str, Fix] = {
        "kernel": ((faster("kernel", "solve", 0.5),), lambda each: replace(each, kernel=each.kernel // 2)),
        "host": ((faster("host", "prepare", 0.5),), lambda each: replace(each, host=each.host // 2)),
    }
    if made.end and not (made.end == "poll" and made.period):  # the timer sleeps, too
        then = "sync" if made.end == "poll" else ""
        found[made.end] = (without(OF_END[made.end]), lambda each: replace(each, end=then))
    if made.small:
        found["graph"] = ((Transform("graphs", "layers"),), lambda each: replace(each, graph=True))
    return found


def pairs(seed: int) -> list[Pair]:
    """A program and each fix that something in it needs."""
    before = made(seed)
    return [
        Pair(
            f"{seed}: {what}",
            before=partial(program, made=before),
            after=partial(program, made=fixed(before)),
            transforms=tuple(transforms),
            saves=(0, 1),
            refusable=True,
        )
        for what, (transforms, fixed) in fixes(before).items()
    ]
