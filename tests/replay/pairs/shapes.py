"""The same work in other shapes: fused kernels, more workers, a host further ahead, other streams, larger steps."""

from __future__ import annotations

from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, loop, pair, varied, waking
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import CudaEvent
from tests.simulator.host import Body, Process


def pointwise(
    sim: Simulation,
    marks: Marks,
    *,
    each: int,
    host: int = 0,
    fused: str = "",
    shrinks: float = 1.0,
    before: int = 200 * US,
    synchronized: bool = True,
    kernels: int = 12,
) -> None:
    """A matrix product, then many small kernels, launched one by one behind a little host code. Fused they are one
    kernel, launched in place of the `first` or the `last` of them, or with no host code but its own (`alone`).

    T    [l][host][l][host][l] ... [sync]
    gpu     [gemm   )[p)   [p)
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("gemm", varied(before, "gemm", number))
        lengths = [varied(each, "pointwise", number, kernel) for kernel in range(kernels)]
        for kernel, ns in enumerate(lengths):
            if fused != "alone" or not kernel:
                yield from t.compute(varied(host, "host", number, kernel), "dispatch") if host else iter(())
            if not fused:
                yield from t.launch("pointwise", ns)
            elif kernel == (kernels - 1 if fused == "last" else 0):
                yield from t.launch("pointwise", round(sum(lengths) * shrinks))
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step)


def loaded(
    sim: Simulation,
    marks: Marks,
    *,
    workers: int,
    read: int,
    decode: int,
    work: int,
    depth: int = 2,
    asked: bool = False,
    one_core: bool = False,
    slow_disk: bool = False,
) -> None:
    """Workers read and decode batches in turns, each some batches ahead; or only the batch that is `asked` for. They
    may have `one_core`, and a disk that reads for one at a time.

    worker 0  [read ][decode ..](post)[read ...
    worker 1        [read ][decode ..](post)[re
    T         [wait                  ][l][sync]
    """
    process, disk = solver(sim), sim.mutex()
    ready = [sim.channel() for _ in range(workers)]
    free = [sim.channel() for _ in range(workers)]
    for each in free:
        each.items = 0 if asked else depth

    def load(t: Thread, place: int) -> Body:
        for number in range(place, STEPS, workers):
            yield from t.get(free[place], "sem_wait")
            if slow_disk:
                yield from t.lock(disk)
            if read:
                yield from t.read_file(varied(read, "read", number))
            if slow_disk:
                yield from t.unlock(disk)
            yield from t.compute(varied(decode, "decode", number), "jpeg_idct_islow")
            yield from t.put(ready[place], "sem_post")

    def step(t: Thread, number: int) -> Body:
        if asked:
            yield from t.put(free[number % workers], "sem_post")
        yield from t.get(ready[number % workers], "sem_wait")
        if not asked:
            yield from t.put(free[number % workers], "sem_post")
        yield from t.launch("ampere_sgemm_128x64_tn", varied(work, "gemm", number))
        yield from t.synchronize()

    first: Thread | None = None
    for place in range(workers):
        shared = first if one_core else None
        worker = sim.thread(process, partial(load, place=place), name="pt_data_worker", loads="name", share=shared)
        first = first or waking(worker)
    waking(loop(sim, marks, step, process=process))


def in_step(
    sim: Simulation,
    marks: Marks,
    *,
    host: int,
    kernel: int,
    ahead: int = 0,
    read: bool = False,
    spread: float = 0.1,
) -> None:
    """The host waits for each step, or for the one that was `ahead` steps before; or reads a value of it back.

    T    [host][l][sync.....][host][l][sync.....]         [host][l][sync: step before][host][l]
    gpu           [k        )         [k        )    ->            [k          )[k
    """
    process = solver(sim)
    stream, events = process.stream(), [process_event(process) for _ in range(STEPS)]

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number, spread=spread), "prepare")
        yield from t.launch("solve", varied(kernel, "solve", number), stream)
        if read and not ahead:
            yield from t.blocking_copy("DtoH", 8, 2 * US, stream=stream)
            return
        yield from t.record(events[number], stream)
        if number >= ahead:
            yield from t.synchronize(events[number - ahead])

    loop(sim, marks, step, process=process)


def process_event(process: Process) -> CudaEvent:
    """cudaEventCreate, before the loop."""
    process.events += 1
    return CudaEvent(process.events)


def beside(
    sim: Simulation,
    marks: Marks,
    *,
    apart: bool = False,
    needed: bool = False,
    statistics: int = 300 * US,
    work: int = 700 * US,
    host: int = 0,
) -> None:
    """A kernel of statistics between others in one stream, or in a stream of its own; what follows may need it.

    stream 7   [work )[statistics )[work )        [work )[work )
    stream 8                                 ->   [statistics )
    """
    process = solver(sim)
    main, other = process.stream(), process.stream()
    begun, done = process_event(process), process_event(process)

    def step(t: Thread, number: int) -> Body:
        if host:
            yield from t.compute(varied(host, "host", number), "prepare")
        yield from t.launch("work", varied(work, "work", number), main)
        if apart and needed:
            yield from t.record(begun, main)
            yield from t.wait_event(other, begun)
        yield from t.launch("statistics", varied(statistics, "statistics", number), other if apart else main)
        if apart and needed:
            yield from t.record(done, other)
            yield from t.wait_event(main, done)
        yield from t.launch("update", varied(work // 2, "update", number), main)
        yield from t.synchronize()

    loop(sim, marks, step, process=process)


def stepped(
    sim: Simulation,
    marks: Marks,
    *,
    each: int,
    host: int,
    size: int = 1,
    grows: float = 1.0,
    twice: bool = False,
    synchronized: bool = True,
    kernels: int = 8,
) -> None:
    """Steps of many kernels; or half as many steps, in which each kernel has twice the work, and grows by a part of
    it. Some host code may be done `twice`.

    T    [host][l][l][sync][host][l][l][sync]        [host][l][l ][sync ]
    gpu           [k)[k)           [k)[k)       ->            [k   )[k   )
    """

    def step(t: Thread, number: int) -> Body:
        parts = range(number * size, number * size + size)
        yield from t.compute(sum(varied(host, "host", part) for part in (parts if twice else parts[:1])), "prepare")
        for kernel in range(kernels):
            first, *others = (varied(each, "axpy", part, kernel) for part in parts)
            yield from t.launch("axpy", first + round(sum(others) * grows))
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step, steps=STEPS // size)


MERGE, TWO, AHEAD = Transform("merge", "pointwise"), Transform("batch", factor=2.0), Transform("ahead", factor=1.0)
STREAM, MORE = Transform("stream", "statistics"), Transform("workers", factor=2.0)
SMALL = partial(pointwise, each=3 * US, host=6 * US, before=30 * US)
SLOW_LOADER = partial(loaded, workers=1, read=1 * MS, decode=2 * MS, work=1 * MS)
PAIRS: tuple[Pair, ...] = (
    pair("small kernels fused, launched first", SMALL, {"fused": "first"}, MERGE, (0.1, 0.5), quick=True),
    pair("small kernels fused, launched last", SMALL, {"fused": "last"}, MERGE, (0.05, 0.5), tolerated=0.3),
    pair("small kernels fused, and no host code left", SMALL, {"fused": "alone"}, MERGE, (0.2, 0.6), tolerated=0.4),
    pair(
        "fused kernels that take half the time",
        partial(pointwise, each=30 * US, before=50 * US),
        {"fused": "first", "shrinks": 0.5},
        MERGE,
        (0.2, 0.5),
        tolerated=0.5,
    ),
    pair(
        "long kernels fused",
        partial(pointwise, each=200 * US),
        {"fused": "first"},
        MERGE,
        (0.0, 0.02),
    ),
    pair(
        "small kernels fused behind a long one",
        partial(pointwise, each=3 * US, host=6 * US, before=800 * US),
        {"fused": "last"},
        MERGE,
        (0.0, 0.03),
    ),
    pair("two workers in place of one", SLOW_LOADER, {"workers": 2}, MORE, (0.4, 0.6), tolerated=0.2),
    pair(
        "four workers in place of two",
        partial(loaded, workers=2, read=1 * MS, decode=6 * MS, work=1 * MS),
        {"workers": 4},
        Transform("workers", factor=4.0),
        (0.45, 0.55),
        refusable=True,
    ),
    pair(
        "two workers in place of one that is fast enough",
        partial(loaded, workers=1, read=200 * US, decode=300 * US, work=2 * MS),
        {"workers": 2},
        MORE,
        (-0.01, 0.01),
        refusable=True,
    ),
    pair("two workers on one core", SLOW_LOADER, {"workers": 2, "one_core": True}, MORE, (0.0, 0.4), tolerated=0.5),
    pair(
        "two workers and a disk that reads for one at a time",
        partial(loaded, workers=1, read=3 * MS, decode=300 * US, work=500 * US, slow_disk=True),
        {"workers": 2},
        MORE,
        (0.0, 0.2),
        tolerated=0.5,
    ),
    pair(
        "two workers that load what is asked for",
        partial(loaded, workers=1, read=1 * MS, decode=2 * MS, work=1 * MS, asked=True),
        {"workers": 2},
        MORE,
        (-0.05, 0.05),
        tolerated=0.6,
    ),
    pair(
        "host a step ahead",
        partial(in_step, host=600 * US, kernel=1 * MS),
        {"ahead": 1},
        AHEAD,
        (0.3, 0.4),
        quick=True,
    ),
    pair(
        "host a step ahead, and the limit then",
        partial(in_step, host=1 * MS, kernel=400 * US),
        {"ahead": 1},
        AHEAD,
        (0.2, 0.4),
    ),
    pair(
        "host two steps ahead of steps that vary",
        partial(in_step, host=900 * US, kernel=900 * US, spread=0.9),
        {"ahead": 2},
        Transform("ahead", factor=2.0),
        (0.2, 0.5),
    ),
    pair(
        "host a step ahead of steps that vary much",
        partial(in_step, host=900 * US, kernel=900 * US, spread=0.99),
        {"ahead": 1},
        AHEAD,
        (0.2, 0.5),
        tolerated=0.02,
    ),
    pair(
        "value read back a step later",
        partial(in_step, host=600 * US, kernel=1 * MS, read=True),
        {"ahead": 1, "read": False},
        AHEAD,
        (0.3, 0.42),
    ),
    pair(
        "host a step ahead of nothing", partial(in_step, host=20 * US, kernel=2 * MS), {"ahead": 1}, AHEAD, (0.0, 0.03)
    ),
    pair("statistics in a stream of their own", beside, {"apart": True}, STREAM, (0.15, 0.25), tolerated=0.1),
    pair(
        "statistics that what follows needs",
        beside,
        {"apart": True, "needed": True},
        STREAM,
        (-0.02, 0.02),
        tolerated=0.3,
    ),
    pair(
        "statistics longer than the rest",
        partial(beside, statistics=3 * MS),
        {"apart": True},
        STREAM,
        (0.2, 0.3),
    ),
    pair(
        "statistics behind longer host code",
        partial(beside, host=2 * MS, work=300 * US, statistics=100 * US),
        {"apart": True},
        STREAM,
        (0.0, 0.06),
    ),
    pair("two steps in one", partial(stepped, each=40 * US, host=500 * US), {"size": 2}, TWO, (0.25, 0.45), quick=True),
    pair(
        "two steps in one, no kernel longer",
        partial(stepped, each=40 * US, host=500 * US),
        {"size": 2, "grows": 0.0},
        TWO,
        (0.4, 0.55),
        tolerated=0.3,
    ),
    pair(
        "two steps in one, and host code done twice",
        partial(stepped, each=40 * US, host=500 * US),
        {"size": 2, "twice": True},
        TWO,
        (0.0, 0.1),
        tolerated=0.5,
    ),
    pair(
        "two steps in one of small kernels", partial(stepped, each=2 * US, host=20 * US), {"size": 2}, TWO, (0.3, 0.5)
    ),
    pair(
        "two steps in one that kernels fill",
        partial(stepped, each=400 * US, host=100 * US, synchronized=False),
        {"size": 2},
        TWO,
        (-0.01, 0.03),
    ),
)
