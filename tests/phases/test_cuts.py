"""The cuts against every way to cut, and the exact time of each."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import FloatArray, IntArray, Intervals
from nsysdiag.phases.merging import (
    LEAST_LENGTH,
    CutCandidates,
    best_cuts,
    job_cuts,
    moved_cuts,
    penalty_of,
    segment_costs,
)
from nsysdiag.phases.signal import Signal

Windows = tuple[FloatArray, IntArray]
NO_STEPS = np.empty(0, np.int64)


@st.composite
def windows(draw: st.DrawFn, most: int = 9) -> Windows:
    """Values of two features, and the edges of windows of unequal length; some are shorter than 4% of all."""
    count = draw(st.integers(1, most))
    lengths = draw(st.lists(st.integers(1, 40), min_size=count, max_size=count))
    share = st.integers(0, 4).map(lambda quarter: quarter / 4)
    values = draw(st.lists(st.tuples(share, share), min_size=count, max_size=count))
    return np.array(values, np.float64), np.concatenate([[7], 7 + np.cumsum(lengths)]).astype(np.int64)


def slow_cost(values: FloatArray, weights: FloatArray, first: int, behind: int) -> float:
    """The weighted squared error of windows around their mean."""
    part, weight = values[first:behind], weights[first:behind, None]
    mean = (part * weight).sum(axis=0) / weight.sum()
    return float((weight * (part - mean) ** 2).sum())


def total_of(values: FloatArray, weights: FloatArray, cuts: list[int], penalty: float) -> float:
    """What is to be least."""
    return sum(slow_cost(values, weights, *pair) + penalty for pair in pairwise(cuts))


def weights_of(edges: IntArray) -> FloatArray:
    """As multiples of a 200th."""
    weights: FloatArray = np.diff(edges) * (200 / (edges[-1] - edges[0]))
    return weights


@given(windows())
def test_costs_are_squared_errors(made: Windows) -> None:
    values, edges = made
    weights = weights_of(edges)
    cost = segment_costs(values, weights)
    for first, behind in combinations(range(len(edges)), 2):
        assert cost[first, behind] == pytest.approx(slow_cost(values, weights, first, behind), abs=1e-9)


@given(windows(), st.sampled_from([0.0, 0.05, 0.5, 5.0, 50.0]))
def test_no_way_to_cut_is_better(made: Windows, penalty: float) -> None:
    values, edges = made
    weights, count = weights_of(edges), len(values)
    found = best_cuts(segment_costs(values, weights), edges, penalty)
    least = LEAST_LENGTH * (edges[-1] - edges[0])
    allowed = [
        [0, *inner, count]
        for size in range(count)
        for inner in combinations(range(1, count), size)
        if all(edges[behind] - edges[first] >= least for first, behind in pairwise([0, *inner, count]))
    ]
    assert found in allowed
    best = min(total_of(values, weights, cuts, penalty) for cuts in allowed)
    assert total_of(values, weights, found, penalty) == pytest.approx(best, abs=1e-9)


@given(windows(most=30), st.sampled_from([0.05, 0.5, 5.0]))
def test_moved_cuts_fit_no_worse(made: Windows, penalty: float) -> None:
    values, edges = made
    weights = weights_of(edges)
    cost = segment_costs(values, weights)
    cuts = best_cuts(cost, edges, penalty)
    moved = moved_cuts(cost, edges, cuts)
    assert (moved[0], moved[-1], len(moved)) == (cuts[0], cuts[-1], len(cuts))
    assert all(one < next_ for one, next_ in pairwise(moved))
    before, after = (total_of(values, weights, each, penalty) for each in (cuts, moved))
    assert after <= before + 1e-9
    reach = LEAST_LENGTH * (edges[-1] - edges[0])
    assert all(abs(edges[one] - edges[other]) <= reach for one, other in zip(cuts, moved, strict=True))


@given(windows(most=30))
def test_windows_cut_in_halves_change_nothing(made: Windows) -> None:
    """A window of weight 2 is two of weight 1."""
    values, edges = made
    fine = np.sort(np.concatenate([2 * edges, edges[:-1] + edges[1:]]))
    cost = segment_costs(values, weights_of(edges))
    finer = segment_costs(np.repeat(values, 2, axis=0), weights_of(fine))
    assert np.triu(finer[::2, ::2]) == pytest.approx(np.triu(cost), abs=1e-9)


def test_the_penalty_follows_the_noise() -> None:
    """`3 * (2 * s * ln n + 0.05)` with s = 0.002 at least."""
    even = np.full((200, 1), 0.5)
    assert penalty_of(even, np.ones(200)) == pytest.approx(3 * (2 * 0.002 * np.log(200) + 0.05))
    noisy = np.tile([[0.4], [0.6]], (100, 1))  # differences of 0.2: s = 0.04 / 2
    assert penalty_of(noisy, np.ones(200)) == pytest.approx(3 * (2 * 0.02 * np.log(200) + 0.05))
    assert penalty_of(noisy, np.full(200, 4.0)) == pytest.approx(3 * (2 * 0.08 * np.log(200) + 0.05))
    assert penalty_of(even[:1], np.ones(1)) == pytest.approx(0.15)


def signal_of_set(busy: Intervals, edges: IntArray) -> Signal:
    """One feature on one device."""
    made = Signal(edges, np.empty((0, 1)), [[busy]], np.ones(1))
    values = np.diff(made.until(edges), axis=0) / np.diff(edges)[:, None]
    return Signal(edges, values, [[busy]], np.ones(1))


def every(period: int, length: int, lo: int, hi: int) -> Intervals:
    """Busy for `length` of every `period`."""
    start = np.arange(lo, hi, period, dtype=np.int64)
    return Intervals(start, np.minimum(start + length, hi))


@pytest.mark.parametrize("begin", [2_003, 3_331, 5_009, 9_797])
def test_a_cut_is_exact_where_work_begins(begin: int) -> None:
    """Windows of 50 ns, and work that begins within one of them, as early as a window after the start of all."""
    busy = every(5, 4, begin, 10_000)
    edges = np.arange(0, 10_050, 50, dtype=np.int64)
    found = job_cuts(signal_of_set(busy, edges), CutCandidates(NO_STEPS, [busy.start]))
    assert found.tolist() == [0, begin, 10_000]


@pytest.mark.parametrize("end", [253, 2_004, 9_459])
def test_a_cut_is_exact_where_idle_time_begins(end: int) -> None:
    busy = every(5, 4, 0, end - 4)
    edges = np.arange(0, 10_050, 50, dtype=np.int64)
    changes = CutCandidates(NO_STEPS, [busy.start, busy.end])
    found = job_cuts(signal_of_set(busy, edges), changes).tolist()
    assert (found[0], found[2:]) == (0, [10_000])
    assert abs(found[1] - int(busy.end[-1])) <= 5


def test_borders_of_steps_come_before_the_starts_of_work() -> None:
    """Steps of 60 ns, of which the first begin at 3,000; work in each of them begins every 5 ns."""
    busy = every(5, 4, 3_010, 10_000)
    edges = np.arange(0, 10_050, 50, dtype=np.int64)
    steps = np.arange(3_000, 10_000, 60, dtype=np.int64)
    found = job_cuts(signal_of_set(busy, edges), CutCandidates(steps, [busy.start])).tolist()
    assert found == [0, 3_000, 10_000]


def test_many_changes_in_a_window_are_all_looked_at() -> None:
    """More than are tried at once: the best is still the exact one."""
    begin = 3_000_777
    busy = every(10, 7, begin, 10_000_000)
    edges = np.arange(0, 10_050_000, 50_000, dtype=np.int64)
    found = job_cuts(signal_of_set(busy, edges), CutCandidates(NO_STEPS, [busy.start])).tolist()
    assert found == [0, begin, 10_000_000]
