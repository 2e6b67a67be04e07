"""Which spans are tried: whole iterations, the shortest first, none of them nearly everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag import analyze
from nsysdiag.share.slicing import FEWEST_ITERATIONS, LONGEST_SHARE, candidates, whole_of
from tests.builder import TraceBuilder
from tests.iterations.test_iterations import training
from tests.share.bundle.test_slicing import MS, steps

if TYPE_CHECKING:
    from pathlib import Path


def test_iterations_each_at_least_twice_as_long_as_the_one_before(tmp_path: Path) -> None:
    report = analyze(steps(40, 8 * MS).write(tmp_path / "trace.sqlite"))
    whole, found = whole_of(report), list(candidates(report))
    assert whole is not None
    lengths = [span.end_ns - span.start_ns for span in found]
    assert [length // (10 * MS) for length in lengths] == [6, 12, 24]
    assert all(span.iterations and span.start_ns == (10 + 10 * span.iterations[0]) * MS for span in found)
    assert max(lengths) <= LONGEST_SHARE * (whole.end_ns - whole.start_ns)


def test_lengths_that_no_span_has_are_passed_over(tmp_path: Path) -> None:
    """
    steps  |10 ms x 6|300 ms|10 ms x 6|300 ms|10 ms x 7|      six or more of them take 60 or 70 ms, or more than 350
    """
    lengths = ([10 * MS] * 6 + [300 * MS]) * 2 + [10 * MS] * 7
    found = list(candidates(analyze(training(lengths).write(tmp_path / "trace.sqlite"))))
    assert [(span.end_ns - span.start_ns, span.iterations) for span in found] == [(60 * MS, (0, 6)), (380 * MS, (0, 9))]


def test_the_most_alike_of_equally_long_ones(tmp_path: Path) -> None:
    """
    steps  |20 ms idle| x 10, then |8 ms idle in 10| x 30: the whole is more like the middle than like either end
    """
    trace = steps(30, 8 * MS, start=310 * MS)
    for step in range(10):
        begin = (10 + 30 * step) * MS
        trace.kernel(begin, begin + MS, launch=(begin - 20_000, begin - 10_000), name="early")
        trace.nvtx(f"step {step}", begin - 30_000, begin + 29 * MS)
    report = analyze(trace.write(tmp_path / "trace.sqlite"))
    assert report.devices[0].iterations is not None
    first = next(candidates(report))
    assert first.start_ns < 310 * MS < first.end_ns


def test_equal_parts_where_nothing_comes_round(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number, begin in enumerate((10, 30, 90, 100, 170, 400, 500, 777, 1200)):
        trace.kernel(begin * MS, begin * MS + MS, name=f"k{number}", launch=(begin * MS - 2000, begin * MS - 1000))
    report = analyze(trace.write(tmp_path / "trace.sqlite"))
    assert report.devices[0].iterations is None
    found = list(candidates(report))
    assert found
    assert all(span.iterations is None for span in found)


def test_nothing_to_try_without_gpu_work(tmp_path: Path) -> None:
    report = analyze(TraceBuilder().osrt("read", 1, 2).write(tmp_path / "trace.sqlite"))
    assert list(candidates(report)) == []
    assert whole_of(report) is None
    assert FEWEST_ITERATIONS == 6
