"""What differs from run to run: one run more is no change, a shift beyond the noise is one, and strays are left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.comparison.compare import BaselineRuns, compare_with_baseline
from nsysdiag.comparison.significance import Values, drawn_means, freedom, interval, spread_of, strays
from nsysdiag.report import Report
from tests.comparison.programs import Program
from tests.comparison.samples import report_of
from tests.levels import examples

TRIALS, NOISE, ITERATIONS = 200, 0.02, 30


def run(random: np.random.Generator, shift: float = 0.0) -> Values:
    """The iterations of a run: runs differ by 2%, the iterations of one by 1%."""
    level = 100 * (1 + shift) * (1 + NOISE * random.standard_normal())
    return level * (1 + 0.01 * random.standard_normal((ITERATIONS, 1)))


def changes_seen(runs: int, shift: float, after: int = 1) -> int:
    """In how many trials the interval of the change leaves 0 out."""
    seen = 0
    for seed in range(TRIALS):
        random = np.random.default_rng([runs, seed])
        before = drawn_means([run(random) for _ in range(runs)], 0)
        found = interval(before, drawn_means([run(random, shift) for _ in range(after)], 1))
        assert found is not None
        seen += not found[0][0] <= 0 <= found[1][0]
    return seen


@pytest.mark.thorough
@pytest.mark.parametrize("runs", [3, 5, 10])
def test_one_run_more_is_hardly_ever_a_change(runs: int) -> None:
    """One in twenty by design."""
    assert changes_seen(runs, 0.0) <= 0.08 * TRIALS


@pytest.mark.slow
def test_iterations_alone_take_the_noise_of_runs_for_a_change() -> None:
    """Which is why one run before is not enough, and the rule is needed."""
    assert changes_seen(1, 0.0) >= 0.5 * TRIALS


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("runs", "shift", "least"), [(3, 0.20, 0.8), (5, 0.10, 0.85), (10, 0.10, 0.98), (10, 0.06, 0.6)]
)
def test_a_shift_beyond_the_noise_is_seen(runs: int, shift: float, least: float) -> None:
    assert changes_seen(runs, shift) >= least * TRIALS


@pytest.mark.thorough
def test_two_runs_after_see_smaller_shifts_than_one() -> None:
    assert changes_seen(10, 0.05, after=2) > changes_seen(10, 0.05, after=1)
    assert changes_seen(10, 0.0, after=2) <= 0.08 * TRIALS


def test_freedom_is_that_of_the_runs() -> None:
    random = np.random.default_rng(0)
    many, one = (drawn_means([run(random) for _ in range(count)], count) for count in (5, 1))
    assert freedom(many, one) == freedom(one, many) == 4.0
    low, high = interval(many, one) or (None, None)
    back = interval(one, many) or (None, None)
    assert (low, high) == (-back[1], -back[0])  # type: ignore[operator]


class TestStrays:
    @pytest.mark.parametrize("count", [4, 6, 10, 20])
    def test_none_where_all_belong_together(self, count: int) -> None:
        """One in a hundred by design."""
        found = [
            strays(100 * (1 + 0.05 * np.random.default_rng(seed).standard_normal(count))) for seed in range(TRIALS)
        ]
        assert sum(map(bool, found)) <= 0.03 * TRIALS

    @pytest.mark.parametrize("factor", [0.5, 1.5, 4.0])
    def test_those_far_from_the_others(self, factor: float) -> None:
        values = 100 * (1 + 0.01 * np.random.default_rng(1).standard_normal(10))
        values[[2, 7]] *= factor, factor * 1.1
        assert strays(values) == [2, 7]

    def test_a_difference_that_never_counts_makes_none(self) -> None:
        values = np.array([100.0, 100.0, 100.0, 100.0, 101.0])
        assert strays(values) == []
        assert strays(np.array([100.0, 100.0, 100.0, 100.0, 103.0])) == [4]

    @given(st.lists(st.floats(1, 1e12), min_size=1, max_size=30))
    def test_two_thirds_stay(self, values: list[float]) -> None:
        found = strays(np.array(values))
        assert len(found) <= (len(values) - 1) // 3
        assert found == sorted(set(found))

    @pytest.mark.parametrize("count", [0, 1, 2])
    def test_few_runs_do_not_tell_their_spread(self, count: int) -> None:
        assert spread_of(np.full(count, 100.0)) is None
        assert spread_of(np.array([99.0, 100.0, 101.0])) == pytest.approx(0.01)


STEADY = Program(steps=12, sync=True)


def made(seed: int, factor: float = 1.0) -> Report:
    """A run on a machine that is 1.5% faster or slower in each run."""
    level = 1 + 0.015 * np.random.default_rng(seed).standard_normal()
    return report_of(replace(STEADY, seed=seed, gemm=round(factor * level, 4)))


def baseline(reports: list[Report], damaged: list[str] | None = None) -> BaselineRuns:
    return BaselineRuns("main", [f"run{at}.json" for at in range(len(reports))], reports, damaged or [])


@pytest.mark.slow
class TestPrograms:
    """Whole programs that run faster or slower from run to run."""

    @pytest.mark.thorough
    def test_false_alarms_and_what_is_seen(self) -> None:
        runs = baseline([made(seed) for seed in range(8)])
        count = examples(60)
        same = [compare_with_baseline(runs, [made(100 + at)]).verdict for at in range(count)]
        assert len(same) - same.count("same") <= max(0.05 * count, 1)
        slower = [compare_with_baseline(runs, [made(100 + at, 1.12)]).verdict for at in range(count)]
        assert slower.count("regressed") >= 0.9 * count

    def test_says_what_it_rests_on(self) -> None:
        runs = baseline([made(seed) for seed in range(6)] + [made(50, 2.0)], damaged=["half.json"])
        found = compare_with_baseline(runs, [made(60)])
        use = found.baseline
        assert use is not None
        assert (use.name, use.runs, use.left_out, use.damaged) == ("main", 6, ["run6.json"], ["half.json"])
        assert use.spread is not None
        assert 0.002 < use.spread < 0.05
        assert [trace.given for trace in found.before] == [f"run{at}.json" for at in range(6)]
        assert found.notes[0] == "Left out of the baseline, too far from its other runs: run6.json."
        assert found.notes[1] == "Left out of the baseline, as they cannot be read: half.json."

    @pytest.mark.parametrize("count", [1, 2])
    def test_few_runs_say_so(self, count: int) -> None:
        use = compare_with_baseline(baseline([made(seed) for seed in range(count)]), [made(60)]).baseline
        assert use is not None
        assert use.spread is None
        assert "what differs from run to run is not known before there are 3" in use.sentence
