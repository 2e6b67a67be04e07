"""Which part of a trace is read where memory is limited."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.arrays import spill
from nsysdiag.config.settings import Settings
from nsysdiag.events import memory as memory_fit
from nsysdiag.events.memory import (
    BASE_BYTES,
    GPU_BYTES,
    MARGIN_NS,
    MIB,
    SHARE_IN_FILES,
    TEXT_BYTES,
    FittingSpan,
    needed_bytes,
    part_that_fits,
)
from nsysdiag.messages import UsageError
from nsysdiag.pipeline import analyze
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder

KERNELS, PERIOD = 2_000, 10_000_000
END = KERNELS * PERIOD
BASE = BASE_BYTES + 5 * TEXT_BYTES
"""What the program takes, and the names of the kernel and of its call."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 s with a launch and its kernel of 1 ms every 10 ms."""
    trace = TraceBuilder()
    for at in range(0, END, PERIOD):
        trace.kernel(at + 5_000, at + 1_005_000, launch=(at, at + 4_000))
    return trace.write(tmp_path_factory.mktemp("fit") / "trace.sqlite")


@pytest.fixture(scope="module")
def needed(path: Path) -> int:
    return needed_of(path)


def needed_of(path: Path) -> int:
    with open_trace(path) as trace:
        return needed_bytes(trace)


def limit_of(share: float, needed: int) -> int:
    """So much of what the rows need, beside what any part does."""
    return BASE + int(share * (needed - BASE))


def part_of(path: Path, limit: int, low: int | None = None, high: int | None = None) -> FittingSpan | None:
    with open_trace(path) as trace:
        return part_that_fits(trace, limit, low, high)


def test_rows_are_counted_by_what_each_needs(needed: int) -> None:
    assert needed == BASE + KERNELS * (230 + 120)


def test_gpus_and_texts_are_counted_whatever_part_is_read(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0).gpu(1)
    few = needed_of(trace.write(tmp_path / "few.sqlite"))
    for text in "abc":
        trace.string(text)
    assert needed_of(trace.gpu(2).write(tmp_path / "more.sqlite")) - few == GPU_BYTES + 3 * TEXT_BYTES


def test_a_trace_that_fits_has_no_part(path: Path, needed: int) -> None:
    assert part_of(path, needed) is None


@pytest.mark.parametrize(
    ("share", "low", "high", "begin", "end"),
    [
        (0.5, None, None, END // 4, END * 3 // 4),
        (0.5, 0, END, END // 4, END * 3 // 4),
        (0.25, None, END // 2, END // 8, END * 3 // 8),
        (0.25, END // 2, None, END * 5 // 8, END * 7 // 8),
        (0.75, END // 2, None, END // 2, END),
    ],
)
def test_it_is_the_middle_of_the_chosen_time(
    path: Path, needed: int, share: float, low: int | None, high: int | None, begin: int, end: int
) -> None:
    part = part_of(path, limit_of(share, needed), low, high)
    assert part is not None
    assert (part.read_from, part.end) == pytest.approx((begin, end), abs=3 * PERIOD)
    assert part.start == part.read_from + MARGIN_NS


@pytest.mark.parametrize(("room", "share"), [(0.59, 0.59 / SHARE_IN_FILES), (0.4, 0.4)])
def test_large_tables_lie_in_files_unless_the_part_is_small(
    path: Path, needed: int, monkeypatch: pytest.MonkeyPatch, room: float, share: float
) -> None:
    """Of 40% less than 1,500 rows are left, which stay in memory, where each takes more."""
    monkeypatch.setattr(memory_fit, "ROWS_IN_FILES", 1_500)
    monkeypatch.setattr(spill, "room", lambda: 1 << 40)
    part = part_of(path, limit_of(room, needed))
    assert part is not None
    assert part.end - part.read_from == pytest.approx(share * END, abs=3 * PERIOD)


@pytest.mark.parametrize(("room", "share"), [(KERNELS * 350, SHARE_IN_FILES), (KERNELS * 350 - 1, 1), (0, 1)])
def test_rows_in_files_need_less_memory(
    path: Path, needed: int, monkeypatch: pytest.MonkeyPatch, room: int, share: float
) -> None:
    monkeypatch.setattr(memory_fit, "ROWS_IN_FILES", KERNELS)
    monkeypatch.setattr(spill, "room", lambda: room)
    with open_trace(path) as trace:
        assert needed_bytes(trace) == limit_of(share, needed)
    assert part_of(path, limit_of(share, needed)) is None
    assert part_of(path, limit_of(share, needed) - 1) is not None


def test_the_reason_tells_the_limit_and_the_time(path: Path, needed: int) -> None:
    part = part_of(path, limit_of(0.5, needed))
    assert part is not None
    assert part.reason.startswith("the trace needs about 131 MiB, more than the memory limit of 130 MiB: ")


@pytest.mark.parametrize("limit", [MIB, BASE_BYTES])
def test_a_limit_below_what_the_program_needs_is_refused(path: Path, limit: int) -> None:
    with pytest.raises(UsageError, match="is too little: the trace needs about 131 MiB") as caught:
        part_of(path, limit)
    assert caught.value.hint == "the program alone needs 130 MiB; raise --memory-limit"


def test_a_time_without_rows_is_refused(path: Path, needed: int) -> None:
    with pytest.raises(UsageError, match="is too little"):
        part_of(path, limit_of(0.5, needed), 2 * END)


@pytest.mark.slow
def test_the_analysis_keeps_to_the_part(path: Path, needed: int) -> None:
    limit = limit_of(0.5, needed)
    part = part_of(path, limit)
    report = analyze(path, Settings(memory_limit=limit, timeline=False))
    (device,) = report.devices
    assert part is not None
    assert device.window.start_ns == part.start
    assert part.end - PERIOD < device.window.end_ns <= part.end
    assert device.window.reason.endswith("as far as the memory limit allows")
    assert part.reason in report.trace.warnings
    assert device.ops.kernel == pytest.approx((part.end - part.start) / PERIOD, abs=1)


@pytest.mark.parametrize("narrowed", [Settings(nvtx="step"), Settings(iterations=(0, 2))])
def test_what_needs_all_of_the_trace_is_refused(path: Path, needed: int, narrowed: Settings) -> None:
    settings = Settings(nvtx=narrowed.nvtx, iterations=narrowed.iterations, memory_limit=limit_of(0.5, needed))
    with pytest.raises(UsageError, match="--nvtx and --iterations need all of it"):
        analyze(path, settings)
