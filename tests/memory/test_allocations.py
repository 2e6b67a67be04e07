"""Allocations matched with frees: literal levels, and any program against a slow dictionary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.memory import Usage
from nsysdiag.memory.device import at, level, levels, match

ALLOCATION, FREE = 0, 1


@dataclass(frozen=True, slots=True)
class Event:
    """An allocation or a free of an address by a process."""

    time: int
    process: int
    address: int
    operation: int
    size: int
    device: int = 0


def usage(events: list[Event]) -> Usage:
    """The events as the reader gives them; correlation ids rise in the order of the list."""

    def column(name: str) -> np.ndarray:
        return np.array([getattr(event, name) for event in events], dtype=np.int64)

    nothing = np.zeros(len(events), dtype=np.int64)
    return Usage(
        time=column("time"),
        process=column("process"),
        device=column("device"),
        address=column("address"),
        correlation=np.arange(1, len(events) + 1, dtype=np.int64),
        operation=column("operation"),
        kind=nothing + 2,
        size=column("size"),
        pool=nothing - 1,
        reserved=nothing,
        used=nothing,
    )


def given_out(events: list[Event], times: list[int], device: int | None = None) -> list[int]:
    changes = match(usage(events))
    if device is not None:
        changes = changes.take(changes.device == device)
    return at(level(changes, 0, 1_000), np.array(times)).tolist()


def test_an_address_is_given_out_again_after_a_free() -> None:
    """
    0x10   [10: 4 ...... 30)    [50: 8 ........
    0x20       [20: 2 ................ 60)
    level  0   4   6     2      10        8
    """
    events = [Event(10, 1, 0x10, 0, 4), Event(20, 1, 0x20, 0, 2), Event(30, 1, 0x10, 1, 4)]
    events += [Event(50, 1, 0x10, 0, 8), Event(60, 1, 0x20, 1, 2)]
    assert given_out(events, [0, 9, 10, 20, 30, 49, 50, 60, 999]) == [0, 0, 4, 6, 2, 2, 10, 8, 8]


def test_a_free_of_the_time_before_the_capture_changes_nothing() -> None:
    events = [Event(5, 1, 0x10, FREE, 9), Event(10, 1, 0x10, ALLOCATION, 4)]
    assert given_out(events, [5, 10]) == [0, 4]
    changes = match(usage(events))
    assert changes.unknown.tolist() == [False, True]
    assert changes.size.tolist() == [4, -9]


def test_a_second_free_changes_nothing() -> None:
    events = [Event(10, 1, 0x10, 0, 4), Event(20, 1, 0x10, 1, 4), Event(30, 1, 0x10, 1, 4)]
    assert given_out(events, [10, 20, 30]) == [4, 0, 0]
    changes = match(usage(events))
    assert int(changes.unknown.sum()) == 1


def test_what_is_given_out_twice_was_freed_in_between() -> None:
    events = [Event(10, 1, 0x10, 0, 4), Event(20, 1, 0x10, 0, 7)]
    assert given_out(events, [10, 20]) == [4, 7]
    assert match(usage(events)).implied.tolist() == [True, False, False]


def test_the_free_is_of_the_allocation_s_size_and_device() -> None:
    events = [Event(10, 1, 0x10, 0, 4, device=0), Event(20, 1, 0x10, 1, 0, device=1)]
    assert given_out(events, [10, 20], device=0) == [4, 0]
    assert given_out(events, [10, 20], device=1) == [0, 0]


def test_processes_have_addresses_of_their_own() -> None:
    events = [Event(10, 1, 0x10, 0, 4), Event(20, 2, 0x10, 0, 8), Event(30, 1, 0x10, 1, 4)]
    assert given_out(events, [10, 20, 30]) == [4, 12, 8]


@pytest.mark.parametrize(("address", "operation"), [(-1, 0), (0, 0), (0x10, -1), (0x10, 2)])
def test_rows_that_cannot_be_matched_are_none(address: int, operation: int) -> None:
    assert len(match(usage([Event(10, 1, address, operation, 4)]))) == 0


def test_no_rows_at_all() -> None:
    steps = level(match(usage([])), 5, 9)
    assert (steps.time.tolist(), steps.level.tolist(), steps.end) == ([5], [0], 9)


def test_what_came_before_the_span_is_in_its_first_level() -> None:
    steps = levels(np.array([30, 10, 20, 40]), np.array([3, 1, 2, 4]), 20, 40)
    assert (steps.time.tolist(), steps.level.tolist()) == ([20, 30], [3, 6])


def test_no_time_is_an_error() -> None:
    with pytest.raises(ValueError, match="no time"):
        levels(np.array([1]), np.array([1]), 7, 7)


events_of = st.lists(
    st.builds(
        Event,
        time=st.integers(0, 12),
        process=st.integers(1, 2),
        address=st.integers(1, 3),
        operation=st.integers(0, 1),
        size=st.integers(0, 9),
        device=st.integers(0, 1),
    ),
    max_size=30,
)


def slow_levels(events: list[Event], device: int) -> list[int]:
    """The level on a device at each moment, by a dictionary of what is given out."""
    live: dict[tuple[int, int], Event] = {}
    found, ordered = [], sorted(events, key=lambda event: event.time)
    for moment in range(14):
        for event in (each for each in ordered if each.time == moment):
            live.pop((event.process, event.address), None)
            if event.operation == ALLOCATION:
                live[event.process, event.address] = event
        found.append(sum(event.size for event in live.values() if event.device == device))
    return found


def slow_unknown(events: list[Event]) -> int:
    """How many frees were of nothing known."""
    live: set[tuple[int, int]] = set()
    unknown = 0
    for event in sorted(events, key=lambda each: each.time):
        key = event.process, event.address
        unknown += event.operation == FREE and key not in live
        live.discard(key)
        if event.operation == ALLOCATION:
            live.add(key)
    return unknown


@given(events_of, st.randoms(use_true_random=False))
def test_any_program_is_as_a_dictionary_says(events: list[Event], chance: object) -> None:
    changes = match(usage(events))
    for device in (0, 1):
        mine = changes.take(changes.device == device)
        steps = level(mine, 0, 14)
        assert at(steps, np.arange(14)).tolist() == slow_levels(events, device)
        assert steps.level.min() >= 0
        assert int(steps.level.max()) == max(slow_levels(events, device))
    assert int(changes.unknown.sum()) == slow_unknown(events)


@given(events_of, st.randoms(use_true_random=False))
def test_the_order_of_rows_tells_nothing(events: list[Event], chance: object) -> None:
    rows = usage(events)
    order = np.arange(len(events))
    chance.shuffle(order)  # type: ignore[attr-defined]
    one, other = match(rows), match(rows.take(order))
    for name in ("time", "size", "device", "unknown", "implied"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
