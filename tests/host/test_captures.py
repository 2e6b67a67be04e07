"""Real captures with a made-up GPU: what the programs logged of themselves and what the table of threads says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.host.report import advice
from tests.wakeups.grafted import CAPTURES, grafted, log_of

if TYPE_CHECKING:
    from nsysdiag.host.facts import HostReport
    from tests.shared import Shared

pytestmark = pytest.mark.fixtures


def host_of(name: str, shared: Shared, *without: str) -> HostReport:
    host = shared.report(grafted(shared, name, without)).host
    assert host is not None
    return host


@pytest.mark.slow
def test_neighbours_on_one_core(shared: Shared) -> None:
    """The program took every hole of more than 1 ms in its reading of the clock for a preemption: 34 of them."""
    waits = log_of("real_wait_preempt")["waits"]
    logged = sum(wait["end"] - wait["start"] for wait in waits)
    host = host_of("real_wait_preempt", shared)
    (main,) = host.threads
    assert main.preemptions == len(waits) == 34
    assert main.preempted_ns == pytest.approx(logged, rel=0.01)
    assert main.worst_stall is not None
    assert main.worst_stall.preempted
    assert main.worst_stall.ns == pytest.approx(max(wait["end"] - wait["start"] for wait in waits), rel=0.01)
    neighbours = {thread["pid"] for thread in log_of("real_wait_preempt")["threads"] if thread["role"] != "main"}
    assert host.contention is not None
    assert {holder.pid for holder in host.contention.holders} == neighbours
    assert {holder.tid for holder in host.contention.holders} == {None}
    assert sum(holder.ns for holder in host.contention.holders) >= 0.99 * main.preempted_ns
    assert (host.contention.cpus_used, host.contention.cpus_seen) == (1, 2)
    assert len(host.shortage) == 1
    assert "bind the launching thread" in advice(host)[0]
    # All along: nothing begins, and one thread on one core shows no limit.
    assert (host.change_points, host.contention.limits) == ([], [])


LITTLE = ("gil", "pipe_processes", "pipe_untraced_child", "queue_feed", "queue_feed_2022", "slow_read", "join")


@pytest.mark.sampled(quick=7, normal=3)
@pytest.mark.parametrize("name", LITTLE)
def test_a_thread_that_waits_in_calls_is_not_preempted(shared: Shared, name: str) -> None:
    """It is off its CPU most of the time, and another thread has that CPU for a part of it."""
    host = host_of(f"real_wait_{name}", shared)
    main = host.threads[0]
    assert main.launches
    assert main.off_cpu_ns is not None
    assert main.preempted_ns is not None
    assert main.off_cpu_ns > 0.6 * (host.end_ns - host.start_ns)
    assert main.preempted_ns < 0.005 * main.off_cpu_ns
    assert (host.shortage, advice(host)) == ([], [])


@pytest.mark.parametrize("name", CAPTURES)
class TestAll:
    @pytest.mark.sampled(normal=7)
    def test_sums(self, shared: Shared, name: str) -> None:
        host = host_of(name, shared)
        assert host.contention is not None
        assert host.contention.limits == []
        assert host.change_points == []
        for row in host.threads:
            assert row.on_cpu_ns is not None
            parts = (row.on_cpu_ns, row.off_cpu_ns or 0, row.unknown_ns or 0)
            assert sum(parts) == host.end_ns - host.start_ns
        assert host.threads[0].worst_stall is not None
        assert sum(window.switches or 0 for window in host.windows) == sum(row.switches or 0 for row in host.threads)

    @pytest.mark.sampled(normal=5)
    def test_without_scheduling(self, shared: Shared, name: str) -> None:
        host = host_of(name, shared, "SCHED_EVENTS")
        assert host.contention is None
        assert {row.on_cpu_ns for row in host.threads} == {row.preempted_ns for row in host.threads} == {None}
        assert {row.worst_stall for row in host.threads} == {None}
        assert any(row.on_cpu_estimate_ns for row in host.threads)
