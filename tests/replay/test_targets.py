"""What a wait waits for, against a search in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.replay.orders import NONE, HostWaits, Issued, last_of_each_kind, targets

TIMES, GROUPS = st.integers(0, 40), st.integers(0, 2)


def columns(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """(group, begin, end) with ends that differ: of two that end at once either is right."""
    ends = draw(st.lists(TIMES, unique=True, max_size=12))
    return [(draw(GROUPS), draw(st.integers(0, end)), end) for end in ends]


def slowly(operations: list[tuple[int, int, int]], wait: tuple[int, int, int]) -> int:
    group, begin, until = wait
    issued = [at for at, (own, start, _) in enumerate(operations) if own == group and start < begin]
    last = max(issued, key=lambda at: operations[at][2], default=NONE)
    if last == NONE or operations[last][2] <= until:
        return last
    over = [at for at, (own, _, end) in enumerate(operations) if own == group and end <= until]
    latest = max(over, key=lambda at: operations[at][2], default=NONE)
    return latest if latest in issued else NONE


@given(rows(), rows())
def test_it_is_what_a_slow_search_finds(
    operations: list[tuple[int, int, int]], waits: list[tuple[int, int, int]]
) -> None:
    found = targets(Issued(*columns(operations)), HostWaits(*columns(waits)))
    assert found.tolist() == [slowly(operations, wait) for wait in waits]


def test_a_wait_for_an_event_is_for_what_had_ended() -> None:
    """The second kernel, issued before the wait, runs on after it."""
    operations = Issued(*columns([(0, 10, 50), (0, 20, 90)]))
    assert targets(operations, HostWaits(*columns([(0, 30, 55), (0, 30, 95), (1, 30, 95)]))).tolist() == [0, 1, NONE]


@given(rows(), rows(), st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_the_last_of_each_kind_is_what_a_slow_search_finds(
    operations: list[tuple[int, int, int]], waits: list[tuple[int, int, int]], kinds: list[int]
) -> None:
    waits = [(group, 3 * begin, 3 * begin + end) for group, begin, end in waits]
    if len({wait[:2] for wait in waits}) < len(waits):
        return  # of two waits that begin at once either is right
    kind = np.array(kinds[: len(operations)], dtype=np.int64)
    wait, row = last_of_each_kind(Issued(*columns(operations)), kind, HostWaits(*columns(waits)))
    found = sorted(zip(wait.tolist(), row.tolist(), strict=True))
    assert found == sorted(pairs_slowly(operations, kinds, waits))


def pairs_slowly(
    operations: list[tuple[int, int, int]], kinds: list[int], waits: list[tuple[int, int, int]]
) -> list[tuple[int, int]]:
    """Of each wait and kind the last operation to end, of those for which it is the first wait. That is the first to
    begin after them, once it or one before it has lasted until their end. Those that end after it are left out."""
    mine: dict[tuple[int, int], list[int]] = {}
    in_order = sorted(range(len(waits)), key=lambda at: waits[at][1])
    for at, (group, issued, end) in enumerate(operations):
        lasted = -1
        for number in in_order:
            own, begin, over = waits[number]
            lasted = max(lasted, over) if own == group else lasted
            if own == group and begin > issued and lasted >= end:
                if end <= over:
                    mine.setdefault((number, kinds[at]), []).append(at)
                break
    return [(wait, max(found, key=lambda at: operations[at][2])) for (wait, _), found in mine.items()]
