"""How work comes to a device: steady steps, bursts, or neither."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import TriageThresholds
from nsysdiag.diagnosis.bursts import Bursts, find_bursts, irregularity
from nsysdiag.diagnosis.workload import workload
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.ledger.assignment import SliceCollector, Slices

MS = 1_000_000
LIMITS = TriageThresholds()
Explained = tuple[int, int, str, str]
"""A gap [start, end) in ms, its cause and the words of its evidence."""


def gaps_of(rows: list[Explained]) -> tuple[Gaps, Slices]:
    start, end = (np.array([row[at] * MS for row in rows], dtype=np.int64) for at in (0, 1))
    nothing = np.zeros(len(rows), dtype=np.int64)
    collector = SliceCollector(list(CAUSES))
    for at, (_, _, cause, text) in enumerate(rows):
        owner = np.array([at], dtype=np.int64)
        collector.add(
            cause, Owned(Intervals(start[at : at + 1], end[at : at + 1]), owner), text=collector.texts([text])
        )
    return Gaps(start, end, start, end, nothing, nothing, nothing), collector.finish()


def bursts_of(rows: list[Explained], end: int) -> Bursts:
    gaps, slices = gaps_of(rows)
    return find_bursts(gaps, slices, Intervals.of([(0, end * MS)]), LIMITS)


def in_ms(spans: Intervals) -> list[tuple[int, int]]:
    return list(zip((spans.start // MS).tolist(), (spans.end // MS).tolist(), strict=True))


@pytest.mark.parametrize(
    ("cause", "text", "separates"),
    [
        ("io_wait", "epoll_wait on thread 7", True),
        ("io_wait", "__recv on thread 7", True),
        ("io_wait", "read on thread 7", False),
        ("io_wait", "pread64 on thread 7", False),
        ("lock_wait", "pthread_cond_wait on thread 7", True),
        ("sleep", "nanosleep on thread 7", True),
        ("host_compute", "thread 7 on a CPU", False),
        ("data_loading", "worker 9", False),
        ("sync", "cudaStreamSynchronize", False),
        ("uncovered", "nothing known", False),
    ],
)
def test_bursts_are_apart_where_the_host_had_nothing_to_do(cause: str, text: str, separates: bool) -> None:
    """
    device  [0..10).....20 ms.....[30..40)
    """
    found = bursts_of([(10, 30, cause, text)], 40)
    assert in_ms(found.spans) == ([(0, 10), (30, 40)] if separates else [(0, 40)])
    assert found.between.tolist() == [separates]


def test_a_short_wait_is_part_of_its_burst() -> None:
    gaps, slices = gaps_of([(10, 11, "sleep", "nanosleep")])
    parts = Intervals.of([(0, 40 * MS)])
    assert len(find_bursts(gaps, slices, parts, LIMITS)) == 2
    assert len(find_bursts(gaps, slices, parts, TriageThresholds(burst_gap_ns=MS + 1))) == 1


def test_a_gap_that_is_half_something_else_does_not_separate() -> None:
    gaps, _ = gaps_of([(10, 30, "sleep", "")])
    collector = SliceCollector(list(CAUSES))
    owner = np.zeros(1, dtype=np.int64)
    for cause, start, end in (("sleep", 10, 20), ("host_compute", 20, 30)):
        collector.add(cause, Owned(Intervals.of([(start * MS, end * MS)]), owner))
    assert len(find_bursts(gaps, collector.finish(), Intervals.of([(0, 40 * MS)]), LIMITS)) == 1


def test_irregularity_is_the_median_deviation() -> None:
    assert irregularity(Intervals.of([(0, 1), (10, 11), (20, 21), (30, 31)])) == 0.0
    # Steps 10, 20, 40: the median 20, deviations 10, 0, 20.
    assert irregularity(Intervals.of([(0, 1), (10, 11), (30, 31), (70, 71)])) == 0.5
    assert irregularity(Intervals.of([(0, 1), (10, 11)])) is None


def every(step: list[int]) -> Intervals:
    """Iterations that follow each other, of these lengths in ms."""
    borders = np.cumsum([0, *step]) * MS
    return Intervals(borders[:-1], borders[1:])


def requests(starts: list[int]) -> Bursts:
    return Bursts(Intervals.of([(at * MS, (at + 1) * MS) for at in starts]), np.zeros(0, dtype=np.bool_))


NONE = requests([])
IRREGULAR = requests([0, 10, 45, 52, 90, 140])


def test_steps_of_one_length_are_training() -> None:
    found = workload(every([10, 10, 11, 10, 9, 30]), IRREGULAR, 150 * MS, 100 * MS, LIMITS)
    assert (found.kind, found.judged_ns, found.between_ns) == ("steps", 150 * MS, 0)
    assert found.why == "6 steps repeat, of 10.0 ms in the median, half of them within 5.0% of that"


def test_irregular_bursts_are_serving() -> None:
    """Steps between starts 10, 35, 7, 38, 50 ms: the median 35, the median deviation 15."""
    found = workload(None, IRREGULAR, 150 * MS, 100 * MS, LIMITS)
    assert (found.kind, found.judged_ns, found.between_ns) == ("bursts", 50 * MS, 100 * MS)
    assert (found.bursts, found.median_burst_ns) == (6, MS)
    assert found.why == (
        "work comes in 6 bursts at irregular times, and for 66.7% of the window the host waits between them to be asked"
    )


@pytest.mark.parametrize(
    ("steady", "bursts", "between", "why"),
    [
        (every([10, 30, 90, 20, 70]), NONE, 0, "steps take very different times"),
        (None, requests([0, 10, 45, 52]), 100, "4 bursts are too few, too close or too regular"),
        (None, requests([0, 10, 20, 30, 40, 50]), 100, "6 bursts are too few, too close or too regular"),
        (None, IRREGULAR, 29, "6 bursts are too few"),
        (None, NONE, 0, "there are no pauses"),
        (every([10, 10, 10, 10]), NONE, 0, "only 4 steady steps repeat, and there are no pauses"),
    ],
)
def test_else_it_is_unclear(steady: Intervals | None, bursts: Bursts, between: int, why: str) -> None:
    found = workload(steady, bursts, 150 * MS, between * MS, LIMITS)
    assert (found.kind, found.judged_ns) == ("unclear", 150 * MS)
    assert why in found.why


def test_steps_at_the_threshold() -> None:
    """Median 12, deviations 3, 3, 0, 3, 3: a quarter of it."""
    assert workload(every([9, 15, 12, 9, 15]), NONE, 60 * MS, 0, LIMITS).kind == "steps"
    assert workload(every([8, 16, 12, 8, 16]), NONE, 60 * MS, 0, LIMITS).kind == "unclear"
