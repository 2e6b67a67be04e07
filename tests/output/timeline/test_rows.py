"""Slices read back from a report: how far apart they are, and what lies between them."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from nsysdiag.formats.html.timeline_data import LaneSlices, between, rows_of
from nsysdiag.messages import InputError
from tests.output.timeline.samples import lane, numbers

PLACES = np.array([7, 9])


def rows(*pairs: tuple[int, int]) -> LaneSlices:
    start, length = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return LaneSlices(100, start, length, length[:0], length[:0])


def test_a_lane_comes_back() -> None:
    found = rows_of(lane("stream", [(0, 5, 1, 2), (6, 2, 0, 1)]), 100, PLACES)
    assert found.start.tolist() == [100, 106]
    assert (found.length.tolist(), found.name.tolist(), found.kind.tolist()) == ([5, 2], [9, 7], [2, 1])


def test_steps_count_from_the_end_before_where_none_overlap() -> None:
    steps, apart = rows((100, 5), (105, 2), (110, 1)).steps()
    assert (steps.tolist(), apart) == ([0, 0, 3], True)
    steps, apart = rows((100, 5), (104, 2)).steps()
    assert (steps.tolist(), apart) == ([0, 4], False)


def test_gaps_lie_between_the_operations_of_all_streams() -> None:
    """
    ```
    stream    [--)     [-)
    stream     [--)        [-)
    gaps          [----)  [-)
    ```
    """
    streams = [rows((100, 10), (130, 5)), rows((105, 10), (137, 5))]
    assert between(streams, np.array([115, 135]), np.array([15, 2]))
    assert not between(streams, np.array([115, 135]), np.array([15, 1]))
    assert not between(streams, np.array([115]), np.array([15]))
    assert not between([], np.array([115]), np.array([15]))
    assert between([], np.array([], dtype=np.int64), np.array([], dtype=np.int64))


@pytest.mark.parametrize(
    "damage",
    [
        {"count": 3},
        {"names": numbers([0, 2])},
        {"lengths": ""},
        {"starts": numbers([1])},
        {"kinds": numbers([1, 2, 3])},
    ],
)
def test_damage_is_told(damage: dict[str, object]) -> None:
    whole = lane("stream", [(0, 5, 1, 2), (6, 2, 0, 1)])
    with pytest.raises(InputError, match="damaged"):
        rows_of(structs.replace(whole, **damage), 100, PLACES)
