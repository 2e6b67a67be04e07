"""Training as it is often done: updates in a graph, 1F1B, loss scaling, checkpoints, offloading, epochs, watchdogs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import BACKGROUND, ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import Collective, CudaEvent, Stream
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _update_sizes(chance: random.Random) -> Made:
    return Made(
        micro=chance.choice((2, 4, 8)),
        host=some(chance, 50),
        kernel=some(chance, 80),
        nodes=chance.choice((10, 40)),
        update=some(chance, 12, 0.5),
        clip=chance.random() < 0.5,
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none", "micro")),
    )


def _update_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward_gemm", "kernel", "kernel"), halved(made, "collate", "host")]
    return [*found, gone("collate", "host"), *no_read_back(made)]


@programs(_update_fixes, _update_sizes, levels=("step", "micro"))
def an_update_in_a_graph(sim: Simulation, loops: Loops, made: Made) -> None:
    """Gradients of some micro batches add up, then a graph updates the parameters; the norm may be read before."""
    process = solver(sim)

    def micro(t: Thread, number: int, part: int) -> Body:
        key = (number, part)
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", *key), "collate"))
        yield from t.copy("HtoD", SIZE, 25 * US)
        for at in range(2):
            yield from t.launch("forward_gemm", varied(made.kernel, *key, at))
        yield from t.launch("backward_act", varied(50 * US, *key, "b"))

    def step(t: Thread, number: int) -> Body:
        for part in range(made.micro):
            loops.step(t, "micro")
            yield from ranged(t, f"micro {part}" if made.names == "micro" else "", micro(t, number, part))
        if made.clip:
            yield from t.launch("grad_norm", 20 * US)
            yield from read_back(t, made)
        nodes = [Node("fused_adam", varied(made.update, number, at)) for at in range(made.nodes)]
        yield from t.launch_graph(nodes)
        if not made.clip:
            yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _alternate_sizes(chance: random.Random) -> Made:
    return Made(
        micro=chance.choice((2, 4, 6)),
        near=some(chance, 100),
        far=some(chance, 100),
        host=some(chance, 30),
        update=some(chance, 80),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _alternate_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "first_stage", "near", "kernel"), halved(made, "last_stage", "far", "kernel")]
    return [*found, halved(made, "schedule", "host")]


@programs(_alternate_fixes, _alternate_sizes, gpus=2, levels=("step", "micro"), leads=("sync", "host"))
def one_forward_one_backward(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread for each of two stages: a forward pass and a backward pass in turn, behind one more forward pass in the
    first stage.

    first   [F0][F1]....[B0][F2].[B1]...
    last    ....[F0 B0 ][F1 B1 ]...
    """
    process, there, back = solver(sim), sim.channel(), sim.channel()
    near, far = process.stream(), process.stream(1)
    sent: dict[tuple[object, ...], CudaEvent] = {}

    def send(t: Thread, stream: Stream, *key: object) -> Body:
        yield from t.copy("PtoP", SIZE, 12 * US, stream)
        sent[key] = t.event()
        yield from t.record(sent[key], stream)

    def forward(t: Thread, number: int, part: int) -> Body:
        loops.step(t, "micro")
        yield from ranged(t, "schedule", t.compute(varied(made.host, "host", number, part), "schedule"))
        yield from t.launch("first_stage_fwd", varied(made.near, "f", number, part), near)
        yield from send(t, near, number, part, "f")
        yield from t.put(there, "pthread_cond_signal")

    def backward(t: Thread, number: int, part: int) -> Body:
        yield from t.get(back, "pthread_cond_wait")
        yield from t.wait_event(near, sent[number, part, "b"])
        yield from t.launch("first_stage_bwd", 2 * varied(made.near, "b", number, part), near)

    def first_step(t: Thread, number: int) -> Body:
        yield from forward(t, number, 0)
        for part in range(made.micro):
            if part + 1 < made.micro:
                yield from forward(t, number, part + 1)
            yield from backward(t, number, part)
        yield from t.launch("first_adam", varied(made.update, "u0", number), near)
        yield from t.synchronize(near)

    def last_step(t: Thread, number: int) -> Body:
        for part in range(made.micro):
            yield from t.get(there, "pthread_cond_wait")
            yield from t.wait_event(far, sent[number, part, "f"])
            yield from ranged(t, "schedule", t.compute(varied(made.host, "far", number, part), "schedule"))
            yield from t.launch("last_stage_fwd", varied(made.far, "ff", number, part), far)
            yield from t.launch("last_stage_bwd", 2 * varied(made.far, "fb", number, part), far)
            yield from send(t, far, number, part, "b")
            yield from t.put(back, "pthread_cond_signal")
        yield from t.launch("last_adam", varied(made.update, "u1", number), far)

    def first(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", first_step(t, number))
        loops.end(t)

    def last(t: Thread) -> Body:
        for number in range(STEPS):
            yield from last_step(t, number)
        yield from t.synchronize(far)

    threads = sim.thread(process, first, name="stage 0"), sim.thread(process, last, name="stage 1")
    for each in threads if made.slow else ():
        waking(each)


def _scaler_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        skips=chance.choice((0.03, 0.1, 0.25)),
        host=some(chance, 60),
        kernel=some(chance, 100),
        update=some(chance, 25, 0.5),
        groups=chance.choice((2, 8)),
        each=some(chance, 8, 0.4),
        waits=True,
        names=chance.choice(("steps", "none")),
    )


def _scaler_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "collate", "host"), gone("collate", "host")]
    return [*found, halved(made, "foreach_adam", "update", "kernel"), *no_read_back(made)]


@programs(_scaler_fixes, _scaler_sizes)
def a_loss_scaler(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each step reads back whether a gradient is infinite, and updates nothing if one is."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number), "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(4):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from t.launch("unscale", 15 * US)
        yield from read_back(t, made)
        if random.Random(f"{made.order} {number}").random() >= made.skips:
            for group in range(made.groups):
                yield from t.compute(made.each, "step_group")
                yield from t.launch("foreach_adam", varied(made.update, "update", number, group))

    in_steps(sim, process, loops, made, step)


def _blocking_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((5, 8, 16)),
        chunks=chance.choice((4, 12)),
        serialize=some(chance, 100),
        write=some(chance, 200),
        pinned=chance.random() < 0.6,
        host=some(chance, 60),
        kernel=some(chance, 200),
        waits=chance.random() < 0.4,
        names=chance.choice(("steps", "none")),
    )


def _blocking_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "collate", "host"), gone("collate", "host")]
    found += [halved(made, "serialize", "serialize"), gone("serialize", "serialize")]
    return [*found, Fix("no writes", {"write": 0}, without("io_wait"), "io_wait")]


@programs(_blocking_fixes, _blocking_sizes)
def checkpoints_that_block(sim: Simulation, loops: Loops, made: Made) -> None:
    """Every few steps the thread of the steps copies the parameters to the host in chunks, and writes each."""
    process = solver(sim)

    def save(t: Thread, number: int) -> Body:
        for chunk in range(made.chunks):
            if made.pinned:
                yield from t.copy("DtoH", SIZE, 50 * US)
                yield from t.synchronize(process.null)
            else:
                yield from t.blocking_copy("DtoH", SIZE, 90 * US)
            ns = varied(made.serialize, "serialize", number, chunk)
            yield from ranged(t, "serialize", t.compute(ns, "pickle_dump"))
            if made.write:
                yield from t.os_call("write", varied(made.write, "write", number, chunk), "io_wait", blocked=True)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number), "collate"))
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(3):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from t.launch("adam", 50 * US)
        yield from read_back(t, made)
        if number % made.every == made.every - 1:
            yield from ranged(t, "save" if made.names == "steps" else "", save(t, number))

    in_steps(sim, process, loops, made, step)


def _buckets_sizes(chance: random.Random) -> Made:
    return Made(
        buckets=chance.choice((2, 4, 8)),
        host=some(chance, 60),
        kernel=some(chance, 150),
        pull=some(chance, 50),
        adam=some(chance, 120),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _buckets_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "backward_gemm", "kernel", "kernel"), halved(made, "collate", "host")]
    return [*found, gone("collate", "host"), halved(made, "cpu_adam", "adam"), gone("cpu_adam", "adam")]


@programs(_buckets_fixes, _buckets_sizes)
def an_optimizer_state_on_the_host(sim: Simulation, loops: Loops, made: Made) -> None:
    """Gradients are copied to the host while the backward pass goes on; a thread updates each bucket there and copies
    it back; the next step waits for all.

    own     [forward][bwd 0][bwd 1]......................[forward]
    copies           .......[D 0  ][D 1  ]..[H 0].[H 1]
    thread                         [adam 0 ][adam 1 ](post)
    """
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    own, down, up = process.stream(), process.stream(), process.stream()
    ready: dict[tuple[int, int], CudaEvent] = {}
    pushed: dict[int, CudaEvent] = {}

    def update(t: Thread) -> Body:
        for number in range(STEPS):
            for bucket in range(made.buckets):
                yield from t.get(asked, "pthread_cond_wait")
                yield from t.synchronize(ready[number, bucket])
                ns = varied(made.adam, "adam", number, bucket)
                yield from ranged(t, "cpu_adam", t.compute(ns, "cpu_adam_avx"))
                yield from t.copy("HtoD", SIZE, varied(made.pull, "push", number, bucket), up)
            pushed[number] = t.event()
            yield from t.record(pushed[number], up)
            yield from t.put(done, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number), "collate"))
        if number:
            yield from t.get(done, "pthread_cond_wait")
            yield from t.wait_event(own, pushed[number - 1])
        yield from t.launch("forward_gemm", varied(120 * US, "f", number), own)
        for bucket in range(made.buckets):
            yield from t.launch("backward_gemm", varied(made.kernel, number, bucket), own)
            event = t.event()
            yield from t.record(event, own)
            yield from t.wait_event(down, event)
            yield from t.copy("DtoH", SIZE, varied(made.pull, "pull", number, bucket), down)
            ready[number, bucket] = t.event()
            yield from t.record(ready[number, bucket], down)
            yield from t.put(asked, "pthread_cond_signal")

    in_steps(sim, process, loops, made, step)
    thread = sim.thread(process, update, name="cpu_optimizer")
    if made.slow:
        waking(thread)


def _epochs_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((5, 8, 13)),
        first=some(chance, 3_000),
        load=some(chance, 150),
        depth=chance.choice((1, 2, 4)),
        reads=chance.random() < 0.5,
        host=some(chance, 50),
        kernel=some(chance, 200),
        waits=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none", "epochs", "both")),
    )


def _epochs_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "to_device", "host")]
    found += [gone("to_device", "host"), Fix("loader ahead", {"load": 0, "opening": 0}, without("data_loading"))]
    return [*found, Fix("no sync", {"waits": False}, without("sync"), "sync")] if made.waits else found


@programs(_epochs_fixes, lambda chance: _with_opening(_epochs_sizes(chance)), leads=("input",))
def a_slow_first_batch(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each epoch starts its loader, whose first batch is slow; it is some batches ahead at most."""
    process, full, free, asked = solver(sim), sim.channel(), sim.channel(), sim.channel()
    free.items = made.depth

    def load(t: Thread) -> Body:
        for number in range(STEPS):
            if number % made.every == 0:
                yield from t.get(asked, "sem_wait")
                if made.opening:
                    yield from t.compute(varied(made.opening, "opening", number), "open_data_set")
            yield from t.get(free, "sem_wait")
            ns = varied(made.load, "load", number)
            if ns and made.reads:
                yield from t.read_file(ns, "pread64")
            elif ns:
                yield from ranged(t, "decode", t.compute(ns, "jpeg_idct_islow"))
            yield from t.put(full, "sem_post")

    def step(t: Thread, number: int) -> Body:
        if number % made.every == 0:
            yield from t.put(asked, "sem_post")
        yield from t.get(full, "sem_wait")
        yield from t.put(free, "sem_post")
        yield from ranged(t, "to_device", t.compute(varied(made.host, "host", number), "to_device"))
        yield from t.copy("HtoD", SIZE, 50 * US)
        for part in range(2):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        if made.waits:
            yield from t.synchronize()

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            if made.names in ("epochs", "both") and number % made.every == 0:
                t.push(f"epoch {number // made.every}")
            loops.stopped += [number] if number % made.every == 0 else []
            loops.step(t)
            name = f"step {number}" if made.names in ("steps", "both") else ""
            yield from ranged(t, name, step(t, number))
            if made.names in ("epochs", "both") and (number % made.every == made.every - 1 or number == STEPS - 1):
                t.pop()
        loops.end(t)
        yield from t.synchronize()

    threads = sim.thread(process, load, name="pt_data_worker", loads="name"), sim.thread(process, main, name="runner")
    for each in threads if made.slow else ():
        waking(each)


def _with_opening(made: Made) -> Made:
    """`first` counts steps that are unlike others elsewhere: the time of a first batch has a name of its own."""
    opening = made.first
    return made.but(first=0, opening=opening)


def _watchdog_sizes(chance: random.Random) -> Made:
    return Made(
        spins=chance.random() < 0.5,
        nap=chance.choice((20, 100, 1_000)) * US,
        host=some(chance, 80),
        kernel=some(chance, 150),
        sync=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _watchdog_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]
    return [*found, Fix("no sync", {"sync": False}, without("sync"), "sync")] if made.sync else found


@programs(_watchdog_fixes, _watchdog_sizes)
def a_thread_that_polls(sim: Simulation, loops: Loops, made: Made) -> None:
    """A watchdog asks whether the last work of each step is done, again and again, or sleeps between."""
    process, over = solver(sim), []
    own = process.stream()
    latest: list[CudaEvent] = []

    def watch(t: Thread) -> Body:
        while not over:
            if latest:
                yield from t.query(latest[-1])
            if made.spins:
                yield from t.compute(2 * US, "watch")
            else:
                yield from t.sleep(made.nap)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        yield from t.copy("HtoD", SIZE, 40 * US, own)
        for part in range(3):
            yield from t.launch("train_gemm", varied(made.kernel, number, part), own)
        event = t.event()
        yield from t.record(event, own)
        latest.append(event)
        if made.sync:
            yield from t.synchronize(own)
        if number == STEPS - 1:
            over.append(True)

    in_steps(sim, process, loops, made, step)
    sim.thread(process, watch, name=BACKGROUND)


def _log_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((4, 10)),
        host=some(chance, 80),
        each=some(chance, 6, 0.4),
        kernel=some(chance, 100),
        parts=chance.choice((3, 8)),
        log=some(chance, 100),
        waits=True,
        names=chance.choice(("steps", "none")),
    )


def _log_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "collate", "host"), gone("collate", "host")]
    return [*found, halved(made, "log_loss", "log"), gone("log_loss", "log"), *no_read_back(made)]


@programs(_log_fixes, _log_sizes)
def a_loss_read_now_and_then(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host runs ahead of the GPU, but reads the loss every few steps and writes it to a log."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number), "collate"))
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(made.parts):
            yield from t.compute(made.each, "dispatch")
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from t.launch("adam", 40 * US)
        if number % made.every == made.every - 1:
            yield from read_back(t, made)
            yield from ranged(t, "log_loss", t.compute(varied(made.log, "log", number), "format_log"))

    in_steps(sim, process, loops, made, step)


def _ranks_sizes(chance: random.Random) -> Made:
    return Made(
        buckets=chance.choice((2, 4)),
        host=some(chance, 80),
        late=chance.choice((1.0, 1.0, 2.0)),
        kernel=some(chance, 100),
        comm=some(chance, 60),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _ranks_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "backward_gemm", "kernel", "kernel"), halved(made, "collate", "host")]
    return [*found, *no_read_back(made)]


@programs(_ranks_fixes, _ranks_sizes, gpus=2, leads=("communication",))
def buckets_of_two_ranks(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two processes exchange each bucket of gradients while they compute the next one; the host of one may be slow."""
    joined: dict[tuple[int, int], Collective] = {}

    def step(t: Thread, number: int, rank: int, own: Stream, side: Stream) -> Body:
        ns = round(varied(made.host, "host", rank, number) * (made.late if rank else 1))
        yield from ranged(t, "collate", t.compute(ns, "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US, own)
        yield from t.launch("forward_gemm", varied(80 * US, rank, number, "f"), own)
        for bucket in range(made.buckets):
            yield from t.launch("backward_gemm", varied(made.kernel, rank, number, bucket), own)
            event = t.event()
            yield from t.record(event, own)
            yield from t.wait_event(side, event)
            both = joined.setdefault((number, bucket), sim.collective(2))
            yield from t.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", made.comm, side, collective=both)
        event = t.event()
        yield from t.record(event, side)
        yield from t.wait_event(own, event)
        yield from t.launch("adam", 50 * US, own)
        yield from read_back(t, made, stream=own)

    def main(t: Thread, rank: int, streams: tuple[Stream, Stream]) -> Body:
        if not rank:
            loops.begin(t)
        for number in range(STEPS):
            if not rank:
                loops.step(t)
            name = f"step {number}" if made.names == "steps" else ""
            yield from ranged(t, name, step(t, number, rank, *streams))
        if not rank:
            loops.end(t)
        yield from t.synchronize()

    for rank in range(2):
        process = solver(sim, [rank])
        streams = process.stream(), process.stream()
        sim.thread(process, partial(main, rank=rank, streams=streams), name=f"rank{rank}")
