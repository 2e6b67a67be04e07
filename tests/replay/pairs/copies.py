"""Fixes of copies: calls that do not block, and copies beside kernels."""

from __future__ import annotations

from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.copies import QUERIES, copies_and_kernels, long_copies
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import Pair, faster, loop, pair, varied, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

ASYNC, OVERLAP = Transform("async-copies"), Transform("overlap", "copies")
SIZE = 8 << 20


def pageable(
    sim: Simulation,
    marks: Marks,
    *,
    copies: int,
    each: int,
    staging: int,
    kernel: int,
    host: int,
    synchronized: bool = False,
    before: bool = False,
    blocking: bool = True,
    upload: bool = False,
    apart: bool = False,
) -> None:
    """Uploads from pageable memory, which hold the host that would prepare the next step meanwhile. Each `upload` is
    staged once the one before it has ended. Copies that do not block may be in a stream `apart`. A synchronization is
    at the end of a step (`synchronized`), or in it `before` the copies.

    T    [host ...][cudaMemcpy ......][cudaMemcpy ......][l]
    gpu               [= copy =]         [= copy =]        [= k =]
    """

    process = solver(sim)
    other = process.stream() if apart else None

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number), "assemble")
        if before:
            yield from t.synchronize()
        for copy in range(copies):
            ns = varied(each, "copy", number, copy)
            if blocking:
                cost = varied(staging, "staging", number, copy)
                yield from t.blocking_copy("HtoD", SIZE, ns, staging=cost, upload=upload)
            else:
                yield from t.copy("HtoD", SIZE, ns, other, call=2 * US)
        yield from t.launch("solve", varied(kernel, "solve", number))
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step, process=process)


def in_one_stream(
    sim: Simulation,
    marks: Marks,
    *,
    up: int,
    kernel: int,
    down: int = 0,
    host: int = 0,
    synchronized: bool = False,
    overlapped: bool = False,
) -> None:
    """Pinned copies in the stream of the kernels, or in streams of their own.

    one stream   [up ][= k =][down][up ][= k =][down]
    copies       [up ][up ]..[down][down]
    kernels      [= k =][= k =]
    """
    process = solver(sim)
    upload, work, download = [process.stream() for _ in range(3)] if overlapped else [process.stream()] * 3

    def step(t: Thread, number: int) -> Body:
        if host:
            yield from t.compute(varied(host, "host", number), "select_rows")
        yield from t.copy("HtoD", SIZE, varied(up, "up", number), upload)
        yield from t.launch("transform", varied(kernel, "transform", number), work)
        if down:
            yield from t.copy("DtoH", SIZE, varied(down, "down", number), download)
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step, process=process)


def already_overlapped(sim: Simulation, marks: Marks) -> None:
    """Copies that run beside longer kernels as it is."""
    in_one_stream(sim, marks, up=600 * US, kernel=1 * MS, overlapped=True)


def behind_an_event(sim: Simulation, marks: Marks, *, host: int, each: int = 600 * US) -> None:
    """The result of a kernel comes back in a stream of its own, which waits for the kernel by an event.

    T          [l][e][cudaMemcpy ....][host ...][l][e]
    kernels       [= kernel =]                     [= kernel =]
    download                  [c]
    """
    process = solver(sim)
    work, download = process.stream(), process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("reduce", varied(each, "reduce", number), work)
        event = t.event()
        yield from t.record(event, work)
        yield from t.wait_event(download, event)
        yield from t.blocking_copy("DtoH", 4, 2 * US, download, staging=4 * US)
        yield from t.compute(varied(host, "host", number), "test_convergence")

    loop(sim, marks, step, process=process)


NO_BLOCKING, OVERLAPPED = {"blocking": False}, {"overlapped": True}
PAIRS: tuple[Pair, ...] = (
    pair(
        "pageable copy before other host code",
        partial(pageable, copies=1, each=1 * MS, staging=200 * US, kernel=1500 * US, host=1900 * US),
        NO_BLOCKING,
        ASYNC,
        (0.16, 0.24),
    ),
    pair(
        "pageable copies, many and small",
        partial(pageable, copies=8, each=20 * US, staging=30 * US, kernel=600 * US, host=150 * US),
        NO_BLOCKING,
        without("blocking_copy"),
        (0.20, 0.30),
    ),
    pair(
        "pageable copy with its staging in the way",
        partial(pageable, copies=1, each=500 * US, staging=600 * US, kernel=1 * MS, host=20 * US, synchronized=True),
        NO_BLOCKING,
        ASYNC,
        (0.24, 0.34),
    ),
    *(
        pair(
            f"pageable uploads, each staged after the one before{how}",
            partial(
                pageable,
                copies=4,
                each=40 * US,
                staging=60 * US,
                kernel=900 * US,
                host=20 * US,
                synchronized=synchronized,
                upload=True,
            ),
            NO_BLOCKING | {"apart": bool(finding)},
            transform,
            saves,
            finding=finding,
        )
        for how, synchronized, transform, finding, saves in (
            (", and a sync in each step", True, ASYNC, "", (0.15, 0.22)),
            (", by a finding", True, (), "exposed_copy", (0.28, 0.33)),
            ("", False, without("blocking_copy"), "", (0.15, 0.25)),
        )
    ),
    pair(
        "synchronization before an upload that waits itself",
        partial(
            pageable, copies=1, each=80 * US, staging=200 * US, kernel=900 * US, host=50 * US, before=True, upload=True
        ),
        {"before": False},
        without("sync"),
        (0.0, 0.02),
    ),
    pair(
        "pageable copy whose time kernels hide",
        partial(pageable, copies=1, each=200 * US, staging=100 * US, kernel=3 * MS, host=50 * US),
        NO_BLOCKING,
        ASYNC,
        (0.0, 0.02),
    ),
    pair(
        "copies as long as kernels, with a sync in each step",
        copies_and_kernels,
        OVERLAPPED,
        OVERLAP,
        (0.38, 0.42),
        steps=QUERIES,
        quick=True,
    ),
    pair(
        "blocking copies that dwarf the kernels",
        long_copies,
        OVERLAPPED,
        (ASYNC, OVERLAP),
        (0.03, 0.06),
        steps=QUERIES,
    ),
    pair(
        "upload in the stream of the kernels",
        partial(in_one_stream, up=1 * MS, kernel=1200 * US),
        OVERLAPPED,
        OVERLAP,
        (0.40, 0.48),
    ),
    pair(
        "upload and download in the stream of the kernels",
        partial(in_one_stream, up=300 * US, kernel=1 * MS, down=400 * US),
        OVERLAPPED,
        OVERLAP,
        (0.36, 0.44),
        capture=EVERYTHING.but(schema="2020"),
    ),
    pair(
        "upload and download with a sync in each step",
        partial(in_one_stream, up=500 * US, kernel=900 * US, down=300 * US, host=60 * US, synchronized=True),
        OVERLAPPED,
        OVERLAP,
        (0.38, 0.50),
    ),
    pair(
        "copies that the host's own time hides",
        partial(in_one_stream, up=300 * US, kernel=600 * US, host=1500 * US),
        OVERLAPPED,
        OVERLAP,
        (-0.005, 0.01),
    ),
    pair("copies beside kernels already", already_overlapped, {}, OVERLAP, (0.0, 0.0)),
    pair(
        "kernel halved that a blocking copy waits for by an event",
        partial(behind_an_event, host=300 * US),
        {"each": 300 * US},
        faster("kernel", "reduce", 0.5),
        (0.28, 0.38),
        quick=True,
    ),
)
