"""Programs made by chance of kinds that others have not: a helper that goes on once it has posted, host functions in a
stream, a clock whose every second time is missed, and naps between queries. Also requests that come while a helper
writes, threads that have ended when they are joined, and a device that is asked once it is done."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, ranged, varied, waking, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body, Process

BEGIN = 2 * MS


@dataclass(frozen=True, slots=True)
class Unlike:
    """A program. Times in ns: `host` code and a `kernel` in each step, `other` work of its kind, and what the helper
    computes `after` it has posted, or for how long it has `written` then. `period` is that of the clock, `nap` the
    sleep between queries."""

    kind: str
    host: int
    kernel: int
    other: int
    after: int
    written: int
    period: int
    nap: int
    synchronized: bool
    slow: bool


def made(kind: str, seed: int) -> Unlike:
    """The program of a kind and a seed."""
    chance = random.Random(f"{kind} {seed}")
    host, kernel, other, after = (round(chance.lognormvariate(0, 0.7) * 150) * US + 20 * US for _ in range(4))
    return Unlike(
        kind=kind,
        host=host,
        kernel=kernel,
        other=other,
        after=after if chance.random() < 0.3 else 0,
        written=after,
        period=round((host + kernel) * chance.uniform(0.7, 0.95)),
        nap=chance.choice((20, 50)) * US,
        synchronized=chance.random() < 0.5,
        slow=chance.random() < 0.6,
    )


Acts = Callable[[Simulation, Process, Unlike], Callable[[Thread, int], Body]]


def _posts_and_works_on(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    asked, done = sim.channel(), sim.channel()

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            yield from ranged(t, "prepare", t.compute(varied(made.other, "other", number), "prepare"))
            yield from t.put(done, "sem_post")
            if made.after:
                yield from ranged(t, "index", t.compute(varied(made.after, "after", number), "index"))

    def step(t: Thread, number: int) -> Body:
        yield from t.put(asked, "sem_post")
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.get(done, "sem_wait")
        yield from t.launch("solve", varied(made.kernel, "kernel", number))

    sim.thread(process, helper, name="helper")
    return step


def _host_functions(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    stream = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.launch("solve", varied(made.kernel, "kernel", number), stream)
        yield from t.host_function(varied(made.other, "other", number), stream)
        yield from t.launch("border", 30 * US, stream)

    return step


def _missed_times(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    def step(t: Thread, number: int) -> Body:
        yield from t.until(BEGIN - (BEGIN - t.clock.now) // made.period * made.period)
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.launch("solve", varied(made.kernel, "kernel", number))
        yield from t.synchronize()

    return step


def _naps(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    stream = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.launch("solve", varied(made.kernel, "kernel", number), stream)
        event = t.event()
        yield from t.record(event, stream)
        yield from t.compute(varied(made.other, "other", number), "second")
        while not event.complete:
            yield from t.query(event)
            yield from t.sleep(made.nap, "usleep")
        yield from t.query(event)

    return step


def _answers_and_writes(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    asked, done = sim.channel(), sim.channel()

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            yield from ranged(t, "prepare", t.compute(varied(made.other, "other", number), "prepare"))
            yield from t.put(done, "sem_post")
            if made.written:
                yield from t.read_file(varied(made.written, "written", number), "write")

    def step(t: Thread, number: int) -> Body:
        yield from t.put(asked, "sem_post")
        yield from t.get(done, "sem_wait")
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.launch("solve", varied(made.kernel, "kernel", number))

    sim.thread(process, helper, name="helper")
    return step


def _joins(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    def step(t: Thread, number: int) -> Body:
        born: list[Thread] = []

        def work(u: Thread) -> Body:
            yield from u.compute(varied(made.other, "other", number), "gather")

        def begin() -> Thread:
            born.append(sim.thread(process, work, name="gatherer", start=sim.clock.now + 20 * US))
            return born[0]

        yield from t.spawn(begin)
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.launch("solve", varied(made.kernel, "kernel", number))
        yield from t.join(born[0])

    return step


def _asks_once(sim: Simulation, process: Process, made: Unlike) -> Callable[[Thread, int], Body]:
    stream = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("solve", varied(made.kernel, "kernel", number), stream)
        event = t.event()
        yield from t.record(event, stream)
        yield from ranged(t, "update", t.compute(varied(made.host, "host", number), "update"))
        yield from t.spin_on(event)

    return step


KINDS: dict[str, Acts] = {
    "posts and works on": _posts_and_works_on,
    "host functions": _host_functions,
    "missed times": _missed_times,
    "naps": _naps,
    "answers and writes": _answers_and_writes,
    "joins": _joins,
    "asks once": _asks_once,
}


def program(sim: Simulation, marks: Marks, *, made: Unlike) -> None:
    """The thread that takes the steps, and what its kind needs besides."""
    process = solver(sim)
    step = KINDS[made.kind](sim, process, made)

    def whole(t: Thread, number: int) -> Body:
        yield from step(t, number)
        if made.synchronized:
            yield from t.synchronize()

    loop(sim, marks, whole, process=process)
    for thread in process.threads if made.slow else ():
        waking(thread)


def fixes(made: Unlike) -> dict[str, tuple[Unlike, Sequence[Transform]]]:
    """What may be fixed, and how."""
    found: dict[str, tuple[Unlike, Sequence[Transform]]] = {
        "kernel": (replace(made, kernel=made.kernel // 2), (faster("kernel", "solve", 0.5),)),
        "host": (replace(made, host=made.host // 2), (faster("host", "update", 0.5),)),
    }
    if made.kind == "answers and writes":
        found["write"] = (replace(made, written=0), without("io_wait"))
    if made.synchronized and made.kind != "asks once":  # what asks is a synchronization, too
        found["synchronization"] = (replace(made, synchronized=False), without("sync"))
    return found


def pairs(kind: str, seed: int, schema: str = EVERYTHING.schema) -> list[Pair]:
    """A program and each of its fixes, captured with a version of the export."""
    before = made(kind, seed)
    return [
        Pair(
            f"{kind} {seed}: {name}",
            before=partial(program, made=before),
            after=partial(program, made=after),
            transforms=tuple(transforms),
            saves=(-1, 1),
            capture=EVERYTHING.but(schema=schema),
            refusable=True,
        )
        for name, (after, transforms) in fixes(before).items()
    ]
