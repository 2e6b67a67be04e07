"""The states of threads and the holders of CPUs against slow oracles, on arbitrary scheduling events."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.events.scheduling import Cpus, SwitchRows
from nsysdiag.host.facts import HostReport
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

pytestmark = pytest.mark.slow

LOW, HIGH = 20, 60
THREADS = ((4242, 4242), (4242, 4300), (5000, 5001), (0, 0))
Event = tuple[int, bool, int, int, int]
"""Time, comes in, CPU, thread, state."""

# Of two events of one thread, or on one CPU, at the same time in the same direction nobody knows which comes first.
events = st.lists(
    st.tuples(st.integers(0, 80), st.booleans(), st.integers(0, 2), st.integers(0, 3), st.sampled_from((0, 1, 2))),
    max_size=40,
    unique_by=(lambda row: row[:3], lambda row: (row[0], row[1], row[3])),
)


def host_of(rows: list[Event]) -> HostReport:
    """Two kernels of the first thread make the range [20, 60)."""
    trace = TraceBuilder().kernel(LOW, 30, launch=(1, 2)).kernel(50, HIGH, launch=(3, 4))
    for time, comes_in, cpu, thread, state in rows:
        trace.sched(time, comes_in, cpu=cpu, thread=THREADS[thread], state=state)
    with TemporaryDirectory() as folder:
        host = report_of(trace, Path(folder)).host
    assert host is not None
    return host


def sorted_events(rows: list[Event], column: int) -> dict[int, list[Event]]:
    """By thread or CPU; of events at the same time those that go out come first."""
    found: dict[int, list[Event]] = {}
    for row in sorted(rows, key=lambda row: (row[0], row[1])):
        found.setdefault(row[column], []).append(row)
    return found


def held(rows: list[Event], cpu: int, moment: int) -> int | None:
    """The thread that has a CPU in [moment, moment + 1), None for nobody."""
    before = [row for row in sorted_events(rows, 2).get(cpu, []) if row[0] <= moment]
    after = [row for row in sorted_events(rows, 2).get(cpu, []) if row[0] > moment]
    if not before or not after or not before[-1][1] or before[-1][3] == 3:
        return None
    return before[-1][3]


def states_of(rows: list[Event], thread: int) -> dict[str, int]:
    """What each ns of the range is for a thread, counted."""
    mine = sorted_events(rows, 3)[thread]
    count = dict.fromkeys(("on", "off", "unknown", "preempted"), 0)
    for moment in range(LOW, HIGH):
        before = [at for at, row in enumerate(mine) if row[0] <= moment]
        if not before:
            count["unknown" if mine[0][1] else "on"] += 1
        elif mine[before[-1]][1]:
            count["on"] += 1
        elif before[-1] == len(mine) - 1:
            count["unknown"] += 1
        else:
            count["off"] += 1
            start, _, cpu, _, state = mine[before[-1]]
            end = mine[before[-1] + 1][0]
            others = sum(held(rows, cpu, each) is not None for each in range(start, end))
            count["preempted"] += state == 1 or others >= 0.8 * (end - start)
    return count


@given(events)
def test_every_ns_of_a_thread_is_in_one_state(rows: list[Event]) -> None:
    for thread in host_of(rows).threads:
        number = THREADS.index((thread.pid, thread.tid))
        if thread.on_cpu_ns is None:
            assert number not in sorted_events(rows, 3)
            continue
        assert {
            "on": thread.on_cpu_ns,
            "off": thread.off_cpu_ns,
            "unknown": thread.unknown_ns,
            "preempted": thread.preempted_ns,
        } == states_of(rows, number)


@given(events)
def test_holders_add_up(rows: list[Event]) -> None:
    host = host_of(rows)
    if host.contention is None:
        assert not host.scheduling
        return
    assert sum(row.ns for row in host.contention.holders) == host.contention.held_ns
    assert host.contention.held_ns <= host.contention.preempted_ns
    assert host.contention.preempted_ns == sum(row.preempted_ns or 0 for row in host.threads)
    for thread in host.threads:
        if thread.on_cpu_ns is not None:
            parts = thread.on_cpu_ns, thread.off_cpu_ns, thread.unknown_ns
            assert sum(part or 0 for part in parts) == HIGH - LOW
            assert min(part or 0 for part in parts) >= 0
            assert (thread.preempted_ns or 0) <= (thread.off_cpu_ns or 0)


spans = st.lists(st.tuples(st.integers(0, 80), st.integers(1, 20), st.integers(0, 3)), max_size=8)


@given(events, spans)
def test_who_is_wanted_for_how_long(rows: list[Event], wanted: list[tuple[int, int, int]]) -> None:
    """Each stretch on a CPU against each span on it, ns by ns."""
    rows = [(time, comes_in, cpu, thread, 0) for time, comes_in, cpu, thread, _ in rows]
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 5
    identities = np.array([pid << 24 | tid for pid, tid in THREADS])
    switches = SwitchRows(columns[0], columns[2], columns[1] != 0, identities[columns[3]], columns[4])
    cpus = Cpus.of(switches)
    cpu = np.array([row[2] for row in wanted], dtype=np.int64)
    asked = Intervals.of([(start, start + length) for start, length, _ in wanted])
    number = np.repeat(cpus.numbers, np.diff(cpus.first))
    expected = [
        sum(
            max(0, min(end, start + length) - max(begin, start))
            for start, length, theirs in wanted
            if theirs == number[at]
        )
        for at, (begin, end) in enumerate(zip(cpus.holds.start.tolist(), cpus.holds.end.tolist(), strict=True))
    ]
    assert cpus.wanted_ns(cpu, asked).tolist() == expected
    assert cpus.held_ns(cpu, asked).sum() == sum(expected)
    for number_of, at in zip(number.tolist(), range(len(number)), strict=True):
        begin, end = int(cpus.holds.start[at]), int(cpus.holds.end[at])
        same = (number == number_of) & (np.arange(len(number)) != at)
        assert not np.any((cpus.holds.start[same] < end) & (cpus.holds.end[same] > begin))
