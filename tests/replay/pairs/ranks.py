"""Jobs on several GPUs: a rank that is late, and communication beside the kernels."""

from __future__ import annotations

from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.devices import ALL_REDUCE, STEPS, ranks
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS as LOOPS
from tests.replay.pairs.pair import Pair, loop, pair, varied, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

LIKE_MEDIAN, OVERLAP = Transform("rank-like", "median"), Transform("overlap", "communication")


def late_rank(
    sim: Simulation,
    marks: Marks,
    *,
    members: int,
    what: str,
    ns: int,
    usual: int = 100 * US,
    work: int = 2 * MS,
    synchronized: bool = True,
) -> None:
    """Ranks compute and exchange, and one of them is late: by what its host does, or by slower kernels.

    rank 1   [host ........][gemm ][==]
    others   [gemm ][all-reduce, wait ]
    """
    together = [sim.collective(members) for _ in range(LOOPS)]

    def step(t: Thread, number: int, *, rank: int) -> Body:
        late = ns if rank == 1 else 0
        if what == "host":
            yield from t.compute(varied(late or usual, "host", rank, number), "build_batch")
        elif late and what == "read":
            yield from t.read_file(varied(late, what, number))
        elif late and what == "sleep":
            yield from t.sleep(varied(late, what, number))
        slower = ns if what == "kernels" and rank == 1 else 0
        for part in range(4):
            yield from t.launch("gemm", varied(work + slower, "gemm", rank, number, part) // 4)
        yield from t.launch(ALL_REDUCE, 200 * US, collective=together[number], extended=True)
        if synchronized:
            yield from t.synchronize(t.process.null)

    for rank in range(members):
        own = marks if rank == 0 else Marks()
        loop(sim, own, partial(step, rank=rank), process=solver(sim, [rank]))


def exchanging(
    sim: Simulation,
    marks: Marks,
    *,
    members: int,
    work: int,
    exchange: int,
    buckets: int = 1,
    synchronized: bool = False,
    overlapped: bool = False,
    needed: bool = False,
) -> None:
    """Each rank exchanges what it computed, in the stream of its kernels or beside the next ones; these may need it.

    one stream  [= gemm =][all-reduce][= gemm =][all-reduce]
    kernels     [= gemm =][= gemm =][= gemm =]
    exchange              [all-reduce][all-reduce]
    """
    together = [[sim.collective(members) for _ in range(buckets)] for _ in range(LOOPS)]

    def step(t: Thread, number: int, *, rank: int) -> Body:
        work_stream, exchange_stream = streams[rank]
        for bucket, collective in enumerate(together[number]):
            yield from t.launch("gemm", varied(work, "gemm", rank, number, bucket) // buckets, work_stream)
            if overlapped:
                event = t.event()
                yield from t.record(event, work_stream)
                yield from t.wait_event(exchange_stream, event)
            ns = varied(exchange, "exchange", number, bucket) // buckets
            yield from t.launch(ALL_REDUCE, ns, exchange_stream, collective=collective, extended=True)
            if overlapped and needed:
                event = t.event()
                yield from t.record(event, exchange_stream)
                yield from t.wait_event(work_stream, event)
        if synchronized:
            yield from t.synchronize()

    processes = [solver(sim, [rank]) for rank in range(members)]
    streams = [(each.stream(), each.stream()) if overlapped else (each.null, each.null) for each in processes]
    for rank, process in enumerate(processes):
        loop(sim, marks if rank == 0 else Marks(), partial(step, rank=rank), process=process)


def beside_already(sim: Simulation, marks: Marks) -> None:
    """Communication that runs beside longer kernels as it is."""
    exchanging(sim, marks, members=2, work=1500 * US, exchange=500 * US, overlapped=True)


IN_TIME, EVEN, OVERLAPPED = {"ns": 0}, {"ns": 100 * US}, {"overlapped": True}
PAIRS: tuple[Pair, ...] = (
    pair(
        "files that one of eight ranks reads",
        partial(ranks, gemm=4 * MS, exchange=300 * US, late_ns=6 * MS),
        {"late_ns": 0},
        without("io_wait"),
        (0.53, 0.62),
        gpus=8,
        steps=STEPS,
        capture=EVERYTHING.but(schema="3.17.2"),
    ),
    pair(
        "rank of eight that reads files, like the median",
        partial(ranks, gemm=4 * MS, exchange=300 * US, late_ns=3 * MS),
        {"late_ns": 0},
        LIKE_MEDIAN,
        (0.36, 0.46),
        gpus=8,
        steps=STEPS,
    ),
    pair(
        "slow host of one of two ranks",
        partial(late_rank, members=2, what="host", ns=3 * MS),
        EVEN,
        LIKE_MEDIAN,
        (0.50, 0.58),
        gpus=2,
        quick=True,
    ),
    pair(
        "slow host of one of eight ranks",
        partial(late_rank, members=8, what="host", ns=2 * MS),
        EVEN,
        LIKE_MEDIAN,
        (0.40, 0.48),
        gpus=8,
    ),
    pair(
        "file read of one of two ranks",
        partial(late_rank, members=2, what="read", ns=2 * MS),
        IN_TIME,
        without("io_wait"),
        (0.42, 0.50),
        gpus=2,
    ),
    pair(
        "sleep of one of four ranks",
        partial(late_rank, members=4, what="sleep", ns=1 * MS),
        IN_TIME,
        without("sleep"),
        (0.26, 0.34),
        gpus=4,
    ),
    pair(
        "slow kernels of one of eight ranks",
        partial(late_rank, members=8, what="kernels", ns=800 * US),
        IN_TIME,
        LIKE_MEDIAN,
        (0.20, 0.30),
        gpus=8,
    ),
    pair(
        "slow kernels of one of two ranks",
        partial(late_rank, members=2, what="kernels", ns=1 * MS),
        IN_TIME,
        LIKE_MEDIAN,
        (0.26, 0.34),
        gpus=2,
    ),
    pair(
        "late host of a rank, hidden behind its kernels",
        partial(late_rank, members=2, what="host", ns=1 * MS, synchronized=False),
        EVEN,
        LIKE_MEDIAN,
        (-0.005, 0.01),
        gpus=2,
    ),
    pair(
        "rank like others that are no faster",
        partial(late_rank, members=4, what="none", ns=0),
        {},
        LIKE_MEDIAN,
        (0.0, 0.0),
        gpus=4,
        tolerated=0.1,
    ),
    pair(
        "exchange shorter than the kernels",
        partial(exchanging, members=2, work=1 * MS, exchange=600 * US),
        OVERLAPPED,
        OVERLAP,
        (0.33, 0.40),
        gpus=2,
    ),
    pair(
        "exchange longer than the kernels",
        partial(exchanging, members=2, work=700 * US, exchange=1200 * US),
        OVERLAPPED,
        OVERLAP,
        (0.32, 0.40),
        gpus=2,
    ),
    pair(
        "exchange in four buckets",
        partial(exchanging, members=4, work=2 * MS, exchange=800 * US, buckets=4),
        OVERLAPPED,
        OVERLAP,
        (0.28, 0.35),
        gpus=4,
    ),
    pair(
        "exchange in four buckets, with a sync in each step",
        partial(exchanging, members=2, work=2 * MS, exchange=1 * MS, buckets=4, synchronized=True),
        OVERLAPPED,
        OVERLAP,
        (0.20, 0.28),
        gpus=2,
        tolerated=0.15,
    ),
    pair("exchange beside kernels already", beside_already, {}, OVERLAP, (0.0, 0.0), gpus=2),
    pair(
        "sync after each exchange",
        partial(exchanging, members=2, work=800 * US, exchange=300 * US, synchronized=True),
        {"synchronized": False},
        without("sync"),
        (0.0, 0.03),
        gpus=2,
    ),
    pair(
        "exchange that the next kernels need",
        partial(exchanging, members=2, work=900 * US, exchange=500 * US, needed=True),
        OVERLAPPED,
        OVERLAP,
        (-0.01, 0.01),
        gpus=2,
        tolerated=0.5,
    ),
    pair(
        "exchange in two buckets that the next kernels need",
        partial(exchanging, members=2, work=600 * US, exchange=900 * US, buckets=2, needed=True),
        OVERLAPPED,
        OVERLAP,
        (-0.01, 0.01),
        gpus=2,
        tolerated=0.6,
    ),
)
