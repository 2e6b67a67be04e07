"""What is to be seen over many steps or many devices: drained queues, a slow rank, spikes, steps without GPU work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
RANKS, SLOW_RANK, RANK_STEPS = 8, 5, 12
SPIKE_EVERY, SPIKE_STEPS = 10, 40


@register("host_compute", findings=("host_compute",), forbidden=("lock_wait", "io_wait", "off_cpu"))
def loss_read_each_step(sim: Simulation) -> None:
    """`loss.item()` at the end of each step: the queue runs empty, then the host prepares the next step for long.

    T    [l][l][l][l]..[item(): memcpy, sync ......][computes][l][l][l]
    gpu    [ k ][ k ][ k ][ k ][ k ][ k ][ k ]..................[ k ]
    """

    def main(t: Thread) -> Body:
        for number in range(24):
            t.push(f"step {number}")
            for _ in range(30):
                yield from t.launch("ampere_sgemm_128x64_tn", 90 * US)
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=10 * US, asynchronous=True)
            yield from t.compute(800 * US)
            t.pop()

    sim.thread(sim.process(), main)


@register("host_compute", gpus=RANKS, findings=("host_compute",), forbidden=("lock_wait", "io_wait", "off_cpu"))
def slow_rank(sim: Simulation) -> None:
    """Eight ranks, one with a slow host: its GPU is late each step, the other seven wait inside the all-reduce.

    gpu 0..7  [compute][all-reduce ..............    ]
    gpu 5     ..................[compute][all-reduce ]
    """
    together = [sim.collective(RANKS) for _ in range(RANK_STEPS)]

    def rank(preparing: int) -> object:
        def body(t: Thread) -> Body:
            compute, comm = t.process.null, t.process.stream()
            for number, collective in enumerate(together):
                t.push(f"step {number}")
                yield from t.compute(preparing, "build_batch")
                for _ in range(4):
                    yield from t.launch("ampere_sgemm_128x64_tn", 250 * US, compute)
                event = t.event()
                yield from t.record(event, compute)
                yield from t.wait_event(comm, event)
                yield from t.launch(ALL_REDUCE, 300 * US, comm, collective=collective, extended=True)
                yield from t.synchronize(comm)
                t.pop()

        return body

    for number in range(RANKS):
        preparing = 4 * MS if number == SLOW_RANK else 100 * US
        sim.thread(sim.process(gpus=[number]), rank(preparing))  # type: ignore[arg-type]


@register("host_compute", findings=("host_compute",), forbidden=("lock_wait", "io_wait", "off_cpu"))
def collector_spikes(sim: Simulation) -> None:
    """Every tenth step the garbage collector runs for longer than the step.

    T    [step 8][step 9][step 10: gc_collect_main ........][step 11]
    gpu  [k][k]  [k][k]  ...............................[k][k]  [k][k]
    """

    def main(t: Thread) -> Body:
        for number in range(SPIKE_STEPS):
            t.push(f"step {number}")
            if number % SPIKE_EVERY == SPIKE_EVERY - 1:
                yield from t.compute(12 * MS, "gc_collect_main")
            for _ in range(20):
                yield from t.compute(12 * US)
                yield from t.launch("ampere_sgemm_128x64_tn", 100 * US)
            yield from t.synchronize(t.process.null)
            yield from t.compute(200 * US)
            t.pop()

    sim.thread(sim.process(), main)


@register("host_compute", findings=("host_compute",), forbidden=("lock_wait", "io_wait", "off_cpu", "launch_call"))
def mostly_on_the_cpu(sim: Simulation) -> None:
    """Of 32 steps only the first and the last use the GPU; the others fall back to the CPU without a word.

    nvtx  [step 0][step 1][step 2] ... [step 30][step 31]
    gpu   [k][k][k].............................[k][k][k]
    """

    def main(t: Thread) -> Body:
        for number in range(32):
            t.push(f"step {number}")
            if number in {0, 31}:
                for _ in range(10):
                    yield from t.launch("ampere_sgemm_128x64_tn", 150 * US)
                yield from t.synchronize(t.process.null)
            else:
                yield from t.compute(3 * MS, "mkl_blas_avx2_sgemm_kernel")
            t.pop()

    sim.thread(sim.process(), main)
