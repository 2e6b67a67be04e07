"""Whatever the devices did, phases are exact."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import (
    MOST_NAMES,
    DeviceSignal,
    job_window,
    job_work,
    loops_of,
    signal_of,
    window_edges,
    working,
)
from nsysdiag.phases.steady import segments_of
from tests.phases.jobs import MIGRATION, UPLOAD, Job, assert_exact, steps_between


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A few hundred operations at most, in repeated patterns with idle time of all kinds; operations may overlap."""
    job = Job(now=draw(st.integers(0, 1_000)))
    job.kernel(1, draw(st.integers(1, 50)))
    for _ in range(draw(st.integers(0, 5))):
        parts = draw(st.lists(st.tuples(st.integers(-3, 6), st.integers(0, 300)), min_size=1, max_size=6))
        for _ in range(draw(st.sampled_from([1, 2, 4, 30]))):
            for what, ns in parts:
                _add(job, what, ns)
        job.now -= draw(st.integers(0, min(job.now, 50)))
    count = draw(st.integers(0, 8))
    times = sorted(draw(st.sets(st.integers(-100, job.now + 100), min_size=count, max_size=count)))
    if times:
        job.loops.append(steps_between(times, closed=draw(st.booleans())))
    return job


def _add(job: Job, what: int, ns: int) -> None:
    match what:
        case -3:
            job.copy(MIGRATION, ns)
        case -2:
            job.copy(UPLOAD, ns)
        case -1:
            job.idle(ns, "startup")
        case 0:
            job.idle(ns)
        case _:
            job.kernel(what, ns)


@pytest.mark.slow
@given(st.lists(jobs(), min_size=1, max_size=3), st.integers(-1_000, 2_000) | st.none(), st.booleans())
def test_phases_are_exact(made: list[Job], first_call: int | None, narrowed: bool) -> None:
    signals = [job.signal(number) for number, job in enumerate(made)]
    found = find_phases(signals, first_call, narrowed=narrowed)
    window = job_window(signals)
    assert window is not None
    assert_exact(found, window)
    assert found.judged == sorted(set(found.judged))
    assert found.judged
    assert all(0 <= at < len(found.phases) for at in found.judged)
    steady = [phase.name == "steady" for phase in found.phases]
    assert not any(one == "start-up" for one in [phase.name for phase in found.phases][1:])
    assert found.basis != "none"
    if found.basis == "window":
        assert len(found.phases) == 1
    if found.basis in ("steady", "phase"):
        assert all(steady[at] for at in found.judged)
    # Again, and with the devices in another order: the same.
    assert _same(find_phases(signals[::-1], first_call, narrowed=narrowed)) == _same(found)


def test_loops_that_are_equally_long_are_chosen_in_any_order_of_devices() -> None:
    made = [Job(0).steps(5, (1, 1)), Job(0).kernel(1, 1).idle(6).kernel(1, 1)]
    for job, starts in zip(made, ([0, 1, 3, 7], [0, 1, 2, 7]), strict=True):
        job.loops.append(steps_between(starts, closed=False))
    signals = [job.signal(number) for number, job in enumerate(made)]
    chosen = [[loop.borders.tolist() for loop in loops_of(each, 0, 7)] for each in (signals, signals[::-1])]
    assert chosen[0] == chosen[1]
    assert _same(find_phases(signals[::-1], None, narrowed=False)) == _same(find_phases(signals, None, narrowed=False))


def _same(found: JobPhases) -> tuple[str, list[tuple[str, int, int]]]:
    """What does not depend on the order of devices."""
    return found.basis, [(phase.name, phase.start, phase.end) for phase in found.phases]


@given(st.lists(jobs(), min_size=1, max_size=2))
def test_windows_hold_what_the_devices_did(made: list[Job]) -> None:
    signals = working([job.signal(number) for number, job in enumerate(made)])
    window = job_window(signals)
    assert window is not None
    edges = window_edges(*window, loops_of(signals, *window))
    assert (int(edges[0]), int(edges[-1])) == window
    assert np.all(np.diff(edges) > 0)
    signal = signal_of(signals, job_work([each.device for each in signals], *window), edges)
    lengths = np.diff(edges)
    compute, copies = (float(signal.values[:, column] @ lengths) for column in (13, 14))
    inside = [_without_migrations(each) for each in signals]
    assert round(compute * len(signals)) == sum(each.split.compute_ns for each in signals)
    assert round(copies * len(signals)) == sum(each.split.exposed_copy_ns for each in signals)
    assert signal.values.min() >= 0
    assert signal.values.max() <= 1 + 1e-9
    named = signal.values[:, :13].sum(axis=1) @ lengths * len(signals)
    assert named >= sum(inside) - 1


def _without_migrations(signal: DeviceSignal) -> int:
    """Nanoseconds in which anything that was launched ran."""
    operations = signal.device.operations
    busy = np.zeros(int(operations.end.max()) + 1, np.bool_)
    for start, end, moved in zip(operations.start, operations.end, operations.migration, strict=True):
        busy[start:end] |= not moved
    return int(busy.sum())


@given(jobs(), st.data())
def test_times_by_name_are_those_of_a_slow_count(job: Job, data: st.DataObject) -> None:
    """An operation over a border counts in each part what is inside it, and begins in one."""
    signal = job.signal()
    lo, hi = job_window([signal]) or (0, 0)
    inner = data.draw(st.sets(st.integers(lo, hi), max_size=4))
    borders = np.array(sorted({lo, hi, *inner}), np.int64)
    work = job_work([signal.device], lo, hi)
    found = segments_of(borders, [], [signal], work)
    for part, (start, end) in enumerate(pairwise(borders.tolist())):
        kernels = [(max(row[0], start), min(row[1], end)) for row in job.rows if row[2] == 0]
        assert found.kernel_ns[part] == sum(max(e - s, 0) for s, e in kernels)
        begins = [row for row in job.rows if start <= row[0] < end and row[1] > row[0] and row[4] != MIGRATION]
        assert found.operations[part] == len(begins)


def test_more_names_than_are_told_apart() -> None:
    """The longest names keep a code of their own; the others share one, and repeat nothing."""
    job = Job()
    for name in range(1, 3 * MOST_NAMES):
        job.kernel(name, name)
    work = job_work([job.signal().device], 0, job.now)
    assert len(work.total) == MOST_NAMES + 1
    assert work.total.sum() == sum(range(1, 3 * MOST_NAMES))
    assert work.total[1:].min() == 2 * MOST_NAMES
    assert job.phases(first_call_ns=0).phases[0].repeats == 0
