"""What waits for events are for through other streams, held against a walk through all that streams have to do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysdiag.events.event_waits import NEVER, RecordedWaits, through_others
from tests import levels


class Wait(NamedTuple):
    """A wait, and the number of things that were issued before the event was recorded."""

    stream: int
    of: int
    recorded: int


Issued = int | Wait
"""An operation, as its stream; or a wait."""
stream = st.integers(0, 3)
wait = st.tuples(stream, st.integers(1, 3), st.sampled_from((0, 0, 1, 4)))
programs = st.lists(st.one_of(stream, wait, wait, wait), min_size=3, max_size=12)


def issued(items: list[int | tuple[int, int, int]]) -> list[Issued]:
    """Waits are for events of the stream of one of the things before them, recorded just now or some things before."""
    program: list[Issued] = []
    for at, each in enumerate(items):
        if isinstance(each, tuple):
            stream, back, earlier = each
            before = program[-back] if back <= at else 0
            of = before.stream if isinstance(before, Wait) else before
            program.append(Wait(stream, of, max(at - earlier, 0)))
        else:
            program.append(each)
    return program


def recorded_of(program: list[Issued]) -> tuple[RecordedWaits, list[int], list[int]]:
    """The waits of a program, the place of each, and that of the last operation before its event, -1 for none. Things
    are issued at 10, 20, ..., events recorded 5 before."""
    places = [at for at, each in enumerate(program) if isinstance(each, Wait)]
    rows, last = [], []
    for at in places:
        wait = program[at]
        assert isinstance(wait, Wait)
        before = [place for place in range(wait.recorded) if program[place] == wait.of]
        last.append(before[-1] if before else -1)
        times = (10 * (at + 1), 10 * wait.recorded + 5, 10 * (last[-1] + 1) if before else NEVER)
        rows.append((wait.stream, times[0], wait.of, times[1], times[2]))
    return RecordedWaits(*np.array(rows, dtype=np.int64).reshape(-1, 5).T), places, last


def needed(program: list[Issued], stream: int, until: int) -> set[int]:
    """All operations that are done before what is issued to a stream as thing `until` begins."""
    found: set[int] = set()
    left, done = [(stream, until)], set()
    while left:
        stream, until = left.pop()
        if (stream, until) not in done:
            done.add((stream, until))
            mine = [(at, each) for at, each in enumerate(program[:until])]
            found |= {at for at, each in mine if each == stream}
            left += [(each.of, each.recorded) for _, each in mine if isinstance(each, Wait) and each.stream == stream]
    return found


@pytest.mark.slow
@settings(max_examples=levels.examples(2000))
@given(programs.map(issued))
def test_nothing_that_a_wait_is_for_is_left_out(program: list[Issued]) -> None:
    """The operations found, and those before them, are what the event needs, beside what its own stream did."""
    waits, places, last = recorded_of(program)
    found = through_others(waits)
    for row, at in enumerate(places):
        wait = program[at]
        assert isinstance(wait, Wait)
        own = needed(program, wait.stream, at)
        ends = [last[row], *(last[other] for other in found.other[found.wait == row].tolist())]
        reached = [needed(program, program[end], end) | {end} for end in ends if end >= 0]  # type: ignore[arg-type]
        assert own.union(*reached) == own | needed(program, wait.of, wait.recorded)


def test_a_stream_without_operations_passes_its_wait_on() -> None:
    """An operation of stream 1; stream 2 waits for it, and 3 waits for 2."""
    waits, _, _ = recorded_of([1, Wait(2, 1, 1), Wait(3, 2, 2)])
    found = through_others(waits)
    assert (found.wait.tolist(), found.other.tolist()) == ([1], [0])


def test_an_operation_between_ends_the_chain() -> None:
    """It waits itself: who waits for it needs no more."""
    waits, _, _ = recorded_of([1, Wait(2, 1, 1), 2, Wait(3, 2, 3)])
    assert len(through_others(waits)) == 0


def test_waits_before_an_operation_are_its_own() -> None:
    """Stream 2 waits for 1 and works, then it waits for 0, which does nothing; 3 waits for 2."""
    waits, _, _ = recorded_of([1, Wait(2, 1, 1), 2, Wait(2, 0, 3), Wait(3, 2, 4)])
    found = through_others(waits)
    assert (found.wait.tolist(), found.other.tolist()) == ([2], [1])


def test_the_event_recorded_last_counts() -> None:
    """Stream 2 waits for the second operation of stream 1, then for an event from before it; 3 waits for 2."""
    waits, _, _ = recorded_of([1, 1, Wait(2, 1, 2), Wait(2, 1, 1), Wait(3, 2, 4)])
    found = through_others(waits)
    assert (found.wait.tolist(), found.other.tolist()) == ([2], [0])


def test_a_longer_way_to_a_later_event_counts() -> None:
    """Stream 0 waits for 3, which waits for the first operation of stream 1, and for stream 2, which waits for its
    second one."""
    waits, _, _ = recorded_of([1, Wait(3, 1, 1), 1, Wait(2, 1, 3), Wait(3, 2, 4), Wait(0, 3, 5)])
    found = through_others(waits)
    assert sorted(found.other[found.wait == 3].tolist()) == [1, 2]


def test_a_stream_does_not_wait_for_itself() -> None:
    waits, _, _ = recorded_of([1, Wait(2, 1, 1), Wait(1, 2, 2)])
    assert len(through_others(waits)) == 0


def test_streams_that_meet_without_end_end() -> None:
    """Two streams that do nothing wait for each other again and again; a third one waits for one of them."""
    program: list[Issued] = [1, Wait(2, 1, 1)]
    for _ in range(200):
        program += [Wait(3, 2, len(program)), Wait(2, 3, len(program) + 1)]
    waits, places, _ = recorded_of([*program, Wait(0, 2, len(program))])
    found = through_others(waits)
    mine = found.other[found.wait == len(places) - 1]
    assert sorted(waits.of[mine].tolist()) == [1, 2, 3]
    assert len(found) < 4 * len(waits)
