"""What operations wait for on their devices, against searches in plain Python."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.event_waits import StreamWaits
from nsysdiag.replay.orders import (
    FEWEST_CASES,
    GAP_NS,
    LATENCY_NS,
    Before,
    awaited_events,
    barriers,
    class_order,
    observed_order,
    overlapped_order,
    pace_of,
    stream_order,
)
from nsysdiag.replay.work import Class, Work
from tests.replay.making import activity_of, work_of, works


def pairs(found: Before) -> set[tuple[int, int]]:
    return set(zip(found.before.tolist(), found.after.tolist(), strict=True))


@given(works())
def test_the_order_in_a_stream(work: Work) -> None:
    slowly = set()
    for after in range(len(work)):
        before = [at for at in range(after) if work.stream[at] == work.stream[after]]
        slowly |= {(before[-1], after)} if before else set()
    assert pairs(stream_order(work)) == slowly


@given(works())
def test_the_order_behind_operations_that_overlap(work: Work) -> None:
    """Of several that end at once either may be the one."""
    pairs_found = overlapped_order(work)
    found = dict(zip(pairs_found.after.tolist(), pairs_found.before.tolist(), strict=True))
    for after in range(len(work)):
        before = [at for at in range(after) if work.stream[at] == work.stream[after]]
        end = max((int(work.end[at]) for at in before), default=-1)
        if after in found:
            assert found[after] in before[:-1]
            assert work.end[found[after]] == end <= work.start[after]
        else:
            assert not before or end > work.start[after] or end == work.end[before[-1]]


@given(works())
def test_the_order_of_a_class(work: Work) -> None:
    """Only where another class stands between: else the order in the stream says it."""
    slowly = set()
    for after in range(len(work)):
        before = [at for at in range(after) if work.stream[at] == work.stream[after]]
        own = [at for at in before if work.kind[at] == work.kind[after]]
        slowly |= {(own[-1], after)} if own and own[-1] != before[-1] else set()
    assert pairs(class_order(work)) == slowly


@given(works(), st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 35), st.integers(-2, 11)), max_size=6))
def test_what_waits_for_an_event(work: Work, waits: list[tuple[int, int, int]]) -> None:
    """The producers of some waits are none of these operations."""
    stream, issued, producer = np.array(waits, dtype=np.int64).reshape(-1, 3).T
    found = awaited_events(work, StreamWaits(stream, issued, producer), 12)
    slowly = set()
    for lane, when, before in waits:
        later = [at for at in range(len(work)) if work.stream[at] == lane and work.issued[at] >= when]
        after = min(later, key=lambda at: (work.issued[at], at), default=-1)
        if after >= 0 and after != before and 0 <= before < len(work) and work.end[before] <= work.start[after]:
            slowly.add((before, after))
    assert pairs(found) == slowly


@given(works())
def test_what_the_legacy_default_stream_holds_back(work: Work) -> None:
    """Stream 0 is it, 1 and 2 are blocking streams of its context, and 3 is none."""
    streams = SimpleNamespace(null=np.arange(4) == 0, non_blocking=np.arange(4) == 3)
    found = barriers(work, activity_of(work, streams=streams))  # type: ignore[arg-type]
    for before, after in pairs(found):
        assert work.end[before] <= work.start[after]
        assert work.issued[before] < work.issued[after]
        assert {bool(work.stream[at] == 0) for at in (before, after)} == {True, False}
        assert 3 not in (work.stream[before], work.stream[after])
        between = (work.stream == 0) if work.stream[before] == 0 else np.isin(work.stream, (1, 2))
        between &= (work.issued < work.issued[after]) & (work.end <= work.start[after])
        assert work.end[before] == work.end[between].max()


def test_without_streams_there_are_no_barriers() -> None:
    work = work_of([(0, 0, 5, 0, 0, 1), (0, 9, 5, 1, 0, 1)])
    streams = SimpleNamespace(null=np.empty(0, np.bool_), non_blocking=np.empty(0, np.bool_))
    assert len(barriers(work, activity_of(work, streams=streams))) == 0  # type: ignore[arg-type]


@given(works(), st.data())
def test_an_observed_order_is_that_of_the_device(work: Work, data: st.DataObject) -> None:
    late = np.array(data.draw(st.lists(st.booleans(), min_size=len(work), max_size=len(work))), dtype=np.bool_)
    for before, after in pairs(observed_order(work, late)):
        assert late[after]
        assert work.device[before] == work.device[after]
        ended = work.end[(work.device == work.device[after]) & (work.end <= work.start[after])]
        assert work.end[before] == ended.max()


NOT_PAGED = np.array(-1)


def test_a_gap_in_which_another_stream_ended_may_be_a_wait() -> None:
    """If it is not known which streams wait for events: copies behind kernels of another stream had gaps as long."""
    work = work_of([(0, 800 * at, 100, at % 2, Class.COMPUTE, 100_000) for at in range(3 * FEWEST_CASES)])
    rows = np.arange(len(work))
    for hidden, gap in ((Before.empty(), 1500), (Before(rows[:-1], rows[1:]), GAP_NS)):
        assert pace_of(work, work.issued, Before.empty(), hidden, NOT_PAGED, 1).gap.tolist() == [[gap] * 3]


def test_the_pace_of_few_operations_is_the_usual_one() -> None:
    pace = pace_of(Work.empty(), Work.empty().issued, Before.empty(), Before.empty(), Work.empty().issued, 1)
    assert np.unique(pace.gap).tolist() == np.unique(pace.switch).tolist() == [GAP_NS]
    assert np.unique(pace.latency).tolist() == [LATENCY_NS]
    assert not pace.known.any()


def test_the_pace_of_queued_kernels() -> None:
    """Kernels of 100 ns, 700 ns apart, launched long before: the class has enough, the other takes the device's."""
    work = work_of([(0, 800 * at, 100, 0, Class.COMPUTE, 10_000) for at in range(FEWEST_CASES + 1)])
    pace = pace_of(work, work.issued, Before.empty(), Before.empty(), NOT_PAGED, 2)
    assert pace.gap.tolist() == [[700] * 3, [GAP_NS] * 3]
    assert pace.known.tolist() == [[True] * 3, [False] * 3]


def test_the_latency_is_that_of_an_idle_stream() -> None:
    """Each kernel is launched 900 ns before it starts, 200 ns of which its call takes; nothing else is under way."""
    work = work_of([(0, 5_000 * at, 100, 0, Class.COMPUTE, 900) for at in range(FEWEST_CASES + 1)])
    assert pace_of(work, work.issued + 200, Before.empty(), Before.empty(), NOT_PAGED, 1).latency.tolist() == [
        [700] * 3
    ]


def test_no_gap_is_one_in_which_pages_moved() -> None:
    """Between queued kernels pages move for 600 of 700 ns, until 50 ns before each starts."""
    work = work_of([(0, 800 * at, 100, 0, Class.COMPUTE, 10_000) for at in range(FEWEST_CASES + 1)])
    assert pace_of(work, work.issued, Before.empty(), Before.empty(), work.start - 50, 1).gap.tolist() == [[GAP_NS] * 3]
