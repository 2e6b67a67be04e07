"""The division of a window into bottlenecks: without remainder, and each nanosecond where a slow oracle puts it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.account.bottlenecks import (
    BUILDING,
    WAITING_FOR_A_SYNC,
    DeviceWaitCalls,
    IdlePieces,
    busy_pieces,
    idle_pieces,
    in_order,
)
from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECK_NUMBER, BottleneckId
from nsysdiag.causes import FALLBACK, HOST_CODE, IN_MPI, PLACE, PREEMPTION, THREAD_WAIT
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.ledger.ledger import SliceCollector, Slices, WindowSplit
from nsysdiag.time.facts import STATES
from nsysdiag.time.table import TimeTable

LANES, END = 2, 60
AXIS = ThreadAxis.over(np.arange(LANES), 0, END)
Spans = list[tuple[int, int]]
Work = Literal["compute", "communication", "copies"]
WAITING = (THREAD_WAIT, PREEMPTION)
WORK: tuple[Work, ...] = ("compute", "communication", "copies")
STATE = dict(zip(WORK, STATES, strict=False))


@dataclass(frozen=True)
class Slice:
    """Idle time [start, end) that is charged to `bottleneck` by its cause; `lane` is the thread that launched next,
    which did what `own` says."""

    start: int
    end: int
    bottleneck: BottleneckId
    lane: int
    own: str = HOST_CODE


@dataclass(frozen=True)
class Device:
    """A window of pieces that follow each other: work, or a slice. By lane: waits with whether they are
    synchronizations, when it launched, and the ranges in which it compiles."""

    work: dict[Work, Spans]
    slices: list[Slice]
    waits: dict[int, list[tuple[int, int, bool]]]
    migrations: Spans
    hollow: Spans
    foreign: Spans = field(default_factory=list)
    launches: dict[int, list[int]] = field(default_factory=dict)
    compiles: dict[int, Spans] = field(default_factory=dict)

    @property
    def end(self) -> int:
        ends = [end for spans in self.work.values() for _, end in spans]
        return max([*ends, *(each.end for each in self.slices)], default=0)


def divided(device: Device) -> TimeTable:
    return divided_with_waits(device)[0]


def divided_with_waits(device: Device) -> tuple[TimeTable, IdlePieces]:
    sets = {name: union(Intervals.of(device.work[name])) for name in WORK}
    ns = {name: spans.total() for name, spans in sets.items()}
    busy = union(*sets.values())
    split = WindowSplit(
        window=Intervals.of([(0, device.end)]),
        compute_ns=ns["compute"],
        exposed_comm_ns=ns["communication"],
        exposed_copy_ns=ns["copies"],
        overlapped_comm_ns=0,
        kernel_ns=ns["compute"] + ns["communication"],
        kernels=union(sets["compute"], sets["communication"]),
        busy=busy,
        parts=(sets["compute"], sets["communication"], sets["copies"]),
    )
    synchronizations = [_layer(device, lane, counts=True) for lane in range(LANES)]
    copies = [_layer(device, lane, counts=False) for lane in range(LANES)]
    ranges = device.compiles.items()
    compiles = union(*(AXIS.place(np.full(len(each), lane), Intervals.of(each)) for lane, each in ranges))
    begun = [AXIS.position(np.full(len(each), lane), np.array(each)) for lane, each in device.launches.items() if each]
    launches = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *begun]))
    waits = DeviceWaitCalls.of(synchronizations, copies, 0, busy, launches, AXIS)
    idle = idle_pieces(
        _slices(device),
        np.array([BOTTLENECK_NUMBER[each.bottleneck] for each in device.slices], dtype=np.int64),
        np.array([PLACE[each.own] for each in device.slices], dtype=np.int64),
        np.array([each.lane for each in device.slices], dtype=np.int64),
        waits,
        union(Intervals.of(device.foreign)),
        AXIS,
        compiles,
    )
    work = busy_pieces(split, union(Intervals.of(device.migrations)), union(Intervals.of(device.hollow)))
    causes = np.array([PLACE[each.own] for each in device.slices], dtype=np.int8)
    asked = np.full(len(device.slices), -1, dtype=np.int64)
    return in_order(idle, work, asked, causes, causes), idle


def _slices(device: Device) -> Slices:
    collector = SliceCollector()
    spans = Intervals.of([(each.start, each.end) for each in device.slices])
    collector.add(FALLBACK, Owned(spans, np.arange(len(spans))))
    return collector.finish()


def _layer(device: Device, lane: int, *, counts: bool) -> EvidenceLayer:
    spans = [(start, end) for start, end, is_sync in device.waits[lane] if is_sync == counts]
    placed = AXIS.place(np.full(len(spans), lane), Intervals.of(spans))
    return EvidenceLayer(placed, np.zeros(len(spans), dtype=np.int64), ["wait"])


def painted(device: Device) -> list[str | None]:
    """The bottleneck of each nanosecond, one after the other."""
    cells: list[str | None] = [None] * device.end
    names = {"compute": "kernels", "communication": "communication", "copies": "copies"}
    for kind in WORK:
        for at in _moments(device.work[kind]):
            cells[at] = names[kind]
    for at, name in enumerate(cells):
        if name in ("kernels", "copies") and at in _moments(device.migrations):
            cells[at] = "memory"
        elif name == "kernels" and at in _moments(device.hollow):
            cells[at] = "parallelism"
    worked = {at for at, name in enumerate(cells) if name}
    credit: dict[tuple[int, int], list[int]] = {}
    for lane, waits in device.waits.items():
        for before, (start, end, is_sync) in zip([(0, 0, False), *waits], waits, strict=False):
            launched = any(before[1] <= at < start for at in device.launches.get(lane, []))
            in_a_row = is_sync and before[2] and not launched
            # Waits in a row have one credit.
            shared = credit[lane, before[0]] if in_a_row else [0]
            shared[0] += sum(at in worked for at in range(start, end)) * is_sync
            credit[lane, start] = shared
    for each in sorted(device.slices, key=lambda one: one.start):
        _paint_slice(cells, device, each, credit)
    return cells


def _paint_slice(
    cells: list[str | None], device: Device, each: Slice, credit: dict[tuple[int, int], list[int]]
) -> None:
    foreign = _moments(device.foreign)
    builds = _moments(device.compiles.get(each.lane, [])) if each.bottleneck in BUILDING else set()
    outside = [at for at in range(each.start, each.end) if at not in builds]
    for at in range(each.start, each.end):
        piece = _around(outside, at)
        able = piece and each.bottleneck in WAITING_FOR_A_SYNC and each.own not in WAITING and not foreign & set(piece)
        wait = _last_wait(device, each.lane, piece[0]) if able else None
        if at in foreign:
            cells[at] = "other_process"
        elif at in builds:
            cells[at] = "startup"
        elif wait is not None and credit[wait][0] > 0:
            credit[wait][0] -= 1
            cells[at] = "sync"
        else:
            cells[at] = each.bottleneck


def _around(moments: list[int], at: int) -> list[int]:
    """The run of successive moments that one is in; empty where it is in none."""
    low = high = at
    while low - 1 in moments:
        low -= 1
    while high + 1 in moments:
        high += 1
    return list(range(low, high + 1)) if at in moments else []


def _last_wait(device: Device, lane: int, before: int) -> tuple[int, int] | None:
    """That of the thread which began last before, if it is over."""
    begun = [(start, end) for start, end, _ in device.waits.get(lane, []) if start <= before]
    start, end = max(begun, default=(0, END + 1))
    return (lane, start) if end <= before else None


def _moments(spans: Spans) -> set[int]:
    return {at for start, end in spans for at in range(start, end)}


@st.composite
def devices(draw: st.DrawFn) -> Device:
    work: dict[Work, Spans] = {name: [] for name in WORK}
    slices, at = [], 0
    kinds, owns = st.sampled_from([*WORK, *BOTTLENECK_IDS]), st.sampled_from([HOST_CODE, HOST_CODE, *WAITING])
    for length, kind, lane, own in draw(
        st.lists(st.tuples(st.integers(1, 6), kinds, st.integers(-1, LANES - 1), owns), max_size=10)
    ):
        if kind in work:
            work[kind].append((at, at + length))
        else:
            slices.append(Slice(at, at + length, kind, lane, own))
        at += length
    return Device(
        work=work,
        slices=slices,
        waits={lane: _apart(draw) for lane in range(LANES)},
        migrations=[(start, end) for start, end, _ in _apart(draw)],
        hollow=[(start, end) for start, end, _ in _apart(draw)],
        foreign=[(start, end) for start, end, _ in _apart(draw)],
        launches={lane: [start for start, _, _ in _apart(draw)] for lane in range(LANES)},
        compiles={lane: [(start, end) for start, end, _ in _apart(draw)] for lane in range(LANES)},
    )


def _apart(draw: st.DrawFn) -> list[tuple[int, int, bool]]:
    """Spans that follow each other, with a flag."""
    found, at = [], 0
    for gap, length, flag in draw(
        st.lists(st.tuples(st.integers(0, 8), st.integers(1, 10), st.booleans()), max_size=5)
    ):
        if at + gap + length < END:
            found.append((at + gap, at + gap + length, flag))
            at += gap + length
    return found


@given(devices())
def test_every_nanosecond_is_where_the_oracle_puts_it(device: Device) -> None:
    found = divided(device)
    cells: list[str | None] = [None] * device.end
    states = ["idle"] * device.end
    columns = (found.spans.start, found.spans.end, found.bottleneck, found.state)
    for start, end, code, state in zip(*(each.tolist() for each in columns), strict=True):
        for at in range(start, end):
            assert cells[at] is None, "counted twice"
            cells[at], states[at] = BOTTLENECK_IDS[code], STATES[state]
    assert cells == painted(device)
    worked = [(at, name) for name, spans in device.work.items() for at in _moments(spans)]
    assert {(at, name) for at, name in enumerate(states) if name != "idle"} == {
        (at, STATE[name]) for at, name in worked
    }


@given(devices(), st.lists(st.integers(0, END), max_size=4))
def test_accounts_of_parts_add_up_to_the_window(device: Device, cuts: list[int]) -> None:
    found = divided(device)
    edges = sorted({0, END, *cuts})
    accounts = found.bottlenecks(Intervals.of(list(itertools.pairwise(edges))))
    lengths = [sum(int(ns[part]) for ns in accounts.values()) for part in range(len(edges) - 1)]
    window = Intervals.of([(0, device.end)])
    assert lengths == [max(min(end, device.end) - start, 0) for start, end in itertools.pairwise(edges)]
    assert sum(found.set_of(name).total() for name in BOTTLENECK_IDS) == window.total()


def plain(*slices: Slice, waits: list[tuple[int, int, bool]] = ()) -> Device:
    """Work in [0, 10), then the slices."""
    return Device(
        {"compute": [(0, 10)], "communication": [], "copies": []},
        list(slices),
        {0: list(waits), 1: []},
        [],
        [],
    )


def account(device: Device) -> dict[str, int]:
    whole = Intervals.of([(0, END)])
    return {name: int(ns[0]) for name, ns in divided(device).bottlenecks(whole).items()}


def test_a_wait_comes_before_what_follows_it_except_for_mpi() -> None:
    """
    thread  0 [sync, the device at work) 10 [host: 7 of sync's credit) 17 [MPI) 21 [3 more of it, then host)
    """
    device = plain(
        Slice(10, 17, "host", 0),
        Slice(17, 21, "communication", 0, IN_MPI),
        Slice(21, 30, "host", 0),
        waits=[(0, 10, True)],
    )
    assert account(device) == {"kernels": 10, "sync": 10, "communication": 4, "host": 6}


def test_input_is_not_made_by_a_wait() -> None:
    device = plain(Slice(10, 15, "input", 0), Slice(15, 20, "launch", 0), waits=[(0, 10, True)])
    assert account(device) == {"kernels": 10, "input": 5, "sync": 5}


def test_each_part_knows_its_slice() -> None:
    found, idle = divided_with_waits(
        plain(Slice(10, 15, "input", 0), Slice(15, 30, "launch", 0), waits=[(0, 10, True)])
    )
    spans = list(zip(found.spans.start.tolist(), found.spans.end.tolist(), found.slice.tolist(), strict=True))
    assert spans == [(0, 10, -1), (10, 15, 0), (15, 25, 1), (25, 30, 1)]
    assert idle.made.slice.tolist() == [1]


def test_where_others_had_the_gpu_no_cause_on_the_host_counts() -> None:
    device = Device(
        work={"compute": [(0, 10)], "communication": [], "copies": []},
        slices=[Slice(10, 20, "communication", 0, IN_MPI), Slice(20, 40, "host", 0)],
        waits={0: [(0, 10, True)], 1: []},
        migrations=[],
        hollow=[],
        foreign=[(15, 30)],
    )
    found = divided(device)
    assert {name: int(ns.sum()) for name, ns in found.bottlenecks(Intervals.of([(0, 40)])).items()} == {
        "kernels": 10,
        "communication": 5,
        "other_process": 15,
        "host": 10,
    }
