"""Threads that serve several devices: their lanes are kept once, over the time of them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.timeline.facts import TimelineLevels
from tests.builder import TraceBuilder
from tests.ledger.traces import DRAWN, report_of
from tests.timeline.decode import lanes, rows

US = 1_000
OTHER = (4242, 4300)


def two_devices() -> TraceBuilder:
    """
    ```
    gpu 0    [k 100..200)                     [k 400..500) us
    gpu 1                 [k 300..350)                        [k 700..900)
    T      [launch]   [launch]             [launch]  [launch, NVTX "late" 600..650]
    U                                                          [launch of a kernel on gpu 1, 690..695]
    ```
    """
    trace = TraceBuilder(schema="3.24.8")
    for number in range(2):
        trace.gpu(number).cuda_device(number, number)
    trace.kernel(100 * US, 200 * US, launch=(90 * US, 95 * US), device=0)
    trace.kernel(400 * US, 500 * US, launch=(390 * US, 395 * US), device=0)
    trace.kernel(300 * US, 350 * US, launch=(290 * US, 295 * US), device=1, context=2, stream=8)
    trace.kernel(620 * US, 650 * US, launch=(610 * US, 615 * US), device=1, context=2, stream=8)
    trace.kernel(700 * US, 900 * US, launch=(690 * US, 695 * US), device=1, context=2, stream=8, thread=OTHER)
    return trace.nvtx("late", 600 * US, 650 * US)


@pytest.fixture
def timelines(tmp_path: Path) -> dict[str, TimelineLevels]:
    found = report_of(two_devices(), tmp_path, DRAWN).timeline
    assert isinstance(found, dict)
    return found


def test_the_first_device_holds_the_lanes(timelines: dict[str, TimelineLevels]) -> None:
    first, second = timelines["gpu0"], timelines["gpu1"]
    assert [(thread.tid, thread.lanes_of) for thread in first.threads] == [(4242, None)]
    assert {thread.tid: thread.lanes_of for thread in second.threads} == {4242: "gpu0", 4300: None}
    places = [thread.tid for thread in second.threads]
    assert {places[lane.thread] for lane in second.lanes if lane.thread is not None} == {4300}


@pytest.mark.slow
def test_they_cover_the_time_of_all_devices(timelines: dict[str, TimelineLevels]) -> None:
    first = timelines["gpu0"]
    assert (first.start_ns, first.end_ns, first.host_span) == (100 * US, 500 * US, (100 * US, 900 * US))
    assert first.exact_host == [(100 * US, 900 * US)]
    (calls,) = lanes(first, "api")
    assert [row[:2] for row in rows(first, calls)] == [
        (290 * US, 295 * US),
        (390 * US, 395 * US),
        (610 * US, 615 * US),
    ]
    (ranges,) = lanes(first, "nvtx")
    assert rows(first, ranges) == [(600 * US, 650 * US, "late", 0)]


def test_a_thread_of_one_device_stays_with_it(timelines: dict[str, TimelineLevels]) -> None:
    second = timelines["gpu1"]
    assert second.host_span is None
    (calls,) = lanes(second, "api")
    assert [row[:2] for row in rows(second, calls)] == [(690 * US, 695 * US)]
