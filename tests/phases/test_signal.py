"""Windows, devices and loops of a job."""

from __future__ import annotations

import numpy as np

from nsysdiag.phases.signal import WINDOWS, loops_of, window_edges, working
from tests.phases.jobs import MS, Job, steps_between


def test_without_steps_windows_are_equal() -> None:
    edges = window_edges(1_000, 401_000, [])
    assert edges.tolist() == list(range(1_000, 401_001, 2_000))
    assert window_edges(5, 8, []).tolist() == [5, 6, 7, 8]
    assert len(window_edges(0, 10**15 + 7, [])) == WINDOWS + 1


def test_inside_a_loop_windows_hold_whole_steps() -> None:
    """Windows of 2,000 ns, and steps of 700: about three in each, and never one alone."""
    loop = steps_between(np.arange(100_300, 300_000, 700, dtype=np.int64), named=True)
    edges = window_edges(0, 400_000, [loop])
    inside = edges[(edges >= loop.starts[0]) & (edges <= loop.ends[-1])]
    assert (inside[0], inside[-1]) == (loop.starts[0], loop.ends[-1])
    assert np.isin(inside, loop.borders).all()
    assert set((np.diff(inside)[:-1] // 700).tolist()) == {2, 4}
    assert edges[edges < 100_000].tolist() == list(range(0, 100_000, 2_000))


def test_long_steps_are_two_in_a_window() -> None:
    """Steps of 10,000 ns in windows of 2,000."""
    loop = steps_between(np.arange(0, 400_001, 10_000, dtype=np.int64), named=True)
    assert window_edges(0, 400_000, [loop]).tolist() == list(range(0, 400_001, 20_000))


def test_a_pause_within_a_loop_has_windows_of_its_own() -> None:
    """One step of 50,000 ns among those of 1,000."""
    starts = np.concatenate([np.arange(0, 100_001, 1_000), np.arange(150_000, 400_001, 1_000)]).astype(np.int64)
    edges = window_edges(0, 400_000, [steps_between(starts)])
    assert np.sum((edges > 100_000) & (edges < 150_000)) == 24


def test_of_loops_that_overlap_the_longest_counts() -> None:
    """The larger period of two nested ones; and one beside them."""
    outer, inner = np.arange(0, 1_001, 100, dtype=np.int64), np.arange(0, 1_001, 10, dtype=np.int64)
    beside = np.arange(1_000, 1_500, 50, dtype=np.int64)
    job = Job(now=0).kernel(1, 2_000)
    job.loops += [steps_between(each) for each in (inner, outer, beside)]
    assert [loop.borders.tolist() for loop in loops_of([job.signal()], 0, 2_000)] == [outer.tolist(), beside.tolist()]
    assert [loop.borders[[0, -1]].tolist() for loop in loops_of([job.signal()], 150, 1_200)] == [
        [150, 1_000],
        [1_000, 1_200],
    ]


def test_devices_with_a_twentieth_of_the_work_count() -> None:
    jobs = [Job().kernel(1, ns).idle(MS).kernel(1, 1) for ns in (100 * MS, 6 * MS, 4 * MS)]
    signals = [job.signal(number) for number, job in enumerate(jobs)]
    assert [each.device.number for each in working(signals)] == [0, 1]
