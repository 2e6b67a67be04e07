"""Sync-drained gaps: a call of the launching thread waited for the device and so emptied its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.causes.example import NEIGHBOUR, issued, issuing, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builder import TraceBuilder

NOT_READY = 600


def synchronized(start: int, end: int, api: str = "cudaStreamSynchronize") -> TraceBuilder:
    """
    device  [==A==)110_000 ... 170_000 ... 280_000[launch B][==B==)
    thread     [sync         ]
    """
    return late().api(api, start, end)


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize(
    ("start", "end", "drained"),
    [
        (105_000, 120_000, True),  # began 5 µs before the gap
        (105_001, 120_000, False),  # 4_999 ns before: it found the queue empty
        (50_000, 110_001, True),  # ended after the gap opened
        (50_000, 110_000, False),  # as the gap opened: it held nothing up
        (50_000, 280_000, True),  # as the launch call began
        (50_000, 280_001, False),  # after that: no sync that the launch waited for
        (150_000, 210_000, False),  # all inside the gap: the queue was empty before
    ],
)
def test_where_the_call_lies(start: int, end: int, drained: bool, tmp_path: Path) -> None:
    device = only_device(synchronized(start, end), tmp_path)
    assert [gap.sync_drained for gap in device.gaps] == [drained]
    assert device.gaps[0].drained_by == ("cudaStreamSynchronize" if drained else None)
    assert device.sync_drained == {"gaps": int(drained), "ns": 190_000 if drained else 0}


def test_it_is_a_pointer_not_a_bucket(tmp_path: Path) -> None:
    """
    device  [==A==)10_000| 160_000                [launch B][==B==)
    thread     [sync     ]
    """
    device = only_device(synchronized(50_000, 120_000), tmp_path)
    assert device.ledger == {"sync": 10_000, "uncovered": 160_000, "launch_call": 10_000, "launch_latency": 10_000}
    assert device.sync_drained == {"gaps": 1, "ns": 190_000}


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("api", "drained"), [("cudaMemcpy", True), ("cudaMemcpyAsync", False), ("cudaMalloc", False)])
def test_which_calls_drain(api: str, drained: bool, tmp_path: Path) -> None:
    assert only_device(synchronized(50_000, 120_000, api), tmp_path).gaps[0].sync_drained == drained


def test_a_spin_on_a_query_drains(tmp_path: Path) -> None:
    """
    device  [======A======)10_000|160_000         [launch B][==B==)
    thread     [query][query]...[query]
    """
    trace = late()
    for number, returned in enumerate((NOT_READY, NOT_READY, 0)):
        trace.api("cudaEventQuery", 90_000 + 15_000 * number, 91_000 + 15_000 * number, returned=returned)
    (gap,) = only_device(trace, tmp_path).gaps
    assert gap.sync_drained
    assert gap.drained_by == "cudaEventQuery"


def test_a_blocking_copy_by_pageable_memory_drains(tmp_path: Path) -> None:
    """
    device  [==A==)[copy)40_000| ..  [launch B][==B==)
    thread      [cudaMemcpyAsync]                          its host side is pageable
    """
    trace = late().memcpy(110_000, 120_000, host="pageable", launch=(100_000, 160_000))
    (gap,) = only_device(trace, tmp_path).gaps
    assert (gap.sync_drained, gap.drained_by) == (True, "cudaMemcpyAsync")


def test_another_thread_s_sync_drains_nothing(tmp_path: Path) -> None:
    trace = late().api("cudaStreamSynchronize", 50_000, 120_000, thread=NEIGHBOUR)
    assert not only_device(trace, tmp_path).gaps[0].sync_drained


@pytest.mark.parametrize("build", [issued, issuing])
def test_work_already_launched_was_not_held_up(build: object, tmp_path: Path) -> None:
    """
    device  [==A==)..........[==B==)
    thread  [launch B][sync]              the launch call came first
    """
    trace: TraceBuilder = build()  # type: ignore[operator]
    trace.api("cudaStreamSynchronize", 90_000, 120_000)
    assert not only_device(trace, tmp_path).gaps[0].sync_drained


def test_a_migration_in_front_of_the_launched_work(tmp_path: Path) -> None:
    """
    device  [==A==)10_000[migration)  ...  280_000[launch B][==B==)
    thread     [sync         ]
    """
    trace = synchronized(50_000, 135_000).memcpy(120_000, 130_000, kind="UM DtoH")
    assert [gap.sync_drained for gap in only_device(trace, tmp_path).gaps] == [True, True]
