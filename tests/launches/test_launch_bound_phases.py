"""Launch-bound phases: where they begin and end, what they cost, and what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.config.settings import Settings, Thresholds
from nsysdiag.launches.queue_depth import _intervals
from tests.builder import TraceBuilder
from tests.launches.launch_checks import check_launches
from tests.ledger.traces import devices, only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.launches.facts import LaunchBound

PERIOD = 20_000


def starved(
    count: int = 21,
    *,
    begin: int = 10_000,
    period: int = PERIOD,
    kernel: int = 3_000,
    trace: TraceBuilder | None = None,
) -> TraceBuilder:
    """A launch every 20 µs, of 5 µs, and each kernel runs for 3 µs from 2 µs after its launch.

    ```
    thread  [l 5_000]...............[l 5_000]...............[l 5_000]
    device             [k 3_000)......17_000.......[k 3_000)......17_000.......[k 3_000)
    ```
    """
    trace = trace or TraceBuilder()
    for at in range(begin, begin + count * period, period):
        trace.kernel(at + 7_000, at + 7_000 + kernel, launch=(at, at + 5_000))
    return trace


def launch_bound_of(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> LaunchBound | None:
    device = only_device(trace, folder, settings)
    check_launches(device)
    return device.launch.launch_bound


def spans(phases: LaunchBound | None) -> list[tuple[int, int, int]]:
    """Start, end and launches of each phase, by time."""
    rows = phases.rows if phases else []
    return sorted((row.start_ns, row.end_ns, row.launches) for row in rows)


def test_twenty_launches_that_all_came_late(tmp_path: Path) -> None:
    """The first kernel ends at 20_000, the last of 21 begins at 417_000: 20 gaps of 17_000, 19 kernels of 3_000."""
    found = launch_bound_of(starved(), tmp_path)
    assert found is not None
    assert (found.count, found.launches, found.span_ns, found.busy_ns, found.idle_ns) == (
        *(1, 20, 397_000),
        *(57_000, 340_000),
    )
    (row,) = found.rows
    assert (row.start_ns, row.end_ns, row.launches, row.busy_ns, row.idle_ns) == (20_000, 417_000, 20, 57_000, 340_000)
    assert (row.median_interval_ns, row.median_work_ns, row.nvtx) == (20_000, 3_000, [])
    assert found.causes == {"uncovered": 200_000, "launch_call": 100_000, "launch_latency": 40_000}


@pytest.mark.slow
def test_nineteen_are_too_few(tmp_path: Path) -> None:
    assert launch_bound_of(starved(20), tmp_path) is None
    settings = Settings(thresholds=Thresholds(launch_bound_launches=19))
    assert spans(launch_bound_of(starved(20), tmp_path, settings)) == [(20_000, 397_000, 19)]


@pytest.mark.slow
def test_long_gaps_are_something_else(tmp_path: Path) -> None:
    """Gaps of 50_000 are the longest that count; 50_001 are too long."""
    for period, count in ((53_000, 1), (53_001, 0)):
        folder = tmp_path / str(period)
        folder.mkdir()
        assert len(spans(launch_bound_of(starved(30, period=period), folder))) == count


def test_a_longer_limit_lets_longer_gaps_count(tmp_path: Path) -> None:
    settings = Settings(thresholds=Thresholds(launch_bound_gap_ns=100_000))
    assert spans(launch_bound_of(starved(30, period=60_000), tmp_path, settings)) == [(20_000, 1_757_000, 29)]


def test_a_host_that_is_ahead_is_not_launch_bound(tmp_path: Path) -> None:
    """
    thread  [l][l][l][l][l] ...
    device       [k .......)1_000[k .......)1_000[k .......)
    """
    trace = TraceBuilder()
    for at in range(40):
        trace.kernel(50_000 + 21_000 * at, 70_000 + 21_000 * at, launch=(1_000 * at + 1, 1_000 * at + 900))
    device = only_device(trace, tmp_path)
    assert device.launch.launch_bound is None
    assert device.ledger == {"dispatch": 39_000}
    assert device.launch.queue_depth is not None
    assert device.launch.queue_depth.empty_ns == 0


def test_a_synchronization_in_every_gap_is_not_launch_bound(tmp_path: Path) -> None:
    """
    thread  [l][sync ..........................][l]
    device      [k 3_000).......................    [k
    """
    trace = starved()
    for at in range(10_000, 10_000 + 20 * PERIOD, PERIOD):
        trace.api("cudaStreamSynchronize", at + 5_000, at + PERIOD)
    assert launch_bound_of(trace, tmp_path) is None


def test_work_that_takes_longer_than_launches_do_is_not_launch_bound(tmp_path: Path) -> None:
    """Two streams, launches 5 and 15 µs apart in turn, each kernel 11 µs; gaps of 4 µs between the pairs.

    ```
    thread    [l][l]...........[l][l]
    stream 7     [k 11_000).........[k 11_000)
    stream 9        [k 11_000).........[k 11_000)
    gaps                      4_000
    ```
    """
    trace = TraceBuilder()
    for at in range(10_000, 10_000 + 40 * PERIOD, PERIOD):
        trace.kernel(at + 7_000, at + 18_000, launch=(at, at + 4_000))
        trace.kernel(at + 12_000, at + 23_000, launch=(at + 5_000, at + 9_000), stream=9)
    assert launch_bound_of(trace, tmp_path) is None


def test_streams_in_turn_starve_together(tmp_path: Path) -> None:
    """The kernels of `starved`, every other one on another stream: the device is one."""
    trace = TraceBuilder()
    for number in range(21):
        at = 10_000 + PERIOD * number
        trace.kernel(at + 7_000, at + 10_000, launch=(at, at + 5_000), stream=7 + 2 * (number % 2))
    assert spans(launch_bound_of(trace, tmp_path)) == [(20_000, 417_000, 20)]


def test_a_long_gap_divides(tmp_path: Path) -> None:
    """21 launches, 1 ms of nothing, 21 launches: 20 of each lie behind a short gap."""
    trace = starved(trace=starved(), begin=1_430_000)
    assert spans(launch_bound_of(trace, tmp_path)) == [(20_000, 417_000, 20), (1_440_000, 1_837_000, 20)]


@pytest.mark.slow
def test_a_run_of_launches_that_find_the_device_at_work_divides(tmp_path: Path) -> None:
    """
    device  [k]..[k]..[k]..[long kernel ......)[k)[k)[k)[k)[k)[k)[k)[k)[k)..[k]..[k]
                             nine launches meanwhile
    """
    trace = starved()
    long = 10_000 + 21 * PERIOD
    trace.kernel(long + 7_000, long + 207_000, launch=(long, long + 5_000))
    for at in range(9):
        begin = long + 207_000 + 3_000 * at
        trace.kernel(begin, begin + 3_000, launch=(long + PERIOD * (1 + at), long + PERIOD * (1 + at) + 5_000))
    starved(21, begin=long + 12 * PERIOD, trace=trace)
    ended, end = long + 207_000 + 27_000, long + 32 * PERIOD + 7_000
    assert spans(launch_bound_of(trace, tmp_path)) == [(20_000, long + 7_000, 21), (ended, end, 21)]
    patient = Settings(thresholds=Thresholds(launch_bound_run=9))
    assert spans(launch_bound_of(trace, tmp_path, patient)) == [(20_000, end, 51)]


def test_two_devices_that_one_thread_feeds_in_turn(tmp_path: Path) -> None:
    """
    thread    [l 0][l 1]..[l 0][l 1]..
    device 0       [k]..........[k]
    device 1            [k]..........[k]
    """
    trace = starved(40, period=40_000)
    for at in range(30_000, 30_000 + 40 * 40_000, 40_000):
        trace.kernel(at + 7_000, at + 10_000, launch=(at, at + 5_000), device=1, context=2)
    for device in devices(trace, tmp_path).values():
        check_launches(device)
        assert device.launch.launch_bound is not None
        (row,) = device.launch.launch_bound.rows
        assert (row.launches, row.median_interval_ns, row.idle_ns) == (39, 40_000, 39 * 37_000)


def test_work_without_launch_rows_says_nothing(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for at in range(10_000, 10_000 + 30 * PERIOD, PERIOD):
        trace.kernel(at, at + 3_000)
    assert launch_bound_of(trace, tmp_path) is None


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ("step 1", "step 1", ["epoch", "step 1"]),
        ("step 1", "step 2", ["epoch", "step #"]),
        ("step 1", "validation", ["epoch"]),
    ],
)
def test_the_ranges_around_it(first: str, second: str, path: list[str], tmp_path: Path) -> None:
    """
    NVTX    [epoch ........................................]
            [first ..........][second .....................]
    """
    trace = starved().nvtx("epoch", 1, 500_000).nvtx(first, 2, 200_000).nvtx(second, 200_001, 499_999)
    found = launch_bound_of(trace, tmp_path)
    assert found is not None
    assert found.rows[0].nvtx == path


def test_a_graph_launch_counts_as_one_and_its_nodes_as_its_work(tmp_path: Path) -> None:
    """
    thread  [graph launch].........................[graph launch]
    device                [n 1_000)500[n 1_000)..17_500..        [n 1_000)500[n 1_000)
    """
    trace = TraceBuilder()
    for number in range(21):
        at = 10_000 + PERIOD * number
        trace.api("cudaGraphLaunch", at, at + 5_000, correlation=500 + number)
        for node in (0, 1):
            begin = at + 7_000 + 1_500 * node
            trace.kernel(begin, begin + 1_000, correlation=500 + number, graph_node=1 + node)
    found = launch_bound_of(trace, tmp_path)
    assert found is not None
    (row,) = found.rows
    assert (row.launches, row.median_interval_ns, row.median_work_ns) == (20, 20_000, 2_000)
    assert row.idle_ns == 20 * 17_500 + 19 * 500
    assert row.busy_ns == 19 * 2_000


def test_of_a_narrowed_window_only_what_lies_in_it(tmp_path: Path) -> None:
    """The first of 41 kernels ends at 20_000; from 100_000 on, in the middle of the gap before the sixth."""
    found = launch_bound_of(starved(41), tmp_path, Settings(start_ns=105_000, end_ns=800_000))
    assert spans(found) == [(105_000, 797_000, 35)]


def test_a_single_launch_is_none_whatever_the_settings(tmp_path: Path) -> None:
    """
    thread  [A]        [launch B]
    device     [A)..[migration)..[B)
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 5_000)).memcpy(25_000, 26_000, kind="UM HtoD")
    trace.kernel(40_000, 50_000, launch=(30_000, 35_000))
    assert launch_bound_of(trace, tmp_path, Settings(thresholds=Thresholds(launch_bound_launches=1))) is None


@pytest.mark.parametrize("apart", [10, 1 << 59])
def test_times_between_launches_are_those_of_one_stretch(apart: int) -> None:
    """Launches that a thread recorded out of order, and stretches too far apart for one number."""
    owner = np.array([0, 0, 0, 3, 9, 9], dtype=np.int64)
    begin = np.array([8, 1, 3, 3 * apart, 5 + 4 * apart, 4 * apart], dtype=np.int64)
    later, interval = _intervals(owner, begin)
    assert (later.tolist(), interval.tolist()) == ([0, 0, 9], [2, 5, 5])


def test_no_launches_have_no_times_between_them() -> None:
    nothing = np.empty(0, dtype=np.int64)
    assert [len(each) for each in _intervals(nothing, nothing)] == [0, 0]
