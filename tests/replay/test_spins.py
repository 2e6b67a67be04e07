"""Host code that may wait for a device, though no call says so."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.replay.pacing import FEWEST
from nsysdiag.replay.spins import SOON, _follows

CHANCE = np.random.default_rng(3)
KERNELS = CHANCE.integers(400_000, 600_000, 40)
STEADY = np.full(40, 500_000)
CODE = CHANCE.integers(30_000, 50_000, 40)


@pytest.mark.parametrize(
    ("lasts", "ran"),
    [(KERNELS + CODE, KERNELS), (KERNELS + 4 * CODE, KERNELS), (STEADY / (1 - SOON) - 1, STEADY)],
    ids=["a flag", "much code behind it", "steady kernels"],
)
def test_code_that_ends_with_kernels_may_wait_for_them(lasts: np.ndarray, ran: np.ndarray) -> None:
    assert _follows(lasts.astype(np.int64), ran)


@pytest.mark.parametrize(
    ("lasts", "ran"),
    [
        (650_000 + CODE, KERNELS),
        (500_000 + CODE, KERNELS),
        (STEADY / (1 - SOON) + 1_000, STEADY),
        (2 * KERNELS, KERNELS),
        ((KERNELS + CODE)[: FEWEST - 1], KERNELS[: FEWEST - 1]),
    ],
    ids=["as long as ever", "often over before", "long after steady kernels", "twice as much longer", "too few"],
)
def test_other_code_does_not(lasts: np.ndarray, ran: np.ndarray) -> None:
    assert not _follows(lasts.astype(np.int64), ran)
