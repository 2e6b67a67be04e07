"""Long programs made by chance in which nothing repeats: batches of any size, kernels in any order, and a pause after
each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import Pair, varied, waking
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

SIZE = 1 << 16
KERNELS = ("gather", "scatter", "unique", "expand", "reduce", "mark", "compact")
ENDS = {"sync": 4, "blocking_copy": 3, "": 1}
"""What ends a batch, and how often: a synchronization, a read-back, nothing."""
PAUSES = {"host_compute": 3, "sleep": 2, "io_wait": 1, "": 1}
"""What is done between batches."""
FEWEST, MOST = 5_000, 60_000


class Window(NamedTuple):
    """A program that launches `batches` of so many kernels, about `kernel` ns long, by calls of `call` ns with `host`
    ns of host code before each. Kernels of a batch are in one of so many `streams`. A batch `end`s with a wait, and a
    `pause` of about `paused` ns follows. A helper prepares each batch for `helper` ns and is waited for; where it
    `asks_early`, only at the end of the batch before. Operations that were queued follow each other after `turnaround`
    ns."""

    seed: int
    batches: tuple[int, ...]
    kernel: int
    call: int
    host: int
    streams: int
    end: str
    pause: str
    paused: int
    helper: int
    turnaround: int
    asks_early: bool = False


def made(seed: int, most: int = MOST) -> Window:
    """The program of a seed, with at most so many launches."""
    chance = random.Random(f"windows {seed}")
    size = chance.choice((3, 12, 50, 200, 400))
    batches = [1 + min(round(chance.expovariate(1 / size)), 10 * size) for _ in range(MOST)]
    launches = round(FEWEST * (most / FEWEST) ** chance.random())
    count = next(at for at, sum_of in enumerate(accumulate(batches), 1) if sum_of >= launches)
    return Window(
        seed=seed,
        batches=tuple(batches[:count]),
        kernel=round(chance.lognormvariate(0, 0.8) * 6 * US),
        call=round(chance.choice((2, 5, 9)) * US),
        host=round(chance.choice((0.1, 2, 6)) * US),
        streams=chance.choice((1, 1, 1, 2)),
        end=chance.choices(list(ENDS), list(ENDS.values()))[0],
        pause=chance.choices(list(PAUSES), list(PAUSES.values()))[0],
        paused=round(size * chance.choice((1, 3, 8)) * US),
        helper=round(size * chance.choice((0, 0, 2, 6)) * US),
        turnaround=chance.choice((900, 1_200, 1_600, 2_200)),
    )


def run(sim: Simulation, marks: Marks, *, window: Window) -> None:
    """Let a program run."""
    sim.gpus[0].turnaround = window.turnaround
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    streams = [process.stream() for _ in range(window.streams)]
    chance = random.Random(window.seed)
    names = [chance.choice(KERNELS) for _ in range(sum(window.batches))]

    def main(t: Thread) -> Body:
        marks.begin(t)
        first = 0
        for batch, size in enumerate(window.batches):
            if window.helper:
                yield from t.put(asked, "sem_post")
            if window.helper and not window.asks_early:
                yield from t.get(done, "sem_wait")
            stream = streams[batch % len(streams)]
            for number in range(first, first + size):
                if window.host:
                    yield from t.compute(varied(window.host, "host", number), "next_kernel")
                yield from t.launch(names[number], varied(window.kernel, number, spread=0.6), stream, call=window.call)
            first += size
            if window.end == "sync":
                yield from t.synchronize(stream)
            elif window.end == "blocking_copy":
                yield from t.blocking_copy("DtoH", SIZE, 4 * US, stream, staging=2 * US)
            elif window.end:
                yield from t.copy("DtoH", SIZE, 4 * US, stream, call=2 * US)
            yield from _pause(t, window, batch)
            if window.helper and window.asks_early:
                yield from t.get(done, "sem_wait")
        yield from t.synchronize()
        marks.end(t)

    def help_out(t: Thread) -> Body:
        for batch in range(len(window.batches)):
            yield from t.get(asked, "sem_wait")
            yield from t.compute(varied(window.helper, "helper", batch), "sample")
            yield from t.put(done, "sem_post")

    if window.helper:
        waking(sim.thread(process, help_out, name="helper"))
    waking(sim.thread(process, main, name="solver"))


def _pause(t: Thread, window: Window, batch: int) -> Body:
    ns = varied(window.paused, "pause", batch, spread=0.5)
    if window.pause == "host_compute" and ns:
        yield from t.compute(ns, "choose")
    elif window.pause == "sleep" and ns:
        yield from t.sleep(ns)
    elif window.pause == "io_wait" and ns:
        yield from t.read_file(ns)


def fixed(window: Window, cause: str) -> Window:
    """The same with a cause of idle time fixed; a helper does what it did."""
    if cause == "launch_call":
        return window._replace(call=0)
    if cause == window.end:
        return window._replace(end="copy" if cause == "blocking_copy" else "")
    window = window._replace(host=0) if cause == "host_compute" else window
    return window._replace(pause="", paused=0) if cause == window.pause else window


def causes(window: Window) -> Iterator[str]:
    """What can be fixed in it. What a helper computes is a part of the same cause, so that is not fixed then."""
    yield "launch_call"
    if window.end:
        yield window.end
    if not window.helper and (window.pause == "host_compute" or window.host > US):
        yield "host_compute"
    if window.pause in ("sleep", "io_wait"):
        yield window.pause


def pairs(seed: int, most: int = MOST) -> Iterator[Pair]:
    """A program and the fix of each cause in it, by its finding."""
    window = made(seed, most)
    yield from (pair_of(window, cause) for cause in causes(window))


def pair_of(window: Window, cause: str) -> Pair:
    """A program and the fix of a cause in it."""
    return Pair(
        f"{window.seed}: {cause}",
        before=partial(run, window=window),
        after=partial(run, window=fixed(window, cause)),
        transforms=(),
        saves=(-1, 1),
        finding=cause,
        steps=0,
        refusable=True,
    )
