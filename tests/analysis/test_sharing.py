"""Processes that use the same device number: whether they take turns, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.analysis.sharing import ENOUGH
from tests.analysis.traces import report_of
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
ONE, OTHER, THIRD = 4242, 5000, 6000
TURNS, AT_ONCE, MAYBE = "but take turns, as on one GPU", "and run at the same time", "and may share a GPU"


def working(trace: TraceBuilder, pid: int, begin: int, count: int, device: int = 0) -> TraceBuilder:
    """So many kernels of 1 ms every 2 ms."""
    for number in range(count):
        start = begin + number * 2 * MS
        trace.kernel(start, start + MS, launch=(start - 500, start - 400), thread=(pid, pid), device=device)
    return trace


def notes(trace: TraceBuilder, folder: Path) -> dict[str, list[str]]:
    return {each.key: each.notes for each in report_of(trace, folder).devices}


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (MS, f"{TURNS}: none of 39 stretches of its work meet one of the others, where chance would let 20 do so."),
        (MS // 4, f"{AT_ONCE} for 75.5% of its work, as on different GPUs, or on one with MPS."),
    ],
)
def test_two_processes(later: int, said: str, tmp_path: Path) -> None:
    trace = working(working(TraceBuilder(), ONE, 10_000, 40), OTHER, 10_000 + later, 40)
    found = notes(trace, tmp_path)
    assert list(found) == ["gpu0-pid4242", "gpu0-pid5000"]
    assert said in found["gpu0-pid4242"][0]


def test_a_single_meeting_among_many_stretches_is_said(tmp_path: Path) -> None:
    trace = working(working(TraceBuilder(), ONE, 10_000, 150), OTHER, 10_000 + MS, 150)
    trace.kernel(20 * MS + 10_000, 21 * MS + 10_000, thread=(OTHER, OTHER), launch=(20 * MS, 20 * MS + 100))
    assert f"{TURNS}: 1 of 149 stretches" in notes(trace, tmp_path)["gpu0-pid4242"][0]


def test_some_meetings_tell_nothing(tmp_path: Path) -> None:
    """A fifth meets, where chance has half of them meet."""
    trace = working(TraceBuilder(), ONE, 10_000, 50)
    for number in range(50):
        start = 10_000 + number * 2 * MS + (MS // 2 if number % 5 == 0 else MS)
        trace.kernel(start, start + MS, thread=(OTHER, OTHER), launch=(start - 500, start - 400))
    assert MAYBE in notes(trace, tmp_path)["gpu0-pid4242"][0]


@pytest.mark.parametrize(("count", "said"), [(2 * ENOUGH, MAYBE), (2 * ENOUGH + 1, TURNS)])
def test_few_stretches_of_work_tell_nothing(count: int, said: str, tmp_path: Path) -> None:
    """Between the first of the second and the last of the first is one less; chance has half of them meet."""
    trace = working(working(TraceBuilder(), ONE, 10_000, count), OTHER, 10_000 + MS, count)
    assert said in notes(trace, tmp_path)["gpu0-pid4242"][0]


def test_one_after_the_other_tells_nothing(tmp_path: Path) -> None:
    trace = working(working(TraceBuilder(), ONE, 10_000, 40), OTHER, 200 * MS, 40)
    assert all(MAYBE in found[0] for found in notes(trace, tmp_path).values())


def test_only_devices_of_the_same_number(tmp_path: Path) -> None:
    trace = working(working(TraceBuilder(), ONE, 10_000, 40), OTHER, 10_000 + MS, 40)
    working(trace, THIRD, 10_000, 40, device=1)
    found = notes(trace, tmp_path)
    assert TURNS in found["gpu0-pid5000"][0]
    assert [key for key, said in found.items() if not said] == ["gpu1-pid6000"]


def test_three_processes(tmp_path: Path) -> None:
    """Each is held against the two others together."""
    trace = TraceBuilder()
    for number, pid in enumerate((ONE, OTHER, THIRD)):
        for at in range(60):
            start = 10_000 + at * 3 * MS + number * MS
            trace.kernel(start, start + MS, thread=(pid, pid), launch=(start - 500, start - 400))
    assert all(TURNS in found[0] for found in notes(trace, tmp_path).values())
