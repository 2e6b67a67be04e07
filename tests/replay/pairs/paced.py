"""Loops that wait for a time or for an outside source in each step, and near misses that wait as long as ever."""

from __future__ import annotations

import random
from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import CUDA_ONLY, EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

BEGIN = 2 * MS
WAITS = {
    "sleep": ("clock_nanosleep", "sleep"),
    "read": ("read", "io_wait"),
    "poll": ("poll", "io_wait"),
}


def camera(
    sim: Simulation,
    marks: Marks,
    *,
    by: str = "sleep",
    period: int = 4 * MS,
    host: int = 900 * US,
    kernel: int = 600 * US,
    factor: float = 1.0,
    spread: float = 0.3,
    jitter: float = 0.0,
    longer: int = 0,
    synchronized: bool = True,
    waits: bool = True,
) -> None:
    """Each step waits for the next frame: by a sleep until a time, by a read or poll of a device, for a thread with a
    timer, or asking for the time again and again. Frames come at fixed times, `jitter` of a period more or less. Every
    seventh step takes `longer`.

    T    [waits for a frame ....][prepares ..][l][sync .][waits for a frame ....]
    gpu                                          [= k =]
    """
    process, frames = solver(sim), sim.channel()
    chance = random.Random(1)
    due = [BEGIN + number * period + round(chance.uniform(-jitter, jitter) * period) for number in range(STEPS)]

    def timer(t: Thread) -> Body:
        for time in due:
            yield from t.until(time)
            yield from t.put(frames, "sem_post" if by == "camera thread" else "pthread_cond_signal")

    def wait(t: Thread, number: int) -> Body:
        if by in WAITS:
            yield from t.until(due[number], *WAITS[by])
        elif by == "spin":
            yield from t.compute(max(due[number] - t.clock.now, 1), "steady_clock_now")
        else:
            yield from t.get(frames, "sem_wait" if by == "camera thread" else "pthread_cond_wait")

    def step(t: Thread, number: int) -> Body:
        if waits:
            yield from wait(t, number)
        more = longer if number % 7 == 3 else 0
        took = round((varied(host, "host", number, spread=spread) + more) * factor)
        yield from ranged(t, "prepare", t.compute(took, "convert"))
        yield from t.launch("detect", varied(kernel, "detect", number, spread=spread))
        if synchronized:
            yield from t.synchronize()

    if "thread" in by:
        waking(sim.thread(process, timer, name="timer"))
    waking(loop(sim, marks, step, process=process))


def pausing(
    sim: Simulation,
    marks: Marks,
    *,
    pause: int = 2 * MS,
    host: int = 900 * US,
    kernel: int = 600 * US,
    factor: float = 1.0,
    spread: float = 0.3,
    pause_spread: float = 0.0,
    by: str = "sleep",
) -> None:
    """Each step sleeps, or reads a file, for as long as ever: what is saved elsewhere is saved.

    T    [sleep ....][prepares ..][l][sync .][sleep ....]
    gpu                              [= k =]
    """

    def step(t: Thread, number: int) -> Body:
        took = varied(pause, "pause", number, spread=pause_spread)
        yield from t.sleep(took) if by == "sleep" else t.read_file(took, "pread64")
        yield from ranged(t, "prepare", t.compute(round(varied(host, "host", number, spread=spread) * factor)))
        yield from t.launch("detect", varied(kernel, "detect", number, spread=spread))
        yield from t.synchronize()

    waking(loop(sim, marks, step))


def kernels_are_the_limit(
    sim: Simulation, marks: Marks, *, host: int = 2 * MS, kernel: int = 3 * MS, spread: float = 0.2
) -> None:
    """Kernels of fixed length beside host code that varies: the wait for them makes all steps as long.

    T    [prepares ......][l][waits for the step before][prepares ...][l]
    gpu  ===== k =====][======= k =======][======= k =======]
    """
    process = solver(sim)
    events = []

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number, spread=spread), "convert")
        yield from t.launch("detect", kernel)
        events.append(t.event())
        yield from t.record(events[-1], process.null)
        if number:
            yield from t.synchronize(events[number - 1])

    loop(sim, marks, step, process=process)


HALF, FASTER = {"factor": 0.5}, faster("host", "prepare", 0.5)
NOTHING, CANNOT_TELL = (-0.02, 0.02), {"tolerated": 1.0}
PAIRS: tuple[Pair, ...] = (
    pair("camera by a sleep until a time", camera, HALF, FASTER, NOTHING, quick=True),
    pair("camera that is read from a device", partial(camera, by="read"), HALF, without("host_compute"), NOTHING),
    pair(
        "camera that is polled, bound by its kernel",
        partial(camera, by="poll", host=300 * US, kernel=3 * MS, spread=0.1),
        {"kernel": 1500 * US},
        faster("kernel", "detect", 0.5),
        NOTHING,
    ),
    pair(
        "camera, system calls not recorded",
        partial(camera, by="read"),
        HALF,
        FASTER,
        NOTHING,
        capture=EVERYTHING.but(osrt=False),
    ),
    pair(
        "camera, only CUDA calls recorded",
        partial(camera, host=300 * US, kernel=1500 * US),
        {"kernel": 750 * US},
        faster("kernel", "detect", 0.5),
        NOTHING,
        capture=CUDA_ONLY,
    ),
    pair("camera by a thread with a timer", partial(camera, by="timer thread"), HALF, FASTER, NOTHING),
    pair(
        "camera thread that passes frames on",
        partial(camera, by="camera thread"),
        HALF,
        without("host_compute"),
        NOTHING,
    ),
    pair(
        "camera that asks for the time",
        partial(camera, by="spin", host=1, kernel=1500 * US),
        {"kernel": 750 * US},
        faster("kernel", "detect", 0.5),
        NOTHING,
    ),
    pair(
        "camera whose frames come irregularly",
        partial(camera, by="read", jitter=0.3, spread=0.5),
        HALF,
        FASTER,
        NOTHING,
        **CANNOT_TELL,
    ),
    pair("camera before steps of one length", partial(camera, spread=0.0), HALF, FASTER, NOTHING, **CANNOT_TELL),
    pair(
        "camera with steps that are too long at times",
        partial(camera, host=1500 * US, longer=4 * MS),
        HALF,
        FASTER,
        (-0.02, 0.1),
    ),
    pair(
        "camera about as fast as the steps",
        partial(camera, period=1750 * US),
        HALF,
        FASTER,
        NOTHING,
    ),
    pair(
        "camera without a sync",
        partial(camera),
        {"synchronized": False},
        without("sync"),
        NOTHING,
    ),
    pair(
        "sleep until a time taken out",
        partial(camera),
        {"waits": False},
        without("sleep"),
        (0.5, 0.7),
        quick=True,
    ),
    pair("sleep as long as ever", pausing, HALF, FASTER, (0.1, 0.2), quick=True),
    pair(
        "sleep as long as ever, system calls not recorded",
        pausing,
        HALF,
        FASTER,
        (0.1, 0.2),
        capture=EVERYTHING.but(osrt=False),
    ),
    pair(
        "sleep as long as ever before steps of one length",
        partial(pausing, spread=0.0),
        HALF,
        FASTER,
        (0.1, 0.2),
        **CANNOT_TELL,
    ),
    pair(
        "reads of all lengths",
        partial(pausing, by="read", pause_spread=0.5),
        HALF,
        FASTER,
        (0.1, 0.2),
    ),
    pair(
        "sleep as long as ever, only CUDA calls recorded",
        partial(pausing, host=200 * US, kernel=1500 * US),
        {"kernel": 750 * US},
        faster("kernel", "detect", 0.5),
        (0.15, 0.25),
        capture=CUDA_ONLY,
    ),
    pair(
        "kernels that make all steps as long",
        kernels_are_the_limit,
        {"kernel": 2500 * US},
        faster("kernel", "detect", 2.5 / 3),
        (0.1, 0.2),
    ),
    pair(
        "kernels that make all steps as long, only CUDA calls recorded",
        kernels_are_the_limit,
        {"kernel": 2500 * US},
        faster("kernel", "detect", 2.5 / 3),
        (0.1, 0.2),
        capture=CUDA_ONLY,
    ),
)
