"""How the steps of a phase are told: their median, and the mean where some take far longer than most."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.phases.facts import PhaseSteps
from nsysdiag.phases.steps import _measured

MS = 1_000_000


@pytest.mark.parametrize(
    ("count", "mean", "said"),
    [
        (30, None, "30 steps, median 10.0 ms"),
        (30, 10_300_000, "30 steps, median 10.0 ms"),
        (30, 10_300_001, "30 steps, mean 10.3 ms, median 10.0 ms"),
        (30, 8 * MS, "30 steps, mean 8.00 ms, median 10.0 ms"),
        (2, 20 * MS, "2 steps"),
        (1, 10 * MS, "1 step"),
    ],
)
def test_words(count: int, mean: int | None, said: str) -> None:
    assert PhaseSteps(count, 10 * MS, "nvtx", mean_ns=mean).words == said


def test_of_lengths() -> None:
    steps = _measured(np.array([10 * MS, 40 * MS, 10 * MS]), "anchor")
    assert (steps.count, steps.median_ns, steps.mean_ns, steps.warm_up_ns) == (3, 10 * MS, 20 * MS, None)
    assert steps.length == "mean 20.0 ms, median 10.0 ms"
