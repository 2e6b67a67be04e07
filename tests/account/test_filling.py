"""Time in which kernels leave most of the chip empty: by launch shapes, by counters, and when nothing is claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nsysdiag.account.filling import hollow_time
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import Measured
from nsysdiag.events.gpu_metrics import Grid, MetricSeries
from nsysdiag.ledger.ledger import WindowSplit
from tests.ledger.traces import report_of
from tests.utilization.test_utilization import MS, blocks, chip

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builder import TraceBuilder

UNKNOWN = {"gridX": 0}


def account(trace: TraceBuilder, folder: Path) -> dict[str, int]:
    """Milliseconds of the whole window by bottleneck."""
    (phase,) = report_of(trace, folder, Settings(start_ns=0)).phases
    (device,) = phase.devices
    return {name: ns // MS for name, ns in device.account.items()}


class TestShapes:
    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("count", "name"), [(1, "parallelism"), (65, "parallelism"), (66, "kernels")])
    def test_half_of_132_sms(self, count: int, name: str, tmp_path: Path) -> None:
        assert account(chip().kernel(MS, 11 * MS, shape=blocks(count)), tmp_path) == {name: 10}

    def test_kernels_side_by_side_fill_it_together(self, tmp_path: Path) -> None:
        """
        stream 7   1 [-- 40 SMs --) 11
        stream 9        6 [-- 40 SMs --) 16         80 of 132 from 6 to 11
        """
        trace = chip().kernel(MS, 11 * MS, shape=blocks(40)).kernel(6 * MS, 16 * MS, stream=9, shape=blocks(40))
        assert account(trace, tmp_path) == {"parallelism": 10, "kernels": 5}

    def test_beside_one_that_fills_it_nothing_is_empty(self, tmp_path: Path) -> None:
        trace = chip().kernel(MS, 11 * MS, shape=blocks(1)).kernel(MS, 6 * MS, stream=9, shape=blocks(132))
        assert account(trace, tmp_path) == {"kernels": 5, "parallelism": 5}

    def test_the_last_wave_is_no_empty_chip(self, tmp_path: Path) -> None:
        """1056 blocks fit at a time: 1100 are a wave of all SMs and one of 44, two thirds of them on average."""
        assert account(chip().kernel(MS, 11 * MS, shape=blocks(1100)), tmp_path) == {"kernels": 10}

    @pytest.mark.parametrize(("unknown", "claimed"), [(10, {"parallelism": 10, "kernels": 10}), (11, {"kernels": 21})])
    def test_half_of_the_kernel_time_has_to_be_known(
        self, unknown: int, claimed: dict[str, int], tmp_path: Path
    ) -> None:
        trace = chip().kernel(MS, 11 * MS, shape=blocks(1)).kernel(11 * MS, (11 + unknown) * MS, shape=UNKNOWN)
        assert account(trace, tmp_path) == claimed

    def test_a_graph_of_unknown_kernels_may_fill_it(self, tmp_path: Path) -> None:
        trace = chip().kernel(MS, 21 * MS, shape=blocks(1)).graph_trace(11 * MS, 21 * MS)
        assert account(trace, tmp_path) == {"parallelism": 10, "kernels": 10}

    def test_communication_is_no_kernel_that_fills(self, tmp_path: Path) -> None:
        trace = chip().kernel(MS, 11 * MS, name="ncclDevKernel_AllReduce", shape=blocks(24))
        assert account(trace, tmp_path) == {"communication": 10}


def sampled(metric: str, *values: float) -> MetricSeries:
    """A sample every 10 ns from 0 on."""
    grid = Grid.of(np.arange(10, 10 * len(values) + 1, 10))
    assert grid is not None
    return MetricSeries(metric, (metric,), grid, np.array(values), 0, 0)


def hollow(*series: MetricSeries, compute: int = 50) -> list[tuple[int, int]] | None:
    parts = Intervals.of([(0, compute)]), Intervals.empty(), Intervals.empty()
    split = WindowSplit(parts[0], compute, 0, 0, 0, compute, parts[0], parts[0], parts)
    no_shapes: Any = None
    measured = Measured(0, {each.metric: each for each in series}, None)
    found = hollow_time(no_shapes, split, None, measured)
    return None if found is None else list(zip(found.start.tolist(), found.end.tolist(), strict=True))


class TestCounters:
    def test_below_30_per_cent_of_the_sms(self) -> None:
        assert hollow(sampled("sm_active", 0.29, 0.3, 0.9, 0.1, 0.1)) == [(0, 10), (30, 50)]

    @pytest.mark.parametrize("metric", ["tensor_active", "dram_read", "dram_write"])
    def test_not_where_a_throughput_is_high(self, metric: str) -> None:
        """A few blocks can keep the memory or the tensor cores at work."""
        active = sampled("sm_active", *[0.1] * 5)
        assert hollow(active, sampled(metric, 0.49, 0.5, np.nan, 0.9, 0.0)) == [(0, 10), (20, 30), (40, 50)]

    def test_only_compute_counts(self) -> None:
        assert hollow(sampled("sm_active", *[0.1] * 5), compute=25) == [(0, 25)]

    def test_without_enough_samples_shapes_decide(self) -> None:
        assert hollow(sampled("sm_active", 0.1, np.nan, np.nan, np.nan, 0.1)) is None
        assert hollow(sampled("dram_read", *[0.1] * 5)) is None
