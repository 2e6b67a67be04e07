"""GPU metrics in the report of a device: gaps that were none, ranges, kernels that share a name or a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings, Thresholds
from tests.builder import TraceBuilder
from tests.ledger.traces import devices, only_device

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.counters.facts import GpuMetrics

US, MS = 1_000, 1_000_000
SM, READ = "SMs Active [Throughput %]", "DRAM Read Bandwidth [Throughput %]"


def run(*kernels: tuple[int, int, str]) -> TraceBuilder:
    """Kernels in microseconds, each launched 20 µs before it starts."""
    trace = TraceBuilder().gpu(0)
    for start, end, name in kernels:
        launch = ((start - 20) * US, (start - 10) * US)
        trace.kernel(start * US, end * US, name=name, launch=launch)
    return trace


def sample(trace: TraceBuilder, percent: Callable[[int], int | None], *, until: int = 10_000) -> TraceBuilder:
    """SM activity every 100 µs: `percent` of the microsecond at which the sample begins."""
    return trace.gpu_metric(SM, [((at + 100) * US, percent(at)) for at in range(0, until, 100)])


def metrics(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> GpuMetrics:
    found = only_device(trace, folder, settings).gpu_metrics
    assert found is not None
    return found


class TestGaps:
    """
    device   |==|...............|==|           samples wholly inside the gap tell what happened there
    samples  [  )[ )[ )[ )[ )[ )[  )
    """

    TWO = ((1_000, 1_500, "gemm"), (4_000, 4_500, "gemm"))
    NOTE = (
        "In the gaps 45.0% of the SMs were active by the GPU's own counters. Another program used the GPU, or the trace"
        " lacks kernels: this time was not idle."
    )

    def test_somebody_else_at_work(self, tmp_path: Path) -> None:
        trace = sample(run(*self.TWO), lambda at: 90 if at < 1_500 or at >= 4_000 else 45)
        device = only_device(trace, tmp_path)
        assert device.notes == [self.NOTE]
        assert [gap.sm_active for gap in device.gaps] == [0.45]
        assert device.gpu_metrics is not None
        (active,) = device.gpu_metrics.metrics
        assert (active.gaps, active.gap_samples) == (0.45, 25)

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("percent", "limit", "notes"), [(19, 0.2, 0), (20, 0.2, 1), (20, 0.3, 0)])
    def test_how_much_is_too_much(self, percent: int, limit: float, notes: int, tmp_path: Path) -> None:
        trace = sample(run(*self.TWO), lambda at: 90 if at < 1_500 or at >= 4_000 else percent)
        settings = Settings(thresholds=Thresholds(gap_sm_active=limit))
        assert len(only_device(trace, tmp_path, settings).notes) == notes

    @pytest.mark.parametrize(("gap", "notes"), [(900, 0), (1_000, 1)])
    def test_few_samples_are_no_proof(self, gap: int, notes: int, tmp_path: Path) -> None:
        """Nine samples in the gaps, or ten."""
        trace = run((1_000, 1_500, "gemm"), (1_500 + gap, 2_000 + gap, "gemm"))
        found = only_device(sample(trace, lambda at: 45 if 1_500 <= at < 1_500 + gap else 90), tmp_path)
        assert [each.sm_active for each in found.gaps] == [0.45]
        assert len(found.notes) == notes

    def test_samples_that_reach_into_kernels_are_not_asked(self, tmp_path: Path) -> None:
        """Gaps of 80 µs never hold a whole sample: that they look active means nothing."""
        kernels = [(start, start + 120, "gemm") for start in range(1_000, 9_000, 200)]
        device = only_device(sample(run(*kernels), lambda _at: 60), tmp_path)
        assert device.notes == []
        assert {gap.sm_active for gap in device.gaps} == {None}
        assert device.gpu_metrics is not None
        assert (device.gpu_metrics.metrics[0].gaps, device.gpu_metrics.metrics[0].gap_samples) == (None, 0)

    def test_a_gap_without_samples_is_unknown_not_quiet(self, tmp_path: Path) -> None:
        trace = sample(run(*self.TWO), lambda at: 90 if at < 1_500 or at >= 4_000 else None)
        device = only_device(trace, tmp_path)
        assert [gap.sm_active for gap in device.gaps] == [None]
        assert device.notes == []


class TestKernels:
    def test_a_short_kernel_takes_its_share_of_each_sample(self, tmp_path: Path) -> None:
        """
        device   |=a=|=b=|=a=|=b=| ...       50 µs each: every sample is half a, half b
        """
        kernels = [(1_000 + 50 * at, 1_050 + 50 * at, "ab"[at % 2]) for at in range(80)]
        found = metrics(sample(run(*kernels), lambda _at: 70), tmp_path)
        told = [(each.short_name, each.count, each.long_count, each.whole, each.samples) for each in found.kernels]
        assert told == [("a", 40, 0, False, 40), ("b", 40, 0, False, 40)]
        assert [each.means for each in found.kernels] == [{"sm_active": 0.7}] * 2

    def test_long_kernels_by_whole_samples_although_some_are_short(self, tmp_path: Path) -> None:
        """Of 1.05 ms of the name 1 ms is one kernel: it decides."""
        trace = run((1_050, 2_050, "gemm"), (4_000, 4_050, "gemm"))
        found = metrics(sample(trace, lambda at: 80 if 1_100 <= at < 2_000 else 30), tmp_path)
        (gemm,) = found.kernels
        assert (gemm.count, gemm.long_count, gemm.whole, gemm.samples) == (2, 1, True, 9)
        assert gemm.means == {"sm_active": 0.8}

    @pytest.mark.parametrize(("short", "whole"), [(19, True), (21, False)])
    def test_what_most_of_the_time_is_decides(self, short: int, whole: bool, tmp_path: Path) -> None:
        """One kernel of 1 ms at 80%, and 19 or 21 of 50 µs, which have the first half of a sample each, at 30%."""
        kernels = [(1_000, 2_000, "gemm"), *((at, at + 50, "gemm") for at in range(3_000, 3_000 + 200 * short, 200))]
        found = metrics(sample(run(*kernels), lambda at: 80 if at < 2_000 else 30), tmp_path)
        (gemm,) = found.kernels
        assert (gemm.whole, gemm.samples) == (whole, 10 if whole else 10 + short)
        mixed = round((80 * 1_000 + 30 * 50 * short) / (1_000 + 50 * short) / 100, 6)
        assert gemm.means == {"sm_active": 0.8 if whole else mixed}

    def test_a_long_kernel_without_a_whole_sample(self, tmp_path: Path) -> None:
        """120 µs from 1,040 on: the samples beside it have 60 µs and 60 µs of it."""
        found = metrics(sample(run((1_040, 1_160, "gemm")), lambda at: 50 if at == 1_000 else 40), tmp_path)
        (gemm,) = found.kernels
        assert (gemm.long_count, gemm.whole, gemm.samples) == (1, False, 2)
        assert gemm.means == {"sm_active": 0.45}

    def test_twenty_names_with_most_time(self, tmp_path: Path) -> None:
        kernels = [(1_000 + 200 * at, 1_050 + 200 * at + at, f"k{at:02}") for at in range(25)]
        found = metrics(sample(run(*kernels), lambda _at: 10), tmp_path)
        assert [each.short_name for each in found.kernels] == [f"k{at:02}" for at in range(24, 4, -1)]


class TestRanges:
    def test_counters_in_names_are_one_name(self, tmp_path: Path) -> None:
        """Each range from its first to its last kernel; what another thread calls its own launched nothing."""
        trace = run((1_000, 1_500, "a"), (3_000, 3_500, "a"))
        for number, start in enumerate((900, 2_900)):
            trace.nvtx(f"batch {number}", start * US, (start + 150) * US)
        trace.nvtx("idle thread", 900 * US, 4_000 * US, thread=(4242, 4300))
        found = metrics(sample(trace, lambda at: 60 if at == 3_000 else 20), tmp_path)
        (batch,) = found.ranges
        assert (batch.name, batch.count, batch.gpu_ns, batch.samples) == ("batch #", 2, 1_000 * US, 10)
        assert batch.means == {"sm_active": 0.24}

    def test_only_what_lies_in_the_window_counts(self, tmp_path: Path) -> None:
        trace = run((1_000, 1_500, "a"), (3_000, 3_500, "a"))
        for number, start in enumerate((900, 2_900)):
            trace.nvtx(f"batch {number}", start * US, (start + 150) * US)
        settings = Settings(start_ns=1_200 * US, end_ns=2_000 * US)
        (batch,) = metrics(sample(trace, lambda _at: 20), tmp_path, settings).ranges
        assert (batch.count, batch.gpu_ns) == (1, 300 * US)


def test_a_device_without_work_in_the_window_has_no_metrics(tmp_path: Path) -> None:
    """The first GPU works before the chosen time, the second in it."""
    trace = run((1_000, 1_500, "a")).gpu(1)
    trace.kernel(5_000 * US, 5_100 * US, device=1, launch=(4_000 * US, 4_001 * US))
    sample(trace, lambda _at: 20).gpu_metric(SM, [(at * 100 * US, 20) for at in range(60)], gpu=1)
    found = devices(trace, tmp_path, Settings(start_ns=5_000 * US, end_ns=5_050 * US))
    assert found["gpu0"].gpu_metrics is None
    assert found["gpu1"].gpu_metrics is not None
    assert found["gpu1"].gpu_metrics.gpu == 1


@pytest.mark.slow
def test_bytes_a_second_need_the_chip_s_bandwidth(tmp_path: Path) -> None:
    for bandwidth in (None, 2 * 10**12):
        trace = TraceBuilder().gpu(0, bandwidth=bandwidth).kernel(MS, 2 * MS)
        trace.gpu_metric(READ, [(at * 100 * US, 30) for at in range(1, 30)])
        folder = tmp_path / str(bandwidth)
        folder.mkdir()
        (read,) = metrics(trace, folder).metrics
        assert read.peak_bytes_per_second == bandwidth


def test_a_series_has_no_more_than_a_thousand_buckets(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0).kernel(MS, 201 * MS)
    trace.gpu_metric(SM, [(at * 100 * US, 30) for at in range(1, 2_100)])
    assert metrics(trace, tmp_path).buckets == 1_000
