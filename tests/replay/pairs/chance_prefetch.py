"""Programs made by chance in which a helper copies the next batches to the device, and fixes of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import CudaEvent
from tests.simulator.host import Body

SIZE = 8 << 20
HANDOVERS = ("event", "stream", "copied event", "main", "blocking")
"""How a copy is known to have ended: the stream of the kernels waits for its event, the helper synchronizes its stream
or the event, the first thread synchronizes the helper's stream, or the copy is from pageable memory and blocks."""
SIGNALS = {"sem_wait": "sem_post", "pthread_cond_wait": "pthread_cond_signal"}


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A program. Times in ns, 0 where something is left out. The helper reads, decodes and copies; it is `depth` steps
    ahead at most. The first thread takes a batch, prepares, and launches `kernels` kernels of `kernel` ns each, then
    synchronizes its stream or the `whole` device, and frees a place, if it is `synchronized`; or it frees the place
    once it has launched. `slow`: wake-ups take as long as real ones."""

    depth: int
    copy: int
    read: int
    decode: int
    host: int
    kernel: int
    kernels: int
    handover: str
    signal: str
    whole: bool
    synchronized: bool
    spread: float
    slow: bool
    ranges: bool


def made(seed: int) -> Prefetch:
    """The program of a seed: its copies and the rest of the helper's work take from 0.3 to 1.6 of a step."""
    chance = random.Random(f"prefetch {seed}")
    kernels, kernel = chance.randint(1, 4), round(chance.lognormvariate(0, 0.6) * 300) * US + 20 * US
    host = chance.choice((0, 1)) * round(chance.lognormvariate(0, 0.8) * 200) * US
    step = kernels * kernel + host
    copy = round(step * chance.uniform(0.2, 1.3))
    rest = max(round(step * chance.uniform(0.3, 1.6)) - copy, 0)
    read = chance.choice((0, 0, 1)) * rest // 2
    return Prefetch(
        depth=chance.randint(1, 4),
        copy=copy,
        read=read,
        decode=(rest - read) * chance.choice((0, 1, 1)),
        host=host,
        kernel=kernel,
        kernels=kernels,
        handover=chance.choice(HANDOVERS),
        signal=chance.choice(list(SIGNALS)),
        whole=chance.random() < 0.2,
        synchronized=chance.random() < 0.85,
        spread=chance.choice((0.02, 0.1, 0.1, 0.3)),
        slow=chance.random() < 0.5,
        ranges=chance.random() < 0.8,
    )


def program(sim: Simulation, marks: Marks, *, made: Prefetch) -> None:
    """The two threads. A step is over with its kernels: copies for later ones are not of it."""
    process = solver(sim)
    free, ready = sim.channel(), sim.channel()
    free.items = made.depth
    work, upload = process.stream(), process.stream()
    events: list[CudaEvent] = []
    post, spread = SIGNALS[made.signal], made.spread

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(free, made.signal)
            if made.read:
                yield from t.read_file(varied(made.read, "read", number, spread=spread))
            if made.decode:
                decoding = t.compute(varied(made.decode, "decode", number, spread=spread), "jpeg_idct")
                yield from ranged(t, "decode", decoding)
            copy = varied(made.copy, "copy", number, spread=spread)
            if made.handover == "blocking":
                yield from t.blocking_copy("HtoD", SIZE, copy, upload)
            else:
                yield from t.copy("HtoD", SIZE, copy, upload)
            event = t.event()
            if made.handover in ("event", "copied event"):
                yield from t.record(event, upload)
            events.append(event)
            if made.handover in ("stream", "copied event"):
                yield from t.synchronize(upload if made.handover == "stream" else event)
            yield from t.put(ready, post)

    def step(t: Thread, number: int) -> Body:
        yield from t.get(ready, made.signal)
        if made.handover == "event":
            yield from t.wait_event(work, events[number])
        elif made.handover == "main":
            yield from t.synchronize(upload)
        if made.host:
            yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number, spread=spread), "convert"))
        for kernel in range(made.kernels):
            yield from t.launch("solve", varied(made.kernel, "solve", number, kernel, spread=spread), work)
        if made.synchronized:
            yield from t.synchronize(None if made.whole else work)
        yield from t.put(free, post)

    delayed: Callable[[Thread], Thread] = waking if made.slow else lambda t: t
    delayed(sim.thread(process, helper, name=BACKGROUND))
    delayed(loop(sim, marks, step, process=process, ranges=made.ranges))


Fix = tuple[Sequence[Transform], Callable[[Prefetch], Prefetch]]


def fixes(made: Prefetch) -> dict[str, Fix]:
    """What may be fixed, by name: what one asks for, and the program with it."""
    found: dict[str, Fix] = {
        "kernel": ((faster("kernel", "solve", 0.5),), lambda each: replace(each, kernel=each.kernel // 2)),
        "copy": ((faster("kernel", "HtoD*", 0.5),), lambda each: replace(each, copy=each.copy // 2)),
    }
    if made.host:
        found["host"] = ((faster("host", "prepare", 0.5),), lambda each: replace(each, host=each.host // 2))
    if made.decode:
        found["decode"] = ((faster("host", "decode", 0.5),), lambda each: replace(each, decode=each.decode // 2))
    if made.read:
        found["read"] = (without("io_wait"), lambda each: replace(each, read=0))
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
            saves=(-1, 1),
            refusable=True,
        )
        for what, (transforms, fixed) in fixes(before).items()
    ]
