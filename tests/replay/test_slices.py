"""Kernels beside those of other processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysdiag.replay.work import beside_others
from tests.replay.making import work_of
from tests.replay.pairs import PAIRS
from tests.replay.pairs.prediction import predicted

ONE, OTHER = 1 << 24, 7 << 24


def beside(device: int, thread: int) -> list[int]:
    """Of a kernel at [0, 100) of ONE on device 0, and one at [40, 80) of another thread."""
    work = work_of([(0, 0, 100, 0, 0, 0), (device, 40, 40, 1, 0, 0)])
    met: list[int] = beside_others(work, np.array([ONE, thread])).tolist()
    return met


def test_kernels_of_another_process_on_the_device_are_met() -> None:
    assert beside(0, OTHER) == [40, 40]


def test_the_own_process_other_devices_and_unknown_threads_are_not() -> None:
    assert beside(0, ONE + 1) == beside(1, OTHER) == beside(0, -1) == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PAIRS if name.startswith("synchronizations of a trainer")])
def test_what_a_busy_neighbour_leaves_is_within_the_bounds(name: str, tmp_path: Path) -> None:
    found = predicted(PAIRS[name], tmp_path)
    assert found.low <= found.true <= found.high
