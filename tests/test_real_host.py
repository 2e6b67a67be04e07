"""Threads and CPUs of every real trace at hand: sums that must hold, whatever was captured."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.host.facts import HostReport
from nsysdiag.messages import UsageError
from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = sorted(FOLDER.glob("*.sqlite"))

pytestmark = pytest.mark.real
every_trace = pytest.mark.parametrize("trace", FILES or [Path("none")], ids=lambda path: path.stem)


def assert_sums(host: HostReport, scheduling: bool) -> None:
    """On a CPU, off it and unknown are the range; what is a part of something is no more than that."""
    span = host.end_ns - host.start_ns
    assert host.scheduling == scheduling
    assert (host.contention is not None) == scheduling
    for row in host.threads:
        calls = [ns for ns in (row.api_ns, row.sync_ns, row.os_ns) if ns is not None]
        assert all(0 <= ns <= span for ns in calls)
        assert (row.sync_ns or 0) <= (row.api_ns or 0)
        if row.on_cpu_ns is None or row.off_cpu_ns is None or row.unknown_ns is None:
            assert (row.on_cpu_ns, row.off_cpu_ns, row.unknown_ns, row.preempted_ns) == (None, None, None, None)
            continue
        assert row.on_cpu_ns + row.off_cpu_ns + row.unknown_ns == span
        assert min(row.on_cpu_ns, row.off_cpu_ns, row.unknown_ns) >= 0
        assert 0 <= (row.preempted_ns or 0) <= row.off_cpu_ns
        assert (row.worst_stall.ns if row.worst_stall else 0) <= row.off_cpu_ns
    if host.contention is not None:
        assert host.contention.held_ns <= host.contention.preempted_ns
        assert sum(holder.ns for holder in host.contention.holders) <= host.contention.held_ns
        assert host.contention.cpus_used <= host.contention.cpus_seen
    edges = [(window.start_ns, window.end_ns) for window in host.windows]
    assert (edges[0][0], edges[-1][1]) == (host.start_ns, host.end_ns)
    assert all(before[1] == after[0] for before, after in pairwise(edges))
    shares = [
        share
        for window in host.windows
        for share in (window.busy_share, window.off_cpu_share, window.preempted_share, window.crowded_share)
        if share is not None
    ]
    assert all(0 <= share <= 1 for share in shares)


@every_trace
def test_whole(trace: Path, shared: Shared) -> None:
    report = shared.report(trace)
    if not report.devices:
        assert report.host is None
        return
    assert report.host is not None
    captured = {each.id for each in report.trace.capabilities if each.available}
    assert_sums(report.host, "scheduling" in captured)
    listed = len(report.host.threads)
    assert listed == min(report.host.thread_count, 50)
    launched = sum(sum(row.launches.values()) for row in report.host.threads)
    assert launched <= sum(device.launch.calls for device in report.devices)


@pytest.mark.sampled(normal=11)
@every_trace
def test_a_part_of_the_time(trace: Path, shared: Shared) -> None:
    """A narrowed window narrows the range, and no sum grows."""
    whole = shared.report(trace).host
    if whole is None:
        return
    middle = (whole.start_ns + whole.end_ns) // 2
    try:
        half = analyze(trace, Settings(timeline=False, end_ns=middle)).host
    except UsageError:
        return
    assert half is not None
    assert (half.start_ns, half.end_ns) == (whole.start_ns, middle)
    assert_sums(half, whole.scheduling)
    longer = {(row.pid, row.tid): row for row in whole.threads}
    for row in half.threads:
        before = longer.get((row.pid, row.tid))
        if before is not None:
            assert (row.on_cpu_ns or 0) <= (before.on_cpu_ns or 0)
            assert (row.api_ns or 0) <= (before.api_ns or 0)
