"""Shifts between clocks: there and back, one after another, fitted to ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.ranks.clocks import Shift, fit

shifts = st.builds(
    Shift,
    ns=st.integers(-(10**12), 10**12),
    rate=st.floats(-2e-4, 2e-4),
    pivot=st.integers(0, 10**11),
)
times = st.lists(st.integers(0, 10**11), min_size=1).map(lambda each: np.array(each, dtype=np.int64))
NEAR_NS = 10_000  # drift of drift: 2e-4 of 2e-4 of 100 s, and what rounding adds


@given(shifts, times)
def test_there_and_back(shift: Shift, when: np.ndarray) -> None:
    assert np.abs(shift.back(shift.forward(when)) - when).max() <= NEAR_NS
    assert np.abs(shift.inverse().forward(shift.forward(when)) - when).max() <= NEAR_NS


@given(shifts, shifts, times)
def test_one_after_another(first: Shift, second: Shift, when: np.ndarray) -> None:
    both = second.forward(first.forward(when))
    assert np.abs(first.then(second).forward(when) - both).max() <= NEAR_NS


def test_without_drift_it_is_exact() -> None:
    shift = Shift(-40)
    when = np.array([100, 200], dtype=np.int64)
    assert shift.forward(when).tolist() == [60, 160]
    assert shift.back(np.array([60, 160], dtype=np.int64)).tolist() == [100, 200]
    assert Shift(5).then(Shift(7)).ns == 12


def test_fitted_to_ends_that_keep_their_distance() -> None:
    ends = np.arange(50, dtype=np.int64) * 10_000_000
    assert fit(ends, ends + 123) == (Shift(123, 0.0, 0), 0)


def test_fitted_to_ends_that_drift() -> None:
    """50 steps of 10 ms, in each of which 1 µs is gained: 100 millionths."""
    ends = np.arange(50, dtype=np.int64) * 10_000_000
    shift, error = fit(ends, ends + 123 + ends // 10_000)
    assert (shift.ns, round(1e6 * shift.rate), error) == (123, 100, 0)


def test_few_ends_show_no_drift() -> None:
    ends = np.arange(29, dtype=np.int64) * 10_000_000
    shift, error = fit(ends, ends + ends // 10_000)
    assert (shift.rate, shift.ns) == (0.0, 14_000)
    assert error > 12_000
