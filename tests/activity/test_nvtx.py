"""NVTX ranges around a gap: the path that a reader sees, outermost first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analysis.causes.example import NEIGHBOUR, STRANGER, late
from tests.analysis.traces import only_device

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
