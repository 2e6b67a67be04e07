"""Scientific and multi-process programs: convergence tests, rare output, long kernels, and GPUs that slow down."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.diagnosis.programs.registry import MS, US, solver
from tests.replay.pairs.pair import ranged
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.engine import Signal
from tests.simulator.host import Body, Run, Spin
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back


def nothing(_made: Made) -> Sequence[Fix]:
    """No fix: only what is said of the program as it is."""
    return []


def _conv_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        inner=chance.choice((6, 12, 25)),
        spread=chance.choice((0.0, 0.2, 0.5)),
        spmv=some(chance, 60),
        axpy=some(chance, 15, 0.4),
        assemble=some(chance, 200),
        host=some(chance, 60),
        names=chance.choice(("steps", "none")),
    )


def _conv_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "spmv", "spmv", "kernel"), halved(made, "boundary", "host"), gone("boundary", "host")]


@programs(_conv_fixes, _conv_sizes, levels=("step", "iteration"))
def time_steps_of_a_solver(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each time step assembles a matrix, and then iterates until the norm that the host reads back is small."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        count = max(round(made.inner * random.Random(f"{made.order} {number}").lognormvariate(0, made.spread)), 2)
        yield from ranged(t, "boundary", t.compute(varied(made.host, "host", number), "boundary"))
        yield from t.launch("assemble", varied(made.assemble, "assemble", number))
        for at in range(count):
            loops.step(t, "iteration")
            yield from t.launch("spmv", varied(made.spmv, number, at))
            yield from t.launch("dot", made.axpy)
            yield from t.launch("axpy", made.axpy)
            yield from t.launch("axpy", made.axpy)
            yield from t.launch("dot", made.axpy)
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from t.launch("advance", 30 * US)

    in_steps(sim, process, loops, made, step)


def _rare_sizes(chance: random.Random) -> Made:
    return Made(
        stencil=some(chance, 300),
        sub=chance.choice((1, 3, 5)),
        every=chance.choice((4, 5, 8, 10)),
        write=some(chance, 1500),
        host=some(chance, 20),
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _rare_sizes)
def output_now_and_then(sim: Simulation, loops: Loops, made: Made) -> None:
    """Stencils with sub-steps of one kernel; every few steps a field is read back and written."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(made.host, number), "advance_time")
        for part in range(made.sub):
            yield from t.launch("flux", varied(made.stencil, number, part))
            yield from t.launch("update_u", varied(made.stencil // 3, number, part, "u"))
        yield from t.launch("boundary", 8 * US)
        if number % made.every == made.every - 1:
            yield from t.blocking_copy("DtoH", 16 * SIZE, 700 * US)
            yield from t.read_file(varied(made.write, "write", number), "write")

    in_steps(sim, process, loops, made, step)


def _long_sizes(chance: random.Random) -> Made:
    return Made(
        repeats=chance.choice((4, 10, 25)),
        small=some(chance, 30, 0.4),
        long=some(chance, 1500),
        host=some(chance, 40),
        waits=chance.random() < 0.5,
        kinds=chance.choice((1, 2, 3)),
        names=chance.choice(("steps", "none", "none")),
    )


@programs(no_read_back, _long_sizes)
def a_long_kernel_among_small_ones(sim: Simulation, loops: Loops, made: Made) -> None:
    """Many small kernels and a long one in each step."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for at in range(made.repeats):
            for kind in range(made.kinds):
                yield from t.launch(f"small_{kind}", varied(made.small, number, at, kind))
        yield from t.launch("long_kernel", varied(made.long, "long", number))
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    in_steps(sim, process, loops, made, step)


def _throttled_sizes(chance: random.Random) -> Made:
    return Made(
        kernel=some(chance, 250),
        host=some(chance, 40),
        at=chance.choice((10, 20, 30)),
        slow=chance.choice((1.25, 1.6, 2.2)),
        until=chance.choice((0, 6)),
        every=chance.choice((0, 0, 7)),
        waits=chance.random() < 0.6,
        names=chance.choice(("steps", "none")),
    )


@programs(no_read_back, _throttled_sizes)
def kernels_that_slow_down(sim: Simulation, loops: Loops, made: Made) -> None:
    """The clock of the GPU falls in the middle, or in some steps: all kernels take longer."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        last = made.at + made.until if made.until else STEPS
        slow = number % made.every == 3 if made.every else made.at <= number < last
        factor = made.slow if slow else 1.0
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for part in range(4):
            yield from t.launch("train_gemm", round(varied(made.kernel, number, part) * factor))
        yield from t.launch("adam", round(60 * US * factor))
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    in_steps(sim, process, loops, made, step)


def _pause_sizes(chance: random.Random) -> Made:
    return Made(
        kernel=some(chance, 250),
        host=some(chance, 40),
        at=chance.choice((10, 20, 33)),
        pause=chance.choice((3, 10, 30, 100)) * MS,
        steps=chance.choice((8, 14, 40)),
        kind=chance.choice(("sleep", "compute", "write")),
        waits=chance.random() < 0.6,
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _pause_sizes, leads=("kernels",))
def one_pause(sim: Simulation, loops: Loops, made: Made) -> None:
    """The program stops once, for longer than many steps take."""
    process = solver(sim)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(made.steps):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
        loops.end(t)
        yield from t.synchronize()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        if number == made.at * made.steps // 40:
            if made.kind == "sleep":
                yield from t.sleep(made.pause)
            elif made.kind == "write":
                yield from t.read_file(made.pause, "write")
            else:
                yield from t.compute(made.pause, "evaluate_on_cpu")
        for part in range(4):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from t.launch("adam", 60 * US)
        if made.waits:
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    sim.thread(process, main, name="runner")


def _halo_sizes(chance: random.Random) -> Made:
    return Made(
        interior=some(chance, 300),
        pack=some(chance, 10, 0.3),
        exchange=some(chance, 60),
        late=some(chance, 100),
        reduce=chance.choice((1, 5, 10)),
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _halo_sizes, gpus=2)
def halo_and_convergence(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two ranks: pack, read back, exchange with MPI, upload, unpack, interior; every few steps a norm and an
    MPI_Allreduce. The second rank has more work."""
    steps = STEPS
    sent = [[Signal() for _ in range(2)] for _ in range(steps)]
    reduced = [[Signal() for _ in range(2)] for _ in range(steps)]

    def exchange(t: Thread, rank: int, signals: list[Signal], call: str, ns: int) -> Body:
        with t.inside("mpi", call, ""):
            yield Run(2 * US)
            signals[rank].fire(t)
            yield Spin(signals[1 - rank])
            yield Run(ns)

    def main(rank: int) -> Callable[[Thread], Body]:
        def run(t: Thread) -> Body:
            if not rank:
                loops.begin(t)
            for number in range(steps):
                if not rank:
                    loops.step(t)
                if made.names == "steps":
                    t.push("iteration")
                yield from t.launch("pack", made.pack)
                yield from t.blocking_copy("DtoH", 65536, 8 * US)
                yield from exchange(t, rank, sent[number], "MPI_Sendrecv", made.exchange)
                yield from t.copy("HtoD", 65536, 8 * US)
                yield from t.launch("unpack", made.pack)
                yield from t.launch("interior", varied(made.interior + rank * made.late, rank, number))
                if number % made.reduce == 0:
                    yield from t.launch("norm", made.pack)
                    yield from t.blocking_copy("DtoH", 8, 2 * US)
                    yield from exchange(t, rank, reduced[number], "MPI_Allreduce", 20 * US)
                if made.names == "steps":
                    t.pop()
            if not rank:
                loops.end(t)
            yield from t.synchronize()

        return run

    for rank in range(2):
        process = solver(sim, [rank])
        process.rank = rank
        sim.thread(process, main(rank), name=f"rank{rank}")


def _mps_sizes(chance: random.Random) -> Made:
    return Made(
        first=some(chance, 200),
        second=some(chance, 350),
        host=some(chance, 60),
        other=some(chance, 150),
        sync=chance.random() < 0.7,
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _mps_sizes, levels=("step", "second"), leads=("host",))
def two_processes_on_one_gpu(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two processes share a GPU by MPS, each with a loop of its own."""
    one, two = solver(sim), solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for part in range(3):
            yield from t.launch("solve", varied(made.first, number, part))
        if made.sync:
            yield from t.synchronize()

    def other(t: Thread) -> Body:
        for number in range(STEPS):
            loops.step(t, "second")
            yield from t.compute(varied(made.other, "other", number), "decode")
            yield from t.copy("HtoD", SIZE, 60 * US)
            for part in range(2):
                yield from t.launch("infer", varied(made.second, "infer", number, part))
            yield from t.blocking_copy("DtoH", 4096, 3 * US)

    in_steps(sim, one, loops, made, step)
    sim.thread(two, other, name="server")


def _small_sizes(chance: random.Random) -> Made:
    return Made(
        models=chance.choice((5, 8, 13)),
        batches=chance.choice((2, 3, 6)),
        kernel=some(chance, 50),
        layers=chance.choice((3, 6)),
        load=some(chance, 500),
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _small_sizes, levels=("step", "batch", "sweep"))
def many_small_models(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each model is loaded, and evaluated on a few batches: other kernels for each."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        model = number % made.models
        if not model:
            loops.step(t, "sweep")
        yield from ranged(t, "load_model", t.compute(varied(made.load, "load", number), "torch_load"))
        yield from t.copy("HtoD", 8 * SIZE, 400 * US)
        scale = 0.5 + random.Random(model).random()
        for batch in range(made.batches):
            loops.step(t, "batch")
            yield from t.copy("HtoD", SIZE, 40 * US)
            for layer in range(made.layers):
                yield from t.launch(f"model{model}_layer", round(varied(made.kernel, number, batch, layer) * scale))
            yield from t.launch("argmax", 8 * US)
            yield from t.blocking_copy("DtoH", 4096, 3 * US)

    in_steps(sim, process, loops, made, step)


def _no_cpu_sizes(chance: random.Random) -> Made:
    return Made(
        stages=chance.choice((3, 5)),
        fft=some(chance, 80),
        point=some(chance, 50),
        host=some(chance, 60),
        sub=chance.choice((1, 3, 4)),
        reads=chance.random() < 0.5,
        names="none",
    )


@programs(
    nothing,
    _no_cpu_sizes,
    levels=("step", "sub"),
    capture=EVERYTHING.but(api=False, osrt=False, sched=False, samples=False, nvtx=False),
    leads=("unknown",),
)
def a_spectral_code_without_its_host(sim: Simulation, loops: Loops, made: Made) -> None:
    """Runge-Kutta stages of transforms and products; the trace has no calls."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(made.host, "host", number), "time_step")
        for sub in range(made.sub):
            loops.step(t, "sub")
            for at in range(made.stages):
                yield from t.launch("radix8_fft", varied(made.fft, number, sub, at))
            yield from t.launch("nonlinear", varied(made.point, number, sub, "n"))
            for at in range(made.stages):
                yield from t.launch("radix8_ifft", varied(made.fft, number, sub, at, "i"))
            yield from t.launch("rk_update", varied(made.point, number, sub, "u"))
        yield from t.launch("energy", 20 * US)
        if made.reads:
            yield from t.blocking_copy("DtoH", 8, 2 * US)

    in_steps(sim, process, loops, made, step)


def _few_sizes(chance: random.Random) -> Made:
    return Made(
        steps=chance.choice((2, 3, 4, 6, 8)),
        layers=chance.choice((4, 12)),
        kernel=some(chance, 200),
        host=some(chance, 200),
        first=chance.choice((0, 20)) * MS,
        flips=chance.random(),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _few_sizes, leads=("kernels", "startup"))
def few_steps(sim: Simulation, loops: Loops, made: Made) -> None:
    """A profile of a few steps; the first one may compile."""
    process = solver(sim)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(made.steps):
            loops.step(t)
            if made.names == "steps":
                t.push(f"step {number}")
            yield from ranged(t, "collate", t.compute(varied(made.host, number), "collate"))
            yield from t.copy("HtoD", SIZE, 60 * US)
            over = [("jit", made.first)] if made.first and not number else []
            for at in range(made.layers):
                yield from t.launch("forward_gemm", varied(made.kernel, number, at), overhead=over)
                yield from t.launch("norm", 20 * US)
                over = []
            for at in range(made.layers):
                yield from t.launch("backward_gemm", 2 * varied(made.kernel, number, at, "b"))
            for _ in range(3):
                yield from t.launch("multi_tensor_adam", 90 * US)
            if made.waits:
                yield from t.blocking_copy("DtoH", 4, 2 * US)
            if made.names == "steps":
                t.pop()
        loops.end(t)
        yield from t.synchronize()

    sim.thread(process, main, name="trainer")
