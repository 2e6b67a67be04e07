"""Pairs that differ by their seed alone: hardly ever a change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nsysdiag.comparing.comparison import compare_reports
from tests.comparing.programs import Program
from tests.comparing.samples import only, report_of, verdicts
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.model import Report

RUNS, PAIRS = 30, 200
NOISY = Program(steps=16, workers=1, jitter=0.25, sync=True, tail=80 * US)


@pytest.mark.slow
def test_at_most_one_in_twenty_says_that_something_changed(tmp_path: Path) -> None:
    """200 pairs of runs of a noisy program: steps, loaders and kernels that last a quarter longer or shorter."""
    runs: list[Report] = [report_of(replace(NOISY, seed=seed), tmp_path) for seed in range(RUNS)]
    pairs = [(one, two) for one in range(RUNS) for two in range(one + 1, RUNS)][:: RUNS * (RUNS - 1) // 2 // PAIRS]
    assert len(pairs) >= PAIRS
    made = [only(compare_reports([runs[one]], [runs[two]])) for one, two in pairs[:PAIRS]]
    assert sum(device.verdict != "same" for device in made) <= 0.05 * PAIRS
    parts = sum(len(device.parts) + len(device.ledger) for device in made)
    assert sum(len(verdicts(device)) for device in made) <= 0.05 * parts
