"""NVTX ranges around a gap: the path that a reader sees, outermost first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builder import MAIN
from tests.causes.example import NEIGHBOUR, STRANGER, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builder import TraceBuilder


def path(trace: TraceBuilder, folder: Path) -> list[str]:
    """The path at the middle of the host's part, 195_000."""
    (gap,) = only_device(trace, folder).gaps
    return gap.nvtx


def test_nested_ranges(tmp_path: Path) -> None:
    """
    run    |----------------------------------|
    step       |---------------------|
    load          |--------|
    other                     |---|
    """
    trace = late().nvtx("load", 120_000, 200_000).nvtx("run", 1, 500_000).nvtx("step", 100_000, 280_000)
    assert path(trace.nvtx("other", 210_000, 250_000), tmp_path) == ["run", "step", "load"]


def test_a_range_that_was_never_closed(tmp_path: Path) -> None:
    assert path(late().nvtx("run", 500, None), tmp_path) == ["run"]


@pytest.mark.parametrize("event_type", [59, 60, 70, 71])
def test_kinds_of_ranges(event_type: int, tmp_path: Path) -> None:
    assert path(late().nvtx("run", 500, 400_000, event_type=event_type), tmp_path) == ["run"]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("event_type", [33, 34, 39, 75, 76])
def test_what_is_no_range(event_type: int, tmp_path: Path) -> None:
    assert path(late().nvtx("run", 500, 400_000, event_type=event_type), tmp_path) == []


@pytest.mark.parametrize("thread", [NEIGHBOUR, STRANGER])
def test_ranges_of_other_threads(thread: tuple[int, int], tmp_path: Path) -> None:
    assert path(late().nvtx("run", 500, 400_000, thread=thread), tmp_path) == []


def test_a_name_in_the_string_table(tmp_path: Path) -> None:
    trace = late().nvtx("interned", 500, 400_000, interned=True).nvtx("own text", 600, 390_000)
    assert path(trace, tmp_path) == ["interned", "own text"]


def test_a_range_without_a_name(tmp_path: Path) -> None:
    trace = late()
    trace.row("NVTX_EVENTS", {"start": 500, "end": 400_000, "eventType": 59, "globalTid": 1 << 48 | 4242 << 24 | 4242})
    assert path(trace, tmp_path) == ["(unnamed range)"]


def test_a_range_that_ends_before_it_starts(tmp_path: Path) -> None:
    assert path(late().nvtx("odd", 400_000, 500), tmp_path) == []


class TestOtherThreads:
    """Start/end ranges (60) belong to the whole process, push/pop ranges (59) to their thread."""

    @staticmethod
    def elsewhere(trace: TraceBuilder, folder: Path) -> tuple[list[str], list[str]]:
        """The launching thread's own path and the ranges of other threads, at 195_000."""
        (gap,) = only_device(trace, folder).gaps
        return gap.nvtx, gap.nvtx_elsewhere

    def test_a_range_of_another_thread_is_told_apart(self, tmp_path: Path) -> None:
        """
        MAIN       [=== step ========]      push/pop
        NEIGHBOUR    [-- prefetch --]       start/end
        NEIGHBOUR    [== load ======]       push/pop: its own affair
        """
        trace = late().nvtx("step", 500, 400_000)
        trace.nvtx("prefetch", 100_000, 250_000, event_type=60, thread=NEIGHBOUR)
        trace.nvtx("load", 100_000, 250_000, thread=NEIGHBOUR)
        assert self.elsewhere(trace, tmp_path) == (["step"], ["prefetch"])

    def test_a_range_that_ends_on_another_thread(self, tmp_path: Path) -> None:
        """
        MAIN       [-- request ---+
        NEIGHBOUR                 +]     began on MAIN: part of its path, nested by time
        """
        trace = late().nvtx("request", 500, 260_000, event_type=60, end_thread=NEIGHBOUR).nvtx("step", 600, 400_000)
        assert self.elsewhere(trace, tmp_path) == (["request", "step"], [])

    def test_a_range_that_another_thread_left_to_this_one(self, tmp_path: Path) -> None:
        trace = late().nvtx("request", 500, 260_000, event_type=60, thread=NEIGHBOUR, end_thread=MAIN)
        assert self.elsewhere(trace, tmp_path) == ([], ["request"])

    def test_another_process_is_another_program(self, tmp_path: Path) -> None:
        trace = late().nvtx("other", 500, 400_000, event_type=60, thread=STRANGER)
        assert self.elsewhere(trace, tmp_path) == ([], [])

    @pytest.mark.parametrize(("start", "end"), [(500, 195_000), (195_001, 400_000)])
    def test_not_open_at_the_time(self, start: int, end: int, tmp_path: Path) -> None:
        trace = late().nvtx("other", start, end, event_type=60, thread=NEIGHBOUR)
        assert self.elsewhere(trace, tmp_path) == ([], [])

    def test_open_to_the_nanosecond(self, tmp_path: Path) -> None:
        trace = late().nvtx("other", 195_000, 195_001, event_type=60, thread=NEIGHBOUR)
        assert self.elsewhere(trace, tmp_path) == ([], ["other"])

    def test_never_closed_and_of_a_domain_of_its_own(self, tmp_path: Path) -> None:
        trace = late().nvtx("service", 0, None, event_type=75, domain=5)
        trace.nvtx("serve", 700, None, event_type=60, thread=NEIGHBOUR, domain=5)
        trace.nvtx("epoch", 500, None, event_type=71, thread=(4242, 4400))
        assert self.elsewhere(trace, tmp_path) == ([], ["epoch", "serve"])

    def test_of_many_those_that_began_last(self, tmp_path: Path) -> None:
        trace = late()
        for number in range(20):
            trace.nvtx(f"r{number}", 500 + number, 400_000, event_type=60, thread=NEIGHBOUR)
        assert self.elsewhere(trace, tmp_path)[1] == [f"r{number}" for number in range(12, 20)]


def test_ranges_that_the_profiler_wrote_are_none_of_the_program(tmp_path: Path) -> None:
    """`--trace=python-gil` writes who held the lock as ranges of the thread."""
    trace = late().nvtx("GIL Trace", 0, None, event_type=75, domain=2).nvtx("step", 500, 400_000)
    assert path(trace.nvtx("Holding GIL", 190_000, 200_000, domain=2), tmp_path) == ["step"]


def test_a_domain_of_the_same_number_in_another_process(tmp_path: Path) -> None:
    trace = late().nvtx("GIL Trace", 0, None, event_type=75, domain=2, thread=STRANGER)
    assert path(trace.nvtx("step", 500, 400_000, domain=2), tmp_path) == ["step"]
