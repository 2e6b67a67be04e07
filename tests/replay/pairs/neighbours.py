"""Programs in which others work at the same time: loaders, background work, locks, other launchers and processes."""

from __future__ import annotations

from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body


def own_reads(
    sim: Simulation, marks: Marks, *, own: int, batch: int, work: int, ranges: bool = True, decode: int = 0
) -> None:
    """The launching thread reads something in each step, and takes a batch that a loading worker has read.

    worker  [read ........](post)[read ........](post)
    T       [wait              ][read][l][sync][wait
    """
    trainer, batches = sim.process(), sim.channel()

    def load(t: Thread) -> Body:
        for number in range(STEPS):
            if batch:
                yield from t.read_file(varied(batch, "batch", number), "pread64")
            yield from t.compute(varied(decode, "decode", number) + 1 * US, "jpeg_idct_islow")
            yield from t.put(batches, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(batches, "sem_wait")
        if own:
            yield from ranged(t, "read_labels" if ranges else "", t.read_file(varied(own, "own", number)))
        yield from t.copy("HtoD", 1 << 20, 80 * US)
        for kernel in range(4):
            yield from t.launch("ampere_sgemm_128x64_tn", varied(work // 4, "gemm", number, kernel))
        yield from t.synchronize(t.process.null)

    waking(sim.thread(trainer, load, name="pt_data_worker", loads="name"))
    waking(loop(sim, marks, step, process=trainer, ranges=ranges))


def in_the_background(
    sim: Simulation,
    marks: Marks,
    *,
    host: int,
    work: int,
    every: int,
    background: int,
    alone: bool = False,
    ranges: bool = True,
    synchronized: bool = True,
) -> None:
    """A thread of the process, or another process (`alone`), works on the same GPU at a pace of its own.

    T           [host ..][l][sync][host ..][l][sync]
    background  [l][sleep ............][l][sleep .....
    """
    process, over = solver(sim), []
    other = solver(sim) if alone else process
    stream, own = other.stream(), process.stream()

    def main(t: Thread) -> Body:
        number = 0
        while not over:
            yield from t.launch("monitor", varied(background, "monitor", number), stream)
            yield from t.synchronize(stream)
            yield from t.sleep(varied(every, "pause", number))
            number += 1

    def step(t: Thread, number: int) -> Body:
        if host:
            yield from ranged(t, "prepare", t.compute(varied(host, "prepare", number), "prepare"))
        yield from t.compute(50 * US, "update")
        yield from t.launch("solve", varied(work, "solve", number), own)
        if synchronized:
            yield from t.synchronize(own)
        over.extend([True] if number == STEPS - 1 else [])

    sim.thread(other, main, name=BACKGROUND)
    loop(sim, marks, step, process=process, ranges=ranges)


def backward(sim: Simulation, marks: Marks, *, host: int, work: int, engine: int) -> None:
    """The kernels of a second thread are a part of the step: the first one waits for that thread, and its own kernels
    are behind them in the stream."""
    process, asked, done = solver(sim), sim.channel(), sim.channel()

    def engine_main(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            for kernel in range(4):
                yield from t.compute(varied(engine, "engine", number, kernel) // 4, "engine")
                yield from t.launch("backward", varied(work, "backward", number, kernel) // 4)
            yield from t.put(done, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(host, "prepare", number), "prepare"))
        yield from t.launch("forward", varied(work // 2, "forward", number))
        yield from t.put(asked, "sem_post")
        yield from t.get(done, "sem_wait")
        yield from t.launch("optimizer", varied(work // 4, "optimizer", number))
        yield from t.synchronize()

    sim.thread(process, engine_main, name="engine")
    loop(sim, marks, step, process=process)


def contended(
    sim: Simulation,
    marks: Marks,
    *,
    before: int,
    inside: int,
    hold: int,
    pause: int,
    work: int,
    locked: bool = True,
    sleeps: bool = False,
) -> None:
    """A lock that another thread takes at a pace of its own, `hold` long, and does not need for the step.

    other  [lock: hold ....]..pause..[lock: hold ....]
    T         [before][lock  wait ][inside][l][sync]
    """
    process, mutex, over = solver(sim), sim.mutex(), []

    def other(t: Thread) -> Body:
        number = 0
        while not over:
            yield from t.lock(mutex)
            yield from t.compute(varied(hold, "hold", number), "flush")
            yield from t.unlock(mutex)
            pausing = varied(pause, "pause", number, spread=0.5)
            yield from t.sleep(pausing) if sleeps else t.compute(pausing, "index")
            number += 1

    def step(t: Thread, number: int) -> Body:
        if before:
            yield from ranged(t, "prepare", t.compute(varied(before, "prepare", number), "prepare"))
        if locked:
            yield from t.lock(mutex)
        yield from t.compute(inside, "look_up")
        if locked:
            yield from t.unlock(mutex)
        yield from t.launch("solve", varied(work, "solve", number))
        yield from t.synchronize()
        over.extend([True] if number == STEPS - 1 else [])

    waking(sim.thread(process, other, name="writer"))
    waking(loop(sim, marks, step, process=process))


def two_launchers(
    sim: Simulation,
    marks: Marks,
    *,
    own: int,
    others: int,
    each: int,
    call: int = 8 * US,
    after: int = 0,
    graph: bool = False,
) -> None:
    """A range in which the thread and a helper that it waits for launch many kernels, or a graph each.

    T       <layers (post)[l][l][l][wait     ]>     <layers (post)[graph][wait]>
    helper         [wait][l][l][l][l][l](post)             [wait][graph](post)
    """
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    first, second = process.stream(), process.stream()

    def launches(t: Thread, number: int, count: int, stream: object) -> Body:
        nodes = [Node("relax", varied(each, "relax", t.name, number, kernel)) for kernel in range(count)]
        if graph:
            if nodes:
                yield from t.launch_graph(nodes, stream)  # type: ignore[arg-type]
            return
        for node in nodes:
            yield from t.launch(node.name, node.duration, stream, call=call)  # type: ignore[arg-type]

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            yield from launches(t, number, others, second)
            yield from t.put(done, "sem_post")

    def layers(t: Thread, number: int) -> Body:
        yield from t.put(asked, "sem_post")
        yield from launches(t, number, own, first)
        yield from t.get(done, "sem_wait")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "layers", layers(t, number))
        event = t.event()
        yield from t.record(event, second)
        yield from t.wait_event(first, event)
        yield from t.launch("join", 20 * US, first)
        yield from t.compute(varied(after, "after", number), "update")
        yield from t.synchronize()

    sim.thread(process, helper, name="helper")
    loop(sim, marks, step, process=process)


def polling(sim: Simulation, marks: Marks, *, work: int, sleep: int, host: int, spin: bool = False) -> None:
    """The thread asks whether an event is complete, and sleeps in between; or asks without a pause.

    T     [l][query][sleep ..][query][sleep ..][query][host]
    gpu      [== work =============)
    """
    process = solver(sim)
    stream = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("solve", varied(work, "solve", number), stream)
        event = t.event()
        yield from t.record(event, stream)
        if spin:
            yield from t.spin_on(event)
        else:
            while not event.complete:
                yield from t.query(event)
                yield from t.sleep(sleep, "usleep")
            yield from t.query(event)
        yield from t.compute(varied(host, "host", number), "prepare")

    loop(sim, marks, step, process=process)


def sliced(sim: Simulation, marks: Marks, *, host: int, work: int, mine: int, others: int) -> None:
    """Another process has the GPU to itself again and again."""
    other = sim.process()
    period = mine + others
    sim.gpus[0].slices = [(start, start + others, other) for start in range(2 * MS, 600 * MS, period)]

    def step(t: Thread, number: int) -> Body:
        if host:
            yield from ranged(t, "prepare", t.compute(varied(host, "prepare", number), "prepare"))
        for kernel in range(4):
            yield from t.compute(20 * US, "update")
            yield from t.launch("solve", varied(work, "solve", number, kernel) // 4)
        yield from t.synchronize()

    def occupy(t: Thread) -> Body:
        yield from t.launch("other", 100 * US)

    sim.thread(other, occupy, name=BACKGROUND)
    loop(sim, marks, step)


def served(sim: Simulation, marks: Marks, *, host: int, syncs: int = 2) -> None:
    """A trainer and a server of another process run kernels on one GPU at once; the server is busy all the time.

    Of the two, `syncs` wait for their kernels."""
    server = sim.process()

    def step(t: Thread, number: int) -> Body:
        if host:
            yield from t.compute(varied(host, "host", number), "collate")
        for kernel in range(6):
            yield from t.launch("train", 500 * US + number % 3 + kernel)
        if syncs == 2:
            yield from t.synchronize(t.process.null)

    def serve(t: Thread) -> Body:
        for number in range(STEPS * 3 // 2):
            yield from t.compute(varied(1 * MS, "parse", number), "parse_request")
            yield from t.launch("infer", varied(2 * MS, "infer", number))
            if syncs:
                yield from t.synchronize(t.process.null)

    loop(sim, marks, step)
    sim.thread(server, serve, name="infer")


def faulting(sim: Simulation, marks: Marks, *, host: int, work: int, chunks: int, each: int = 30 * US) -> None:
    """Pages of unified memory migrate in each step, in chunks with the driver's own work between them."""

    def step(t: Thread, number: int) -> Body:
        if host:
            yield from ranged(t, "prepare", t.compute(varied(host, "prepare", number), "prepare"))
        yield from t.prefetch(chunks, each, 40 * US)
        yield from t.launch("solve", varied(work, "solve", number))
        yield from t.synchronize()

    loop(sim, marks, step)


def updating(sim: Simulation, marks: Marks, *, update: int, work: int, call: str = "cudaGraphExecUpdate") -> None:
    """A graph is updated, or a module loaded, in each step."""

    def step(t: Thread, number: int) -> Body:
        if update:
            cause = "module_load" if "Module" in call else "graph_build"
            yield from t.api(call, varied(update, "update", number), cause)
        yield from t.launch_graph([Node("solve", varied(work, "solve", number, part) // 3) for part in range(3)])
        yield from t.synchronize()

    loop(sim, marks, step)


NO_OWN, NO_HOST = {"own": 0}, {"host": 0}
PREPARE = faster("host", "prepare", 0.0)
GRAPH, LAYERS = {"graph": True}, Transform("graphs", "layers")


def asking(sim: Simulation, marks: Marks, *, every: int, batch: int, work: int, sleeps: bool = True) -> None:
    """The launching thread sleeps and looks again until a worker, which computes all the time, has a batch.

    worker  [computes ........](post)[computes ........](post)
    T       [sleep][sleep][sleep][sleep][l][sync][sleep]
    """
    trainer, full, free = sim.process(), sim.channel(), sim.channel()
    free.items = 2

    def prepare(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(free, "sem_wait")
            yield from t.compute(varied(batch, "batch", number), "tokenize_batch")
            yield from t.put(full, "sem_post")

    def step(t: Thread, number: int) -> Body:
        while sleeps and full.items == 0:
            yield from t.compute(5 * US, "queue_empty")
            yield from t.sleep(every)
        if sleeps:
            full.items -= 1
        else:
            yield from t.get(full, "sem_wait")
        yield from t.put(free, "sem_post")
        yield from t.launch("bert_layer", varied(work, "gemm", number))
        yield from t.synchronize(t.process.null)

    waking(sim.thread(trainer, prepare, name="tokenizer"))
    waking(loop(sim, marks, step, process=trainer))


PAIRS: tuple[Pair, ...] = (
    pair(
        "synchronizations of a trainer beside a server of another process, as the finding says",
        partial(served, host=1500 * US),
        {"syncs": 1},
        (),
        (-0.1, 0.1),
        finding="sync",
        steps=0,
        tolerated=0.7,
    ),
    pair(
        "synchronizations of a trainer and of a server of another process, as the finding says",
        partial(served, host=1500 * US),
        {"syncs": 0},
        (),
        (0.2, 0.4),
        finding="sync",
        steps=0,
        tolerated=0.7,
    ),
    pair(
        "sleeps of a thread that asks for batches, as the finding says",
        partial(asking, every=1 * MS, batch=3300 * US, work=1500 * US),
        {"sleeps": False},
        (),
        (-0.01, 0.08),
        finding="sleep",
        tolerated=0.7,
    ),
    pair(
        "short sleeps of a thread that asks for batches, as the finding says",
        partial(asking, every=200 * US, batch=3300 * US, work=1500 * US),
        {"sleeps": False},
        (),
        (-0.01, 0.08),
        finding="sleep",
        tolerated=0.7,
    ),
    pair(
        "own file read before a slower loader that reads",
        partial(own_reads, own=400 * US, batch=4 * MS, work=800 * US),
        NO_OWN,
        (),
        (-0.01, 0.03),
        finding="io_wait",
    ),
    pair(
        "own file read before a slower loader that reads, without ranges",
        partial(own_reads, own=700 * US, batch=3 * MS, work=600 * US, ranges=False, decode=500 * US),
        NO_OWN,
        (),
        (-0.01, 0.03),
        finding="io_wait",
    ),
    pair(
        "own file read beside a loader that is ahead",
        partial(own_reads, own=2 * MS, batch=300 * US, work=600 * US),
        NO_OWN,
        (),
        (0.6, 0.8),
        finding="io_wait",
    ),
    pair(
        "host code while another thread uses the GPU",
        partial(in_the_background, host=1 * MS, work=400 * US, every=4 * MS, background=3 * MS),
        NO_HOST,
        PREPARE,
        (0.5, 0.8),
    ),
    pair(
        "host code while another process uses the GPU",
        partial(in_the_background, host=700 * US, work=300 * US, every=100 * US, background=1 * MS, alone=True),
        NO_HOST,
        PREPARE,
        (0.5, 0.8),
    ),
    pair(
        "host code while another thread uses the GPU, without ranges of steps",
        partial(in_the_background, host=1 * MS, work=500 * US, every=3 * MS, background=200 * US, ranges=False),
        NO_HOST,
        PREPARE,
        (0.5, 0.8),
        tolerated=0.7,
    ),
    pair(
        "sync beside long kernels of another thread, as the finding says",
        partial(in_the_background, host=260 * US, work=560 * US, every=1 * MS, background=570 * US),
        {"synchronized": False},
        (),
        (0.25, 0.4),
        finding="sync",
    ),
    pair(
        "host code beside a second launching thread of the step",
        partial(backward, host=600 * US, work=800 * US, engine=200 * US),
        NO_HOST,
        PREPARE,
        (0.2, 0.5),
    ),
    pair(
        "host code before a lock that is held at a pace of its own",
        partial(contended, before=600 * US, inside=50 * US, hold=1500 * US, pause=100 * US, work=300 * US),
        {"before": 0},
        PREPARE,
        (-0.2, 0.5),
    ),
    pair(
        "host code before a lock that is often free",
        partial(contended, before=500 * US, inside=30 * US, hold=500 * US, pause=900 * US, work=400 * US, sleeps=True),
        {"before": 0},
        PREPARE,
        (-0.2, 0.6),
        tolerated=0.5,
    ),
    pair(
        "lock that another thread takes at a pace of its own",
        partial(contended, before=300 * US, inside=50 * US, hold=900 * US, pause=300 * US, work=400 * US),
        {"locked": False},
        without("lock_wait"),
        (0.2, 0.8),
    ),
    pair(
        "kernel halved before a lock",
        partial(contended, before=100 * US, inside=50 * US, hold=700 * US, pause=500 * US, work=900 * US),
        {"work": 450 * US},
        faster("kernel", "solve", 0.5),
        (-0.2, 0.6),
        tolerated=0.3,
    ),
    pair(
        "graph in place of launches by two threads",
        partial(two_launchers, own=30, others=60, each=5 * US),
        GRAPH,
        LAYERS,
        (0.15, 0.3),
    ),
    pair(
        "graph in place of launches by a helper alone",
        partial(two_launchers, own=0, others=50, each=3 * US, after=100 * US),
        GRAPH,
        LAYERS,
        (0.3, 0.8),
    ),
    pair(
        "sleep between queries of an event",
        partial(polling, work=800 * US, sleep=500 * US, host=200 * US),
        {"spin": True},
        without("sleep"),
        (0.05, 0.3),
    ),
    pair(
        "long sleep between queries of an event",
        partial(polling, work=300 * US, sleep=2 * MS, host=100 * US),
        {"spin": True},
        without("sleep"),
        (0.6, 0.9),
    ),
    pair(
        "short sleep between queries of an event",
        partial(polling, work=1500 * US, sleep=60 * US, host=500 * US),
        {"spin": True},
        without("sleep"),
        (0.0, 0.05),
    ),
    pair(
        "host code while another process has slices of the GPU",
        partial(sliced, host=900 * US, work=800 * US, mine=2 * MS, others=500 * US),
        NO_HOST,
        PREPARE,
        (0.2, 0.6),
    ),
    pair(
        "host code before pages that migrate",
        partial(faulting, host=900 * US, work=800 * US, chunks=6),
        NO_HOST,
        PREPARE,
        (0.2, 0.6),
    ),
    pair(
        "graph updated in each step",
        partial(updating, update=600 * US, work=300 * US),
        {"update": 0},
        without("graph_build"),
        (0.4, 0.8),
    ),
    pair(
        "module loaded in each step",
        partial(updating, update=900 * US, work=300 * US, call="cuModuleLoadData"),
        {"update": 0},
        without("module_load"),
        (0.4, 0.8),
    ),
)
