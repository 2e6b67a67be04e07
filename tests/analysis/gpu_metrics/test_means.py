"""Means of samples over any times: by hand, and against a slow count of every nanosecond."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.activity.gpu_metric_samples import Grid, Series, in_order
from nsysdiag.analysis.gpu_metrics.means import Sampled
from nsysdiag.analysis.gpu_metrics.parted import Work
from nsysdiag.timeline.intervals import Intervals, union

NONE = math.nan


def series(times: list[int], values: list[float]) -> Series:
    ordered, kept, _ = in_order(np.array(times, np.int64), np.array(values, np.float64))
    grid = Grid.of(ordered)
    assert grid is not None
    return Series("sm_active", ("SM Active",), grid, kept, 0, 0)


def sampled(times: list[int], values: list[float]) -> Sampled:
    return Sampled.of(series(times, values))


class TestByHand:
    """
    samples   [--0.2--)[--0.8--)[--0.6--)          0 to 100, 200, 300
    """

    THREE = sampled([100, 200, 300], [0.2, 0.8, 0.6])

    @pytest.mark.parametrize(
        ("query", "mean", "samples", "whole", "whole_samples"),
        [
            ((50, 150), 0.5, 2, None, 0),
            ((50, 250), (0.1 + 0.8 + 0.3) / 2, 3, 0.8, 1),
            ((0, 300), 1.6 / 3, 3, 1.6 / 3, 3),
            ((100, 200), 0.8, 1, 0.8, 1),
            ((120, 130), 0.8, 1, None, 0),
            ((250, 900), 0.6, 1, None, 0),
            ((-900, 100), 0.2, 1, 0.2, 1),
            ((300, 900), None, 0, None, 0),
            ((-900, 0), None, 0, None, 0),
            ((150, 150), None, 0, None, 0),
        ],
    )
    def test_one_query(
        self, query: tuple[int, int], mean: float | None, samples: int, whole: float | None, whole_samples: int
    ) -> None:
        spans = Intervals.of([query])
        assert self.THREE.mean(spans) == pytest.approx(mean)
        assert self.THREE.means(spans).tolist() == [pytest.approx(NONE if mean is None else mean, nan_ok=True)]
        if query[1] > query[0]:
            assert self.THREE.samples(spans) == samples
        assert self.THREE.whole_mean(spans) == (pytest.approx(whole), whole_samples)

    def test_a_sample_in_two_queries_counts_once(self) -> None:
        spans = Intervals.of([(10, 20), (30, 40), (90, 110)])
        assert self.THREE.samples(spans) == 2
        assert self.THREE.mean(spans) == pytest.approx((20 * 0.2 + 10 * 0.2 + 10 * 0.8) / 40)

    def test_what_was_not_measured_is_no_zero(self) -> None:
        holes = sampled([100, 200, 300, 400, 900, 1000], [0.4, NONE, 0.8, 0.2, 0.6, 0.6])
        assert holes.mean(Intervals.of([(0, 300)])) == pytest.approx(0.6)
        assert holes.mean(Intervals.of([(100, 200)])) is None
        assert holes.mean(Intervals.of([(400, 800)])) is None
        assert holes.mean(Intervals.of([(300, 900)])) == pytest.approx(0.4)
        assert holes.samples(Intervals.of([(0, 300)])) == 2
        assert holes.whole_samples(Intervals.of([(0, 350), (750, 1000)])).tolist() == [0, 2, 4, 5]


TIMES = st.lists(st.integers(1, 120), min_size=2, max_size=25)
VALUES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, NONE])
SPANS = st.lists(st.tuples(st.integers(-10, 130), st.integers(1, 60)), max_size=6)


@dataclass
class Painted:
    """Every nanosecond by itself: the value there, and the sample that it belongs to."""

    value: dict[int, float]
    sample: dict[int, int]
    length: dict[int, int]

    @classmethod
    def of(cls, times: list[int], values: list[float]) -> Painted:
        of_time: dict[int, float] = {}
        for time, value in zip(times, values, strict=True):
            known = of_time.get(time, NONE)
            of_time[time] = value if math.isnan(known) else known if math.isnan(value) else max(known, value)
        ordered = sorted(of_time)
        period = int(np.median(np.diff(ordered)))
        painted = cls({}, {}, {})
        for number, time in enumerate(ordered):
            step = time - ordered[number - 1] if number else period
            start = time - (step if step <= 2 * period else period)
            if not math.isnan(of_time[time]):
                painted.value |= dict.fromkeys(range(start, time), of_time[time])
                painted.sample |= dict.fromkeys(range(start, time), number)
                painted.length[number] = time - start
        return painted

    def mean(self, moments: set[int]) -> float | None:
        values = [self.value[moment] for moment in moments if moment in self.value]
        return sum(values) / len(values) if values else None

    def samples(self, moments: set[int]) -> set[int]:
        return {self.sample[moment] for moment in moments if moment in self.sample}

    def whole(self, moments: set[int]) -> set[int]:
        return {
            number
            for number in self.samples(moments)
            if sum(moment in moments for moment, its in self.sample.items() if its == number) == self.length[number]
        }


def moments(spans: list[tuple[int, int]]) -> set[int]:
    return {moment for start, length in spans for moment in range(start, start + length)}


@given(TIMES.filter(lambda times: len(set(times)) > 1), st.data(), SPANS)
def test_means_are_what_one_counts_by_hand(times: list[int], data: st.DataObject, spans: list[tuple[int, int]]) -> None:
    values = data.draw(st.lists(VALUES, min_size=len(times), max_size=len(times)))
    fast, slow, inside = sampled(times, values), Painted.of(times, values), moments(spans)
    queries = union(Intervals.of([(start, start + length) for start, length in spans]))
    assert fast.mean(queries) == pytest.approx(slow.mean(inside))
    assert fast.samples(queries) == len(slow.samples(inside))
    whole = slow.whole(inside)
    at_whole = {moment for moment, number in slow.sample.items() if number in whole}
    assert fast.whole_mean(queries) == (pytest.approx(slow.mean(at_whole)), len(whole))
    assert len(fast.whole_samples(queries)) == len(whole)
    each = [slow.mean(moments([span])) for span in spans]
    alone = Intervals.of([(start, start + length) for start, length in spans])
    assert fast.means(alone).tolist() == [pytest.approx(NONE if mean is None else mean, nan_ok=True) for mean in each]


class TestParted:
    """
    device    |=A=|..........|=B=|.......          two kernels of 30 ns with 70 ns of nothing after each
    sample    [ 24 %         )[ 24 %     )         A and B at 80 %
    """

    IDLE = tuple(100 * at for at in range(1, 11))
    BUSY = Intervals.of([(1000, 1030), (1100, 1130)])

    def test_the_idle_part_is_taken_out(self) -> None:
        parted = Work(self.BUSY).part(series([*self.IDLE, 1100, 1200], [0.0] * 10 + [0.24, 0.24]))
        assert parted.idle == 0.0
        assert parted.mean(self.BUSY) == pytest.approx(0.8)
        assert parted.mean(Intervals.of([(1000, 1100)])) == pytest.approx(0.24)
        assert parted.mean(Intervals.of([(1030, 1100)])) == pytest.approx(0.0)
        assert parted.mean(Intervals.of([(1200, 1300)])) is None

    def test_the_level_of_idle_time_counts_too(self) -> None:
        """30 ns at 80 % and 70 ns at 4 %: 26.8 %."""
        parted = Work(self.BUSY).part(series([*self.IDLE, 1100, 1200], [0.04] * 10 + [0.268, 0.268]))
        assert parted.idle == pytest.approx(0.04)
        assert parted.mean(self.BUSY) == pytest.approx(0.8)

    @pytest.mark.parametrize("idle", [[0.0] * 9 + [NONE], [0.06] * 10])
    def test_unknown_or_high_idle_time_parts_nothing(self, idle: list[float]) -> None:
        parted = Work(self.BUSY).part(series([*self.IDLE, 1100, 1200], [*idle, 0.24, 0.24]))
        assert parted.idle is None
        assert parted.mean(self.BUSY) == pytest.approx(0.24)

    def test_never_more_than_all(self) -> None:
        """A clock that is a little off puts the kernel's activity into the sample beside it."""
        parted = Work(Intervals.of([(1000, 1001)])).part(series([*self.IDLE, 1100], [0.0] * 10 + [0.5]))
        assert parted.mean(Intervals.of([(1000, 1001)])) == 1.0
