"""The range that all gaps of a spot lie in, and how much of them is charged to it."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.findings.attribution import Shares
from nsysdiag.findings.hotspots import SpotGaps, _common_beginning, spot_of


@pytest.mark.parametrize(
    ("paths", "common"),
    [
        ([], []),
        ([["train", "step"]], ["train", "step"]),
        ([["train", "step"], ["train", "step"]], ["train", "step"]),
        ([["train", "step", "forward"], ["train", "step", "backward"]], ["train", "step"]),
        ([["train", "step"], ["train"]], ["train"]),
        ([["train", "step"], ["test", "step"]], []),
        ([["train"], []], []),
    ],
)
def test_ranges_in_common_from_the_outermost_on(paths: list[list[str]], common: list[str]) -> None:
    assert _common_beginning(paths) == common


@pytest.mark.parametrize(
    ("counts", "charged"),
    [
        ([True, True, True, True], {3: 30, 5: 40}),
        ([True, True, False, True], {3: 10, 5: 40}),
        ([True, False, False, False], {3: 30, 5: 40}),
    ],
)
def test_idle_time_behind_a_wait_is_that_which_is_charged_to_it(counts: list[bool], charged: dict[int, int]) -> None:
    """The wait itself loses 5 ns of gap 3; 10 and 20 behind it in that gap and 40 in gap 5 are its doing."""
    gap, none = np.array([3, 3, 3, 5]), np.full(4, -1)
    lost, made, zero = np.array([5, 0, 0, 0]), np.array([0, 10, 20, 40]), np.zeros(4, np.int64)
    shares = Shares(gap, none, none, none, zero, zero, zero, lost, made, np.array(counts), zero, none)
    spot = spot_of(shares, ("sync", "sync"), np.arange(4))
    found = SpotGaps.of(shares, spot).charged(shares, spot)
    assert dict(zip(found.gap.tolist(), found.ns.tolist(), strict=True)) == charged
