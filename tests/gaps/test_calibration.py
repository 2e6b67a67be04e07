"""What a trace teaches about itself: the dispatch floor and the launch latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from tests.builder import TraceBuilder
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

QUEUED = 1_000_000
"""Everything in `queue` was launched before this time."""


def queue(gaps: Sequence[int], *, streams: Sequence[int] = (7,)) -> TraceBuilder:
    """
    device  [K)gap[K)gap[K)gap[K)      kernels of 100 ns, all launched long before
    thread [launches]
    """
    trace, time = TraceBuilder(), QUEUED
    for number, gap in enumerate([0, *gaps]):
        time += gap
        trace.kernel(time, time + 100, stream=streams[number % len(streams)], launch=(10 * number + 1, 10 * number + 9))
        time += 100
    return trace


class TestFloor:
    @pytest.mark.sampled(quick=3)
    @pytest.mark.parametrize(
        ("gaps", "floor", "calibrated"),
        [
            ([3_000] * 200, 3_000, True),
            ([3_000] * 199, 5_000, False),
            ([3_000] * 199 + [0] * 50, 5_000, False),  # a gap of 0 is none
            ([3_000] * 195 + [9_000] * 5, 3_000, True),
            ([3_000] * 180 + [9_000] * 20, 9_000, True),  # the 95th percentile
            ([500] * 200, 2_000, True),
            ([2_000] * 200, 2_000, True),
            ([10_001] * 200, 10_000, True),
            ([80_000] * 200, 10_000, True),
        ],
    )
    def test_percentile_count_and_clamp(self, gaps: list[int], floor: int, calibrated: bool, tmp_path: Path) -> None:
        device = only_device(queue(gaps), tmp_path)
        assert (device.floor_ns, device.floor_calibrated) == (floor, calibrated)

    def test_it_decides_what_is_dispatch(self, tmp_path: Path) -> None:
        device = only_device(queue([3_000] * 200 + [3_001]), tmp_path)
        assert device.ledger == {"dispatch": 600_000, "device_stall": 3_001}

    @pytest.mark.slow
    def test_gaps_between_streams_teach_nothing(self, tmp_path: Path) -> None:
        """
        stream 7  [K)     [K)
        stream 8     [K)      [K)        the gaps of one stream are 6_100 long: two gaps and a kernel
        """
        device = only_device(queue([3_000] * 401, streams=(7, 8)), tmp_path)
        assert (device.floor_ns, device.floor_calibrated) == (6_100, True)

    def test_work_launched_late_teaches_nothing(self, tmp_path: Path) -> None:
        """
        device  [K)...3_000...[K)
        thread     [launch]            ends after the kernel before has ended
        """
        trace = TraceBuilder().kernel(1_000, 1_100, launch=(100, 200))
        for number in range(1, 250):
            start = 1_000 + 3_100 * number
            trace.kernel(start, start + 100, launch=(start - 2_999, start - 2_990))
        device = only_device(trace, tmp_path)
        assert (device.floor_ns, device.floor_calibrated) == (5_000, False)


def launches(delays: Sequence[int], *, graph_node: int | None = None) -> TraceBuilder:
    """
    device  [K)..........................[K)..........................[K)
    thread        [launch: 1_000]|delay|        [launch: 1_000]|delay|          each found the device idle
    """
    trace, time = TraceBuilder().kernel(1_000, 2_000, launch=(100, 200)), 2_000
    for delay in delays:
        call = (time + 10_000, time + 11_000)
        trace.kernel(call[1] + delay, call[1] + delay + 1_000, launch=call, graph_node=graph_node)
        time = call[1] + delay + 1_000
    return trace


class TestLaunchLatency:
    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("delays", "latency", "calibrated"),
        [
            ([8_000] * 20, 8_000, True),
            ([8_000] * 19, 5_000, False),
            ([1_000] * 8 + [90_000] * 16, 1_000, True),  # the lower quartile, not the median
            ([1_000] * 4 + [90_000] * 20, 90_000, True),
            ([-500] * 20, 0, True),  # kernels that start before their call returns
        ],
    )
    def test_quartile_and_count(self, delays: list[int], latency: int, calibrated: bool, tmp_path: Path) -> None:
        device = only_device(launches(delays), tmp_path)
        assert (device.launch_latency_ns, device.launch_latency_calibrated) == (latency, calibrated)

    def test_graph_nodes_are_left_out(self, tmp_path: Path) -> None:
        device = only_device(launches([8_000] * 30, graph_node=1), tmp_path)
        assert not device.launch_latency_calibrated

    def test_copies_are_left_out(self, tmp_path: Path) -> None:
        trace = launches([8_000] * 19)
        trace.memcpy(9_030_000, 9_040_000, launch=(9_000_000, 9_022_000))
        assert not only_device(trace, tmp_path).launch_latency_calibrated

    @pytest.mark.parametrize(("called", "counted"), [(382_000, True), (381_999, False)])
    def test_work_launched_while_the_device_was_busy_is_left_out(
        self, called: int, counted: bool, tmp_path: Path
    ) -> None:
        """
        device  ... [19th kernel)|382_000 ....[K)
        thread                   [launch K]           as the gap opens, or 1 ns before
        """
        trace = launches([8_000] * 19).kernel(400_000, 401_000, launch=(called, 383_000))
        assert only_device(trace, tmp_path).launch_latency_calibrated == counted

    def test_work_behind_an_event_wait_is_left_out(self, tmp_path: Path) -> None:
        """
        device  [K)..........[K)          19 kernels that waited for nothing, one that waited for an event
        """
        trace = launches([8_000] * 19)
        trace.api("cudaStreamWaitEvent", 8_880_000, 8_880_100, correlation=7_777)
        trace.sync_row(8_880_000, 8_880_100, correlation=7_777, kind="wait", event=3)
        trace.kernel(9_000_000, 9_100_000, launch=(8_900_000, 8_910_000))
        assert not only_device(trace, tmp_path).launch_latency_calibrated

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("delay", "limit"),
        [
            (1_000, 20_000),  # three times 1 µs is less than the 20 µs that any launch may take
            (6_666, 20_000),  # 19_998
            (7_000, 21_000),
            (33_000, 99_000),
            (40_000, 100_000),  # never above 100 µs
        ],
    )
    def test_what_a_launch_may_take(self, delay: int, limit: int, tmp_path: Path) -> None:
        """
        device  ... [K)..........................................................[last)
        thread           [launch: 1_000]|--- limit ---|--- the device's rest ---|
        """
        trace = launches([delay] * 24 + [500_000])
        device = only_device(trace, tmp_path)
        assert device.launch_latency_ns == delay
        last = max(device.gaps, key=lambda gap: gap.start_ns)
        assert {part.cause: part.ns for part in last.slices} == {
            "uncovered": 10_000,
            "launch_call": 1_000,
            "launch_latency": limit,
            "device_stall": 500_000 - limit,
        }


def test_a_narrowed_window_learns_from_the_whole_trace(tmp_path: Path) -> None:
    device = only_device(queue([3_000] * 200), tmp_path, Settings(start_ns=QUEUED, end_ns=QUEUED + 10_000))
    assert (device.floor_ns, device.floor_calibrated) == (3_000, True)
