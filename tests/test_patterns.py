"""What is to be seen over many steps or many devices: the analysis against scenarios whose numbers are known."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag.pipeline import analyze
from tests.simulator import EVERYTHING
from tests.simulator.scenarios import scenario
from tests.simulator.scenarios.patterns import RANK_STEPS, RANKS, SLOW_RANK, SPIKE_EVERY, SPIKE_STEPS
from tests.simulator.simulation import ZERO_UTC

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport, Report
    from tests.shared import Shared

MS = 1_000_000
SPIKE_NS = 12 * MS
BEGAN = [number * 137 * MS for number in range(RANKS)]
CLOCK_ERRORS = [0, 400_000, -300_000, 2 * MS, -1 * MS, 0, 50_000, -700_000]


def report_on(name: str, shared: Shared) -> Report:
    return shared.report(shared.trace(name, EVERYTHING))


@pytest.mark.slow
def test_the_read_of_each_step_drains_the_queue(shared: Shared) -> None:
    """24 steps have 23 gaps between them: `item()` opened each, and the host computed for 800 µs of it."""
    (device,) = report_on("loss_read_each_step", shared).devices
    assert device.sync_drained["gaps"] == 23
    assert device.ledger["host_compute"] == 23 * 800_000


@pytest.mark.slow
def test_what_the_host_computes_after_the_read_counts_to_the_read(shared: Shared) -> None:
    """The thread waited for nearly all of 30 kernels of 90 µs: it could have done 800 µs of computing meanwhile. With a
    copy that does not block, the simulated program is 807.8 µs faster in each step but the last."""
    report = report_on("loss_read_each_step", shared)
    ((device,),) = ([*phase.devices] for phase in report.phases)
    assert device.ledger["host_compute"] == 23 * 800_000
    assert device.account["sync"] >= 23 * 800_000
    assert "host" not in device.account
    found = [each for each in report.findings if each.saves and each.cause != "single_precision"]
    assert [(each.cause, each.bottleneck) for each in found] == [("blocking_copy", "sync"), ("host_compute", "host")]
    assert found[0].ceiling_ns >= 23 * 807_800
    assert found[1].lost_ns == 23 * 800_000


@pytest.mark.slow
def test_spikes_are_the_slow_iterations(shared: Shared) -> None:
    """Steps 9, 19 and 29 have a spike before their work, which the GPU sees as the end of the step before; 39 too."""
    (device,) = report_on("collector_spikes", shared).devices
    assert device.iterations is not None
    assert device.iterations.count == SPIKE_STEPS
    slow = device.iterations.slow
    assert sorted(one.index % SPIKE_EVERY for one in slow) == [8] * 4
    assert all(abs(one.extra_ns - SPIKE_NS) < 0.01 * SPIKE_NS for one in slow)
    assert all(one.more["host_compute"] >= 0.99 * SPIKE_NS for one in slow)


@pytest.mark.slow
def test_thirty_steps_without_gpu_work_are_one_gap(shared: Shared) -> None:
    (device,) = report_on("mostly_on_the_cpu", shared).devices
    assert device.ledger["host_compute"] == 30 * 3 * MS
    longest = max(device.gaps, key=lambda gap: gap.end_ns - gap.start_ns)
    assert longest.end_ns - longest.start_ns > 30 * 3 * MS


def test_thirty_steps_without_gpu_work_are_a_pause_of_the_host(shared: Shared) -> None:
    """Two steps repeat the same work, and they are judged; a finding names those between them."""
    report = report_on("mostly_on_the_cpu", shared)
    assert [(phase.name, phase.bottleneck) for phase in report.phases] == [
        ("steady", "kernels"),
        ("pause", "host"),
        ("steady", "kernels"),
    ]
    pause = report.phases[1]
    assert pause.devices[0].ledger["host_compute"] == 30 * 3 * MS
    assert pause.share > 0.95
    assert "empty_iterations" in {finding.cause for finding in report.findings}


@pytest.mark.slow
def test_seven_wait_in_communication_for_the_eighth(shared: Shared) -> None:
    report = report_on("slow_rank", shared)
    assert len(report.devices) == RANKS
    for number, device in enumerate(by_process(report)):
        check_rank(device, slow=number == SLOW_RANK)


def by_process(report: Report) -> list[DeviceReport]:
    return sorted(report.devices, key=lambda device: device.ids[0].pid)


def check_rank(device: DeviceReport, *, slow: bool) -> None:
    """The slow rank prepares for 4 ms in each of eleven steps but the first; the others wait those 4 - 0.1 ms."""
    late = (RANK_STEPS - 1) * 4 * MS
    if slow:
        assert device.ledger["host_compute"] == pytest.approx(late, rel=0.01)
        assert device.exposed_comm_ns < 0.2 * late
    else:
        assert device.ledger["host_compute"] < 0.05 * late
        assert device.exposed_comm_ns > 0.9 * late


@pytest.mark.slow
def test_waiting_for_the_eighth_counts_to_what_makes_it_late(shared: Shared) -> None:
    """Each step the host of one prepares for 4 ms: 3.9 ms of waiting in the all-reduce of the seven others."""
    report = report_on("slow_rank", shared)
    slow = by_process(report)[SLOW_RANK]
    (phase,) = (each for each in report.phases if each.judged)
    assert report.diagnosis.bottleneck == phase.bottleneck == "host"
    for device in phase.devices:
        if device.key != slow.key:
            assert device.account["host"] == pytest.approx((RANK_STEPS - 1) * 3_900_000, rel=0.01)
            assert device.account["communication"] == pytest.approx((RANK_STEPS - 1) * 300_000, rel=0.01)
    late = report.findings[0]
    assert (late.cause, late.bottleneck) == ("late_rank", "host")
    assert set(late.devices) == {device.key for device in report.devices}
    prepares = next(each for each in phase.devices if each.key == slow.key).ledger["host_compute"]
    assert late.lost_ns == pytest.approx((RANKS - 1) * (RANK_STEPS - 1) * 3_900_000 + prepares, rel=0.01)
    assert not [each for each in report.findings[1:] if each.cause == "host_compute"]


@pytest.mark.thorough
def test_a_file_for_each_rank_tells_the_same(shared: Shared, tmp_path: Path) -> None:
    """Eight sessions with clocks of their own: the same times but for when each began."""
    simulation = scenario("slow_rank")
    whole = by_process(report_on("slow_rank", shared))
    paths = simulation.write_each(tmp_path, BEGAN, clock_errors=CLOCK_ERRORS)
    assert len(paths) == RANKS
    for number, path in enumerate(paths):
        (device,) = analyze(path).devices
        expected = whole[number]
        assert device.ledger == expected.ledger
        assert device.exposed_comm_ns == expected.exposed_comm_ns
        assert device.window.start_ns == expected.window.start_ns + BEGAN[number]
        assert started(path) == ZERO_UTC - BEGAN[number] + CLOCK_ERRORS[number]


def started(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        ((utc,),) = connection.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
    return int(utc)
