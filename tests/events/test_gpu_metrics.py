"""GPU_METRICS as series: ids, odd rows, holes, units, and GPUs beside each other."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag.events.gpu_metrics import GpuMetricSamples, read_gpu_metrics
from nsysdiag.trace.trace import open_trace
from tests.builder import METRICS_TYPE, TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.events.gpu_metrics import MetricSeries

SM, CLOCK = "SMs Active [Throughput %]", "GPC Clock Frequency [MHz]"
RX = ("NVLink RX Requests User Data", "NVLink RX Responses User Data")


def samples(trace: TraceBuilder, folder: Path, *, seed: int | None = None, reader: str = "adbc") -> GpuMetricSamples:
    path = trace.write(folder / f"{reader}{seed}.sqlite", shuffle_seed=seed)
    with open_trace(path, reader=reader) as opened:
        return read_gpu_metrics(opened)


def rows(series: MetricSeries) -> list[tuple[int, int, float | None]]:
    """(start, end, value) of each sample; None for no value."""
    grid = series.grid
    values = [None if math.isnan(value) else value for value in series.value.tolist()]
    return list(zip(grid.start.tolist(), grid.end.tolist(), values, strict=True))


def only(trace: TraceBuilder, folder: Path, metric: str = "sm_active") -> MetricSeries:
    return samples(trace, folder).by_gpu[0][metric]


def test_a_sample_stands_for_the_time_before_it(tmp_path: Path) -> None:
    """
    timestamps   100   200   300           a value is the average since the timestamp before
    samples  [---)[----)[----)             the first one stands for one period
    """
    found = only(TraceBuilder().gpu_metric(SM, [(100, 20), (200, 80), (300, 60)]), tmp_path)
    assert rows(found) == [(0, 100, 0.2), (100, 200, 0.8), (200, 300, 0.6)]
    assert (found.names, found.grid.period_ns, found.left_out, found.capped) == ((SM,), 100, 0, 0)


def test_after_a_hole_a_sample_stands_for_one_period(tmp_path: Path) -> None:
    """
    timestamps   100   200   300   400     [two periods]    600      [three periods]      900
    samples                                [------------)                          [----)
    """
    times = [100, 200, 300, 400, 600, 900, 1000]
    found = only(TraceBuilder().gpu_metric(SM, [(time, 50) for time in times]), tmp_path)
    assert rows(found)[4:6] == [(400, 600, 0.5), (800, 900, 0.5)]


@pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
def test_rows_in_any_order_and_twice(reader: str, tmp_path: Path) -> None:
    trace = TraceBuilder().gpu_metric(SM, [(time, time // 100) for time in range(100, 5_000, 100)])
    trace.gpu_metric(SM, [(400, 4), (500, 90), (600, 0), (700, None)])
    plain, shuffled = (samples(trace, tmp_path, seed=seed, reader=reader).by_gpu[0]["sm_active"] for seed in (None, 3))
    assert rows(plain) == rows(shuffled)
    assert plain.left_out == shuffled.left_out == 4
    assert rows(plain)[3:7] == [(300, 400, 0.04), (400, 500, 0.9), (500, 600, 0.06), (600, 700, 0.07)]


def test_values_that_cannot_be(tmp_path: Path) -> None:
    """NULL, negative and far over 100% are no values, but keep their time; a little over is full."""
    values: list[int | float | None] = [50, None, -3, 101, 110, 111, 5e12, 0, 100]
    found = only(TraceBuilder().gpu_metric(SM, [(100 * at + 100, value) for at, value in enumerate(values)]), tmp_path)
    assert [value for _, _, value in rows(found)] == [0.5, None, None, 1.0, 1.0, None, None, 0.0, 1.0]
    assert rows(found)[7] == (700, 800, 0.0)
    assert (found.left_out, found.capped) == (4, 2)


@pytest.mark.parametrize(
    ("written", "hertz"),
    [(1.57e9, 1.57e9), (1_410_000_000, 1.41e9), (1410, 1.41e9), (210, 2.1e8), (1_000_000, None), (0, None), (-5, None)],
)
def test_clocks_are_hertz_whatever_the_name_says(written: float, hertz: float | None, tmp_path: Path) -> None:
    found = only(TraceBuilder().gpu_metric(CLOCK, [(100, 900), (200, written)]), tmp_path, "gpc_clock")
    assert rows(found)[0] == (0, 100, 9e8)
    assert rows(found)[1][2] == hertz


def test_an_id_means_something_only_with_its_type(tmp_path: Path) -> None:
    """Metric 0 is SM activity on GPU 0 and a clock on GPU 1."""
    trace = TraceBuilder().gpu_metric(SM, [(100, 30), (200, 30)])
    trace.gpu_metric(CLOCK, [(100, 1000), (200, 1000)], gpu=1).gpu_metric(SM, [(100, 70), (200, 70)], gpu=1)
    found = samples(trace, tmp_path).by_gpu
    assert {gpu: sorted(series) for gpu, series in found.items()} == {0: ["sm_active"], 1: ["gpc_clock", "sm_active"]}
    assert [found[gpu]["sm_active"].value.tolist() for gpu in (0, 1)] == [[0.3, 0.3], [0.7, 0.7]]
    assert found[1]["gpc_clock"].value.tolist() == [1e9, 1e9]


def test_of_two_types_of_a_gpu_the_fuller_is_read(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu_metric(SM, [(100, 10), (200, 10)])
    trace.gpu_metric(SM, [(150, 90), (250, 90), (350, 90)], kind=METRICS_TYPE + 1)
    assert only(trace, tmp_path).value.tolist() == [0.9, 0.9, 0.9]


def test_the_user_data_of_nvlink_is_added(tmp_path: Path) -> None:
    """A moment that only one part has says nothing of the sum; the sum is never more than all."""
    trace = TraceBuilder().gpu_metric(RX[0], [(100, 20), (200, 30), (300, 90), (400, 1)])
    trace.gpu_metric(RX[1], [(100, 5), (200, 25), (300, 20)])
    found = only(trace, tmp_path, "nvlink_rx")
    assert rows(found) == [(0, 100, 0.25), (100, 200, 0.55), (200, 300, 1.0)]
    assert found.names == RX


def test_half_of_a_sum_is_none(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu_metric(RX[0], [(100, 20), (200, 30)]).gpu_metric(RX[1], [])
    assert samples(trace, tmp_path).by_gpu == {}


def test_the_busiest_copy_engine_counts(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu_metric("Sync Copy Engine Active", [(100, 0), (200, 50)])
    trace.gpu_metric("Async Copy Engine Active 0", [(100, 70), (200, None)])
    trace.gpu_metric("Async Copy Engine Active 1", [(100, 60), (200, 20)])
    assert only(trace, tmp_path, "copy_engine").value.tolist() == [0.7, 0.5]


@pytest.mark.parametrize("values", [[], [(100, 50)], [(100, 50), (100, 60)], [(100, None), (200, None)]])
def test_what_tells_no_period_or_value_is_no_series(values: list[tuple[int, int | None]], tmp_path: Path) -> None:
    trace = TraceBuilder().gpu_metric(SM, values).gpu_metric("PES+VPC Throughput", [(100, 1)])
    assert samples(trace, tmp_path) == GpuMetricSamples(True, {}, ["PES+VPC Throughput"])


def test_metrics_of_a_gpu_share_their_times(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu_metric(SM, [(100, 1), (200, 2)]).gpu_metric(CLOCK, [(100, 900), (200, 900)])
    found = samples(trace.gpu_metric("SM Issue", [(100, 1), (210, 2)]), tmp_path).by_gpu[0]
    assert found["gpc_clock"].grid is found["sm_active"].grid
    assert found["sm_issue"].grid is not found["sm_active"].grid


@pytest.mark.parametrize("table", ["GPU_METRICS", "TARGET_INFO_GPU_METRICS"])
def test_a_table_that_is_not_there(table: str, tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1, 2).gpu_metric(SM, [(100, 1), (200, 2)]).drop_table(table)
    assert samples(trace, tmp_path) == GpuMetricSamples(table != "GPU_METRICS", {}, [])


def test_a_table_that_is_empty_or_lacks_a_column(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1, 2).gpu_metric(SM, [(100, 1), (200, 2)])
    for number, change in enumerate(
        ("DELETE FROM GPU_METRICS", "ALTER TABLE GPU_METRICS DROP COLUMN typeId", "DELETE FROM TARGET_INFO_GPU_METRICS")
    ):
        path = trace.write(tmp_path / f"{number}.sqlite")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(change)
        with open_trace(path) as opened:
            assert read_gpu_metrics(opened) == GpuMetricSamples(number > 0, {}, [])
            there = {each.id: each.available for each in opened.capabilities()}
        assert there["gpu-metrics"] == (number > 0)
