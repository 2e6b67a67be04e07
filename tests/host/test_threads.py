"""The table of threads and who had the CPU, on traces of a few rows.

All of them have two kernels, so that the range is [10_000, 1_010_000), a million ns:

```
device   [===A===)...............................[===B===)
         10_000                                  910_000 1_010_000
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.host.facts import CpuHolder, CpuLimit, HostReport, HostThread, Stall
from nsysdiag.host.report import advice
from tests.builder import MAIN, TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builder import ThreadId

WORKER: ThreadId = (4242, 4300)
STRANGER: ThreadId = (5000, 5001)
RUNNING, INTERRUPTIBLE = 1, 2


def two_kernels() -> TraceBuilder:
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000))
    trace.process(name="trainer").process(5000, "gzip").thread_name("main").thread_name("worker", thread=WORKER)
    return trace.kernel(910_000, 1_010_000, launch=(890_000, 900_000))


def host_of(trace: TraceBuilder, folder: Path) -> HostReport:
    host = report_of(trace, folder).host
    assert host is not None
    assert (host.start_ns, host.end_ns) == (10_000, 1_010_000)
    return host


def only_thread(trace: TraceBuilder, folder: Path) -> HostThread:
    (thread,) = host_of(trace, folder).threads
    return thread


def times(thread: HostThread) -> tuple[int | None, ...]:
    return thread.on_cpu_ns, thread.off_cpu_ns, thread.unknown_ns, thread.preempted_ns


def ran(trace: TraceBuilder, thread: ThreadId, start: int, end: int, *, cpu: int = 3, state: int = 0) -> TraceBuilder:
    """The thread is on a CPU for a while."""
    return trace.sched(start, True, cpu=cpu, thread=thread).sched(end, False, cpu=cpu, thread=thread, state=state)


def beside_a_stranger() -> TraceBuilder:
    """
    CPU 3   [== main ==)[== stranger ==)[== main ...
            0       200_000         500_000
    """
    trace = ran(two_kernels(), MAIN, 0, 200_000)
    return ran(trace, STRANGER, 200_000, 500_000).sched(500_000, True, cpu=3)


@pytest.mark.slow
def test_preempted_by_another_process(tmp_path: Path) -> None:
    host = host_of(beside_a_stranger(), tmp_path)
    (thread,) = host.threads
    assert times(thread) == (700_000, 300_000, 0, 300_000)
    assert (thread.preemptions, thread.switches, thread.migrations, thread.cpus) == (1, 1, 0, 1)
    assert thread.worst_stall == Stall(start_ns=200_000, ns=300_000, what=None, preempted=True)
    assert thread.launches == {"gpu0": 2}
    assert host.contention is not None
    assert (host.contention.preempted_ns, host.contention.held_ns) == (300_000, 300_000)
    # Of a program that was not traced only the number is told.
    assert host.contention.holders == [CpuHolder(pid=5000, process=None, tid=None, thread=None, ns=300_000)]
    (said,) = host.shortage
    assert "30.0% of the time" in said
    assert "process 5000" in said
    assert advice(host)[0].startswith("Keep other jobs off these CPUs")


def test_the_finding_on_lost_cpu_time_says_who_had_it(tmp_path: Path) -> None:
    """And what to do about that, before what is always worth a look."""
    report = report_of(beside_a_stranger(), tmp_path)
    assert report.host is not None
    (lost,) = [each for each in report.findings if each.cause == "off_cpu"]
    assert lost.bottleneck == "host"
    assert lost.evidence[-1] == report.host.shortage[0]
    assert lost.advice[0].startswith("Keep other jobs off these CPUs")
    assert all(report.host.shortage[0] not in each.evidence for each in report.findings if each is not lost)


def test_a_wait_in_a_call_is_no_preemption(tmp_path: Path) -> None:
    """The same, but main waits for a condition meanwhile."""
    trace = beside_a_stranger().osrt("pthread_cond_wait", 199_000, 501_000)
    host = host_of(trace, tmp_path)
    (thread,) = host.threads
    assert times(thread) == (700_000, 300_000, 0, 0)
    assert thread.worst_stall == Stall(start_ns=200_000, ns=300_000, what="pthread_cond_wait", preempted=False)
    assert thread.os_ns == 302_000
    assert host.contention is not None
    assert (host.contention.preempted_ns, host.contention.holders, host.shortage, advice(host)) == (0, [], [], [])


def test_a_call_that_returns_at_once_is_no_wait(tmp_path: Path) -> None:
    trace = beside_a_stranger().osrt("pthread_cond_signal", 199_000, 501_000)
    assert times(only_thread(trace, tmp_path)) == (700_000, 300_000, 0, 300_000)


@pytest.mark.parametrize(("osrt", "preempted"), [(False, 0), (True, 300_000)])
def test_off_the_cpu_inside_a_synchronization(tmp_path: Path, osrt: bool, preempted: int) -> None:
    """It may sleep until the device is done. Where OS calls are captured, the sleep would be one of them."""
    trace = beside_a_stranger().api("cudaDeviceSynchronize", 190_000, 510_000)
    if osrt:
        trace.osrt("read", 20_000, 21_000)
    thread = only_thread(trace, tmp_path)
    assert thread.preempted_ns == preempted
    assert (thread.sync_calls, thread.sync_ns, thread.api_ns) == (1, 320_000, 330_000)
    assert thread.worst_stall is not None
    assert thread.worst_stall.what == "cudaDeviceSynchronize"


@pytest.mark.parametrize(("busy", "preempted"), [(240_000, 300_000), (239_999, 0)])
def test_others_must_hold_the_cpu_for_four_fifths(tmp_path: Path, busy: int, preempted: int) -> None:
    """
    CPU 3   [== main ==)[== stranger ==)[idle)[== main ...
                    200_000    + busy      500_000
    """
    trace = ran(two_kernels(), MAIN, 0, 200_000)
    trace = ran(trace, STRANGER, 200_000, 200_000 + busy).sched(500_000, True, cpu=3)
    host = host_of(trace, tmp_path)
    assert host.threads[0].preempted_ns == preempted
    assert host.contention is not None
    assert host.contention.held_ns == (busy if preempted else 0)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("away", "state", "preempted"), [(1, 0, 1), (1.000000001, 0, 0), (10, 0, 0), (10, RUNNING, 10)]
)
def test_no_thread_is_ready_for_longer_than_a_second(tmp_path: Path, away: float, state: int, preempted: int) -> None:
    """
    CPU 3    [== main ==)[== stranger: `away` s ==)[== main ==)
    """
    second, back = 1_000_000_000, 200_000 + round(away * 1_000_000_000)
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 2_000))
    trace.kernel(back + 600_000, back + 700_000, launch=(back + 500_000, back + 501_000))
    trace = ran(ran(trace, MAIN, 0, 200_000, state=state), STRANGER, 200_000, back)
    host = report_of(ran(trace, MAIN, back, back + 800_000), tmp_path).host
    assert host is not None
    assert {thread.tid: thread.preempted_ns for thread in host.threads} == {MAIN[1]: preempted * second}


def test_the_idle_loop_holds_nothing(tmp_path: Path) -> None:
    trace = ran(two_kernels(), MAIN, 0, 200_000).sched(200_000, True, cpu=3, thread=(0, 0)).sched(500_000, True, cpu=3)
    assert times(only_thread(trace, tmp_path)) == (700_000, 300_000, 0, 0)


def test_threads_of_the_same_process_are_told_one_by_one(tmp_path: Path) -> None:
    """
    CPU 3   [== main ==)[== worker ==)[= stranger =)[== main ...
            0       200_000       400_000       500_000
    """
    trace = ran(two_kernels(), MAIN, 0, 200_000)
    trace = ran(ran(trace, WORKER, 200_000, 400_000), STRANGER, 400_000, 500_000).sched(500_000, True, cpu=3)
    host = host_of(trace, tmp_path)
    assert [thread.tid for thread in host.threads] == [4242, 4300]
    assert host.contention is not None
    assert host.contention.holders == [
        CpuHolder(pid=4242, process="trainer", tid=4300, thread="worker", ns=200_000),
        CpuHolder(pid=5000, process=None, tid=None, thread=None, ns=100_000),
    ]
    assert advice(host)[0].startswith("Start fewer threads")


def test_migrations(tmp_path: Path) -> None:
    """
    CPU 1   [== main ==)                                     [== main ...
    CPU 2               ....[== main ==)..[== main ==)........
            0       200_000 300_000 400_000 450_000 600_000 700_000
    """
    trace = ran(
        ran(ran(two_kernels(), MAIN, 0, 200_000, cpu=1), MAIN, 300_000, 400_000, cpu=2), MAIN, 450_000, 600_000, cpu=2
    )
    thread = only_thread(trace.sched(700_000, True, cpu=1), tmp_path)
    assert times(thread) == (750_000, 250_000, 0, 0)
    assert (thread.switches, thread.migrations, thread.cpus) == (3, 2, 2)
    assert (thread.voluntary, thread.involuntary) == (None, None)
    assert thread.worst_stall == Stall(start_ns=200_000, ns=100_000, what=None, preempted=False)


def test_the_state_that_the_scheduler_noted(tmp_path: Path) -> None:
    """Off in the state running, waiting, running: pushed off twice, for 100_000 and 50_000 ns."""
    trace = ran(two_kernels(), MAIN, 0, 200_000, state=RUNNING)
    trace = ran(trace, MAIN, 300_000, 400_000, state=INTERRUPTIBLE)
    trace = ran(trace, MAIN, 500_000, 600_000, state=RUNNING).sched(650_000, True, cpu=3)
    host = host_of(trace, tmp_path)
    (thread,) = host.threads
    assert (thread.switches, thread.voluntary, thread.involuntary) == (3, 1, 2)
    assert times(thread) == (750_000, 250_000, 0, 150_000)
    assert host.contention is not None
    assert (host.contention.preempted_ns, host.contention.held_ns) == (150_000, 0)


def test_before_the_first_and_after_the_last_event_nothing_is_known(tmp_path: Path) -> None:
    """
    worker   .....unknown......[== runs ==).....unknown.....
                           400_000     600_000
    """
    trace = ran(two_kernels().sched(0, True), WORKER, 400_000, 600_000)
    _, worker = host_of(trace, tmp_path).threads
    assert times(worker) == (200_000, 0, 800_000, 0)
    assert worker.worst_stall is None


def test_a_first_event_off_the_cpu_says_that_it_was_on_it(tmp_path: Path) -> None:
    trace = two_kernels().sched(210_000, False, cpu=3).sched(310_000, True, cpu=3)
    assert times(only_thread(trace, tmp_path)) == (900_000, 100_000, 0, 0)


class TestLeftOut:
    def test_without_scheduling_nothing_is_zero(self, tmp_path: Path) -> None:
        host = host_of(two_kernels(), tmp_path)
        (thread,) = host.threads
        assert not host.scheduling
        assert host.contention is None
        assert times(thread) == (None, None, None, None)
        assert (thread.switches, thread.cpus, thread.migrations, thread.worst_stall) == (None, None, None, None)
        assert (thread.on_cpu_estimate_ns, thread.os_ns, thread.api_ns) == (None, None, 10_000)
        assert (
            {window.switches for window in host.windows} == {window.off_cpu_share for window in host.windows} == {None}
        )

    def test_samples_alone_give_an_estimate(self, tmp_path: Path) -> None:
        """Samples each 10 µs outside of anything else: five of them stand for 100 µs each, the shortest period."""
        trace = two_kernels()
        for number in range(5):
            trace.sample(200_000 + 10_000 * number)
        thread = only_thread(trace, tmp_path)
        assert (thread.on_cpu_ns, thread.on_cpu_estimate_ns) == (None, 500_000)

    def test_a_thread_without_events_beside_one_with(self, tmp_path: Path) -> None:
        trace = beside_a_stranger().osrt("read", 300_000, 400_000, thread=WORKER)
        main, worker = host_of(trace, tmp_path).threads
        assert main.on_cpu_ns == 700_000
        assert (worker.on_cpu_ns, worker.os_ns) == (None, 100_000)

    @pytest.mark.slow
    def test_the_profiler_is_no_thread_of_the_program(self, tmp_path: Path) -> None:
        trace = ran(two_kernels(), WORKER, 20_000, 30_000)
        assert host_of(trace, tmp_path).thread_count == 2
        nsys = (4242, 4400)
        again = ran(two_kernels(), nsys, 20_000, 30_000).thread_name("[NSys]", thread=nsys)
        (tmp_path / "again").mkdir()
        assert [thread.tid for thread in host_of(again, tmp_path / "again").threads] == [4242]

    def test_no_gpu_work_is_no_host_report(self, tmp_path: Path) -> None:
        assert report_of(TraceBuilder().sched(10, True).sched(20, False), tmp_path).host is None


class TestLimit:
    """Three threads take turns on CPUs 0 and 1, for 10 µs each, so that one always waits; a stranger uses CPU 7.

    CPU 0   [ A )[ C )[ B )[ A )
    CPU 1   [ B )[ A )[ C )[ B )
    waits     C    B    A    C
    """

    def crowd(self, *, osrt: bool) -> TraceBuilder:
        trace = ran(two_kernels(), STRANGER, 0, 900_000, cpu=7)
        threads = (MAIN, WORKER, (4242, 4400))
        for turn in range(101):
            for cpu in (0, 1):
                ran(trace, threads[(cpu - turn) % 3], 10_000 * turn, 10_000 * (turn + 1), cpu=cpu)
            if osrt:
                waiting = threads[(2 - turn) % 3]
                trace.osrt("pthread_mutex_lock", 10_000 * turn - 200, 10_000 * (turn + 1) + 200, thread=waiting)
        return trace

    def test_shows(self, tmp_path: Path) -> None:
        host = host_of(self.crowd(osrt=False), tmp_path)
        assert host.contention is not None
        assert (host.contention.cpus_used, host.contention.cpus_seen) == (2, 3)
        (limit,) = host.contention.limits
        # Who waits in the very last turns never comes back in, so that nothing is known of it.
        told = CpuLimit(pid=4242, process="trainer", cpus=2, wanted=3, ns=limit.ns, cpus_seen=3)
        assert limit == told
        assert 970_000 <= limit.ns <= 1_000_000
        assert "never ran on more than 2 CPUs at once" in host.shortage[0]
        assert advice(host)[0].startswith("Look for a CPU limit")

    def test_is_none_where_the_third_thread_waits_for_a_lock(self, tmp_path: Path) -> None:
        host = host_of(self.crowd(osrt=True), tmp_path)
        assert host.contention is not None
        assert (host.contention.limits, host.contention.preempted_ns, host.shortage) == ([], 0, [])

    def test_is_none_where_threads_take_turns_on_several_cpus(self, tmp_path: Path) -> None:
        """Never two at once, and the other one seems to wait for the CPU; but they do so now on CPU 0, now on CPU 1.

        CPU 0   [ A )[ B )[ A ) ...
        CPU 1                       [ B )[ A )[ B ) ...
        """
        trace = two_kernels()
        for turn in range(101):
            ran(trace, (MAIN, WORKER)[turn % 2], 10_000 * turn, 10_000 * (turn + 1), cpu=0 if turn < 50 else 1)
        host = host_of(trace, tmp_path)
        assert host.contention is not None
        assert (host.contention.cpus_used, host.contention.limits) == (2, [])
        assert host.contention.held_ns > 900_000

    def test_is_none_where_a_stranger_has_the_cpu(self, tmp_path: Path) -> None:
        host = host_of(beside_a_stranger(), tmp_path)
        assert host.contention is not None
        assert host.contention.limits == []


@pytest.mark.slow
def test_threads_too_far_apart_for_one_axis_leave_the_host_out(tmp_path: Path) -> None:
    """The one thread that launches has room for 30 years, twenty threads have not: the device is told all the same."""
    trace, far = TraceBuilder().kernel(100, 200, launch=(10, 20)), 10**18
    trace.kernel(far, far + 100, launch=(far - 90, far - 80))
    for tid in range(20):
        trace.osrt("poll", 50, far, thread=(4242, 5000 + tid))
    report = report_of(trace, tmp_path)
    assert report.host is None
    assert [device.busy_ns for device in report.devices] == [200]
