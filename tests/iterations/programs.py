"""Programs whose steps are known: loops in loops, with ranges and without, and loops that only look like steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulator.actions import Node
from tests.simulator.engine import MS, US
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.device import Stream
    from tests.simulator.host import Body

Script = Callable[["Thread"], "Body"]


@dataclass(frozen=True)
class Program:
    """`steps` whole steps are true (one may be cut, or counted as a warm-up); `inner` repeats in each, 0 where that is
    not asked. 0 steps: none may be found. `steady`: all of the time is one phase."""

    name: str
    script: Script
    steps: int
    inner: int = 0
    steady: bool = True

    def run(self, gpus: int = 1) -> Simulation:
        simulation = Simulation(gpus)
        simulation.thread(simulation.process(), self.script)
        return simulation.run()


PROGRAMS: dict[str, Program] = {}


def program(steps: int, *, inner: int = 0, steady: bool = True) -> Callable[[Script], Script]:
    """A program of its script, by its name."""

    def add(script: Script) -> Script:
        PROGRAMS[script.__name__] = Program(script.__name__, script, steps, inner, steady)
        return script

    return add


def kernels(t: Thread, *parts: tuple[str, int], stream: Stream | None = None, host: int = 4) -> Body:
    """Kernels of these names and lengths in µs, `host` µs of code before each launch."""
    for name, length in parts:
        yield from t.compute(host * US)
        yield from t.launch(name, length * US, stream)


LAYER = (("rms_norm", 20), ("sgemm_128x64", 120), ("softmax_warp", 40), ("sgemm_128x64", 90), ("silu_mul", 30))
FORWARD = (("conv_fprop", 200), ("bn_fw", 50), ("relu_fw", 40))
BACKWARD = (("conv_dgrad", 220), ("bn_bw", 60), ("relu_bw", 45))


def layers(t: Thread, count: int, parts: tuple[tuple[str, int], ...] = LAYER) -> Body:
    for _ in range(count):
        yield from kernels(t, *parts)


def training_step(t: Thread, *, micro: int = 1, depth: int = 3, optimizer: bool = True) -> Body:
    for _ in range(micro):
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from layers(t, depth, FORWARD)
        yield from kernels(t, ("cross_entropy", 30))
        yield from layers(t, depth, BACKWARD)
    if optimizer:
        yield from layers(t, 6, (("multi_tensor_apply_kernel", 25),))


# Layers in passes.


@program(10, inner=32)
def layers_in_passes_that_share_all_kernel_names(t: Thread) -> Body:
    """As eager inference without copies: the norm and the product behind the layers are of kernels that layers use."""
    for _ in range(10):
        yield from layers(t, 32)
        yield from kernels(t, ("rms_norm", 20), ("sgemm_128x64", 300))
    yield from t.synchronize()


@program(12, inner=24)
def layers_with_embedding_and_head(t: Thread) -> Body:
    for _ in range(12):
        yield from kernels(t, ("index_select", 15))
        yield from layers(t, 24)
        yield from kernels(t, ("lm_head", 200))


@program(20, inner=16)
def layers_with_a_sample_read_back(t: Thread) -> Body:
    for _ in range(20):
        yield from layers(t, 16)
        yield from kernels(t, ("argmax", 12))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@program(15, inner=12)
def layers_then_a_synchronization(t: Thread) -> Body:
    """Only the host tells one pass from the next."""
    for _ in range(15):
        yield from layers(t, 12)
        yield from t.synchronize()
        yield from t.compute(300 * US)


@program(9, inner=28)
def layers_with_an_upload_for_each_pass(t: Thread) -> Body:
    for _ in range(9):
        yield from t.copy("HtoD", 4096, 4 * US)
        yield from layers(t, 28)


@program(24, inner=6)
def layers_with_uploads_that_run_ahead(t: Thread) -> Body:
    """On a stream of their own, so that most copies have run when the first steps do."""
    copies = t.process.stream()
    for _ in range(24):
        yield from t.copy("HtoD", 8 << 20, 330 * US, copies)
        yield from layers(t, 6)


@program(10, inner=20)
def layers_by_name_without_numbers(t: Thread) -> Body:
    for _ in range(10):
        yield from kernels(t, ("embedding", 20))
        for _ in range(20):
            t.push("layer")
            yield from kernels(t, *LAYER)
            t.pop()
        yield from kernels(t, ("head", 100))


@program(10, inner=20)
def layers_by_numbered_names(t: Thread) -> Body:
    for _ in range(10):
        yield from kernels(t, ("embedding", 20))
        for number in range(20):
            t.push(f"decoder {number}")
            yield from kernels(t, *LAYER)
            t.pop()
        yield from kernels(t, ("head", 100))


@program(8, inner=6)
def stages_of_a_step_in_ranges(t: Thread) -> Body:
    """Six solver calls of one name in each time step, then an output range."""
    for _ in range(8):
        yield from t.copy("HtoD", 1 << 16, 8 * US)
        for _ in range(6):
            t.push("solve")
            yield from kernels(t, ("spmv", 80), ("dot", 20), ("axpy", 30))
            t.pop()
        t.push("output")
        yield from t.blocking_copy("DtoH", 1 << 16, 10 * US)
        t.pop()


# Micro batches.


@program(12, inner=4)
def micro_batches_of_four(t: Thread) -> Body:
    for _ in range(12):
        yield from training_step(t, micro=4)


@program(8, inner=8)
def micro_batches_with_a_loss_each(t: Thread) -> Body:
    for _ in range(8):
        for _ in range(8):
            yield from training_step(t, optimizer=False)
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        yield from layers(t, 10, (("adam_update", 30),))


@program(6, inner=16)
def micro_batches_of_sixteen_and_a_norm(t: Thread) -> Body:
    for _ in range(6):
        yield from training_step(t, micro=16, depth=2)
        yield from kernels(t, ("lpnorm_cleanup", 10))


@program(7, inner=4)
def micro_batches_by_name(t: Thread) -> Body:
    for _ in range(7):
        for number in range(4):
            t.push(f"micro_batch {number}")
            yield from training_step(t, optimizer=False)
            t.pop()
        t.push("optimizer")
        yield from layers(t, 8, (("sgd_momentum", 25),))
        t.pop()


@program(10, inner=3)
def ranges_without_one_for_the_step(t: Thread) -> Body:
    """`forward` three times, `backward` three times, `update` once."""
    for _ in range(10):
        for _ in range(3):
            t.push("forward_backward")
            yield from training_step(t, optimizer=False)
            t.pop()
        t.push("update")
        yield from layers(t, 4, (("adam", 40),))
        t.pop()


# CUDA graphs.


def graph(*names: str, each: int = 60) -> list[Node]:
    return [Node(name, each * US) for name in names]


@program(90, inner=6)
def six_replays_of_a_graph_in_a_step(t: Thread) -> Body:
    block = graph("attention", "mlp", "norm")
    for _ in range(90):
        yield from t.copy("HtoD", 4096, 3 * US)
        for _ in range(6):
            yield from t.launch_graph(block, number=1)
        yield from t.synchronize()
        yield from t.compute(80 * US)


@program(40, inner=5)
def graphs_and_a_sampler(t: Thread) -> Body:
    block = graph("attention", "mlp")
    for _ in range(40):
        for _ in range(5):
            yield from t.launch_graph(block, number=1)
        yield from kernels(t, ("top_k", 15), ("multinomial", 12))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@program(50)
def three_graphs_of_their_own(t: Thread) -> Body:
    first, second, third = graph("a1", "a2"), graph("b1", "b2", "b3"), graph("c1")
    for _ in range(50):
        for number, nodes in enumerate((first, second, third)):
            yield from t.launch_graph(nodes, number=number + 1)
        yield from t.synchronize()
        yield from t.compute(60 * US)


# Few long steps.


@program(2, inner=24)
def two_long_steps(t: Thread) -> Body:
    for _ in range(2):
        yield from t.copy("HtoD", 8 << 20, 700 * US)
        yield from layers(t, 24)
        yield from kernels(t, ("loss", 40))
        yield from layers(t, 6, (("adam_update", 30),))
        yield from t.synchronize()
        yield from t.compute(2 * MS)


@program(3, inner=16)
def three_long_steps(t: Thread) -> Body:
    for _ in range(3):
        yield from t.copy("HtoD", 8 << 20, 700 * US)
        for _ in range(16):
            yield from kernels(t, *FORWARD, *BACKWARD)
        yield from layers(t, 8, (("multi_tensor_apply_kernel", 30),))
        yield from t.blocking_copy("DtoH", 4, 2 * US)
        yield from t.compute(3 * MS)


@program(4, inner=10)
def four_solves_of_ten_sweeps(t: Thread) -> Body:
    for _ in range(4):
        yield from t.blocking_copy("HtoD", 1 << 20, 90 * US)
        yield from layers(t, 10, (("sweep_red", 100), ("sweep_black", 100), ("residual", 40)))
        yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)
        yield from t.compute(1 * MS)


@program(0)
def one_pass_with_pools(t: Thread) -> Body:
    """Five pools in one pass of a network: what is between them differs."""
    yield from t.copy("HtoD", 1 << 20, 90 * US)
    for number, convolutions in enumerate((2, 2, 4, 4, 4)):
        for _ in range(convolutions):
            yield from t.compute(3 * US)
            shape = {"gridX": 4096 >> number, "blockX": 256}
            yield from t.launch("conv_fprop", (1_000 // convolutions) * US, shape=shape)
            yield from t.launch("relu_fw", 20 * US, shape=shape)
        yield from t.launch("max_pool", 30 * US, shape={"gridX": 2048 >> number, "blockX": 256})
    yield from kernels(t, ("linear", 100), ("softmax", 20))
    yield from t.blocking_copy("DtoH", 4000, 3 * US)


# Irregular steps.


@program(60)
def irregular_lengths(t: Thread) -> Body:
    chance = random.Random(3)
    for _ in range(60):
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from kernels(t, ("encode", 100), ("decode", 150))
        yield from t.blocking_copy("DtoH", 4096, 3 * US)
        yield from t.compute(int(chance.expovariate(1) * 3 * MS))


@program(60)
def irregular_counts(t: Thread) -> Body:
    """Sequences of any length: each step has another number of tokens."""
    chance = random.Random(4)
    for _ in range(60):
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from layers(t, chance.randint(1, 20), (("cell_gemm", 40), ("cell_gate", 15)))
        yield from kernels(t, ("output_gemm", 80))
        yield from t.blocking_copy("DtoH", 4096, 3 * US)
        yield from t.compute(chance.randint(50, 900) * US)


@program(30, inner=12)
def a_load_in_each_step(t: Thread) -> Body:
    chance = random.Random(5)
    for _ in range(30):
        yield from t.read_file(chance.randint(2, 40) * MS)
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from layers(t, 12)
        yield from kernels(t, ("loss", 20))


@program(25, steady=False)
def irregular_kernels(t: Thread) -> Body:
    """The kernels take any time: the lengths of steps vary by a factor of thirty."""
    chance = random.Random(6)
    for _ in range(25):
        scale = chance.choice([1, 2, 5, 10, 30])
        yield from kernels(t, ("sort", 20 * scale), ("scan", 10 * scale), ("scatter", 40 * scale))
        yield from t.blocking_copy("DtoH", 4, 2 * US)


# Near misses: each of these is a step.


@program(60)
def a_log_every_tenth_step(t: Thread) -> Body:
    for step in range(60):
        yield from training_step(t)
        if step % 10 == 9:
            yield from kernels(t, ("reduce_mean", 15))
            yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.compute(400 * US)


@program(60)
def a_log_every_tenth_step_from_the_first(t: Thread) -> Body:
    for step in range(60):
        yield from training_step(t)
        if step % 10 == 0:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.compute(400 * US)


@program(50)
def output_every_tenth_time_step(t: Thread) -> Body:
    """A solver that gets no input: an output now and then."""
    for step in range(50):
        yield from kernels(t, ("flux_x", 100), ("flux_y", 100), ("update_cells", 80), ("boundary", 10))
        if step % 10 == 9:
            yield from t.blocking_copy("DtoH", 1 << 22, 400 * US)
            yield from t.os_call("write", 2 * MS, "io_wait")


@program(48)
def every_eighth_step_loads_longer(t: Thread) -> Body:
    for step in range(48):
        yield from t.read_file((9 if step % 8 == 3 else 1) * MS)
        yield from training_step(t)


@program(60)
def a_validation_every_twenty_steps(t: Thread) -> Body:
    for step in range(60):
        yield from training_step(t)
        if step % 20 == 19:
            for _ in range(5):
                yield from t.copy("HtoD", 1 << 20, 60 * US)
                yield from layers(t, 3, FORWARD)
                yield from kernels(t, ("accuracy", 10))
            yield from t.blocking_copy("DtoH", 4, 2 * US)


@program(40)
def two_kinds_of_steps_in_turn(t: Thread) -> Body:
    """A GAN: the discriminator in each, the generator in every second."""
    for step in range(40):
        yield from training_step(t, depth=2)
        if step % 2:
            yield from kernels(t, ("scale_grad", 15))


@program(200)
def one_kernel_a_sweep(t: Thread) -> Body:
    for _ in range(200):
        yield from kernels(t, ("jacobi", 200))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@program(40)
def steps_by_name_with_a_log(t: Thread) -> Body:
    for step in range(40):
        t.push(f"step {step}")
        yield from training_step(t, micro=2)
        if step % 5 == 4:
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        t.pop()


@program(40)
def steps_on_two_streams(t: Thread) -> Body:
    side = t.process.stream()
    for _ in range(40):
        yield from t.copy("HtoD", 1 << 20, 60 * US, side)
        event = t.event()
        yield from t.record(event, side)
        yield from t.wait_event(t.process.null, event)
        yield from layers(t, 4, FORWARD)
        yield from t.launch("all_reduce_part", 60 * US, side)
        yield from layers(t, 4, BACKWARD)
        yield from kernels(t, ("sgd_step", 30))


@program(45)
def steps_with_a_checkpoint(t: Thread) -> Body:
    """Every fifteenth step writes all parameters: many copies to the host."""
    for step in range(45):
        yield from training_step(t)
        if step % 15 == 14:
            for _ in range(12):
                yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)
            yield from t.os_call("write", 3 * MS, "io_wait")


@program(30, inner=8)
def micro_batches_and_a_log_every_fifth(t: Thread) -> Body:
    for step in range(30):
        yield from training_step(t, micro=8, depth=2)
        if step % 5 == 4:
            yield from t.blocking_copy("DtoH", 4, 2 * US)


# Others of the same kinds.


@program(20)
def solves_of_any_number_of_sweeps(t: Thread) -> Body:
    """Conjugate gradients: each sweep reads its residual, and how many there are is not known before."""
    chance = random.Random(7)
    for _ in range(20):
        yield from kernels(t, ("assemble", 200), ("precondition", 60))
        for _ in range(chance.randint(6, 25)):
            yield from kernels(t, ("spmv", 60), ("axpy", 15), ("dot", 10))
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from kernels(t, ("project", 80), ("advance", 60))


@program(20, inner=2)
def two_micro_batches(t: Thread) -> Body:
    for _ in range(20):
        yield from training_step(t, micro=2)


@program(24)
def kernels_chosen_by_chance(t: Thread) -> Body:
    """A library takes one of two kernels for a product, by its shape."""
    chance = random.Random(8)
    for _ in range(24):
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        for _ in range(6):
            yield from kernels(t, (chance.choice(["gemm_64", "gemm_128"]), 100), ("bias_act", 20))
        yield from kernels(t, ("loss", 20), ("adam", 50))


@program(3, inner=12)
def three_steps_of_named_layers(t: Thread) -> Body:
    for _ in range(3):
        yield from kernels(t, ("embedding", 20))
        for number in range(12):
            t.push(f"layer_{number}")
            yield from kernels(t, *LAYER)
            t.pop()
        yield from kernels(t, ("head", 100))
        yield from t.synchronize()


@program(60)
def batches_of_epochs_by_name(t: Thread) -> Body:
    for _ in range(6):
        for number in range(10):
            t.push(f"batch {number}")
            yield from training_step(t)
            t.pop()
        yield from t.blocking_copy("DtoH", 4, 2 * US)
        yield from t.compute(1 * MS)


@program(20, inner=16)
def substeps_behind_a_start(t: Thread) -> Body:
    chance = random.Random(9)
    for _ in range(50):
        yield from kernels(t, (chance.choice(["init_a", "init_b", "init_c"]), chance.randint(5, 300)))
        yield from t.compute(chance.randint(5, 2000) * US)
    for _ in range(20):
        yield from t.copy("HtoD", 1 << 12, 4 * US)
        yield from layers(t, 16, (("collide", 60), ("stream", 60)))
        yield from kernels(t, ("force", 40))


@program(15)
def a_prefetch_on_another_stream(t: Thread) -> Body:
    """The next batch is copied while the layers of this one run."""
    side = t.process.stream()
    for _ in range(15):
        yield from t.copy("HtoD", 1 << 22, 300 * US, side)
        event = t.event()
        yield from t.record(event, side)
        yield from layers(t, 12)
        yield from t.wait_event(t.process.null, event)


@program(16)
def kernels_by_the_size_of_the_batch(t: Thread) -> Body:
    chance = random.Random(10)
    for _ in range(16):
        size = chance.choice([1, 2, 4])
        yield from t.copy("HtoD", 4096 * size, 5 * US)
        yield from layers(t, 8, ((f"attention_b{size}", 50 * size), (f"gemm_b{size}", 70 * size)))
        yield from kernels(t, ("argmax", 10))
        yield from t.blocking_copy("DtoH", 8 * size, 2 * US)


@program(70)
def requests_at_any_time(t: Thread) -> Body:
    chance = random.Random(11)
    for _ in range(70):
        yield from t.os_call("epoll_wait", int(chance.expovariate(1) * 4 * MS) + 1000, "io_wait")
        yield from t.blocking_copy("HtoD", 4096, 4 * US)
        yield from kernels(t, ("model", 300))
        yield from t.blocking_copy("DtoH", 4096, 4 * US)


@program(12, inner=2)
def graphs_and_accumulation(t: Thread) -> Body:
    block = graph("fused_forward", "fused_backward", "cast")
    for _ in range(12):
        for _ in range(2):
            yield from t.copy("HtoD", 1 << 18, 20 * US)
            yield from t.launch_graph(block, number=1)
            yield from t.launch_graph(block, number=1)
        yield from layers(t, 3, (("lamb_stage", 40),))
        yield from t.synchronize()


@program(40)
def a_log_of_one_kernel_sweeps(t: Thread) -> Body:
    """Each sweep is one kernel; every tenth reads the residual."""
    for step in range(40):
        yield from kernels(t, ("jacobi", 300), ("copy_halo", 20), ("swap", 15))
        if step % 10 == 0:
            yield from kernels(t, ("reduce_residual", 20))
            yield from t.blocking_copy("DtoH", 8, 2 * US)


@program(11, inner=6)
def all_reduces_of_buckets(t: Thread) -> Body:
    """Six layers backward, a collective after every second."""
    side = t.process.stream()
    for _ in range(11):
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from layers(t, 6, FORWARD)
        for layer in range(6):
            yield from kernels(t, *BACKWARD)
            if layer % 2:
                yield from t.launch("ncclDevKernel_AllReduce", 60 * US, side)
        yield from t.synchronize(side)
        yield from layers(t, 5, (("multi_tensor_apply_kernel", 25),))


@program(25)
def steps_of_alternating_sweeps(t: Thread) -> Body:
    for step in range(25):
        names = ("sweep_x", "sweep_y") if step % 2 else ("sweep_y", "sweep_x")
        for name in names:
            yield from kernels(t, (name, 150), ("limiter", 40))
        yield from kernels(t, ("reduce_dt", 12))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@program(30)
def named_steps_with_ranges_that_rotate(t: Thread) -> Body:
    """Ranges around every ten launches go through three names: each is once more in every third step."""
    launched = 0
    for step in range(30):
        t.push(f"step {step}")
        for _ in range(10):
            t.push(("gather", "scatter", "reduce")[launched % 3])
            yield from kernels(t, ("gemm", 40), ("softmax", 20))
            t.pop()
            launched += 1
        yield from t.synchronize()
        t.pop()


@program(30)
def ranges_that_rotate_without_one_for_the_step(t: Thread) -> Body:
    launched = 0
    for _ in range(30):
        for _ in range(10):
            t.push(("gather", "scatter", "reduce")[launched % 3])
            yield from kernels(t, ("gemm", 40), ("softmax", 20))
            t.pop()
            launched += 1
        yield from kernels(t, ("adam", 60))
        yield from t.synchronize()
