"""The median step beside the mean one: which of them is believed, and how many times as fast it makes a program."""

from __future__ import annotations

import pytest

from nsysdiag.comparison.facts import Change, Speedup
from nsysdiag.comparison.job import StepChange, speedup, verdict_of

FREEDOM = 8.0


def changed(change: int, around: int | None, verdict: str = "same", before: int = 1000) -> Change:
    """A change with an interval so far around it, or none."""
    low, high = (None, None) if around is None else (change - around, change + around)
    return Change(before, before + change, change, low, high, 20, verdict)


NOTHING, WORSE, BETTER = changed(0, 100), changed(100, 40, "regressed"), changed(-100, 40, "improved")


class TestVerdict:
    @pytest.mark.parametrize("length", [NOTHING, WORSE, BETTER])
    def test_the_mean_alone_counts_without_slow_steps(self, length: Change) -> None:
        assert verdict_of(length, None) == length.verdict
        assert verdict_of(length, StepChange(BETTER, FREEDOM, slow=False)) == length.verdict

    @pytest.mark.parametrize(
        ("length", "median", "expected"),
        [
            (NOTHING, BETTER, "improved"),
            (NOTHING, WORSE, "regressed"),
            (NOTHING, NOTHING, "same"),
            (WORSE, NOTHING, "regressed"),
            (WORSE, WORSE, "regressed"),
            (WORSE, BETTER, "mixed"),
            (BETTER, WORSE, "mixed"),
        ],
    )
    def test_slow_steps_hide_no_change_of_the_median(self, length: Change, median: Change, expected: str) -> None:
        assert verdict_of(length, StepChange(median, FREEDOM, slow=True)) == expected

    @pytest.mark.parametrize(("around", "expected"), [(60, "improved"), (61, "same"), (99, "same")])
    def test_the_median_must_be_further_off_than_the_mean(self, around: int, expected: str) -> None:
        """At 8 degrees of freedom Student's t is 2.306 at 5% and 3.833 at 0.5%: 1.66 times as much."""
        assert verdict_of(NOTHING, StepChange(changed(-100, around, "improved"), FREEDOM, slow=True)) == expected

    def test_a_median_that_slow_steps_make_up_for_changes_nothing(self) -> None:
        """Every second step waits for what the one before it found: the mean cannot have changed by as much."""
        assert verdict_of(changed(0, 99), StepChange(BETTER, FREEDOM, slow=True)) == "same"

    @pytest.mark.parametrize(
        "step", [StepChange(changed(-100, None, "improved"), FREEDOM, True), StepChange(BETTER, None, True)]
    )
    def test_a_median_of_which_nothing_is_known_changes_nothing(self, step: StepChange) -> None:
        assert verdict_of(NOTHING, step) == "same"


class TestSpeedup:
    def test_the_ends_of_the_interval_change_places(self) -> None:
        assert speedup(changed(-500, 100)) == Speedup(factor=2.0, low=1.666667, high=2.5)

    @pytest.mark.parametrize(("low", "high"), [(-1000, 0), (0, -1000)])
    def test_an_end_without_time_has_no_interval(self, low: int, high: int) -> None:
        assert speedup(Change(1000, 500, -500, low, high, 20, "improved")) == Speedup(factor=2.0, low=None, high=None)

    @pytest.mark.parametrize(("before", "change"), [(0, 500), (1000, -1000), (0, 0)])
    def test_none_where_a_side_took_no_time(self, before: int, change: int) -> None:
        assert speedup(changed(change, 10, before=before)) is None

    @pytest.mark.parametrize("around", [None, 100, 200])
    def test_no_interval_where_it_reaches_down_to_no_time(self, around: int | None) -> None:
        assert speedup(changed(-900, around)) == Speedup(factor=10.0, low=None, high=None)
        assert speedup(changed(-900, 99)) == Speedup(factor=10.0, low=5.025126, high=1000.0)


@pytest.mark.parametrize(("before", "after"), [(400, 3 * 10**9), (3 * 10**9, 400), (1, 10**18)])
def test_no_factor_is_rounded_to_nothing(before: int, after: int) -> None:
    found = speedup(Change(before, after, after - before, None, None, 0, "same"))
    assert found is not None
    assert found.factor == pytest.approx(before / after, rel=1e-6)
