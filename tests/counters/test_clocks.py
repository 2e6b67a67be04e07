"""The clock while kernels ran: low there is a finding, low while idle is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings, Thresholds
from tests.builder import TraceBuilder
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.counters.facts import Clocks

US, MS = 1_000, 1_000_000
CLOCK = "GPC Clock Frequency [MHz]"
CHIP = 1_400_000_000


def found(
    clocks: list[int], kernels: list[tuple[int, int]], folder: Path, *, chip: int | None = CHIP, limit: float = 0.9
) -> Clocks | None:
    """The clock in MHz of each millisecond; kernels in milliseconds."""
    trace = TraceBuilder().gpu(0, clock=chip)
    for start, end in kernels:
        trace.kernel(start * MS, end * MS, launch=(start * MS - 20 * US, start * MS - 10 * US))
    trace.gpu_metric(CLOCK, [((at + 1) * MS, mhz) for at, mhz in enumerate(clocks)])
    device = only_device(trace, folder, Settings(thresholds=Thresholds(clock=limit)))
    assert device.gpu_metrics is not None
    return device.gpu_metrics.clocks


def test_low_while_kernels_run(tmp_path: Path) -> None:
    """
    ms       1     3     5     7     9          one sample a millisecond
    device   |===========|     |=====|
    clock     1400  1400  1100 1100  700        low in one of four milliseconds of work, and in the gap
    """
    clocks = found([0, 1400, 1400, 1100, 1400, 210, 210, 1400, 1120], [(1, 5), (7, 9)], tmp_path)
    assert clocks is not None
    assert (clocks.max_hz, clocks.source, clocks.limit) == (CHIP, "chip", 0.9)
    assert (clocks.judged_ns, clocks.low_ns) == (6 * MS, 2 * MS)
    assert (clocks.low_mean_hz, clocks.lowest_hz) == (1_110_000_000, 1_100_000_000)
    assert clocks.mean_hz == round(1e6 * (1400 * 4 + 1100 + 1120) / 6)


def test_clocking_down_while_idle_does_not_show(tmp_path: Path) -> None:
    """The sample that the gap begins or ends in mixes both, and is not judged."""
    clocks = found([1400, 1400, 1400, 210, 210, 210, 800, 1400, 1400], [(1, 3), (7, 9)], tmp_path)
    assert clocks is not None
    assert (clocks.judged_ns, clocks.low_ns, clocks.low_mean_hz, clocks.lowest_hz) == (4 * MS, 0, None, CHIP)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("limit", "low_ns"), [(0.9, 0), (0.95, 2 * MS), (1300 / 1400, 0)])
def test_how_low_is_low_is_a_setting(limit: float, low_ns: int, tmp_path: Path) -> None:
    clocks = found([1400, 1400, 1300, 1300], [(1, 4)], tmp_path, limit=limit)
    assert clocks is not None
    assert (clocks.limit, clocks.low_ns) == (limit, low_ns)


@pytest.mark.parametrize("chip", [None, 1_100_000_000])
def test_without_the_chip_s_clock_the_highest_seen(chip: int | None, tmp_path: Path) -> None:
    """A chip that ran faster than the trace says its highest clock is has another one."""
    clocks = found([1500, 1500, 1000, 1500], [(1, 4)], tmp_path, chip=chip)
    assert clocks is not None
    assert (clocks.max_hz, clocks.source, clocks.low_ns) == (1_500_000_000, "seen", MS)


def test_short_pauses_are_part_of_the_work(tmp_path: Path) -> None:
    """Kernels of 200 µs with 100 µs between them: no sample lies wholly inside one."""
    trace = TraceBuilder().gpu(0, clock=CHIP)
    for at in range(20):
        start = MS + at * 300 * US
        trace.kernel(start, start + 200 * US, launch=(start - 20 * US, start - 10 * US))
    trace.gpu_metric(CLOCK, [(at * MS, 1_000) for at in range(1, 9)])
    metrics = only_device(trace, tmp_path).gpu_metrics
    assert metrics is not None
    assert metrics.clocks is not None
    assert (metrics.clocks.judged_ns, metrics.clocks.low_ns) == (5 * MS, 5 * MS)


def test_kernels_shorter_than_a_sample_with_long_pauses_say_nothing(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0, clock=CHIP)
    for at in range(5):
        start = MS + at * 3 * MS
        trace.kernel(start, start + 200 * US, launch=(start - 20 * US, start - 10 * US))
    trace.gpu_metric(CLOCK, [(at * MS, 1_000) for at in range(1, 20)])
    metrics = only_device(trace, tmp_path).gpu_metrics
    assert metrics is not None
    assert metrics.clocks is None
