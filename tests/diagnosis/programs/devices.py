"""Jobs on several GPUs: a late rank, a slow exchange, GPUs that are touched only, waits for another GPU."""

from __future__ import annotations

from tests.diagnosis.agreement import Cap
from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Collective
from tests.simulator.host import Body

RANKS, STEPS = 8, 25
LATE = 3
KEEPS_IDLE = r"Synchronization (keeps|takes)"
WAITS_FOR_ANOTHER = r"(?i)wait\w* for (small )?(kernels of |copies of )?gpu\d|wait for kernels of"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def ranks(sim: Simulation, marks: Marks, *, gemm: int, exchange: int, late_ns: int) -> None:
    """Eight ranks that compute and exchange; one reads a file first, for `late_ns`."""
    collectives: list[Collective] = [sim.collective(RANKS) for _ in range(STEPS)]

    def rank(number: int, t: Thread) -> Body:
        stream = t.process.null
        for step in range(STEPS):
            if number == 0 and step == 0:
                marks.begin(t)
            if number == LATE and late_ns:
                yield from t.read_file(late_ns)
            for _ in range(4):
                yield from t.launch("gemm", gemm // 4, stream)
            yield from t.launch(ALL_REDUCE, exchange, stream, collective=collectives[step], extended=True)
            yield from t.synchronize(stream)
        if number == 0:
            marks.end(t)

    for number in range(RANKS):
        process = solver(sim, [number])
        sim.thread(process, lambda t, number=number: rank(number, t), name=f"rank{number}")  # type: ignore[misc]


@program(
    read(
        "input",
        seconds=("kernels",),
        step_ms=21,
        lead=(50, 66),
        headline=("read|file|input",),
        named=(r"rank 3|gpu3|GPU 3",),
        never=(NO_PYTORCH, SMALLER, r"(?i)interconnect|NVLink|bandwidth of the network"),
    ),
    {
        "gpu0": {"compute": (0.3, 0.45), "exposed_comm": (0.5, 0.66)},
        "gpu3": {"compute": (0.3, 0.45), "idle": (0.5, 0.66), "io_wait": (0.5, 0.66)},
        "gpu7": {"compute": (0.3, 0.45), "exposed_comm": (0.5, 0.66)},
    },
    gpus=RANKS,
    quick=True,
)
def late_rank_reads_files(sim: Simulation, marks: Marks) -> None:
    """Seven ranks wait in the exchange for one that reads a file first: reading is what the job waits for.

    rank 3   [read file ........][gemm ][==]
    others   [gemm ][all-reduce, waiting ..]
    """
    ranks(sim, marks, gemm=4 * MS, exchange=300 * US, late_ns=6 * MS)


@program(
    read(
        "communication",
        seconds=("kernels",),
        step_ms=17,
        lead=(55, 68),
        headline=("communicat|AllReduce|all-reduce|NCCL",),
        never=(NO_PYTORCH, SMALLER, r"(?i)(?<!no rank )is late\b|waiting for a late"),
    ),
    {
        "gpu0": {"compute": (0.33, 0.42), "exposed_comm": (0.55, 0.66)},
        "gpu3": {"compute": (0.33, 0.42), "exposed_comm": (0.55, 0.66)},
    },
    gpus=RANKS,
)
def slow_exchange_of_equal_ranks(sim: Simulation, marks: Marks) -> None:
    """All ranks come at the same time; the exchange itself is long.

    each rank   [gemm ][all-reduce ......]
    """
    ranks(sim, marks, gemm=3 * MS, exchange=5 * MS, late_ns=0)


@program(
    read(
        "host",
        seconds=("kernels", "sync"),
        lead=(52, 82),
        headline=("host|CPU|build_list",),
        never=(NO_PYTORCH, SMALLER),
    ),
    {"gpu2": {"compute": (0.18, 0.22), "host_compute": (0.77, 0.82)}},
    gpus=8,
    working=frozenset({"gpu2"}),
)
def touches_eight_works_on_one(sim: Simulation, marks: Marks) -> None:
    """Two tiny kernels on each GPU, all work on one of them.

    gpu 2       k[== k ==].....[== k ==].....[== k ==].....k
    the others  k..........................................k
    """

    def main(t: Thread) -> Body:
        streams = [t.process.stream(number) for number in range(8)]
        for stream in streams:
            yield from t.launch("warm_up", 2 * US, stream)
        marks.begin(t)
        for _ in range(100):
            yield from t.launch("force", 1 * MS, streams[2])
            yield from t.synchronize(streams[2])
            yield from t.compute(4 * MS, "build_list")
        marks.end(t)
        for stream in streams:
            yield from t.launch("check", 2 * US, stream)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        lead=(97, 100),
        headline=("long_range", "gpu0 waits for kernels of gpu1"),
        never=(NO_PYTORCH, SMALLER, KEEPS_IDLE),
        caps=(Cap("kernels", 0.47),),
    ),
    {"gpu0": {"compute": (0.05, 0.1), "sync": (0.85, 0.95)}, "gpu1": {"compute": (0.95, 1.0)}},
    gpus=2,
    capture=EVERYTHING.but(sync_device=False),
    quick=True,
)
def waits_for_another_gpu(sim: Simulation, marks: Marks) -> None:
    """One thread, two GPUs; the synchronization is with the other one, and its row names device 0 all the same.

    T      [l][l][sync with GPU 1 ......][l][l][sync
    gpu 0    [k].........................[k]
    gpu 1      [======== long ========]    [========
    """

    def main(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        marks.begin(t)
        for _ in range(60):
            yield from t.launch("short_range", 200 * US, first)
            yield from t.launch("long_range", 3 * MS, second)
            yield from t.synchronize(second)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        lead=(97, 100),
        headline=("stage_#", "gpu1 waits for kernels of gpu0"),
        never=(NO_PYTORCH, SMALLER, KEEPS_IDLE),
        caps=(Cap("kernels", 0.34),),
    ),
    {"gpu0": {"compute": (0.95, 1.0)}, "gpu1": {"compute": (0.25, 0.4), "stream_wait": (0.6, 0.75)}},
    gpus=2,
)
def second_stage_waits_for_the_first(sim: Simulation, marks: Marks) -> None:
    """A pipeline over two GPUs: the second waits by an event for kernels of the first, which are what takes the time.

    gpu 0  [== stage 0 ==][== stage 0 ==][== stage 0 ==]
    gpu 1                 [s1]...........[s1]...........[s1]
    """

    def main(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        yield from t.launch("stage_1", 300 * US, second)
        marks.begin(t)
        for _ in range(200):
            event = t.event()
            yield from t.launch("stage_0", 900 * US, first)
            yield from t.record(event, first)
            yield from t.wait_event(second, event)
            yield from t.launch("stage_1", 300 * US, second)
        yield from t.synchronize(second)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        lead=(95, 100),
        headline=("GPUs wait for kernels of other GPUs",),
        named=("run ahead", "cudaStreamWaitEvent"),
        never=(NO_PYTORCH, SMALLER, KEEPS_IDLE),
        caps=(Cap("kernels", 0.51),),
    ),
    {
        "gpu0": {"compute": (0.45, 0.5), "sync": (0.48, 0.53)},
        "gpu1": {"compute": (0.45, 0.5), "sync": (0.48, 0.53)},
    },
    gpus=2,
    said=("GPUs wait for each other's kernels",),
)
def model_on_two_gpus(sim: Simulation, marks: Marks) -> None:
    """Half of a model on each GPU, and the host waits for one half before it launches the other.

    T      [l][sync with GPU 0 ][l][sync with GPU 1 ]
    gpu 0    [==== half ====]...................
    gpu 1    ...................[==== half ====]
    """

    def main(t: Thread) -> Body:
        halves = [t.process.stream(0), t.process.stream(1)]
        marks.begin(t)
        for _ in range(100):
            for stream in halves:
                yield from t.launch("half", 900 * US, stream)
                yield from t.synchronize(stream)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        lead=(97, 100),
        headline=("GPUs wait for kernels of other GPUs",),
        never=(NO_PYTORCH, SMALLER, KEEPS_IDLE),
        caps=(Cap("kernels", 0.58),),
    ),
    {
        "gpu0": {"compute": (0.95, 1.0)},
        "gpu1": {"compute": (0.1, 0.2), "stream_wait": (0.8, 0.9)},
        "gpu2": {"compute": (0.1, 0.2), "stream_wait": (0.8, 0.9)},
    },
    gpus=3,
    said=("Waiting for kernels of gpu0",),
)
def three_stages_wait_for_the_first(sim: Simulation, marks: Marks) -> None:
    """A chain of waits: the third GPU waits for the second, which waits for the first, which works all the time.

    gpu 0  [== stage 0 ==][== stage 0 ==][== stage 0 ==]
    gpu 1                 [s1]...........[s1]...........
    gpu 2                     [s2]...........[s2].......
    """

    def main(t: Thread) -> Body:
        streams = [t.process.stream(number) for number in range(3)]
        yield from t.launch("warm_up", 100 * US, streams[1])
        yield from t.launch("warm_up", 100 * US, streams[2])
        marks.begin(t)
        for _ in range(200):
            for number, ns in enumerate((900 * US, 120 * US, 120 * US)):
                if number:
                    event = t.event()
                    yield from t.record(event, streams[number - 1])
                    yield from t.wait_event(streams[number], event)
                yield from t.launch("stage", ns, streams[number])
        yield from t.synchronize(streams[2])
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "copies",
        seconds=("kernels",),
        lead=(60, 75),
        headline=("DtoH",),
        never=(NO_PYTORCH, SMALLER, KEEPS_IDLE),
    ),
    {
        "gpu0": {"compute": (0.15, 0.2), "exposed_copy": (0.6, 0.7), "sync": (0.15, 0.2)},
        "gpu1": {"compute": (0.15, 0.2), "sync": (0.78, 0.85)},
    },
    gpus=2,
    said=("Waiting for copies of gpu0", "GPUs wait for each other's kernels"),
)
def waits_for_the_copies_of_another_gpu(sim: Simulation, marks: Marks) -> None:
    """What the first GPU copies back is what the second one waits for, through the host.

    T      [l][sync with GPU 0          ][l][sync ]
    gpu 0    [= k =][====== copy ======]...........
    gpu 1    ............................[= k =]
    """

    def main(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        marks.begin(t)
        for _ in range(100):
            yield from t.launch("prepare", 300 * US, first)
            yield from t.copy("DtoH", 10_000_000, 1100 * US, first)
            yield from t.synchronize(first)
            yield from t.launch("solve", 300 * US, second)
            yield from t.synchronize(second)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "host",
        seconds=("kernels", "sync"),
        headline=("exchange_borders|host",),
        never=(NO_PYTORCH, SMALLER, WAITS_FOR_ANOTHER),
    ),
    {"gpu0": {"compute": (0.1, 0.2)}, "gpu1": {"compute": (0.1, 0.2)}},
    gpus=2,
)
def each_thread_waits_for_its_own_gpu(sim: Simulation, marks: Marks) -> None:
    """A thread for each GPU waits for its own stream, whose id is the same on both; nobody waits for another GPU.

    T0     [l][sync with GPU 0][host ....]
    gpu 0    [== k ==]....................
    T1     [l][sync with GPU 1][host ....]
    gpu 1    [== k ==]....................
    """

    def feed(t: Thread, number: int) -> Body:
        stream = t.process.stream(number)
        if number == 0:
            marks.begin(t)
        for _ in range(100):
            yield from t.launch("relax", 500 * US, stream)
            yield from t.synchronize(stream)
            yield from t.compute(3 * MS, "exchange_borders")
        if number == 0:
            marks.end(t)

    process = solver(sim)
    for number in range(2):
        sim.thread(process, lambda t, number=number: feed(t, number), name=f"feeder{number}")  # type: ignore[misc]


@program(
    read(
        "kernels",
        lead=(97, 100),
        headline=("relax",),
        never=(NO_PYTORCH, SMALLER, KEEPS_IDLE, WAITS_FOR_ANOTHER),
    ),
    {"gpu0": {"compute": (0.97, 1.0)}, "gpu1": {"compute": (0.97, 1.0)}},
    gpus=2,
)
def waits_while_both_work(sim: Simulation, marks: Marks) -> None:
    """The host waits for one GPU and then for the other, and both work meanwhile.

    T      [l][l][sync with GPU 0][sync with GPU 1]
    gpu 0    [==== relax ====]
    gpu 1       [==== relax ====]
    """

    def main(t: Thread) -> Body:
        streams = [t.process.stream(number) for number in range(2)]
        marks.begin(t)
        for _ in range(100):
            for stream in streams:
                yield from t.launch("relax", 2 * MS, stream)
            for stream in streams:
                yield from t.synchronize(stream)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")
