"""Simulated programs with a neighbour on the launching thread's CPU: from half way on, for a moment, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.host.facts import HostReport
from nsysdiag.host.show import host_sentences
from nsysdiag.pipeline import analyze
from tests.simulator import EVERYTHING, Capture, Simulation
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

pytestmark = pytest.mark.slow

STEPS, BEGINS, FOR_GOOD = 800, 600 * MS, 8_000 * MS


def training(sim: Simulation, *, sleeps: bool) -> Thread:
    """A step of 1.5 ms, 800 times: 1 ms of host code, a launch, and a synchronization, which spins, or sleeps.

    T       [1 ms of code][launch][cudaStreamSynchronize][1 ms of code]
    device                     [== 400 µs ==]
    """
    process = sim.process(name="/usr/bin/trainer")

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.compute(1 * MS)
            yield from t.launch("gemm", 400 * US)
            yield from t.synchronize(process.null, blocking=sleeps)

    return sim.thread(process, main, name="trainer")


def host_of(
    path: Path, *, neighbour_ns: int = 0, sleeps: bool = False, capture: Capture = EVERYTHING
) -> tuple[HostReport, Thread]:
    """The report of a training with a neighbour on its core that computes for some time."""
    sim = Simulation()
    thread = training(sim, sleeps=sleeps)
    if neighbour_ns:
        other = sim.process(gpus=[], name="/usr/bin/compressor")
        sim.thread(other, lambda t: t.compute(neighbour_ns), name="gzip", start=BEGINS, share=thread)
    host = analyze(sim.run().write(path / "trace.sqlite", capture)).host
    assert host is not None
    return host, thread


def assert_begins_half_way(host: HostReport, metrics: set[str]) -> None:
    began = {each.metric: each for each in host.change_points}
    assert metrics <= set(began)
    length = host.windows[0].end_ns - host.windows[0].start_ns
    assert {name for name, each in began.items() if abs(each.start_ns - BEGINS) > 2 * length} == set()


def test_a_neighbour_that_stays(tmp_path: Path) -> None:
    """It is on the CPU from 600 ms on, to the end: 4 ms at a time. Once it takes the CPU inside a synchronization, and
    without OS calls in the trace that may be a sleep: it does not count."""
    host, thread = host_of(tmp_path, neighbour_ns=FOR_GOOD)
    (row,) = host.threads
    waited = [span for span in thread.spans if span.state == "waiting" and not span.stack]
    assert row.preempted_ns == sum(min(span.end, host.end_ns) - max(span.start, host.start_ns) for span in waited)
    assert row.preempted_ns > 200 * MS
    assert host.contention is not None
    assert [(each.pid, each.process, each.tid) for each in host.contention.holders] == [(4259, None, None)]
    assert host.contention.holders[0].ns == host.contention.held_ns == row.preempted_ns
    assert_begins_half_way(host, {"off_cpu_share", "preempted_share", "crowded_share"})
    assert "process 4259 had their CPUs" in host.shortage[0]


def test_synchronizations_return_late_beside_it(tmp_path: Path) -> None:
    """Those that sleep: the work is done while the neighbour has the CPU, and the thread comes back when its 4 ms are
    over. It was waiting in poll all the time, so that nothing shows it to be preempted.

    core     [ T ][===== neighbour, 4 ms =====][ T ]
    poll          [---------------------------]
    device      [==400 µs==)|--- too late ----|
    """
    host, _ = host_of(tmp_path, neighbour_ns=FOR_GOOD, sleeps=True)
    assert host.threads[0].preempted_ns == 0
    latency = host.sync_latency
    assert latency is not None
    assert latency.by == "crowded_share"
    assert latency.quiet is not None
    assert latency.busy is not None
    assert min(latency.quiet.calls, latency.busy.calls) >= 20
    assert (latency.quiet.p50_ns, latency.busy.p50_ns) == (6_000, 3_601_000)
    assert latency.p50_ratio == pytest.approx(600.167)
    assert_begins_half_way(host, {"sync_late_p50_ns", "crowded_share", "launches_per_second"})
    assert any("600.2 times as late" in line for line in host_sentences(host))


@pytest.mark.parametrize("sleeps", [False, True])
def test_steady(tmp_path: Path, sleeps: bool) -> None:
    host, _ = host_of(tmp_path, sleeps=sleeps)
    (row,) = host.threads
    assert (row.preempted_ns, host.change_points, host.shortage) == (0, [], [])
    assert host.contention is not None
    assert (host.contention.preempted_ns, host.contention.holders, host.contention.limits) == (0, [], [])
    assert host_sentences(host) == []


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_single_spike_is_no_beginning(tmp_path: Path, sleeps: bool) -> None:
    host, _ = host_of(tmp_path, neighbour_ns=12 * MS, sleeps=sleeps)
    assert max(window.crowded_share or 0 for window in host.windows) > 0.1
    assert host.change_points == []


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("evidence", ["osrt", "samples", "sync_rows"])
def test_evidence_left_out_invents_nothing(tmp_path: Path, evidence: str) -> None:
    whole, _ = host_of(tmp_path, neighbour_ns=FOR_GOOD)
    (tmp_path / "less").mkdir()
    less, _ = host_of(tmp_path / "less", neighbour_ns=FOR_GOOD, capture=EVERYTHING.but(**{evidence: False}))
    assert whole.threads[0].preempted_ns is not None
    assert less.threads[0].preempted_ns is not None
    assert 0 < less.threads[0].preempted_ns <= whole.threads[0].preempted_ns
    assert less.threads[0].on_cpu_ns == whole.threads[0].on_cpu_ns


def test_without_scheduling_it_is_unknown(tmp_path: Path) -> None:
    """Samples make up an estimate; when it began still shows by what is known."""
    host, thread = host_of(tmp_path, neighbour_ns=FOR_GOOD, sleeps=True, capture=EVERYTHING.but(sched=False))
    (row,) = host.threads
    assert (row.on_cpu_ns, row.off_cpu_ns, row.preempted_ns, row.switches) == (None, None, None, None)
    true = sum(end - start for start, end in thread.cpu)
    assert row.on_cpu_estimate_ns == pytest.approx(true, rel=0.05)
    assert (host.contention, host.shortage) == (None, [])
    assert host.sync_latency is not None
    assert (host.sync_latency.quiet, host.sync_latency.p50_ratio) == (None, None)
    assert_begins_half_way(host, {"sync_late_p50_ns", "launches_per_second"})
