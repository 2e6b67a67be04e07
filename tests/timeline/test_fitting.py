"""Exact rows by their weight: whatever they are, they take no more bytes than there is room for."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec import structs

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.timeline.levels import (
    Fitted,
    LaneSource,
    NameTable,
    Packing,
    Room,
    codes_of,
    exact_size,
    fitted,
    launch_column,
    rows_in,
)
from tests.output.timeline.samples import lane
from tests.timeline.decode import launches, numbers, unpack

MS = 1_000_000
HIGH = 400 * MS
GAPS = Intervals.of([(200 * MS, 201 * MS), (100 * MS, 101 * MS), (300 * MS, 301 * MS)])


def source(count: int, names: list[str]) -> LaneSource:
    """Rows of some us that follow each other by chance: hard to compress."""
    chance = np.random.default_rng(count)
    start = np.sort(chance.integers(0, HIGH, count))
    end = start + chance.integers(1, 1 << 14, count)
    named = codes_of(chance.integers(0, len(names), count), names)
    return LaneSource("api", start, end, named, thread=0)


def packed(rows: LaneSource, room: Room) -> Fitted:
    packing = Packing(NameTable(1_000_000), 0, HIGH)
    return fitted(packing, [rows], GAPS, room, lambda each, parts, _rows: rows_in(each, parts))


def test_where_all_have_room_all_are_kept() -> None:
    found = packed(source(2_000, ["a"]), Room(2_000, 100_000))
    assert found.exact == [(0, HIGH)]
    assert found.lanes[0].count == 2_000


@pytest.mark.parametrize("size", [2_000, 5_000, 20_000])
def test_what_weighs_too_much_is_dropped_from_the_end_of_the_list(size: int) -> None:
    found = packed(source(40_000, ["a", "b"]), Room(60_000, size))
    assert 0 < exact_size(found.lanes) <= size
    assert any(low < 201 * MS <= high for low, high in found.exact)
    assert found.lanes[0].levels


def test_names_weigh_too() -> None:
    names = [f"{at * 7919:x}" * 4 for at in range(1_000)]
    few, many = source(1_000, ["a"]), source(1_000, names)
    room = Room(1_000, 8_000)
    assert packed(few, room).exact == [(0, HIGH)]
    found = packed(many, room)
    assert found.exact != [(0, HIGH)]
    assert exact_size(found.lanes) + found.names.size() - NameTable(0).size() <= room.size


def test_names_of_tries_that_failed_are_not_kept() -> None:
    found = packed(source(1_000, [f"{at * 7919:x}" * 4 for at in range(1_000)]), Room(1_000, 8_000))
    (lane,) = found.lanes
    kept = json.loads(unpack(found.names.packed()))
    assert set(numbers(lane.names, lane.count)) == set(range(1, len(kept)))


@pytest.mark.parametrize(
    ("call", "shown", "wanted"),
    [
        ([7, 8, 9], [7, 8, 9], [0, 1, 2]),
        ([9, -1, 7], [7, 5, 9], [2, None, 0]),
        ([3], [7], [None]),
        ([3], [], [None]),
        ([5, 5], [7, 5], [1, 1]),
    ],
)
def test_a_launch_is_found_among_the_calls_that_are_shown(
    call: list[int], shown: list[int], wanted: list[int | None]
) -> None:
    column = launch_column(np.array(call, dtype=np.int64), np.array(shown, dtype=np.int64))
    held = structs.replace(lane("stream", [(at, 1, 0, 0) for at in range(len(call))]), launches=column)
    assert (launches(held) if column else [None] * len(call)) == wanted
