"""Utilization for any rows whatever, against a count of single nanoseconds."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings

from nsysdiag.config.settings import UtilizationThresholds
from nsysdiag.pipeline import analyze
from nsysdiag.utilization.utilization import LEAST_COVERED
from tests.ledger.arbitrary import rows
from tests.ledger.slow import paint_from, running
from tests.ledger.test_properties import BEHIND_A_WAIT, by_device, shown_from
from tests.levels import examples
from tests.utilization.test_utilization import LIMITS

if TYPE_CHECKING:
    from nsysdiag.report import Report
    from nsysdiag.utilization.facts import Utilization, UtilizationSeries
    from tests.ledger.arbitrary import Op, Rows

pytestmark = pytest.mark.slow

MS = 1_000_000
SM_COUNT = 432  # four times the blocks of a kernel of the builder: each takes a quarter
SHAPED = ("kernel", "node", "nccl")


def report_of(drawn: Rows) -> Report:
    chosen = msgspec.structs.replace(drawn.settings, utilization=UtilizationThresholds(sample_ns=MS, poll_ns=MS))
    with tempfile.TemporaryDirectory() as folder:
        trace = drawn.trace().gpu(0, sm_count=SM_COUNT, limits=LIMITS).gpu(1, sm_count=SM_COUNT, limits=LIMITS)
        return analyze(trace.write(Path(folder) / "trace.sqlite"), chosen)


def levels(ops: list[Op], low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """How many kernels with a shape run at each ns, and how many of all kernels and graphs."""
    shaped, every = np.zeros(high - low, dtype=np.int64), np.zeros(high - low, dtype=np.int64)
    for op in ops:
        span = slice(max(op.start - low, 0), max(op.end - low, 0))
        if op.kind in (*SHAPED, "graph"):
            every[span] += 1
            shaped[span] += op.kind != "graph"
    return shaped, every


def pieces_of(cells: np.ndarray) -> list[np.ndarray]:
    """The window in periods of 1 ms."""
    return [cells[at : at + MS] for at in range(0, len(cells), MS)]


def check_series(series: UtilizationSeries | None, cells: np.ndarray, number: float | None) -> None:
    assert series is not None
    pieces = pieces_of(cells)
    assert series.values == pytest.approx([piece.mean() for piece in pieces], abs=1e-4)
    assert number == round(float(cells.mean()), 6)
    whole = [piece.mean() for piece in pieces if len(piece) == MS] or [piece.mean() for piece in pieces]
    assert (series.lowest, series.highest) == (round(float(min(whole)), 6), round(float(max(whole)), 6))


def check_estimate(found: Utilization, shaped: np.ndarray, every: np.ndarray) -> None:
    estimate = found.estimate
    unknown = every > shaped
    covered = round(float((shaped > 0).sum() / max((every > 0).sum(), 1)), 6)
    if not every.any():
        assert (estimate.sm_active_share, estimate.covered_share) == (0.0, None)
    elif covered < LEAST_COVERED:
        assert (estimate.sm_active_share, estimate.covered_share) == (None, covered)
    else:
        least = np.minimum(shaped / 4, 1.0)
        assert estimate.sm_active_share == pytest.approx(least.mean(), abs=1e-6)
        assert estimate.sm_active_running == pytest.approx(least.sum() / (every > 0).sum(), abs=1e-6)
        assert estimate.sm_active_at_most == pytest.approx(np.where(unknown, 1.0, least).mean(), abs=1e-6)
        assert estimate.covered_share == covered


@example(BEHIND_A_WAIT)
@given(rows())
@settings(max_examples=examples(60))
def test_shares_are_what_one_counts_by_hand(drawn: Rows) -> None:
    for device, ops in by_device(report_of(drawn), drawn):
        found, painted = device.utilization, paint_from(running(ops, drawn), shown_from(device))
        if painted is None or painted.window[1] <= painted.window[0]:
            assert found.util_time_share is None
            continue
        old = drawn.schema == "2.9.1"  # graphs are kernels there
        its = [
            dataclasses.replace(op, kind="kernel") if old and op.kind == "graph" else op for op in running(ops, drawn)
        ]
        shaped, every = levels(its, *painted.window)
        length = painted.window[1] - painted.window[0]
        polled = np.concatenate([np.full(len(piece), piece.any()) for piece in pieces_of(every > 0)])
        check_series(found.by_time, every > 0, found.util_time_share)
        check_series(found.by_period, polled, found.util_period_share)
        check_estimate(found, shaped, every)
        shares = (found.compute_share, found.exposed_comm_share, found.exposed_copy_share, found.idle_share)
        parts = (painted.compute, painted.exposed_comm, painted.exposed_copy, painted.idle)
        assert shares == tuple(round(part / length, 6) for part in parts)
