"""CPU samples count as samples: all of a stretch, evenly, each for its period, with the program's own callers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysdiag import typed
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.events.samples import Samples
from nsysdiag.findings.facts import Finding
from nsysdiag.pipeline import analyze
from nsysdiag.report import Report
from nsysdiag.stacks.samples import leaf_texts
from tests.builder import Function, TraceBuilder

MS = 1_000_000
FILL: tuple[Function, ...] = (("__random", "/usr/lib/libc.so.6"), "initRandomIdxArray", "main")
RAND: tuple[Function, ...] = (("rand", "/usr/lib/libc.so.6"), "initRandomIdxArray", "main")
PARSE: tuple[Function, ...] = (("strtoul", "/usr/lib/libc.so.6"), "main")


def start(trace: TraceBuilder, folder: Path, first_work: int) -> Finding:
    """The finding on the host code of a program whose first kernel runs at `first_work` ms, after a call at 1 ms."""
    trace.process().gpu().api("cudaMalloc", 1 * MS, 2 * MS)
    trace.kernel(first_work * MS, (first_work + 1) * MS, launch=((first_work - 1) * MS, first_work * MS - 1))
    report = analyze(trace.write(folder / "trace.sqlite"), Settings(replay=False))
    return next(each for each in report.findings if each.id == "f-before_work-host")


def loop(trace: TraceBuilder, folder: Path, steps: int, period: int) -> Report:
    """A program with a kernel every `period` ms."""
    trace.process().gpu()
    for step in range(1, steps + 1):
        at = step * period * MS
        trace.kernel(at, at + MS // 2, name="step", launch=(at - MS // 5, at - MS // 10))
    return analyze(trace.write(folder / "trace.sqlite"), Settings(replay=False, timeline=False))


@pytest.mark.slow
def test_one_early_sample_does_not_stand_for_all(tmp_path: Path) -> None:
    """
    samples   strtoul × 9   (a call)   __random × 24,000, rand × 3,000 ...
    """
    trace = TraceBuilder().osrt("read", 20 * MS, 30 * MS)
    for at in range(5, 14):
        trace.sample(at * MS, symbols=PARSE)
    for at in range(40, 27_040):
        trace.sample(at * MS, symbols=RAND if at % 9 == 0 else FILL)
    found = start(trace, tmp_path, 27_100)
    assert "27,009 CPU samples: __random 88.9% (called by initRandomIdxArray), rand 11.1%" in typed.plain(found.summary)
    longest = found.rows[0]
    assert (longest.table, longest.start_ns) == ("COMPOSITE_EVENTS", 40 * MS)


@pytest.mark.slow
def test_the_later_half_of_a_stretch_counts(tmp_path: Path) -> None:
    """The first 11,000 samples are in another function than the 12,000 after them."""
    trace = TraceBuilder()
    for at in range(5, 23_005):
        trace.sample(at * MS, symbols=("read_all",) if at < 11_005 else ("sort_all",))
    assert "23,000 CPU samples: sort_all 52.2%, read_all 47.8%" in start(trace, tmp_path, 23_100).summary


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("samples", "said"), [(1, "1 CPU sample that stands for 1.00 ms of it"), (3, "3 CPU samples")])
def test_a_few_samples_stand_for_their_periods(samples: int, said: str, tmp_path: Path) -> None:
    """The scheduler says that the thread runs for 9 s; hardly any of it was sampled."""
    trace = TraceBuilder().sched(3 * MS, True).sched(9_040 * MS, False).sched(9_045 * MS, True)
    for at in range(samples):
        trace.sample((100 + at) * MS, symbols=PARSE)
    found = start(trace, tmp_path, 9_050)
    assert said in found.summary
    assert "of it: strtoul" in found.summary
    row = next(each for each in found.rows if each.table == "COMPOSITE_EVENTS")
    assert row.ns == samples * MS


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("own", "called"), [(60, True), (50, False), (10, False)])
def test_a_caller_needs_more_than_half_of_the_samples(own: int, called: bool, tmp_path: Path) -> None:
    trace = TraceBuilder()
    for at in range(100):
        trace.sample((5 + at) * MS, symbols=FILL if at % 10 < own // 10 else FILL[:1])
    found = start(trace, tmp_path, 110)
    assert ("__random 100.0% (called by initRandomIdxArray)" in found.summary) == called


def test_the_program_s_own_function_needs_no_caller(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for at in range(5, 105):
        trace.sample(at * MS, symbols=("fill", "main"))
    assert "100 CPU samples: fill 100.0%" in start(trace, tmp_path, 110).summary


def test_other_threads_are_sampled_while_the_thread_waits(tmp_path: Path) -> None:
    """
    main     compute 100 ms   [pthread_join 400 ms            ]
    worker                      . . . generate . . .
    other process               . . . elsewhere . .
    """
    trace = TraceBuilder().osrt("pthread_join", 105 * MS, 505 * MS)
    for at in range(5, 105):
        trace.sample(at * MS, symbols=("prepare",))
        trace.sample(at * MS, symbols=("idle_spin",), thread=(4242, 5001))
    for at in range(106, 500):
        trace.sample(at * MS, symbols=("generate",), thread=(4242, 5000))
        trace.sample(at * MS, symbols=("elsewhere",), thread=(99, 99))
    summary = start(trace, tmp_path, 510).summary
    assert "prepare 100.0%" in summary
    assert "CPU samples of other threads while it waits: generate 100.0%" in summary
    assert "elsewhere" not in summary


@pytest.mark.slow
def test_findings_in_the_loop_count_all_samples(tmp_path: Path) -> None:
    """Each of 20 steps has 600 samples: 5,000 of all are read, and stand for 12,000."""
    trace = TraceBuilder()
    for step in range(1, 21):
        for at in range(5, 595):
            function = "early" if step <= 9 else "late"
            trace.sample((step * 600 + at) * MS, symbols=(function, "main"))
    report = loop(trace, tmp_path, 21, 600)
    found = next(each for each in report.findings if each.cause == "host_compute")
    assert "11,800 CPU samples: late 55.0%, early 45.0%" in found.evidence
    assert found.call == "late"


def test_texts_of_gaps_count_all_samples() -> None:
    """A stretch with more samples than are read still has its text, with the number of all."""
    position = np.arange(60_000, dtype=np.int64) * 1_000
    samples = Samples(position, np.arange(60_000), Intervals.of([(0, 60_000_000)]))

    def symbols(ids: np.ndarray) -> tuple[np.ndarray, list[str]]:
        return (ids >= 15_000).astype(np.int64), ["first", "second"]

    low, high = np.array([0, 59_000_000]), np.array([50_000_000, 60_000_000])
    long, short = leaf_texts(samples, low, high, symbols)
    assert typed.plain(short) == "second × 1000"
    counts = dict(part.split(" × ") for part in typed.plain(long).split(", "))
    assert int(counts["second"]) == pytest.approx(35_000, abs=100)
    assert int(counts["first"]) == pytest.approx(15_000, abs=100)
