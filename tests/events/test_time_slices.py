"""Time slices of other processes on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.events.gpus import TimeSlices, slices_of_others

OWN, OTHER, THIRD = 1, 2, 3


def slices(*rows: tuple[int, int, int, int]) -> TimeSlices:
    """Of (start, end, process, gpu)."""
    return TimeSlices(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


ONE_GPU = slices((0, 10, OWN, 0), (10, 30, OTHER, 0), (20, 40, THIRD, 0), (50, 60, OWN, 0))
TWO_GPUS = slices((0, 10, OWN, 0), (10, 30, OTHER, 0), (5, 25, OTHER, 1))


@pytest.mark.parametrize(
    ("made", "gpu", "expected"),
    [
        (ONE_GPU, 0, [(10, 40)]),
        (ONE_GPU, None, [(10, 40)]),
        (ONE_GPU, 1, []),
        (TWO_GPUS, 0, [(10, 30)]),
        (TWO_GPUS, 1, [(5, 25)]),
        (TWO_GPUS, None, []),
        (slices(), None, []),
    ],
)
def test_whose_slices_count(made: TimeSlices, gpu: int | None, expected: list[tuple[int, int]]) -> None:
    found = slices_of_others(made, gpu, OWN)
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == expected
