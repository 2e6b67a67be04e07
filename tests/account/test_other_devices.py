"""Waits for other devices: whose time they are charged to, against a slow oracle; which slices wait for which
device."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.account.filling import followed, waited_for
from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECK_NUMBER, BottleneckId
from nsysdiag.causes import EVENT_WAIT, SYNCHRONIZATION
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.gaps.gaps import OTHER_DEVICE
from nsysdiag.ledger.ledger import SliceCollector
from nsysdiag.time.table import IDLE, TimeTable

AXIS = ThreadAxis.over(np.arange(2), 0, 1_000)
ME, FIRST, SECOND = 0, 1, 2


@dataclass(frozen=True)
class Piece:
    """Time [start, end) that is charged to `bottleneck`, in which the device waited for `other` (-1: for none)."""

    start: int
    end: int
    bottleneck: BottleneckId
    other: int = -1


def device(*pieces: Piece) -> TimeTable:
    cause = np.zeros(len(pieces), dtype=np.int8)
    return TimeTable(
        Intervals.of([(each.start, each.end) for each in pieces]),
        np.array([IDLE if each.other >= 0 else 0 for each in pieces], dtype=np.int8),
        np.array([BOTTLENECK_NUMBER[each.bottleneck] for each in pieces], dtype=np.int8),
        np.array([at if each.other >= 0 else -1 for at, each in enumerate(pieces)], dtype=np.int32),
        np.array([each.other for each in pieces], dtype=np.int32),
        own=cause,
        root=cause,
    )


def read(found: TimeTable) -> list[tuple[int, int, str, int]]:
    columns = (found.spans.start, found.spans.end, found.bottleneck, found.other)
    return [(a, b, BOTTLENECK_IDS[c], d) for a, b, c, d in zip(*(each.tolist() for each in columns), strict=True)]


def test_a_wait_counts_to_what_the_other_device_did() -> None:
    """
    first   [kernels )[copies)[launch)
    me      [k)[waits for first         )
    """
    me = device(Piece(0, 5, "kernels"), Piece(5, 30, "sync", FIRST))
    first = device(Piece(0, 10, "kernels"), Piece(10, 20, "copies"), Piece(20, 25, "launch"))
    assert read(followed(ME, {ME: me, FIRST: first})) == [
        (0, 5, "kernels", -1),
        (5, 10, "kernels", FIRST),
        (10, 20, "copies", FIRST),
        (20, 25, "launch", FIRST),
        (25, 30, "sync", -1),  # after the last work of the other device
    ]


def test_a_chain_leads_to_its_end() -> None:
    me = device(Piece(0, 10, "sync", FIRST))
    first = device(Piece(0, 10, "sync", SECOND))
    second = device(Piece(0, 6, "parallelism"), Piece(6, 10, "host"))
    every = {ME: me, FIRST: first, SECOND: second}
    assert read(followed(ME, every)) == [(0, 6, "parallelism", SECOND), (6, 10, "host", SECOND)]
    assert read(followed(SECOND, every)) == read(second)


def test_devices_that_wait_for_each_other_wait() -> None:
    me = device(Piece(0, 6, "sync", FIRST), Piece(6, 10, "kernels"))
    first = device(Piece(0, 4, "sync", ME), Piece(4, 7, "copies"), Piece(7, 10, "sync", ME))
    every = {ME: me, FIRST: first, SECOND: device(Piece(0, 10, "sync", FIRST))}
    assert read(followed(ME, every))[:2] == [(0, 4, "sync", -1), (4, 6, "copies", FIRST)]
    assert read(followed(FIRST, every)) == [(0, 4, "sync", -1), (4, 7, "copies", -1), (7, 10, "kernels", ME)]
    assert read(followed(SECOND, every)) == [(0, 4, "sync", -1), (4, 7, "copies", FIRST), (7, 10, "kernels", ME)]


def test_a_device_that_is_not_analyzed_explains_nothing() -> None:
    me = device(Piece(0, 10, "sync", SECOND), Piece(10, 20, "sync", FIRST))
    first = device(Piece(0, 20, "kernels"))
    assert read(followed(ME, {ME: me, FIRST: first})) == [(0, 10, "sync", SECOND), (10, 20, "kernels", FIRST)]
    assert read(followed(ME, {ME: me})) == [(0, 10, "sync", SECOND), (10, 20, "sync", FIRST)]


def test_a_chain_leads_to_a_device_that_is_not_analyzed() -> None:
    me = device(Piece(0, 10, "sync", FIRST), Piece(10, 20, "kernels"))
    first = device(Piece(0, 6, "sync", SECOND), Piece(6, 10, "copies"))
    assert read(followed(ME, {ME: me, FIRST: first})) == [
        (0, 6, "sync", SECOND),
        (6, 10, "copies", FIRST),
        (10, 20, "kernels", -1),
    ]


LENGTH, COUNT = 24, 4
FAMILY = st.sampled_from(("kernels", "copies", "host"))


@st.composite
def devices(draw: st.DrawFn) -> dict[int, TimeTable]:
    found = {}
    for number in range(COUNT):
        begin, end = sorted((draw(st.integers(0, LENGTH)), draw(st.integers(0, LENGTH))))
        cuts = sorted({begin, end, *draw(st.lists(st.integers(begin, end), max_size=6))})
        pieces = []
        for low, high in pairwise(cuts):
            other = draw(st.sampled_from([-1, *(each for each in range(COUNT + 1) if each != number)]))
            pieces.append(Piece(low, high, "sync" if other >= 0 else draw(FAMILY), other))
        found[number] = device(*pieces)
    return found


def answer(every: dict[int, list[tuple[int, int, str, int]]], number: int, at: int) -> tuple[str, int]:
    """What one ns of a device is charged to, step by step; one of the devices is not analyzed."""
    asked, own = number, True
    for _ in range(COUNT + 1):
        if asked not in every:
            return "sync", asked
        now = [row for row in every[asked] if row[0] <= at < row[1]]
        if not now:
            return "sync", -1
        if now[0][3] < 0:
            return now[0][2], -1 if own else asked
        asked, own = now[0][3], False
    return "sync", -1


@given(devices())
def test_each_nanosecond_is_where_the_oracle_puts_it(every: dict[int, TimeTable]) -> None:
    rows = {number: read(each) for number, each in every.items()}
    for number, own in every.items():
        found = read(followed(number, every))
        painted = [(at, name, other) for low, high, name, other in found for at in range(low, high)]
        assert [at for at, _, _ in painted] == [at for low, high, _, _ in read(own) for at in range(low, high)]
        assert [(name, other) for _, name, other in painted] == [answer(rows, number, at) for at, _, _ in painted]


def layer(start: int, end: int, lane: int, number: int | None) -> EvidenceLayer:
    placed = AXIS.place(np.array([lane]), Intervals.of([(start, end)]))
    return EvidenceLayer(placed, np.zeros(1, dtype=np.int64), ["wait"], None, number)


def test_which_device_a_slice_waited_for() -> None:
    """By the call around it on its own thread, or by the event that held it; other slices wait for nobody."""
    collector = SliceCollector()
    spans = Intervals.of([(10, 20), (30, 40), (50, 60), (70, 80), (85, 90)])
    gaps = np.arange(5)
    for row, (cause, label) in enumerate(
        [
            (SYNCHRONIZATION, OTHER_DEVICE),
            (SYNCHRONIZATION, OTHER_DEVICE),
            (SYNCHRONIZATION, None),
            (EVENT_WAIT, OTHER_DEVICE),
            (SYNCHRONIZATION, OTHER_DEVICE),
        ]
    ):
        collector.add(cause, Owned(spans[row : row + 1], gaps[row : row + 1]), label=label)
    slices = collector.finish()
    calls = ([layer(5, 25, 0, FIRST), layer(28, 45, 1, SECOND), layer(48, 65, 0, FIRST)], [layer(28, 45, 0, None)])
    lane = np.array([0, 1, 0, 0, 0])
    producer = np.array([-1, -1, -1, SECOND, SECOND])
    assert waited_for(slices, lane, calls, producer, AXIS).tolist() == [FIRST, SECOND, -1, SECOND, -1]
