"""Ranks that meet in calls of MPI: who is late makes the others wait, in the replay too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysdiag.pipeline.changes import whatif
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.meetings import MpiCalls, mpi_calls, within
from tests.builder import TraceBuilder, global_tid

MS, US = 1_000_000, 1_000
STEP, STEPS = 10 * MS, 12


def run(late_ns: int) -> TraceBuilder:
    """Two ranks in one trace; the second comes `late_ns` later, after more host code.

    rank 0   [kernel)                        [kernel)
    T        [host 4 ms][MPI_Allreduce ....][host 2 ms]
    rank 1   [kernel)                        [kernel)
    T        [host 4 ms + late   ][MPI ....][host 2 ms]
    """
    trace = TraceBuilder()
    for rank, more in ((0, 0), (1, late_ns)):
        thread = (100 + rank, 100 + rank)
        trace.sched(1, True, thread=thread, cpu=rank)
        for step in range(1, STEPS + 1):
            base = step * STEP
            trace.kernel(base, base + 2 * MS, launch=(base - 20 * US, base - 15 * US), thread=thread, device=rank)
            begin, end = base + 4 * MS + more, base + 8 * MS
            row = {"start": begin, "end": end, "globalTid": global_tid(thread), "textId": trace.string("MPI_Allreduce")}
            trace.row("MPI_OTHER_EVENTS", row)
    return trace


def calls(*rows: tuple[int, int, int, int]) -> MpiCalls:
    thread, begin, end, meeting = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return mpi_calls(thread, begin, end, meeting)


class TestMeetings:
    def test_the_last_to_come_makes_the_meeting(self) -> None:
        assert calls((1, 10, 50, 7), (2, 30, 50, 7)).came.tolist() == [30, 30]

    def test_who_left_before_another_came_did_not_meet_it(self) -> None:
        assert len(calls((1, 10, 20, 7), (2, 30, 50, 7))) == 0

    def test_a_meeting_that_is_cut_is_none(self) -> None:
        found = within(calls((1, 10, 50, 7), (2, 30, 50, 7), (1, 60, 90, 9), (2, 70, 90, 9)), 20, 100)
        assert found.begin.tolist() == [60, 70]
        assert found.meeting.tolist() == [0, 0]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("late_ns", [0, 1 * MS, 3 * MS])
def test_a_late_rank_like_the_other(late_ns: int, tmp_path: Path) -> None:
    """It comes as early as the other, and all that waited for it is earlier by that."""
    found = whatif(run(late_ns).write(tmp_path / "trace.sqlite"), [Transform(option="rank-like", of="median")])
    assert found.refused is None
    assert found.now_ns == pytest.approx(STEP, rel=0.001)
    assert found.now_ns - found.predicted_ns == pytest.approx(late_ns, abs=0.01 * STEP)
    assert found.low_ns <= STEP - late_ns <= found.high_ns


@pytest.mark.slow
def test_the_others_code_is_behind_the_late_one(tmp_path: Path) -> None:
    """Without any host code a step is the exchange alone: what the kernels take is longer."""
    found = whatif(run(3 * MS).write(tmp_path / "trace.sqlite"), [Transform(option="without", of="host_compute")])
    assert found.predicted_ns == pytest.approx(2 * MS, rel=0.05)
