"""Processes that use the same device number: whether they share a GPU, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.events.capture import AT_ONCE_NS, ENOUGH, MOST_DEVICES
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

MS, US = 1_000_000, 1_000
ONE, OTHER, THIRD = 4242, 5000, 6000
LAUNCH = 500 * US
"""How long before its start a kernel is launched: while the other process works, unless said otherwise."""
TURNS, EITHER = "they take turns, as on one GPU", "they share a GPU (use --same-gpu), or wait for each other"
AT_ONCE, MAYBE = "These are different GPUs, or one with MPS or time slices", "and may share a GPU"


def kernels(trace: TraceBuilder, pid: int, starts: list[int], device: int = 0, launched: int = LAUNCH) -> TraceBuilder:
    """Of 1 ms each."""
    for start in starts:
        launch = (start - launched - US, start - launched)
        trace.kernel(start, start + MS, launch=launch, thread=(pid, pid), device=device)
    return trace


def every(count: int, begin: int = MS, step: int = 2 * MS) -> list[int]:
    return [begin + number * step for number in range(count)]


def notes(trace: TraceBuilder, folder: Path) -> dict[str, list[str]]:
    return {each.key: each.notes for each in report_of(trace, folder).devices}


def told(trace: TraceBuilder, folder: Path, pid: int = ONE) -> str:
    (note,) = notes(trace, folder)[f"gpu0-pid{pid}"]
    return note


def turns(count: int = 40, **values: int) -> TraceBuilder:
    """Two processes, each while the other is idle."""
    return kernels(kernels(TraceBuilder(), ONE, every(count), **values), OTHER, every(count, 2 * MS), **values)


def test_each_waits_its_turn(tmp_path: Path) -> None:
    assert (
        "None of 39 stretches of its kernels overlaps with those of another process; by chance 20 would. 39"
        f" were launched meanwhile and began as soon as those ended: {TURNS}. --same-gpu merges them."
    ) in told(turns(), tmp_path)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("launched", "said"), [(LAUNCH, True), (0, False)], ids=["waited", "launched later"])
def test_the_headline_says_so_where_it_is_sure(launched: int, said: bool, tmp_path: Path) -> None:
    made = report_of(turns(launched=launched), tmp_path)
    assert made.diagnosis is not None
    sentence = "gpu0-pid4242 and gpu0-pid5000 take turns, as processes on one GPU do: --same-gpu makes them one."
    assert (sentence in made.diagnosis.headline) == said


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("later", "said"), [(AT_ONCE_NS, TURNS), (AT_ONCE_NS + 1, EITHER)])
def test_who_waited_begins_at_once(later: int, said: str, tmp_path: Path) -> None:
    starts = every(40, 2 * MS + later, 4 * MS)
    trace = kernels(kernels(TraceBuilder(), ONE, every(40, MS, 4 * MS)), OTHER, starts)
    # The first process begins as soon as the second is done.
    kernels(trace, ONE, [start + MS + later for start in starts])
    assert said in told(trace, tmp_path)


def test_who_is_launched_when_the_other_is_done_may_wait_for_it(tmp_path: Path) -> None:
    """Two stages of a pipeline on two GPUs look so."""
    assert EITHER in told(turns(launched=0), tmp_path)


def test_long_phases_tell_nothing(tmp_path: Path) -> None:
    """Two programs that work one after the other, twice each."""
    one = [*every(50, MS), *every(50, 201 * MS)]
    other = [*every(50, 102 * MS), *every(50, 302 * MS)]
    assert MAYBE in told(kernels(kernels(TraceBuilder(), ONE, one), OTHER, other), tmp_path)


def test_at_the_same_time(tmp_path: Path) -> None:
    trace = kernels(kernels(TraceBuilder(), ONE, every(40)), OTHER, every(40, MS + MS // 4))
    assert f"up to 75.5% of its kernels' time overlaps with kernels of another process. {AT_ONCE}" in told(
        trace, tmp_path
    )


def test_the_time_in_which_one_works_alone_does_not_count(tmp_path: Path) -> None:
    """Beside another process for 60 kernels of 1,060, half of each."""
    trace = kernels(kernels(TraceBuilder(), ONE, every(1_060)), OTHER, every(60, MS + 2_000 * MS + MS // 2))
    assert "While both are at work, up to 50." in told(trace, tmp_path)


@pytest.mark.slow
def test_with_three_each_pair_is_judged(tmp_path: Path) -> None:
    """Two take turns, a third one runs beside both."""
    trace = kernels(turns(), THIRD, every(80, MS + MS // 2, MS + 10))
    assert all(TURNS in told(trace, folder(tmp_path, pid), pid) for pid in (ONE, OTHER))
    assert AT_ONCE in told(trace, folder(tmp_path, THIRD), THIRD)


def folder(parent: Path, number: int) -> Path:
    made = parent / str(number)
    made.mkdir()
    return made


@pytest.mark.slow
def test_a_single_meeting_among_many_stretches_is_said(tmp_path: Path) -> None:
    trace = kernels(turns(150), OTHER, [21 * MS])
    assert "1 of 149 stretches of its kernels overlaps" in told(trace, tmp_path)


def test_some_meetings_tell_nothing(tmp_path: Path) -> None:
    """A fifth meets, where chance has half of them meet."""
    later = [start - (MS // 2 if number % 5 == 0 else 0) for number, start in enumerate(every(50, 2 * MS))]
    assert MAYBE in told(kernels(kernels(TraceBuilder(), ONE, every(50)), OTHER, later), tmp_path)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("count", "said"), [(2 * ENOUGH, MAYBE), (2 * ENOUGH + 1, TURNS)])
def test_few_stretches_of_work_tell_nothing(count: int, said: str, tmp_path: Path) -> None:
    """Between the first of the second and the last of the first is one less; chance has half of them meet."""
    assert said in told(turns(count), tmp_path)


def test_one_after_the_other_tells_nothing(tmp_path: Path) -> None:
    trace = kernels(kernels(TraceBuilder(), ONE, every(40)), OTHER, every(40, 200 * MS))
    assert MAYBE in told(trace, tmp_path)


def test_copies_beside_kernels_tell_nothing(tmp_path: Path) -> None:
    """A GPU copies for one process while it computes for another."""
    trace = turns()
    for start in every(39, 2 * MS):
        trace.memcpy(start, start + MS, thread=(ONE, ONE), launch=(start - 2 * US, start - US))
    assert TURNS in told(trace, tmp_path)


def test_only_devices_of_the_same_number(tmp_path: Path) -> None:
    found = notes(kernels(turns(), THIRD, every(40), device=1), tmp_path)
    assert TURNS in found["gpu0-pid5000"][0]
    assert found["gpu1-pid6000"] == []


def test_without_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for pid in (ONE, OTHER):
        trace.memcpy(MS, 2 * MS, thread=(pid, pid), launch=(US, 2 * US))
    assert MAYBE in told(trace, tmp_path)


@pytest.mark.slow
def test_many_processes_are_not_compared(tmp_path: Path) -> None:
    trace = turns()
    for number in range(MOST_DEVICES - 1):
        kernels(trace, THIRD + number, [MS])
    assert MAYBE in told(trace, tmp_path)
