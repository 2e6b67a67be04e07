"""Collectives of several ranks, against a search in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.replay.meetings import ENDS_APART_NS, Met, Transfers, exchanges, meetings_of, peers
from nsysdiag.replay.work import Class, Work
from tests.replay.making import Row, work_of


def met(*rows: tuple[int, int, int]) -> Met:
    return Met.collectives(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def communication(device: int, start: int, length: int) -> Row:
    return device, start, length, 0, int(Class.COMMUNICATION), 1


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), unique_by=lambda row: row[:2]),
    st.data(),
)
def test_a_meeting_is_when_the_last_rank_comes(ranks: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Each kernel is of one meeting at most; some parts of meetings are not among the operations."""
    work = work_of([communication(*row) for row in ranks])
    number = data.draw(st.lists(st.integers(0, 3), min_size=len(ranks), max_size=len(ranks)))
    rows = [(of, device, start) for of, (device, start, _) in zip(number, ranks, strict=True)]
    missing = [(each, 9, 0) for each in data.draw(st.sets(st.integers(0, 3)))]
    found = meetings_of(work, met(*rows, *missing))
    assert (found.of >= 0).tolist() == [_is_met(at, work, rows, missing) for at in range(len(work))]
    for place in range(len(found.time)):
        members = found.of == place
        assert found.time[place] == work.start[members].max() <= work.end[members].min()
    assert (found.lengths(work) >= 0).all()


def _is_met(at: int, work: Work, rows: list[tuple[int, int, int]], missing: list[tuple[int, int, int]]) -> bool:
    of = {(device, start): meeting for meeting, device, start in rows}
    mine = of[int(work.device[at]), int(work.start[at])]
    members = [each for each in range(len(work)) if of[int(work.device[each]), int(work.start[each])] == mine]
    together = max(work.start[each] for each in members) <= min(work.end[each] for each in members)
    return bool(together) and mine not in {meeting for meeting, *_ in missing}


def test_who_leaves_before_the_other_comes_has_not_met_it() -> None:
    work = work_of([communication(0, 0, 5), communication(1, 9, 5)])
    found = meetings_of(work, met((1, 0, 0), (1, 1, 9)))
    assert found.of.tolist() == [-1, -1]
    assert found.lengths(work).tolist() == [5, 5]


def test_nothing_meets_without_operations() -> None:
    assert len(meetings_of(Work.empty(), met((1, 0, 0))).of) == 0
    assert len(meetings_of(work_of([communication(0, 0, 5)]), Met.empty()).time) == 0
    kernels = work_of([(0, 0, 5, 0, int(Class.COMPUTE), 1)])
    assert meetings_of(kernels, met((1, 0, 0))).of.tolist() == [-1]


def sent(*rows: tuple[int, int, int, int]) -> list[list[tuple[int, int]]]:
    """The pairs of (device, start), of kernels given as device, stream, start and end."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    found = peers(Transfers(*table))
    pairs = zip(found.device.tolist(), found.start.tolist(), strict=True)
    by_meeting: dict[int, list[tuple[int, int]]] = {}
    for meeting, pair in zip(found.meeting.tolist(), pairs, strict=True):
        by_meeting.setdefault(meeting, []).append(pair)
    return [sorted(each) for each in by_meeting.values()]


def test_send_and_receive_end_together() -> None:
    assert sent((0, 0, 100, 900), (1, 1, 600, 905), (0, 0, 100_000, 200_000), (1, 1, 150_000, 199_000)) == [
        [(0, 100), (1, 600)],
        [(0, 100_000), (1, 150_000)],
    ]


def test_each_has_the_nearest_peer() -> None:
    assert sent((0, 0, 0, 1_000), (1, 1, 100, 1_010), (2, 2, 200, 5_000), (3, 3, 300, 5_001)) == [
        [(0, 0), (1, 100)],
        [(2, 200), (3, 300)],
    ]


def test_what_is_no_transfer_between_two_devices_is_no_pair() -> None:
    """Of one device; one after the other; ending far apart."""
    assert sent((0, 0, 0, 100), (0, 1, 10, 105)) == []
    assert sent((0, 0, 0, 100), (1, 1, 100, 200)) == []
    assert sent((0, 0, 0, 100), (1, 1, 50, 100_000)) == []


def groups(links: list[tuple[int, int]], members: int, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends in ns of groups of sends and receives between these members, which come at times of their own."""
    start = np.arange(count) * 1_000_000 + np.random.default_rng(3).integers(0, 300_000, (members, count))
    near = [[each, *(other for link in links if each in link for other in link)] for each in range(members)]
    return start, np.stack([start[each].max(axis=0) for each in near]) + 50_000


def who_come(found: Met, members: int) -> list[set[int]]:
    """The members that come to the first meeting that each leaves."""
    return [set(found.device[found.meeting == each].tolist()) for each in range(members)]


RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


class TestExchanges:
    def test_in_a_ring_each_waits_for_its_neighbours(self) -> None:
        found = exchanges(np.arange(4), *groups(RING, 4))
        assert who_come(found, 4) == [{3, 0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 0}]
        assert found.leaves.sum() == 4 * 12

    def test_among_all_each_waits_for_all(self) -> None:
        found = exchanges(np.arange(3), *groups([(0, 1), (1, 2), (2, 0)], 3))
        assert who_come(found, 3) == [{0, 1, 2}] * 3

    def test_two_groups_in_a_step_take_turns(self) -> None:
        """The odd ones are among all four, the even ones in a ring."""
        every = [(one, other) for one in range(4) for other in range(one)]
        start, end = groups(RING, 4, 24)
        end[:, 1::2] = groups(every, 4, 24)[1][:, 1::2]
        found = exchanges(np.arange(4), start, end)
        assert who_come(found, 4) == [{3, 0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 0}]
        assert set(found.device[found.meeting == 4].tolist()) == {0, 1, 2, 3}

    def test_ends_that_nobody_explains_are_of_no_group(self) -> None:
        start, end = groups(RING, 4)
        end[0] += np.arange(12) * ENDS_APART_NS
        assert len(exchanges(np.arange(4), start, end)) == 0

    def test_a_few_groups_tell_nothing(self) -> None:
        assert len(exchanges(np.arange(4), *groups(RING, 4, 3))) == 0


def test_a_kernel_that_only_comes_leaves_no_meeting() -> None:
    """The first leaves once the second has come; the second waits for nobody."""
    work = work_of([communication(0, 0, 9), communication(1, 5, 2)])
    both = met((1, 0, 0), (1, 1, 5))
    found = meetings_of(work, Met(both.meeting, both.device, both.start, np.array([True, False])))
    assert found.of.tolist() == [0, -1]
    assert (found.come.tolist(), found.to.tolist()) == ([0, 1], [0, 0])
    assert found.lengths(work).tolist() == [4, 2]
