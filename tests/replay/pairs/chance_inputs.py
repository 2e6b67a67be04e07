"""Programs made by chance that wait for input, and fixes of them: workers, disks, queues, timers, clients."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body, Process

SIZE, AT_ONCE = 1 << 20, 2 * US
SOURCES = {"queue": 8, "demand": 2, "camera": 3, "client": 2, "limiter": 1, "batcher": 2, "file": 1}
"""Who has the input of a step, and how often: workers ahead of it, workers that are asked, frames at fixed times, a
client that asks again once it has its answer, a rate limiter, requests collected up to a timer, a file."""
PACES = {"": 4, "clock_nanosleep": 1, "recv": 1, "poll": 1}
"""What the items that workers load are paced by."""


@dataclass(frozen=True, slots=True)
class Input:
    """A program. Times in ns; 0 where something is left out. `workers` take items in turns, `depth` ahead at most; they
    `read` from one disk (`shared`) or each its own, and decode; `second` is what another thread does to each item. They
    are in the trace if `recorded`. Items or frames come each `period`, `jitter` of it more or less, and are waited for
    `by` a call. `pause` is a sleep in each step. `noise` is what a thread in the background reads at once, from the
    same disk."""

    source: str
    by: str
    workers: int
    depth: int
    read: int
    decode: int
    second: int
    shared: bool
    recorded: bool
    process: bool
    named: bool
    paced: str
    period: int
    jitter: float
    host: int
    kernel: int
    kernels: int
    pause: int
    noise: int
    spread: float
    synchronized: bool
    ranges: bool
    ready: bool = False


def made(seed: int) -> Input:
    """The program of a seed."""
    chance = random.Random(f"inputs {seed}")

    def some(ns: int, often: float = 1.0) -> int:
        drawn = round(chance.lognormvariate(0, 0.8) * ns) + 5 * US
        return drawn if chance.random() < often else 0

    source = chance.choices(list(SOURCES), list(SOURCES.values()))[0]
    recorded, process = chance.random() < 0.7, chance.random() < 0.5
    workers = chance.choice((1, 1, 2, 2, 3, 4))
    kernels, host = chance.randint(1, 3), some(500 * US, 0.7)
    kernel = some(500 * US)
    read, decode = some(1500 * US, 0.8), some(1500 * US, 0.9)
    step = host + kernel * kernels
    by = _call(chance, source, process=process, recorded=recorded)
    depth = chance.choice((1, 2, 4, 100))
    paced = chance.choices(list(PACES), list(PACES.values()))[0]
    return Input(
        source=source,
        by=by,
        workers=workers,
        depth=depth,
        read=read * workers if chance.random() < 0.5 else read,
        decode=decode * workers,
        second=some(700 * US, 0.3),
        shared=chance.random() < 0.5,
        recorded=recorded,
        process=process or not recorded,
        named=chance.random() < 0.7,
        paced=paced,
        period=round(step * chance.uniform(0.6, 2.5)),
        jitter=chance.choice((0.0, 0.0, 0.1, 0.4)) * (paced != "clock_nanosleep"),
        host=host,
        kernel=kernel,
        kernels=kernels,
        pause=some(400 * US, 0.2),
        noise=some(400 * US, 0.25),
        spread=chance.choice((0.02, 0.1, 0.1, 0.3)),
        synchronized=chance.random() < 0.8,
        ranges=chance.random() < 0.8,
    )


def _call(chance: random.Random, source: str, *, process: bool, recorded: bool) -> str:
    """By what the input is waited for. What reads a pipe whose writer is not in the trace cannot be told from what
    reads a file, unless the program asks for it."""
    if not process and recorded:
        return chance.choice(("sem_wait", "pthread_cond_wait"))
    asked = source in ("demand", "client")
    return chance.choice(("read", "poll", "recv") if recorded or asked else ("poll", "recv"))


class Disk:
    """Reads one after the other, if `shared`; else as many at once as are asked for."""

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared
        self.free = 0

    def read(self, t: Thread, ns: int) -> Body:
        """Wait until so much is read; nothing is read in no time."""
        if not ns:
            return
        self.free = max(t.clock.now, self.free if self.shared else 0) + ns
        yield from t.read_file(self.free - t.clock.now)


def program(sim: Simulation, marks: Marks, *, made: Input) -> None:
    """A thread that waits in each step for its input, prepares it, and launches kernels."""
    trainer = sim.process()
    other = sim.process(gpus=[]) if made.process else trainer
    if not made.recorded:
        sim.processes.remove(other)
    disk = Disk(shared=made.shared)
    _Loop(sim, made, trainer, other, disk).start(marks)
    if made.noise:
        sim.thread(trainer, partial(_noise, made=made, disk=disk), name=BACKGROUND)


def _noise(t: Thread, made: Input, disk: Disk) -> Body:
    for number in range(STEPS):
        yield from disk.read(t, varied(made.noise, "noise", number))
        yield from t.compute(4 * made.noise, "log")


class _Loop:
    """The threads of a program, and what they share."""

    def __init__(self, sim: Simulation, made: Input, trainer: Process, other: Process, disk: Disk) -> None:
        self.sim, self.made, self.trainer, self.other, self.disk = sim, made, trainer, other, disk
        self.asked, self.passed, self.items = sim.channel(), sim.channel(), sim.channel()
        self.asked.items = 0 if made.source in ("demand", "client") else made.depth
        self.numbers = iter(range(STEPS * 4))
        chance = random.Random(7)
        self.due = [
            round((number + 1 + chance.uniform(-made.jitter, made.jitter)) * made.period) for number in range(4 * STEPS)
        ]
        self.tokens = 0

    def start(self, marks: Marks) -> None:
        """Start the threads."""
        names = {"name": "pt_data_worker", "loads": "name"} if self.made.named else {"name": "python3"}
        if self.made.source in ("queue", "demand", "client", "batcher"):
            for _ in range(self.made.workers if self.made.source in ("queue", "demand") else 1):
                waking(self.sim.thread(self.other, self._worker, **names))
            if self.made.second:
                waking(self.sim.thread(self.other, self._stage, **names))
        waking(loop(self.sim, marks, self._step, process=self.trainer, ranges=self.made.ranges))

    def _varied(self, ns: int, *key: object) -> int:
        return varied(ns, *key, spread=self.made.spread)

    def _worker(self, t: Thread) -> Body:
        made = self.made
        for number in self.numbers:
            if number >= STEPS:
                return
            yield from t.get(self.asked, "sem_wait" if self._ask == "sem_post" else "read")
            if not made.ready:
                if made.paced:
                    yield from self._until(t, self.due[number])
                yield from self.disk.read(t, self._varied(made.read, "read", number))
                if made.decode:
                    yield from ranged(t, "decode", t.compute(self._varied(made.decode, "decode", number), "jpeg_idct"))
            yield from t.put(self.passed if made.second else self.items, "sem_post" if made.second else self._signal)

    def _stage(self, t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(self.passed, "sem_wait")
            if not self.made.ready:
                yield from t.compute(self._varied(self.made.second, "second", number), "augment")
            yield from t.put(self.items, self._signal)

    @property
    def _ask(self) -> str:
        return "write" if self.made.source == "client" or not self.made.recorded else "sem_post"

    @property
    def _signal(self) -> str:
        return {"read": "write", "poll": "write", "recv": "send", "pthread_cond_wait": "pthread_cond_signal"}.get(
            self.made.by, "sem_post"
        )

    def _input(self, t: Thread, number: int) -> Body:
        made = self.made
        if made.ready and made.source in ("camera", "limiter", "file"):
            return
        if made.source == "camera":
            # Of a loop that never waits for its source, nothing in the trace tells that it has one.
            step = made.host + made.kernels * made.kernel + made.pause
            asks = made.ranges or made.period < step + step // 4 + 100 * US
            if made.paced and (asks or self.due[number] > t.clock.now):
                yield from self._until(t, self.due[number])
        elif made.source == "limiter":
            due = max(self.tokens, t.clock.now) if self.made.jitter else max(self.tokens, 0)
            if due > t.clock.now and made.paced:
                yield from t.until(due, "clock_nanosleep", "sleep")
            self.tokens = max(due, t.clock.now) + made.period
        elif made.source == "file":
            yield from self.disk.read(t, self._varied(made.read, "read", number))
        elif made.source == "batcher":
            yield from self._collect(t)
        else:
            if made.source in ("demand", "client"):
                yield from t.put(self.asked, self._ask)
            yield from t.get(self.items, made.by)
            if made.source == "queue":
                yield from t.put(self.asked, self._ask)

    def _until(self, t: Thread, due: int) -> Body:
        """Wait for what comes then. What has come is there at once, in a call that is long enough to be recorded."""
        cause = "sleep" if self.made.paced == "clock_nanosleep" else "io_wait"
        if due > t.clock.now:
            yield from t.until(due, self.made.paced, cause)
        else:
            yield from t.os_call(self.made.paced, AT_ONCE, cause)

    def _collect(self, t: Thread) -> Body:
        """The first request, and then a time in which more may come."""
        yield from t.get(self.items, self.made.by)
        if self.made.pause:
            yield from t.sleep(self.made.pause)
        yield from t.put(self.asked, self._ask)

    def _step(self, t: Thread, number: int) -> Body:
        made = self.made
        yield from self._input(t, number)
        if made.pause and made.source != "batcher":
            yield from t.sleep(self._varied(made.pause, "pause", number))
        if made.host:
            yield from ranged(t, "prepare", t.compute(self._varied(made.host, "host", number), "convert"))
        yield from t.copy("HtoD", SIZE, 60 * US)
        for kernel in range(made.kernels):
            yield from t.launch("detect", self._varied(made.kernel, "kernel", number, kernel))
        if made.synchronized:
            yield from t.synchronize()


FIELDS_OF_WORKERS = ("queue", "demand")
Fix = tuple[Sequence[Transform], Callable[[Input], Input]]


def fixes(made: Input) -> dict[str, Fix]:
    """What may be fixed in a program, by name: what one asks for, and the program with it."""
    by_workers = made.source in FIELDS_OF_WORKERS
    loads = by_workers or made.source in ("client", "batcher")
    found: dict[str, Fix] = {
        "kernel": ((faster("kernel", "detect", 0.5),), lambda each: replace(each, kernel=each.kernel // 2)),
    }
    if made.host:
        found["host"] = ((faster("host", "prepare", 0.5),), lambda each: replace(each, host=each.host // 2))
    if made.pause:
        found["sleep"] = (without("sleep"), _without_sleep)
    if made.synchronized:
        found["sync"] = (without("sync"), lambda each: replace(each, synchronized=False))
    if by_workers and made.recorded:
        count = 2 * made.workers
        found["workers"] = ((Transform("workers", factor=count),), lambda each: replace(each, workers=count))
        found["ready"] = (without("data_loading"), lambda each: replace(each, ready=True))
    if loads and made.recorded and made.decode:
        found["decode"] = ((faster("host", "decode", 0.5),), lambda each: replace(each, decode=each.decode // 2))
    if made.read and (loads or made.source == "file"):
        found["read"] = (without("io_wait"), _without_reads)
    if loads and not made.recorded:
        found["unseen"] = (without("io_wait"), lambda each: replace(each, ready=True))
    return found


def _without_sleep(made: Input) -> Input:
    return replace(made, pause=0, paced="" if made.paced == "clock_nanosleep" else made.paced)


def _without_reads(made: Input) -> Input:
    return replace(made, read=0, paced=made.paced if made.paced == "clock_nanosleep" else "")


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
