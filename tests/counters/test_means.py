"""Means of samples over sets and over single times: by hand, and against a slow count of every nanosecond."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.counters.joins import BusySamples, Parted, Sampled, SamplesWithin
from nsysdiag.events.gpu_metrics import Grid, MetricSeries, in_order

NONE = math.nan


def series(times: list[int], values: list[float]) -> MetricSeries:
    ordered, kept, _ = in_order(np.array(times, np.int64), np.array(values, np.float64))
    grid = Grid.of(ordered)
    assert grid is not None
    return MetricSeries("sm_active", ("SM Active",), grid, kept, 0, 0)


def within(made: MetricSeries, spans: Intervals) -> SamplesWithin:
    return SamplesWithin.of(made.grid, spans)


class TestByHand:
    """
    samples   [--0.2--)[--0.8--)[--0.6--)          0 to 100, 200, 300
    """

    THREE = series([100, 200, 300], [0.2, 0.8, 0.6])

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
        ],
    )
    def test_one_stretch_of_time(
        self, query: tuple[int, int], mean: float | None, samples: int, whole: float | None, whole_samples: int
    ) -> None:
        spans, value = Intervals.of([query]), self.THREE.value
        inside, alone = within(self.THREE, spans), Sampled.of(self.THREE)
        assert inside.mean(value) == pytest.approx(mean)
        assert inside.samples(value) == samples
        assert inside.whole_mean(value) == (pytest.approx(whole), whole_samples)
        assert alone.means(spans).tolist() == [pytest.approx(NONE if mean is None else mean, nan_ok=True)]
        assert alone.samples(spans).tolist() == [samples]
        assert alone.whole(spans).tolist() == [pytest.approx(NONE if whole is None else whole, nan_ok=True)]

    def test_no_time_at_all(self) -> None:
        assert within(self.THREE, Intervals.empty()).mean(self.THREE.value) is None
        assert within(self.THREE, Intervals.empty()).whole_mean(self.THREE.value) == (None, 0)
        assert np.isnan(Sampled.of(self.THREE).means(Intervals.of([(150, 150)]))).all()

    def test_a_sample_in_two_stretches_counts_once(self) -> None:
        inside = within(self.THREE, Intervals.of([(10, 20), (30, 40), (90, 110)]))
        assert inside.index.tolist() == [0, 1]
        assert inside.samples(self.THREE.value) == 2
        assert inside.mean(self.THREE.value) == pytest.approx((20 * 0.2 + 10 * 0.2 + 10 * 0.8) / 40)

    def test_what_was_not_measured_is_no_zero(self) -> None:
        holes = series([100, 200, 300, 400, 900, 1000], [0.4, NONE, 0.8, 0.2, 0.6, 0.6])

        def mean(*query: int) -> float | None:
            return within(holes, Intervals.of([(query[0], query[1])])).mean(holes.value)

        assert mean(0, 300) == pytest.approx(0.6)
        assert mean(100, 200) is None
        assert mean(400, 800) is None
        assert mean(300, 900) == pytest.approx(0.4)
        assert within(holes, Intervals.of([(0, 300)])).samples(holes.value) == 2
        assert within(holes, Intervals.of([(0, 350), (750, 1000)])).whole_mean(holes.value) == (pytest.approx(0.6), 4)


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
    made, slow, inside = series(times, values), Painted.of(times, values), moments(spans)
    queries = union(Intervals.of([(start, start + length) for start, length in spans]))
    fast = SamplesWithin.of(made.grid, queries)
    assert fast.mean(made.value) == pytest.approx(slow.mean(inside))
    assert fast.samples(made.value) == len(slow.samples(inside))
    whole = slow.whole(inside)
    at_whole = {moment for moment, number in slow.sample.items() if number in whole}
    assert fast.whole_mean(made.value) == (pytest.approx(slow.mean(at_whole)), len(whole))


@given(TIMES.filter(lambda times: len(set(times)) > 1), st.data(), SPANS)
def test_means_of_each_query_too(times: list[int], data: st.DataObject, spans: list[tuple[int, int]]) -> None:
    values = data.draw(st.lists(VALUES, min_size=len(times), max_size=len(times)))
    fast, slow = Sampled.of(series(times, values)), Painted.of(times, values)
    queries = Intervals.of([(start, start + length) for start, length in spans])
    means, samples, whole = fast.means(queries).tolist(), fast.samples(queries).tolist(), fast.whole(queries).tolist()
    for at, span in enumerate(spans):
        inside = moments([span])
        at_whole = {moment for moment, number in slow.sample.items() if number in slow.whole(inside)}
        for found, true in ((means[at], slow.mean(inside)), (whole[at], slow.mean(at_whole))):
            assert found == pytest.approx(NONE if true is None else true, nan_ok=True)
        assert samples[at] == len(slow.samples(inside))


@given(SPANS, SPANS)
def test_work_is_what_is_busy_inside(spans: list[tuple[int, int]], busy: list[tuple[int, int]]) -> None:
    grid = series([10, 20, 30, 40, 50, 60, 70, 80], [0.0] * 8).grid
    query, at_work = (union(Intervals.of([(at, at + length) for at, length in each])) for each in (spans, busy))
    found = SamplesWithin.of(grid, query, BusySamples(grid, at_work))
    both = moments(spans) & moments(busy)
    for index, ns, worked in zip(found.index.tolist(), found.ns.tolist(), found.worked.tolist(), strict=True):
        its = set(range(10 * index, 10 * index + 10))
        assert (ns, worked) == (len(its & moments(spans)), len(its & both))


class TestParted:
    """
    device    |=A=|..........|=B=|.......          two kernels of 30 ns with 70 ns of nothing after each
    sample    [ 24%          )[ 24%      )         A and B at 80%
    """

    IDLE = tuple(100 * at for at in range(1, 11))
    BUSY = Intervals.of([(1000, 1030), (1100, 1130)])

    def parted(self, values: list[float], busy: Intervals = BUSY) -> tuple[Parted, Callable[..., float | None]]:
        """The samples after ten idle ones, and the mean over a stretch of time."""
        made = series([*self.IDLE, 1100, 1200][: len(values)], values)
        work = BusySamples(made.grid, busy)
        found = work.part(made)
        return found, lambda *query: found.mean(SamplesWithin.of(made.grid, Intervals.of([query]), work))

    def test_the_idle_part_is_taken_out(self) -> None:
        parted, mean = self.parted([0.0] * 10 + [0.24, 0.24])
        assert parted.idle == 0.0
        assert mean(1000, 1030) == mean(1100, 1130) == pytest.approx(0.8)
        assert mean(1000, 1100) == pytest.approx(0.24)
        assert mean(1030, 1100) == pytest.approx(0.0)
        assert mean(1200, 1300) is None

    def test_the_level_of_idle_time_counts_too(self) -> None:
        """30 ns at 80% and 70 ns at 4%: 26.8%."""
        parted, mean = self.parted([0.04] * 10 + [0.268, 0.268])
        assert parted.idle == pytest.approx(0.04)
        assert mean(1000, 1030) == pytest.approx(0.8)
        assert mean(1000, 1100) == pytest.approx(0.268)

    @pytest.mark.parametrize("idle", [[0.0] * 9 + [NONE], [0.06] * 10])
    def test_unknown_or_high_idle_time_parts_nothing(self, idle: list[float]) -> None:
        parted, mean = self.parted([*idle, 0.24, 0.24])
        assert (parted.idle, parted.working) == (None, None)
        assert mean(1000, 1030) == pytest.approx(0.24)

    def test_never_more_than_all(self) -> None:
        """A clock that is a little off puts the kernel's activity into the sample beside it."""
        _, mean = self.parted([0.0] * 10 + [0.5], Intervals.of([(1000, 1001)]))
        assert mean(1000, 1001) == 1.0

    def test_clocks_are_never_parted(self) -> None:
        made = replace(series([*self.IDLE, 1100], [0.0] * 10 + [0.24]), metric="gpc_clock")
        assert BusySamples(made.grid, self.BUSY).part(made).working is None
