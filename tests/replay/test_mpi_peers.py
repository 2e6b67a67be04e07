"""Calls of MPI that wait for one other rank: whether they end sooner is not known."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.diagnosis.programs.registry import MS, US
from tests.replay.pairs import mpi, others
from tests.replay.pairs.pair import Pair, faster, pair, without
from tests.replay.pairs.prediction import predicted


@pytest.mark.slow
@pytest.mark.parametrize("each", mpi.PAIRS, ids=lambda each: each.name)
def test_ranks_may_hold_each_other_up(each: Pair, tmp_path: Path) -> None:
    outcome = predicted(each, tmp_path)
    assert outcome.low <= outcome.true <= outcome.high
    assert each.saves[0] <= outcome.true <= each.saves[1]


def test_calls_that_hardly_wait_widen_nothing(tmp_path: Path) -> None:
    program = partial(others.exchanging, ns=20 * US, kernel=1 * MS)
    outcome = predicted(pair("short", program, {"factor": 0.0}, without("sync"), (0.0, 1.0)), tmp_path)
    assert outcome.high - outcome.low < 0.1


def test_a_faster_call_is_as_fast_as_it_is_said(tmp_path: Path) -> None:
    program = partial(others.exchanging, ns=900 * US, kernel=1 * MS, ranges=True)
    halved = pair("halved", program, {"factor": 0.5}, faster("host", "MPI_Sendrecv", 0.5), (0.2, 0.27))
    outcome = predicted(halved, tmp_path)
    assert outcome.low - 0.01 <= outcome.true <= outcome.high + 0.01
    assert outcome.high - outcome.low < 0.1
