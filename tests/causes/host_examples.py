"""What the launching thread did outside CUDA: OS calls, the scheduler, samples, the profiler, loading."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.causes.example import CALL, NEIGHBOUR, STRANGER, Ledgered, fires, first, issued, issuing, late, spares

IDLE_LOOP = (0, 0)


def os_call(name: str) -> Ledgered:
    """
    device  [==A==)..40_000...............80_000..[launch B][==B==)
    thread                [the call: 50_000]
    """
    trace = late().osrt(name, 150_000, 200_000)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


def explained_by(cause: str, name: str) -> Ledgered:
    case = os_call(name)
    return Ledgered(case.trace, {cause: 50_000, "uncovered": 120_000, **CALL}, evidence={cause: name})


@fires("lock_wait")
def a_condition_variable() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [pthread_cond_wait: 50_000]
    """
    return explained_by("lock_wait", "pthread_cond_wait")


@fires("lock_wait")
def only_the_outer_of_nested_calls() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [pthread_mutex_lock: 50_000]
                         [read]
    """
    trace = late().osrt("pthread_mutex_lock", 150_000, 200_000).osrt("read", 160_000, 190_000, nesting=1)
    return Ledgered(trace, {"lock_wait": 50_000, "uncovered": 120_000, **CALL})


@spares("lock_wait")
def a_signal_is_no_wait() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [pthread_cond_signal: 50_000]
    """
    return os_call("pthread_cond_signal")


@spares("lock_wait")
def an_unlock_is_no_wait() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [pthread_mutex_unlock: 50_000]
    """
    return os_call("pthread_mutex_unlock")


@spares("lock_wait")
def a_lock_inside_a_cuda_call() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [cudaMalloc: 50_000]
                       [pthread_mutex_lock]
    """
    trace = late().api("cudaMalloc", 150_000, 200_000).osrt("pthread_mutex_lock", 160_000, 190_000)
    return Ledgered(trace, {"memory_allocation": 50_000, "uncovered": 120_000, **CALL})


@spares("lock_wait")
def a_lock_of_another_thread() -> Ledgered:
    """
    device    [==A==).........................[launch B][==B==)
    neighbour         [pthread_cond_wait: 50_000]
    """
    trace = late().osrt("pthread_cond_wait", 150_000, 200_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


@fires("io_wait")
def a_read() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [read: 50_000]
    """
    return explained_by("io_wait", "read")


@fires("io_wait")
def an_ioctl_outside_cuda() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [ioctl: 50_000]
    """
    return explained_by("io_wait", "ioctl")


@fires("io_wait")
def kinds_of_calls() -> Ledgered:
    """
    device  [==A==).........................................[launch B][==B==)
    thread          [fsync][fread_unlocked][recv][ioctl][close]       10_000 each
    """
    trace = late()
    for at, name in enumerate(("fsync", "fread_unlocked", "recv", "ioctl", "close")):
        trace.osrt(name, 150_000 + 10_000 * at, 160_000 + 10_000 * at)
    kinds = ("writes", "reads", "waits for the other end", "in a driver", "other calls")
    return Ledgered(
        trace,
        {"io_wait": 50_000, "uncovered": 120_000, **CALL},
        labels={"io_wait": dict.fromkeys(kinds, 10_000)},
    )


@spares("io_wait")
def a_poll_inside_a_cuda_call() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [cudaStreamSynchronize: 50_000]
                       [poll]
    """
    trace = late().api("cudaStreamSynchronize", 150_000, 200_000).osrt("poll", 160_000, 190_000)
    return Ledgered(trace, {"sync": 50_000, "uncovered": 120_000, **CALL})


@spares("io_wait")
def a_name_that_only_begins_like_one() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [readiness_check: 50_000]
    """
    return os_call("readiness_check")


@fires("os_memory")
def an_munmap() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [munmap: 50_000]
    """
    return explained_by("os_memory", "munmap")


@spares("os_memory")
def an_mmap_inside_an_allocation() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [cudaHostAlloc: 50_000]
                       [mmap]
    """
    trace = late().api("cudaHostAlloc", 150_000, 200_000).osrt("mmap", 160_000, 190_000)
    return Ledgered(trace, {"memory_allocation": 50_000, "uncovered": 120_000, **CALL})


@fires("sleep")
def a_nanosleep() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [nanosleep: 50_000]
    """
    return explained_by("sleep", "nanosleep")


@fires("sleep")
def ten_seconds_with_the_cpu_held() -> Ledgered:
    """
    device  [==A==)  40_000       10 s           [launch B][==B==)
    thread                  [clock_nanosleep]
    CPU 0                   |     another     |
    """
    trace = long_away(10_000_000_000).osrt("clock_nanosleep", 149_000, 10_000_151_000)
    return Ledgered(trace, {"sleep": 10_000_001_000, "host_compute": 39_000, **CALL})


@spares("sleep")
def a_sleep_of_another_thread() -> Ledgered:
    """
    device    [==A==).........................[launch B][==B==)
    neighbour         [nanosleep: 50_000]
    """
    trace = late().osrt("nanosleep", 150_000, 200_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


def away(*, cpu: int = 0, state: int = 0) -> TraceBuilder:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread  on the CPU      |      scheduled out     |on the CPU
    """
    trace = late().sched(150_000, False, cpu=cpu, state=state)
    return trace.sched(250_000, True, cpu=cpu)


AWAY = {"host_compute": 70_000, **CALL}


@fires("off_cpu")
def out_where_os_calls_were_captured() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |scheduled out, no call  |          a wait would show as a call: some were captured
    """
    return Ledgered(
        away().osrt("read", 20_000, 30_000, thread=NEIGHBOUR),
        {"off_cpu": 100_000, **AWAY},
        labels={"off_cpu": {"in no captured OS call": 100_000}},
        evidence={"off_cpu": "scheduled out, in no captured OS call"},
    )


@fires("off_cpu")
def out_but_runnable() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |scheduled out, runnable |
    """
    return Ledgered(away(state=1), {"off_cpu": 100_000, **AWAY}, labels={"off_cpu": {"runnable": 100_000}})


@fires("off_cpu")
def runnable_and_its_cpu_held_where_os_calls_were_captured() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |scheduled out, runnable |
    CPU 0                   |     another: 80_000    |          who held the CPU says the most
    """
    trace = away(state=1).osrt("read", 20_000, 30_000, thread=NEIGHBOUR)
    trace.sched(160_000, True, thread=NEIGHBOUR).sched(240_000, False, thread=NEIGHBOUR)
    return Ledgered(
        trace,
        {"off_cpu": 100_000, **AWAY},
        labels={"off_cpu": {"another thread held its CPU": 100_000}},
        evidence={"off_cpu": "another thread held the CPU"},
    )


@fires("off_cpu")
def runnable_where_os_calls_were_captured() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |scheduled out, runnable |          the scheduler knows better than the want of a call
    """
    return Ledgered(
        away(state=1).osrt("read", 20_000, 30_000, thread=NEIGHBOUR),
        {"off_cpu": 100_000, **AWAY},
        labels={"off_cpu": {"runnable": 100_000}},
        evidence={"off_cpu": "runnable, without a CPU"},
    )


def held(until: int, *, by: tuple[int, int] = NEIGHBOUR, cpu: int = 0) -> TraceBuilder:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |      scheduled out     |
    CPU 0                   |10_000|another ...|           from 160_000 to `until`
    """
    return away().sched(160_000, True, thread=by, cpu=cpu).sched(until, False, thread=by, cpu=cpu)


@fires("off_cpu")
def its_cpu_held_for_80_per_cent() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    CPU 0                   |  another: 80_000 |
    """
    case = Ledgered(held(240_000), {"off_cpu": 100_000, **AWAY})
    return Ledgered(case.trace, case.ledger, labels={"off_cpu": {"another thread held its CPU": 100_000}})


@fires("off_cpu")
def its_cpu_held_for_81_per_cent() -> Ledgered:
    """
    device              [==A==)  40_000         100_000           30_000   [launch B][==B==)
    CPU 0                               |another: 81_000|          of another process: that is no matter
    """
    return Ledgered(held(241_000, by=STRANGER), {"off_cpu": 100_000, **AWAY})


@fires("off_cpu")
def its_cpu_held_by_several_in_turn() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    CPU 0                   |one|two        |one|        each from its coming in to the CPU's next event
    """
    trace = away().sched(150_000, True, thread=NEIGHBOUR).sched(180_000, True, thread=STRANGER)
    trace.sched(230_000, True, thread=NEIGHBOUR)
    return Ledgered(trace, {"off_cpu": 100_000, **AWAY})


def long_away(length: int) -> TraceBuilder:
    """
    device  [==A==)  40_000       length        [launch B][==B==)
    thread                  |  scheduled out  |
    CPU 0                   |     another     |
    """
    trace = late(length + 170_000).sched(150_000, False).sched(150_000 + length, True)
    return trace.sched(150_000, True, thread=NEIGHBOUR).sched(150_000 + length, False, thread=NEIGHBOUR)


@fires("off_cpu")
def its_cpu_held_for_a_second() -> Ledgered:
    """
    device  [==A==)  40_000       1 s           [launch B][==B==)
    CPU 0                   |     another     |
    """
    return Ledgered(long_away(1_000_000_000), {"off_cpu": 1_000_000_000, "host_compute": 40_000, **CALL})


@spares("off_cpu")
def its_cpu_held_for_longer_than_any_thread_waits_for_one() -> Ledgered:
    """
    device  [==A==)  40_000       1 s + 1       [launch B][==B==)
    CPU 0                   |     another     |
    """
    return Ledgered(long_away(1_000_000_001), {"blocked": 1_000_000_001, "host_compute": 40_000, **CALL})


@spares("off_cpu")
def out_for_long_where_os_calls_were_captured() -> Ledgered:
    """
    device  [==A==)  40_000       1 s + 1       [launch B][==B==)
    thread                  |  scheduled out  |            in a wait whose row is not there
    """
    trace = long_away(1_000_000_001).osrt("read", 20_000, 30_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"blocked": 1_000_000_001, "host_compute": 40_000, **CALL})


@spares("off_cpu")
def its_cpu_held_for_79_per_cent() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    CPU 0                   |another: 79_000 |
    """
    return Ledgered(held(239_000), {"blocked": 100_000, **AWAY})


@spares("off_cpu")
def its_cpu_idle() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    CPU 0                   | idle loop: 100_000     |          pid 0, tid 0 holds nothing
    """
    trace = away().sched(150_000, True, thread=IDLE_LOOP)
    return Ledgered(trace, {"blocked": 100_000, **AWAY})


@spares("off_cpu")
def another_cpu_held() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    CPU 1                   | another: 80_000    |              it had left CPU 0
    """
    return Ledgered(held(240_000, cpu=1), {"blocked": 100_000, **AWAY})


@spares("off_cpu")
def os_calls_of_another_process_only() -> Ledgered:
    """
    device              [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                              |scheduled out           |
    another process   [read]
    """
    trace = away().osrt("read", 20_000, 30_000, thread=STRANGER)
    return Ledgered(trace, {"blocked": 100_000, **AWAY})


@spares("off_cpu")
def out_inside_an_os_call() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |      scheduled out     |
                            [poll: 100_000           ]          it waits: that is no preemption
    """
    trace = away(state=1).osrt("poll", 150_000, 250_000)
    return Ledgered(trace, {"io_wait": 100_000, **AWAY})


@fires("blocked")
def out_and_nothing_else_known() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |scheduled out, no OS calls captured|
    """
    return Ledgered(away(), {"blocked": 100_000, **AWAY})


@fires("blocked")
def before_the_first_event() -> Ledgered:
    """
    device  [==A==)        140_000          30_000  [launch B][==B==)
    thread                           |in                        first event: in, so it was out before
    """
    trace = late().sched(250_000, True)
    return Ledgered(trace, {"blocked": 140_000, "host_compute": 30_000, **CALL})


@fires("blocked")
def out_with_a_stray_sample() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  | scheduled out  *       |          samples fill only what scheduling leaves unknown
    """
    return Ledgered(away().sample(200_000), {"blocked": 100_000, **AWAY})


@spares("blocked")
def out_for_good() -> Ledgered:
    """
    device  [==A==)  40_000              130_000                [launch B][==B==)
    thread                  |out                                no later in: unknown from there
    """
    trace = late().sched(150_000, False)
    return Ledgered(trace, {"host_compute": 40_000, "uncovered": 130_000, **CALL})


@spares("blocked")
def out_inside_a_cuda_call() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |      scheduled out     |
                            [cudaEventSynchronize    ]
    """
    trace = away().api("cudaEventSynchronize", 150_000, 250_000)
    return Ledgered(trace, {"sync": 100_000, **AWAY})


@fires("host_compute")
def on_a_cpu_by_the_scheduler() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread |in                                                    never out again
    """
    return Ledgered(
        late().sched(500, True),
        {"host_compute": 170_000, **CALL},
        labels={"host_compute": {"by scheduling events": 170_000}},
        evidence={"host_compute": "on a CPU by scheduling events"},
    )


def in_mpi(trace: TraceBuilder) -> TraceBuilder:
    """MPI_Wait [160_000, 200_000), as NVTX of MPI has it."""
    return trace.nvtx("MPI", 10, None, domain=4, event_type=75).nvtx("MPI_Wait", 160_000, 200_000, domain=4)


@fires("exposed_mpi")
def polling_inside_mpi_calls() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread |in
    NVTX               [MPI_Wait: 40_000]
    """
    return Ledgered(
        in_mpi(late().sched(500, True)),
        {"exposed_mpi": 40_000, "host_compute": 130_000, **CALL},
        evidence={"exposed_mpi": "MPI_Wait"},
    )


@fires("exposed_mpi")
def samples_inside_mpi_calls() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread                   *                           1 ms: half of it to either side
    NVTX               [MPI_Wait: 40_000]
    """
    return Ledgered(
        in_mpi(late().sample(200_000)),
        {"exposed_mpi": 40_000, "host_compute": 130_000, **CALL},
    )


@fires("exposed_mpi")
def asleep_inside_mpi_calls() -> Ledgered:
    """
    device  [==A==)  40_000         100_000           30_000   [launch B][==B==)
    thread                  |      scheduled out     |
    NVTX                       [MPI_Wait: 40_000]
    """
    return Ledgered(
        in_mpi(away()),
        {"exposed_mpi": 40_000, "blocked": 60_000, **AWAY},
        evidence={"blocked": "scheduled out; no OS call was traced × 2", "exposed_mpi": "MPI_Wait"},
    )


@fires("exposed_mpi")
def a_synchronization_inside_an_mpi_call() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    NVTX               [MPI_Wait: 40_000]
    thread               [sync: 20_000]                  the library waits for what it sends
    """
    trace = in_mpi(late()).api("cudaStreamSynchronize", 170_000, 190_000)
    return Ledgered(trace, {"exposed_mpi": 40_000, "uncovered": 130_000, **CALL})


@spares("exposed_mpi")
def an_allocation_inside_an_mpi_call() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    NVTX               [MPI_Wait: 40_000]
    thread               [cudaHostRegister: 40_000]
    """
    trace = in_mpi(late()).api("cudaHostRegister", 160_000, 200_000)
    return Ledgered(trace, {"memory_allocation": 40_000, "uncovered": 130_000, **CALL})


@fires("host_compute")
def before_an_out() -> Ledgered:
    """
    device  [==A==)        90_000     80_000            [launch B][==B==)
    thread                           |out                first event: out, so it was on a CPU before
    """
    trace = late().sched(200_000, False)
    return Ledgered(trace, {"host_compute": 90_000, "uncovered": 80_000, **CALL})


@fires("host_compute")
def a_lone_sample() -> Ledgered:
    """
    device  [==A==)  890_000    1_000_000    980_000     [launch B][==B==)
    thread                  |<--   *   -->|               1 ms: half of it to either side
    """
    trace = late(3_000_000).sample(1_500_000)
    return Ledgered(
        trace,
        {"host_compute": 1_000_000, "uncovered": 1_870_000, **CALL},
        labels={"host_compute": {"by CPU samples": 1_000_000}},
    )


@fires("host_compute")
def a_sample_where_the_scheduler_knows_as_well() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread |in               *                            scheduling is exact, a sample adds nothing
    """
    return Ledgered(
        late().sched(500, True).sample(200_000),
        {"host_compute": 170_000, **CALL},
        labels={"host_compute": {"by scheduling events": 170_000}},
    )


@fires("host_compute")
def samples_of_their_median_period() -> Ledgered:
    """
    device  [==A==)                                       [launch B][==B==)
    thread               * *   *                           200_000, 200_000, 900_000 apart: 100_000 to either side
    """
    trace = late(3_000_000)
    for time in (500_000, 700_000, 900_000, 1_800_000):
        trace.sample(time)
    return Ledgered(trace, {"host_compute": 600_000 + 200_000, "uncovered": 2_070_000, **CALL})


@fires("host_compute")
def samples_very_close_together() -> Ledgered:
    """
    device  [==A==)                                       [launch B][==B==)
    thread               **                                10_000 apart: a period is at least 100_000
    """
    trace = late(3_000_000).sample(1_500_000).sample(1_510_000)
    return Ledgered(trace, {"host_compute": 110_000, "uncovered": 2_760_000, **CALL})


@fires("host_compute")
def samples_far_apart() -> Ledgered:
    """
    device  [==A==)                                       [launch B][==B==)
    thread               *               *                 20 ms apart: a period is at most 10 ms
    """
    trace = late(40_000_000).sample(10_000_000).sample(30_000_000)
    return Ledgered(trace, {"host_compute": 20_000_000, "uncovered": 19_870_000, **CALL})


@fires("host_compute")
def a_sample_where_scheduling_is_silent() -> Ledgered:
    """
    device  [==A==)  890_000 |        1_980_000          [launch B][==B==)
    thread                   |out       *                 out for good: unknown from there, but for the sample
    """
    trace = late(3_000_000).sched(1_000_000, False).sample(2_000_000)
    return Ledgered(trace, {"host_compute": 890_000 + 1_000_000, "uncovered": 980_000, **CALL})


@spares("host_compute")
def an_nvtx_range_proves_nothing() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread |---------------- NVTX "step" -------------------------------|
    """
    trace = late().nvtx("step", 500, 500_000)
    return Ledgered(trace, {"uncovered": 170_000, **CALL}, evidence={"uncovered": "inside NVTX step"})


@spares("host_compute")
def samples_of_another_thread() -> Ledgered:
    """
    device    [==A==)                170_000              [launch B][==B==)
    neighbour              *
    """
    return Ledgered(late().sample(200_000, thread=NEIGHBOUR), {"uncovered": 170_000, **CALL})


@spares("host_compute")
def a_thread_without_events() -> Ledgered:
    """
    device    [==A==)                170_000              [launch B][==B==)
    neighbour       |in                   |out
    """
    trace = late().sched(120_000, True, thread=NEIGHBOUR).sched(250_000, False, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


@fires("uncovered")
def nothing_known() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread           ?  ?  ?  ?  ?
    """
    return Ledgered(late(), {"uncovered": 170_000, **CALL}, evidence={"uncovered": "no evidence"})


@spares("uncovered")
def everything_known() -> Ledgered:
    """
    device  [==A==)                170_000              [launch B][==B==)
    thread         [read: 170_000                      ]
    """
    return Ledgered(late().osrt("read", 100_000, 280_000), {"io_wait": 170_000, **CALL})


@fires("profiler_overhead")
def its_own_flush() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [buffer flush: 30_000]
    """
    trace = late(schema="3.24.8").overhead(120_000, 150_000, kind="flush")
    return Ledgered(trace, {"profiler_overhead": 30_000, "uncovered": 140_000, **CALL})


@fires("profiler_overhead")
def instrumentation_before_a_sync() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [instrumentation: 30_000]
                    [cudaStreamSynchronize: 50_000]      overhead comes first
    """
    trace = late(schema="3.24.8").overhead(120_000, 150_000, kind="instrumentation")
    trace.api("cudaStreamSynchronize", 120_000, 170_000)
    return Ledgered(trace, {"profiler_overhead": 30_000, "sync": 20_000, "uncovered": 120_000, **CALL})


@fires("profiler_overhead")
def resource_tracking() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [resource: 30_000]
    """
    trace = late(schema="3.24.8").overhead(120_000, 150_000, kind="resource")
    return Ledgered(trace, {"profiler_overhead": 30_000, "uncovered": 140_000, **CALL})


@fires("profiler_overhead")
def its_own_row_of_any_kind() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [TLS allocation: 30_000]
    """
    trace = late().profiler_overhead(120_000, 150_000, name="TLS allocation")
    return Ledgered(trace, {"profiler_overhead": 30_000, "uncovered": 140_000, **CALL})


@fires("profiler_overhead")
def a_flush_of_another_thread_during_a_cuda_call() -> Ledgered:
    """
    device    [==A==).............................[launch B][==B==)
    thread            [cudaEventRecord: 20_000]
    neighbour     [flush:  |10_000]                 only while the thread is inside a CUDA call
    """
    trace = late(schema="3.24.8").api("cudaEventRecord", 150_000, 170_000)
    trace.overhead(120_000, 160_000, kind="flush", thread=NEIGHBOUR)
    return Ledgered(
        trace,
        {"profiler_overhead": 10_000, "cuda_api": 10_000, "uncovered": 150_000, **CALL},
        evidence={"profiler_overhead": "CUPTI overhead of another thread"},
    )


@fires("profiler_overhead")
def flushes_of_both_threads() -> Ledgered:
    """
    device    [==A==).............................[launch B][==B==)
    thread            [cudaEventRecord: 20_000]
                      [flush: 20_000          ]      its own overhead has the name
    neighbour         [flush: 20_000          ]
    """
    trace = late(schema="3.24.8").api("cudaEventRecord", 150_000, 170_000)
    trace.overhead(150_000, 170_000, kind="flush", thread=NEIGHBOUR).overhead(150_000, 170_000, kind="flush")
    return Ledgered(
        trace,
        {"profiler_overhead": 20_000, "uncovered": 150_000, **CALL},
        evidence={"profiler_overhead": "Buffer Flush"},
    )


@fires("profiler_overhead")
def cupti_by_name_in_older_exports() -> Ledgered:
    """
    device    [==A==).............................[launch B][==B==)
    thread            [cudaEventRecord: 20_000]
    neighbour     [CUPTI: |10_000]
    """
    trace = late().api("cudaEventRecord", 150_000, 170_000)
    trace.profiler_overhead(120_000, 160_000, name="CUPTI: Buffer flush", thread=NEIGHBOUR)
    return Ledgered(trace, {"profiler_overhead": 10_000, "cuda_api": 10_000, "uncovered": 150_000, **CALL})


@fires("profiler_overhead")
def unknown_where_rows_have_a_type() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [Unknown: 30_000]                          from schema 3.24 on: overheadType 1
    """
    trace = late(schema="3.24.8").profiler_overhead(120_000, 150_000, name="Unknown")
    return Ledgered(trace, {"profiler_overhead": 30_000, "uncovered": 140_000, **CALL})


@fires("profiler_overhead")
def inside_the_launch_call() -> Ledgered:
    """
    device  [==A==).................[launch B      ][==B==)
    thread                            [flush: 4_000]
    """
    trace = late(schema="3.24.8").overhead(282_000, 286_000, kind="flush")
    return Ledgered(
        trace, {"profiler_overhead": 4_000, "uncovered": 170_000, "launch_call": 6_000, "launch_latency": 10_000}
    )


@spares("profiler_overhead")
def a_worker_allocates_its_tls() -> Ledgered:
    """
    device    [==A==).............................[launch B][==B==)
    thread            [cudaMalloc: 20_000]
    neighbour         [TLS allocation    ]          not CUPTI's, and not this thread's
    """
    trace = late().api("cudaMalloc", 150_000, 170_000)
    trace.profiler_overhead(150_000, 170_000, name="TLS allocation", thread=NEIGHBOUR)
    return Ledgered(trace, {"memory_allocation": 20_000, "uncovered": 150_000, **CALL})


@spares("profiler_overhead")
def a_flush_of_another_thread_outside_cuda_calls() -> Ledgered:
    """
    device    [==A==).............................[launch B][==B==)
    thread            [cudaMalloc: 20_000]
    neighbour                             [flush]
    """
    trace = late(schema="3.24.8").api("cudaMalloc", 150_000, 170_000)
    trace.overhead(170_000, 200_000, kind="flush", thread=NEIGHBOUR)
    return Ledgered(trace, {"memory_allocation": 20_000, "uncovered": 150_000, **CALL})


@spares("profiler_overhead")
def a_flush_of_another_process() -> Ledgered:
    """
    device            [==A==).............................[launch B][==B==)
    thread                    [cudaMalloc: 20_000]
    another process           [flush             ]
    """
    trace = late(schema="3.24.8").api("cudaMalloc", 150_000, 170_000)
    trace.overhead(150_000, 170_000, kind="flush", thread=STRANGER)
    return Ledgered(trace, {"memory_allocation": 20_000, "uncovered": 150_000, **CALL})


@spares("profiler_overhead")
def unknown_inside_an_allocation() -> Ledgered:
    """
    device  [==A==).............................[launch B][==B==)
    thread          [cudaMalloc: 20_000]
                       [Unknown]                   up to schema 3.23
    """
    trace = late().api("cudaMalloc", 150_000, 170_000).profiler_overhead(155_000, 165_000, name="Unknown")
    return Ledgered(trace, {"memory_allocation": 20_000, "uncovered": 150_000, **CALL})


@spares("profiler_overhead")
def an_operation_already_issued() -> Ledgered:
    """
    device  [==A==)....40_000....[==B==)
    thread [A][B]  [flush]                         B is with the device already
    """
    trace = issued(schema="3.24.8").overhead(110_000, 150_000, kind="flush")
    return Ledgered(trace, {"device_stall": 40_000})


@fires("queue_full")
def no_room_in_the_command_buffer() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [command buffer full: 30_000]
    """
    trace = late(schema="3.24.8").overhead(120_000, 150_000, kind="buffer_full")
    return Ledgered(trace, {"queue_full": 30_000, "uncovered": 140_000, **CALL})


@fires("queue_full")
def while_it_launches_to_another_device() -> Ledgered:
    """
    device 0  [==A==).................................[launch B][==B==)
    device 1       [=====================================)
    thread            [launch to 1: 40_000           ]
                         [command buffer full: 30_000]
    """
    trace = late(schema="3.24.8").kernel(50_000, 390_000, device=1, launch=(30_000, 31_000))
    trace.kernel(390_000, 400_000, device=1, launch=(140_000, 180_000))
    trace.overhead(150_000, 180_000, kind="buffer_full")
    return Ledgered(trace, {"queue_full": 30_000, "cuda_api": 10_000, "uncovered": 130_000, **CALL}, key="gpu0")


@fires("queue_full")
def in_the_launch_call() -> Ledgered:
    """
    device  [==A==).........................[launch B        ][==B==)
    thread                                    [buffer full]
    """
    trace = late(schema="3.24.8").overhead(282_000, 289_000, kind="buffer_full")
    return Ledgered(trace, {"queue_full": 7_000, "uncovered": 170_000, "launch_call": 3_000, "launch_latency": 10_000})


@spares("queue_full")
def the_buffer_of_another_thread() -> Ledgered:
    """
    device    [==A==).........................[launch B][==B==)
    thread            [cudaEventRecord: 20_000]
    neighbour         [command buffer full    ]
    """
    trace = late(schema="3.24.8").api("cudaEventRecord", 150_000, 170_000)
    trace.overhead(150_000, 170_000, kind="buffer_full", thread=NEIGHBOUR)
    return Ledgered(trace, {"cuda_api": 20_000, "uncovered": 150_000, **CALL})


@fires("module_load")
def a_loading_call() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [cuModuleLoadData: 50_000]
    """
    trace = late().api("cuModuleLoadData", 150_000, 200_000)
    return Ledgered(
        trace, {"module_load": 50_000, "uncovered": 120_000, **CALL}, evidence={"module_load": "cuModuleLoadData"}
    )


@fires("module_load")
def a_compiler_in_the_driver() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [driver JIT: 30_000]
                    [cudaFuncGetAttributes: 40_000]
    """
    trace = late(schema="3.24.8").api("cudaFuncGetAttributes", 150_000, 190_000)
    trace.overhead(150_000, 180_000, kind="jit")
    return Ledgered(trace, {"module_load": 30_000, "cuda_api": 10_000, "uncovered": 130_000, **CALL})


@fires("module_load")
def loading_at_run_time() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [module loading: 30_000][lazy function loading: 20_000]
    """
    trace = late(schema="3.24.8").overhead(150_000, 180_000, kind="module_load")
    trace.overhead(180_000, 200_000, kind="lazy_load")
    return Ledgered(trace, {"module_load": 50_000, "uncovered": 120_000, **CALL})


@fires("module_load")
def unknown_where_rows_have_no_type() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [Unknown: 30_000]                          up to schema 3.23
    """
    trace = late().profiler_overhead(120_000, 150_000, name="Unknown")
    return Ledgered(trace, {"module_load": 30_000, "uncovered": 140_000, **CALL})


def slow_launch(end: int, *, start_after: int = 10_000, name: str = "novel", **other: object) -> TraceBuilder:
    """B is launched from 280_000 to `end`; only A was launched before, in 4_000 ns."""
    begin = end + start_after
    return first().kernel(begin, begin + 1_000, name=name, launch=(280_000, end), **other)  # type: ignore[arg-type]


@fires("module_load")
def the_first_launch_of_a_kernel() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 1_000_001]10_000[==B==)
    thread                    under 10 launches: over 1 ms
    """
    return Ledgered(
        slow_launch(1_280_001),
        {"uncovered": 170_000, "module_load": 1_000_001, "launch_latency": 10_000},
        evidence={"module_load": "first launch of this kernel"},
    )


@fires("module_load")
def the_code_is_still_on_its_way() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 1_000_001]20_000|80_000 more: loading as well|[==B==)
    thread                    first launch of the kernel
    """
    trace = slow_launch(1_280_001, start_after=100_000)
    return Ledgered(trace, {"uncovered": 170_000, "module_load": 1_080_001, "launch_latency": 20_000})


@fires("module_load")
def the_same_short_name_of_another_template() -> Ledgered:
    """
    device  [==A<float>==)..170_000..[launch A<half>: 1_000_001]10_000[==B==)
    thread
    """
    trace = slow_launch(1_280_001, name="gemm", demangled="gemm<half>(half *, int)")
    return Ledgered(trace, {"uncovered": 170_000, "module_load": 1_000_001, "launch_latency": 10_000})


@fires("module_load")
def known_in_another_process_only() -> Ledgered:
    """
    device             [==A==)..169_000..[launch A: 1_000_001]10_000[==B==)
    another process        [warm-up call]                             its own first launch of the kernel
    """
    trace = first("3.17.2").cuda_device(0, 0).cuda_device(0, 0, pid=STRANGER[0])
    trace.api("cudaSetDevice", 279_000, 280_000, thread=STRANGER)
    trace.kernel(1_290_001, 1_300_000, launch=(280_000, 1_280_001), thread=STRANGER)
    return Ledgered(
        trace,
        {"cuda_api": 1_000, "uncovered": 169_000, "module_load": 1_000_001, "launch_latency": 10_000},
    )


@fires("module_load")
def a_first_launch_to_another_device() -> Ledgered:
    """
    device 0  [==A==)...........................................[launch B][==B==)
    device 1                                    [==C==)
    thread          [launch C, loads it: 1_000_001]
    """
    trace = late(3_000_000).kernel(1_600_000, 1_700_000, device=1, name="novel", launch=(500_000, 1_500_001))
    return Ledgered(
        trace,
        {"module_load": 1_000_001, "uncovered": 1_869_999, **CALL},
        labels={"module_load": {"first launch of a kernel": 1_000_001}},
        key="gpu0",
    )


@fires("module_load")
def loading_seen_in_a_first_launch_to_another_device() -> Ledgered:
    """
    device 0  [==A==)...........................................[launch B][==B==)
    device 1                                    [==C==)
    thread          [launch C, loads it: 1_000_001]
                       [lazy loading: 400_000]                              what the profiler saw comes first
    """
    trace = late(3_000_000, schema="3.24.8")
    trace.kernel(1_600_000, 1_700_000, device=1, name="novel", launch=(500_000, 1_500_001))
    trace.overhead(600_000, 1_000_000, kind="lazy_load")
    return Ledgered(
        trace,
        {"module_load": 1_000_001, "uncovered": 1_869_999, **CALL},
        labels={"module_load": {"loading seen by the profiler": 400_000, "first launch of a kernel": 600_001}},
        key="gpu0",
    )


@fires("module_load")
def loading_seen_in_a_loading_call() -> Ledgered:
    """
    device  [==A==).........................[launch B][==B==)
    thread          [cuModuleLoadData: 50_000]
                       [module loading]                        the call has the name
    """
    trace = late(schema="3.24.8").api("cuModuleLoadData", 150_000, 200_000)
    trace.overhead(160_000, 190_000, kind="module_load")
    return Ledgered(
        trace, {"module_load": 50_000, "uncovered": 120_000, **CALL}, evidence={"module_load": "cuModuleLoadData"}
    )


@fires("module_load")
def loading_seen_in_a_loading_call_of_the_launch() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 10_000        ][==B==)
    thread                      [cuModuleLoadData: 8_000]
                                  [module loading]              the call has the name
    """
    trace = late(schema="3.24.8").api("cuModuleLoadData", 281_000, 289_000)
    trace.overhead(282_000, 288_000, kind="module_load")
    return Ledgered(
        trace,
        {"uncovered": 170_000, "module_load": 8_000, "launch_call": 2_000, "launch_latency": 10_000},
        evidence={"module_load": "cuModuleLoadData"},
    )


def usual(call: int) -> TraceBuilder:
    """
    device  [============A============)..170_000..[launch B: `call`][==B==)
    device   [C)[C)[C)[C)[C)[C)[C)[C)[C)          on another stream, each launched in 400 ns
    """
    trace = first()
    for number in range(9):
        start = 20_000 + 1_000 * number
        trace.kernel(start, start + 100, stream=8, name="small", launch=(5_000 + 500 * number, 5_400 + 500 * number))
    return trace.kernel(300_000, 400_000, name="novel", launch=(280_000, 280_000 + call))


@fires("module_load")
def a_first_launch_of_over_10_times_the_median() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 4_001][==B==)      eleven launches, their median 400 ns
    thread
    """
    return Ledgered(usual(4_001), {"uncovered": 170_000, "module_load": 4_001, "launch_latency": 15_999})


@spares("module_load")
def a_first_launch_of_10_times_the_median() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 4_000][==B==)      eleven launches, their median 400 ns
    thread
    """
    return Ledgered(usual(4_000), {"uncovered": 170_000, "launch_call": 4_000, "launch_latency": 16_000})


@fires("module_load")
def a_first_launch_of_over_10_times_the_mean_of_both_medians() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 5_001][==B==)      ten launches, the middle ones of 400 and 600 ns
    thread
    """
    trace = first()
    for number in range(8):
        start, launch = 20_000 + 1_000 * number, 5_000 + 700 * number
        end = launch + (400 if number < 5 else 600)
        trace.kernel(start, start + 100, stream=8, name="small", launch=(launch, end))
    trace.kernel(300_000, 400_000, name="novel", launch=(280_000, 285_001))
    return Ledgered(trace, {"uncovered": 170_000, "module_load": 5_001, "launch_latency": 14_999})


@fires("module_load")
def code_that_a_call_loaded_before_the_gap_opened() -> Ledgered:
    """
    device  [=====A======)..........................20_000.....80_000......[==B==)
    thread        [cuModuleLoadData]
    thread      [launch B:          90_000 of it idle)                           the code is still on its way
    """
    trace = issuing().api("cuModuleLoadData", 102_000, 108_000)
    ledger = {"launch_call": 90_000, "launch_latency": 20_000, "module_load": 80_000}
    return Ledgered(trace, ledger, evidence={"module_load": "code is copied to the device"})


@spares("module_load")
def a_first_launch_of_1_ms() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 1_000_000]10_000[==B==)
    thread
    """
    trace = slow_launch(1_280_000)
    return Ledgered(trace, {"uncovered": 170_000, "launch_call": 1_000_000, "launch_latency": 10_000})


@spares("module_load")
def a_slow_second_launch() -> Ledgered:
    """
    device  [==A==)..170_000..[launch A again: 2_000_000]20_000|80_000[==B==)
    thread
    """
    trace = slow_launch(2_280_000, start_after=100_000, name="gemm")
    ledger = {"uncovered": 170_000, "launch_call": 2_000_000, "launch_latency": 20_000, "device_stall": 80_000}
    return Ledgered(trace, ledger)


@spares("module_load")
def a_slow_launch_of_a_graph() -> Ledgered:
    """
    device  [==A==)..170_000..[cudaGraphLaunch: 2_000_000]10_000[node)      its nodes are no launches
    thread
    """
    trace = slow_launch(2_280_000, api="cudaGraphLaunch", graph_node=3)
    return Ledgered(trace, {"uncovered": 170_000, "launch_call": 2_000_000, "launch_latency": 10_000})


@spares("module_load")
def unknown_inside_an_allocation_of_the_launch() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 10_000    ][==B==)
    thread                      [cuMemAlloc: 8_000]
                                  [Unknown]             inside an allocation call: not loading
    """
    trace = late().api("cuMemAlloc_v2", 281_000, 289_000).profiler_overhead(282_000, 288_000, name="Unknown")
    return Ledgered(
        trace, {"uncovered": 170_000, "memory_allocation": 8_000, "launch_call": 2_000, "launch_latency": 10_000}
    )


@fires("launch_call")
def a_call_that_had_begun() -> Ledgered:
    """
    device  [==A==)...........190_000...........[==B==)
    thread [A] [launch B: 90_000)|20_000|80_000
    """
    return Ledgered(
        issuing(),
        {"launch_call": 90_000, "launch_latency": 20_000, "device_stall": 80_000},
        evidence={"launch_call": "cudaLaunchKernel"},
    )


@fires("launch_call")
def a_kernel_that_starts_before_its_call_returns() -> Ledgered:
    """
    device  [==A==)......170_000......20_000[==B==)
    thread [A]                       [launch B: 30_000]
    """
    trace = first().kernel(300_000, 400_000, launch=(280_000, 310_000))
    return Ledgered(trace, {"uncovered": 170_000, "launch_call": 20_000})


@fires("launch_call")
def a_first_launch_of_over_a_tenth_of_a_millisecond() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 100_001]10_000[==B==)
    thread                    under 10 launches, and the first of its kernel
    """
    return Ledgered(
        slow_launch(380_001),
        {"uncovered": 170_000, "launch_call": 100_001, "launch_latency": 10_000},
        labels={"launch_call": {"first launch of this kernel": 100_001}},
    )


@fires("launch_call")
def a_first_launch_of_a_tenth_of_a_millisecond() -> Ledgered:
    """
    device  [==A==)..170_000..[launch B: 100_000]10_000[==B==)
    thread
    """
    return Ledgered(
        slow_launch(380_000),
        {"uncovered": 170_000, "launch_call": 100_000, "launch_latency": 10_000},
        labels={"launch_call": None},
    )


@fires("launch_call")
def a_second_launch_of_over_a_tenth_of_a_millisecond() -> Ledgered:
    """
    device  [==A==)..170_000..[launch A again: 100_001]10_000[==A==)
    thread
    """
    return Ledgered(
        slow_launch(380_001, name="gemm"),
        {"uncovered": 170_000, "launch_call": 100_001, "launch_latency": 10_000},
        labels={"launch_call": None},
    )


@fires("launch_call")
def runtime_and_driver_rows_of_a_launch() -> Ledgered:
    """
    device  [==A==)..170_000..10_000 10_000[==B==)
    thread                   [cudaLaunchKernel]
                               [cuLaunchKernel]           both have B's correlation id: the outermost is the launch
    """
    trace = late().api("cuLaunchKernel", 282_000, 290_000, correlation=102)
    return Ledgered(trace, {"uncovered": 170_000, **CALL}, evidence={"launch_call": "cudaLaunchKernel"})


@spares("launch_call")
def a_call_that_had_returned() -> Ledgered:
    """
    device  [==A==)....40_000....[==B==)
    thread [A][launch B]
    """
    return Ledgered(issued(), {"device_stall": 40_000})


@spares("launch_call")
def the_same_id_in_another_process() -> Ledgered:
    """
    device            [==A==)....90_000....[==B==)
    another process        [cudaLaunchKernel]          has B's correlation id, but B is of this process
    """
    trace = first("3.17.2").cuda_device(0, 0).cuda_device(0, 0, pid=STRANGER[0])
    trace.api("cudaLaunchKernel", 150_000, 160_000, thread=STRANGER, correlation=9_999)
    trace.kernel(200_000, 300_000, correlation=9_999)
    return Ledgered(trace, {"launch_unknown": 90_000})


@fires("launch_latency")
def on_its_way() -> Ledgered:
    """
    device  [==A==)10_000|20_000[==B==)
    thread    [launch B]                 it ended at 100_000: 20 µs from there are 10_000 of the gap
    """
    trace = first().kernel(140_000, 200_000, launch=(95_000, 100_000))
    return Ledgered(trace, {"launch_latency": 10_000, "device_stall": 20_000})


@spares("launch_latency")
def long_past() -> Ledgered:
    """
    device  [==A==)30_000[==B==)
    thread [launch B]                    it ended at 90_000: the 20 µs were over when the gap opened
    """
    trace = first().kernel(140_000, 200_000, launch=(85_000, 90_000))
    return Ledgered(trace, {"device_stall": 30_000})
