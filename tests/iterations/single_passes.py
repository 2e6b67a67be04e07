"""Programs without ranges whose one loop is the layers of a single pass, or steps that look like such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.iterations.programs import BACKWARD, FORWARD, LAYER, Program, Script, graph, kernels, layers
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

STEPS: dict[str, Program] = {}
"""What repeats is a step, and the trace shows it."""
REPEATS: dict[str, Program] = {}
"""What repeats may be a layer: the trace does not show whether it is a step."""


def steps(count: int) -> Callable[[Script], Script]:
    """A program of its script, with so many steps."""
    return _add(STEPS, count)


def repeats(count: int) -> Callable[[Script], Script]:
    """A program of its script, with so many repeats."""
    return _add(REPEATS, count)


def _add(programs: dict[str, Program], count: int) -> Callable[[Script], Script]:
    def add(script: Script) -> Script:
        programs[script.__name__] = Program(script.__name__, script, count)
        return script

    return add


# Layers of one pass.


@repeats(59)
def layers_once(t: Thread) -> Body:
    yield from t.copy("HtoD", 1 << 12, 4 * US)
    yield from kernels(t, ("embedding", 20))
    yield from layers(t, 59)
    yield from kernels(t, ("rms_norm", 20), ("lm_head", 300))


@repeats(32)
def layers_once_with_a_final_read_back(t: Thread) -> Body:
    yield from t.copy("HtoD", 1 << 12, 4 * US)
    yield from layers(t, 32)
    yield from kernels(t, ("lm_head", 300), ("argmax", 10))
    yield from t.blocking_copy("DtoH", 8, 2 * US)
    yield from t.synchronize()


@repeats(40)
def layers_once_behind_the_weights(t: Thread) -> Body:
    """The weights are copied first, a tensor after the other."""
    for _ in range(40):
        yield from t.blocking_copy("HtoD", 8 << 20, 700 * US)
    yield from layers(t, 40)
    yield from t.synchronize()


@repeats(24)
def residual_blocks_once(t: Thread) -> Body:
    yield from t.copy("HtoD", 1 << 20, 60 * US)
    for _ in range(24):
        yield from layers(t, 2, FORWARD)
        yield from kernels(t, ("add", 30))
    yield from kernels(t, ("mean", 15), ("linear", 40))


@repeats(48)
def layers_that_clear_a_work_space(t: Thread) -> Body:
    """Split products clear a few counters before they begin."""
    for _ in range(48):
        yield from kernels(t, ("rms_norm", 20))
        yield from t.fill(512, 2 * US)
        yield from kernels(t, ("gemm_split_k", 150), ("silu_mul", 30))
    yield from t.synchronize()


@repeats(36)
def layers_whose_weights_are_gathered(t: Thread) -> Body:
    """Sharded weights: the next layer's are gathered on another stream, ordered by events."""
    side = t.process.stream()
    for _ in range(36):
        yield from t.launch("ncclDevKernel_AllGather", 150 * US, side)
        event = t.event()
        yield from t.record(event, side)
        yield from t.wait_event(t.process.null, event)
        yield from kernels(t, *LAYER)
    yield from t.blocking_copy("DtoH", 4096, 2 * US)


@repeats(64)
def layers_that_wait_for_their_launches(t: Thread) -> Body:
    """Short kernels: the host is slower than the device all along."""
    for _ in range(64):
        yield from kernels(t, ("rms_norm", 4), ("gemv", 6), ("rope", 3), ("attention", 8), ("gemv", 6), host=25)


@repeats(20)
def one_training_step(t: Thread) -> Body:
    yield from t.copy("HtoD", 1 << 20, 60 * US)
    yield from layers(t, 20, FORWARD)
    yield from kernels(t, ("cross_entropy", 30))
    yield from layers(t, 20, BACKWARD)
    yield from layers(t, 4, (("multi_tensor_apply_kernel", 100),))
    yield from t.blocking_copy("DtoH", 4, 2 * US)


@repeats(100)
def a_solver_that_checks_nothing(t: Thread) -> Body:
    """These are steps, but nothing in the trace says so."""
    yield from t.blocking_copy("HtoD", 1 << 20, 90 * US)
    yield from layers(t, 100, (("flux_x", 100), ("flux_y", 100), ("advance_cells", 80)))
    yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)


# Steps.


@steps(1000)
def a_solver_of_a_thousand_sweeps(t: Thread) -> Body:
    yield from t.blocking_copy("HtoD", 1 << 20, 90 * US)
    yield from layers(t, 1000, (("sweep_red", 60), ("sweep_black", 60)))
    yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)


@steps(150)
def sweeps_of_one_kernel(t: Thread) -> Body:
    yield from layers(t, 150, (("jacobi", 300),))
    yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)


@steps(40)
def training_on_data_of_the_device(t: Thread) -> Body:
    """No copies: synthetic data."""
    for _ in range(40):
        yield from kernels(t, *FORWARD, ("cross_entropy", 30), *BACKWARD, ("multi_tensor_apply_kernel", 60))


@steps(40)
def training_that_clears_its_gradients(t: Thread) -> Body:
    """The kernel that updates has a name that says nothing."""
    for _ in range(40):
        yield from t.fill(64 << 20, 60 * US)
        yield from kernels(t, *FORWARD, *BACKWARD, ("fused_kernel_12", 60))


@steps(60)
def a_copy_for_each_request(t: Thread) -> Body:
    for _ in range(60):
        yield from t.copy("HtoD", 1 << 16, 8 * US)
        yield from kernels(t, *LAYER, *LAYER)


@steps(80)
def a_token_read_back_each_time(t: Thread) -> Body:
    for _ in range(80):
        yield from kernels(t, *LAYER, ("argmax", 10))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@steps(50)
def passes_with_a_synchronization_each(t: Thread) -> Body:
    for _ in range(50):
        yield from kernels(t, *FORWARD, *LAYER)
        yield from t.synchronize()


@steps(40)
def passes_timed_by_events(t: Thread) -> Body:
    for _ in range(40):
        yield from t.record(t.event(), t.process.null)
        yield from kernels(t, *FORWARD, *LAYER)
    yield from t.synchronize()


@steps(50)
def passes_with_host_code_before_each(t: Thread) -> Body:
    """A simulation on the host decides what to draw."""
    for _ in range(50):
        yield from t.compute(2 * MS)
        yield from kernels(t, ("cull", 100), ("shade", 300), ("blend", 80))


@steps(60)
def replays_of_one_graph(t: Thread) -> Body:
    block = graph("attention", "mlp", "norm", each=150)
    for _ in range(60):
        yield from t.launch_graph(block, number=1)
    yield from t.synchronize()


@steps(10)
def passes_of_many_layers(t: Thread) -> Body:
    """A benchmark: no copies, and it waits at the end only."""
    for _ in range(10):
        yield from kernels(t, ("embedding", 20))
        yield from layers(t, 24)
        yield from kernels(t, ("lm_head", 200))
    yield from t.synchronize()


@steps(100)
def prefill_then_tokens(t: Thread) -> Body:
    yield from t.copy("HtoD", 1 << 12, 4 * US)
    yield from layers(t, 16, (("rms_norm", 40), ("gemm", 300), ("flash_fwd", 100)))
    for _ in range(100):
        yield from kernels(t, ("gemv_norm", 200), ("decode_attention", 150), ("argmax", 10))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@steps(30)
def batches_for_the_first_of_two_devices(t: Thread) -> Body:
    """A pipeline: only the first one gets copies from the host."""
    first, second = t.process.null, t.process.contexts[1].null
    for _ in range(30):
        yield from t.copy("HtoD", 1 << 20, 60 * US)
        yield from kernels(t, *FORWARD, stream=first)
        event = t.event()
        yield from t.record(event, first)
        yield from t.wait_event(second, event)
        yield from kernels(t, *LAYER, stream=second)


@repeats(13)
def blocks_of_two_kinds_in_turn(t: Thread) -> Body:
    """Local and global attention in turn: two blocks repeat."""
    yield from t.copy("HtoD", 1 << 12, 4 * US)
    for _ in range(13):
        yield from kernels(t, ("rms_norm", 20), ("gemm_qkv", 120), ("local_attention", 60), ("gemm_mlp", 200))
        yield from kernels(t, ("rms_norm", 20), ("gemm_qkv", 120), ("global_attention", 160), ("gemm_mlp", 200))
    yield from kernels(t, ("lm_head", 300))


@repeats(28)
def layers_that_copy_on_the_device(t: Thread) -> Body:
    """Keys and values go into a cache of the device."""
    for _ in range(28):
        yield from kernels(t, ("rms_norm", 20), ("gemm_qkv", 120))
        yield from t.copy("DtoD", 1 << 20, 12 * US)
        yield from kernels(t, ("flash_fwd", 90), ("gemm_out", 70), ("gemm_mlp", 200))
    yield from t.blocking_copy("DtoH", 4096, 2 * US)


@steps(50)
def sweeps_that_wait_for_an_event_each(t: Thread) -> Body:
    for _ in range(50):
        yield from kernels(t, ("collide", 120), ("stream_cells", 140), ("boundary", 20))
        event = t.event()
        yield from t.record(event, t.process.null)
        yield from t.synchronize(event)


@steps(25)
def batches_on_a_stream_of_their_own(t: Thread) -> Body:
    """Inputs come on another stream, ahead of the kernels that need them."""
    side = t.process.stream()
    for _ in range(25):
        yield from t.copy("HtoD", 4 << 20, 300 * US, side)
        event = t.event()
        yield from t.record(event, side)
        yield from t.wait_event(t.process.null, event)
        yield from kernels(t, *FORWARD, *LAYER)
