"""Fixes of synchronizations and read-backs: what the host does while the device is empty is what they cost."""

from __future__ import annotations

from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import Pair, faster, loop, pair, ranged, varied, without
from tests.simulator import CUDA_ONLY, EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

SYNC, READ_BACK = without("sync"), without("blocking_copy")


def after_each_kernel(
    sim: Simulation, marks: Marks, *, kernels: int, each: int, host: int, waits: str = "device", ranges: bool = True
) -> None:
    """A synchronization after each kernel, or none.

    T    [host][l][sync ..][host][l][sync ..]
    gpu           [= k =]           [= k =]
    """

    def step(t: Thread, number: int) -> Body:
        for kernel in range(kernels):
            yield from t.compute(varied(host, "host", number, kernel), "next_colour")
            yield from t.launch("relax", varied(each, "relax", number, kernel))
            yield from _wait(t, waits)

    loop(sim, marks, step, ranges=ranges)


def _wait(t: Thread, waits: str) -> Body:
    stream = t.process.null
    if waits == "device":
        yield from t.synchronize()
    elif waits == "stream":
        yield from t.synchronize(stream)
    elif waits == "blocking":
        yield from t.synchronize(stream, blocking=True)
    elif waits == "event":
        event = t.event()
        yield from t.record(event, stream)
        yield from t.synchronize(event)


def asked_for(sim: Simulation, marks: Marks, *, each: int, host: int, asked: bool = True) -> None:
    """A wait by hand: cudaEventQuery until the event is complete."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number), "update")
        yield from t.launch("relax", varied(each, "relax", number))
        event = t.event()
        yield from t.record(event, process.null)
        if asked:
            yield from t.spin_on(event)

    loop(sim, marks, step, process=process)


def after_each_step(
    sim: Simulation, marks: Marks, *, kernels: int, each: int, host: int, synchronized: bool = True
) -> None:
    """Kernels one behind the other, and a wait for them before the host prepares the next step.

    T    [l][l][l][sync ........][host ...][l][l][l]
    gpu     [ k ][ k ][ k ][ k ]             [ k ]
    """

    def step(t: Thread, number: int) -> Body:
        for kernel in range(kernels):
            yield from t.launch(("advect", "project")[kernel % 2], varied(each, "kernel", number, kernel))
        if synchronized:
            yield from t.synchronize()
        yield from t.compute(varied(host, "host", number), "update_time_step")

    loop(sim, marks, step)


def two_streams(sim: Simulation, marks: Marks, *, long: int, short: int, host: int, synchronized: bool = True) -> None:
    """A wait for the device, which works in two streams: the longer one is what is waited for."""

    process = solver(sim)
    first, second = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number), "partition")
        yield from t.launch("inner", varied(long, "inner", number), first)
        yield from t.launch("border", varied(short, "border", number), second)
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step, process=process)


def for_an_event_of_another_stream(sim: Simulation, marks: Marks, *, host: int, each: int = 600 * US) -> None:
    """A wait for a stream that waits for a kernel of another stream by an event, and has done all else.

    T         [l][e][sync b ..][host ...][l][e]
    stream a     [= k =]                    [= k =]
    stream b  [set]
    """
    process = solver(sim)
    first, second = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.fill(4096, 2 * US, second)
        yield from t.launch("assemble", varied(each, "assemble", number), first)
        event = t.event()
        yield from t.record(event, first)
        yield from t.wait_event(second, event)
        yield from t.synchronize(second)
        yield from t.compute(varied(host, "host", number), "refine_mesh")

    loop(sim, marks, step, process=process)


def then_freed(sim: Simulation, marks: Marks, *, each: int, host: int, synchronized: bool = True) -> None:
    """cudaFree behind a synchronization: it would wait itself.

    T    [l][sync ..][free][host ...]    [l][free ......][host ...]
    gpu     [= k =]                         [= k =]
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("project", varied(each, "project", number))
        if synchronized:
            yield from t.synchronize()
        yield from t.free(10 * US)
        yield from t.compute(varied(host, "host", number), "resize")

    loop(sim, marks, step)


def read_and_waited(
    sim: Simulation, marks: Marks, *, each: int, host: int, waits: bool = True, behind: bool = True
) -> None:
    """A value is read back, as by `.item()`: a copy that waits for the kernel, and a synchronization behind it.

    T    [l][cudaMemcpy ..][sync][host ...][l]
    gpu     [=== k ===]c                      [=== k ===]
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("loss", varied(each, "loss", number))
        if waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=4 * US)
        else:
            yield from t.copy("DtoH", 4, 2 * US, call=4 * US)
        if waits and behind:
            yield from t.synchronize(t.process.null)
        if host:
            yield from ranged(t, "prepare", t.compute(varied(host, "host", number), "log"))

    loop(sim, marks, step)


def in_turns(sim: Simulation, marks: Marks, *, first: int, second: int, host: int) -> None:
    """Kernels of two streams, of which the second runs beside host code, and without it beside the next first one.

    T         [l][sync ...][l][host .....][l][sync
    stream a     [= first =]                 [= first =]
    stream b                  [second]
    """
    process = solver(sim)
    one, other = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("first", varied(first, "first", number), one)
        yield from t.synchronize(one)
        yield from t.launch("second", varied(second, "second", number), other)
        if host:
            yield from t.compute(varied(host, "host", number), "log")

    loop(sim, marks, step, process=process)


def freed_before(sim: Simulation, marks: Marks, *, long: int, short: int, host: int, freed: bool = True) -> None:
    """cudaFree waits for a long kernel, and a synchronization behind it for a short one: without the first, the
    second waits for both.

    T         [l][free .......][l][sync ..][host ...]     [l][l][sync ........][host ...]
    stream a     [== long ===]                               [== long ===]
    stream b                      [short]                       [short]
    """
    process = solver(sim)
    first, second = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("long", varied(long, "long", number), first)
        if freed:
            yield from t.free(30 * US)
        yield from t.launch("short", varied(short, "short", number), second)
        yield from t.synchronize()
        yield from t.compute(varied(host, "host", number), "resize")

    loop(sim, marks, step, process=process)


def for_an_early_event(
    sim: Simulation, marks: Marks, *, short: int, long: int, host: int, read: int = 700 * US
) -> None:
    """A wait for an event of one stream, in time; another stream works on beyond it.

    T         [l][e][l][read ............][sync][host]
    stream a     [short]
    stream b           [===== long =====]
    """
    process = solver(sim)
    first, second = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        event = t.event()
        yield from t.launch("short", varied(short, "short", number), first)
        yield from t.record(event, first)
        yield from t.launch("long", varied(long, "long", number), second)
        if read:
            yield from t.read_file(varied(read, "read", number))
        yield from t.synchronize(event)
        yield from t.compute(varied(host, "host", number), "update")

    loop(sim, marks, step, process=process)


def read_back(
    sim: Simulation,
    marks: Marks,
    *,
    kernels: int,
    each: int,
    host: int,
    every: int = 0,
    asynchronous: bool = False,
    pinned: bool = False,
    blocking: bool = True,
    starting: int = 0,
) -> None:
    """Four bytes come back at the end of each step (or after every so many kernels), and the host goes on with them.

    T    [l][l][l][l][cudaMemcpy ........][host ...]
    gpu    [k  ][k  ][k  ][k  ]c..........
    """

    def step(t: Thread, number: int) -> Body:
        for kernel in range(kernels):
            yield from t.launch("gradient", varied(each, "gradient", number, kernel))
            if every and kernel % every == every - 1:
                yield from back(t)
                yield from t.compute(varied(host, "host", number, kernel), "test_convergence")
        if not every:
            yield from back(t)
            yield from t.compute(varied(host, "host", number), "test_convergence")

    def back(t: Thread) -> Body:
        if blocking:
            memory = "pinned" if pinned else "pageable"
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=4 * US, host=memory, asynchronous=asynchronous)
        else:
            yield from t.copy("DtoH", 4, 2 * US, call=2 * US)

    loop(sim, marks, step, starting=starting)


NO_WAIT, NO_SYNC, NO_BLOCKING = {"waits": ""}, {"synchronized": False}, {"blocking": False}


def behind_functions(
    sim: Simulation, marks: Marks, *, function: int, each: int, host: int, waits: bool = False, apart: bool = False
) -> None:
    """A host function in the stream, for whose time the kernel behind it, or the thread that `waits`, does nothing.
    With `apart` the device has nothing to do when the function is put there.

    T    [l][f][l][host .....][l][f][l]
    gpu   [= k =](f     )[= k =]
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("relax", varied(each, "relax", number))
        if apart:
            yield from t.synchronize()
        if function:
            yield from t.host_function(varied(function, "function", number))
        if waits:
            yield from t.synchronize(t.process.null)
        yield from t.compute(varied(host, "host", number), "update")
        yield from t.launch("norm", varied(each, "norm", number))
        yield from t.synchronize()

    loop(sim, marks, step)


FUNCTIONS: dict[str, dict[str, int]] = {
    "host function between queued kernels": {"function": 700 * US},
    "host function that the thread waits for": {"function": 700 * US, "waits": True},
    "host function put into an empty stream": {"function": 700 * US, "apart": True},
    "host function of an empty stream that the thread waits for": {"function": 700 * US, "waits": True, "apart": True},
    "host function shorter than the host code": {"function": 250 * US},
}
PAIRS: tuple[Pair, ...] = (
    pair(
        "sync after each kernel of 20 µs",
        partial(after_each_kernel, kernels=20, each=20 * US, host=25 * US),
        NO_WAIT,
        SYNC,
        (0.40, 0.50),
    ),
    pair(
        "sync after each kernel of 60 µs",
        partial(after_each_kernel, kernels=20, each=60 * US, host=25 * US),
        NO_WAIT,
        SYNC,
        (0.30, 0.40),
        quick=True,
    ),
    pair(
        "sync after each kernel of 60 µs, only CUDA recorded",
        partial(after_each_kernel, kernels=12, each=60 * US, host=25 * US, ranges=False),
        NO_WAIT,
        SYNC,
        (0.30, 0.40),
        capture=CUDA_ONLY.but(nvtx=False),
    ),
    pair(
        "sync after each kernel of 1 ms",
        partial(after_each_kernel, kernels=4, each=1 * MS, host=25 * US),
        NO_WAIT,
        SYNC,
        (0.02, 0.05),
    ),
    pair(
        "stream sync after each kernel",
        partial(after_each_kernel, kernels=10, each=90 * US, host=40 * US, waits="stream"),
        NO_WAIT,
        SYNC,
        (0.28, 0.38),
        capture=EVERYTHING.but(sync_rows=False),
    ),
    pair(
        "event sync after each kernel",
        partial(after_each_kernel, kernels=10, each=90 * US, host=40 * US, waits="event"),
        NO_WAIT,
        SYNC,
        (0.28, 0.38),
    ),
    pair(
        "sync that sleeps after each kernel",
        partial(after_each_kernel, kernels=10, each=90 * US, host=40 * US, waits="blocking"),
        NO_WAIT,
        SYNC,
        (0.30, 0.42),
    ),
    pair(
        "sync before less host code than kernels",
        partial(after_each_step, kernels=10, each=200 * US, host=500 * US),
        NO_SYNC,
        SYNC,
        (0.17, 0.23),
    ),
    pair(
        "sync before more host code than kernels",
        partial(after_each_step, kernels=10, each=50 * US, host=2 * MS),
        NO_SYNC,
        SYNC,
        (0.15, 0.23),
    ),
    pair(
        "sync with nothing behind it",
        partial(after_each_step, kernels=10, each=400 * US, host=4 * US),
        NO_SYNC,
        SYNC,
        (0.0, 0.01),
    ),
    pair(
        "device sync of two streams",
        partial(two_streams, long=300 * US, short=180 * US, host=110 * US),
        NO_SYNC,
        SYNC,
        (0.22, 0.32),
        capture=EVERYTHING.but(schema="3.13.2"),
    ),
    pair(
        "event asked for until it is complete",
        partial(asked_for, each=300 * US, host=200 * US),
        {"asked": False},
        SYNC,
        (0.36, 0.44),
        refusable=True,
        tolerated=0.5,
    ),
    pair(
        "read-back after each step",
        partial(read_back, kernels=4, each=300 * US, host=380 * US),
        NO_BLOCKING,
        READ_BACK,
        (0.20, 0.28),
        quick=True,
    ),
    pair(
        "read-back that saves many times its own time",
        partial(read_back, kernels=20, each=60 * US, host=900 * US),
        NO_BLOCKING,
        READ_BACK,
        (0.38, 0.48),
    ),
    pair(
        "read-back by an asynchronous call, from pageable memory",
        partial(read_back, kernels=12, each=150 * US, host=1200 * US, asynchronous=True, starting=30 * MS),
        NO_BLOCKING,
        READ_BACK,
        (0.34, 0.44),
    ),
    pair(
        "read-backs four times a step",
        partial(read_back, kernels=16, each=70 * US, host=120 * US, every=4, pinned=True),
        NO_BLOCKING,
        READ_BACK,
        (0.25, 0.36),
        capture=EVERYTHING.but(schema="2.9.1"),
    ),
    pair(
        "read-back made asynchronous",
        partial(read_back, kernels=6, each=250 * US, host=500 * US),
        NO_BLOCKING,
        Transform("async-copies"),
        (0.20, 0.28),
    ),
    pair(
        "kernel halved that a synchronized stream waits for by an event",
        partial(for_an_event_of_another_stream, host=400 * US),
        {"each": 300 * US},
        faster("kernel", "assemble", 0.5),
        (0.26, 0.34),
        quick=True,
    ),
    pair(
        "sync before a free that would wait itself",
        partial(then_freed, each=400 * US, host=300 * US),
        NO_SYNC,
        SYNC,
        (0.0, 0.02),
        quick=True,
    ),
    pair(
        "file read before a sync of an event that is over",
        partial(for_an_early_event, short=50 * US, long=600 * US, host=100 * US),
        {"read": 0},
        without("io_wait"),
        (0.20, 0.32),
        quick=True,
    ),
    pair(
        "free before a sync that waits for the same kernel without it",
        partial(freed_before, long=400 * US, short=50 * US, host=200 * US),
        {"freed": False},
        without("memory_allocation"),
        (0.08, 0.16),
        quick=True,
    ),
    pair(
        "read-back and the synchronization behind it, as the finding says",
        partial(read_and_waited, each=900 * US, host=600 * US),
        {"waits": False},
        (),
        (0.36, 0.44),
        finding="blocking_copy",
        tolerated=0.03,
        quick=True,
    ),
    pair(
        "read-back, as the finding says",
        partial(read_and_waited, each=900 * US, host=600 * US, behind=False),
        {"waits": False},
        (),
        (0.36, 0.44),
        finding="blocking_copy",
        tolerated=0.03,
    ),
    pair(
        "host code behind a read-back that has its time, as its finding says",
        partial(read_and_waited, each=900 * US, host=600 * US),
        {"host": 0},
        (),
        (0.36, 0.44),
        finding="host_compute",
        tolerated=0.03,
        quick=True,
    ),
    pair(
        "host code beside the kernel of another stream, as its finding says",
        partial(in_turns, first=900 * US, second=300 * US, host=600 * US),
        {"host": 0},
        (),
        (0.36, 0.44),
        finding="host_compute",
        tolerated=0.03,
        quick=True,
    ),
    pair(
        "host code behind a synchronization and a free, as its finding says",
        partial(then_freed, each=400 * US, host=300 * US),
        {"host": 0},
        (),
        (0.36, 0.44),
        finding="host_compute",
        tolerated=0.03,
        quick=True,
    ),
    *(
        pair(
            name,
            partial(behind_functions, each=300 * US, host=100 * US, **how),
            {"function": 0},
            without("host_function"),
            (0.05, 0.9),
            capture=CUDA_ONLY.but(schema="3.28.1"),
            quick=True,
        )
        for name, how in FUNCTIONS.items()
    ),
)
