"""What a dashboard shows and what the GPU did, on traces whose numbers are known exactly."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings, UtilizationThresholds
from nsysdiag.messages import UsageError
from tests.builder import TraceBuilder
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.utilization.facts import Utilization, UtilizationSeries
    from tests.builder import Value

MS = 1_000_000
SAMPLE = 166_666_667
H100 = {"maxWarpsPerSm": 64, "maxBlocksPerSm": 32, "maxRegistersPerSm": 65_536, "maxShmemPerSm": 233_472}
LIMITS: dict[str, Value] = {**H100, "threadsPerWarp": 32, "computeMajor": 9, "computeMinor": 0}


def chip(sm_count: int = 132) -> TraceBuilder:
    """A trace with a GPU of known size: with 256 threads and 32 registers, 8 blocks fit on an SM."""
    return TraceBuilder().gpu(0, "NVIDIA H100 80GB HBM3", sm_count=sm_count, limits=LIMITS)


def blocks(count: int) -> dict[str, Value]:
    return {"gridX": count}


def utilization(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> Utilization:
    return only_device(trace, folder, settings).utilization


def series_of(found: UtilizationSeries | None) -> UtilizationSeries:
    assert found is not None
    return found


# ---- the number of a dashboard -----------------------------------------------------------------------------------


def test_one_ms_in_every_33(tmp_path: Path) -> None:
    """
    kernels   |#        |#        |#        | ...   1 ms every 33 ms, 1,000 times
    polls     |1       |1        |1        |        every 50 ms one at least
    """
    trace = TraceBuilder()
    for at in range(1000):
        trace.kernel(MS + 33 * MS * at, 2 * MS + 33 * MS * at)
    found = utilization(trace, tmp_path)
    assert found.util_time_share == round(1000 / (999 * 33 + 1), 6) == 0.030332
    assert found.util_period_share == 1.0
    assert found.sentence == "100.0% by polling every 50.0 ms, 3.0% of the time."
    sampled, polled = series_of(found.by_time), series_of(found.by_period)
    assert (sampled.period_ns, sampled.periods, len(sampled.values)) == (SAMPLE, 198, 198)
    # A sample of 166.7 ms holds five kernels or six; but for rounding of the sixth, whole ones.
    assert (sampled.lowest, round(sampled.highest, 3)) == (0.03, 0.036)
    assert (polled.period_ns, polled.periods, polled.lowest, polled.highest) == (50 * MS, 660, 1.0, 1.0)


def test_a_gpu_that_only_copies(tmp_path: Path) -> None:
    """
    device  [#][== copy ==] .. [== copy ==][#]      2 ms of kernels, 96 ms of copies, 100 ms in all
    """
    trace = chip().kernel(MS, 2 * MS, launch=(1, 2))
    trace.memcpy(2 * MS, 50 * MS, launch=(3, 4)).memcpy(52 * MS, 100 * MS, launch=(5, 6))
    trace.kernel(100 * MS, 101 * MS, launch=(7, 8))
    found = utilization(trace, tmp_path)
    shares = (found.busy_share, found.compute_share, found.exposed_copy_share, found.exposed_comm_share)
    assert (found.util_time_share, *shares, found.idle_share) == (0.02, 0.98, 0.02, 0.96, 0.0, 0.02)
    assert found.sentence == "nvidia-smi would show 2.0%; copies alone keep the GPU busy 96.0% of the time."


def test_copies_alone_are_no_utilization(tmp_path: Path) -> None:
    found = utilization(TraceBuilder().memcpy(MS, 11 * MS), tmp_path)
    assert (found.util_time_share, found.util_period_share, found.busy_share) == (0.0, 0.0, 1.0)
    assert (found.sm_active_share, found.efficiency, found.kernels) == (0.0, None, [])
    assert found.sentence == "nvidia-smi would show 0.0%; copies alone keep the GPU busy 100.0% of the time."


def test_a_collective_that_spins(tmp_path: Path) -> None:
    trace = chip().kernel(MS, 101 * MS, name="ncclDevKernel_AllReduce", shape=blocks(24))
    found = utilization(trace, tmp_path)
    assert (found.util_time_share, found.compute_share, found.exposed_comm_share) == (1.0, 0.0, 1.0)
    assert found.sentence == (
        "100.0% on a dashboard, but the GPU computes 0.0% of the time: 100.0% is exposed communication."
    )


def test_graphs_count_as_kernels(tmp_path: Path) -> None:
    found = utilization(TraceBuilder().graph_trace(MS, 4 * MS).memcpy(4 * MS, 5 * MS), tmp_path)
    assert found.util_time_share == 0.75


def test_window_in_parts(tmp_path: Path) -> None:
    """
    window      10 .. 40                    210 .. 240 ms: NVTX, as its kernels ran
    kernels     10 .. 20      100 .. 180    210 .. 220, and at 39 and 239 one of 1 ms each
    polls of 20 10 .. 30 .. 40                   210 .. 230 .. 240
    """
    trace = TraceBuilder().kernel(100 * MS, 180 * MS, launch=(90 * MS, 91 * MS))
    for begin in (10 * MS, 210 * MS):
        trace.nvtx("step", begin, begin + 29 * MS)
        trace.kernel(begin, begin + 10 * MS, launch=(begin, begin + 5_000))
        trace.kernel(begin + 29 * MS, begin + 30 * MS, launch=(begin + 20 * MS, begin + 21 * MS))
    limits = UtilizationThresholds(poll_ns=20 * MS, sample_ns=20 * MS)
    found = utilization(trace, tmp_path, Settings(nvtx="step", utilization=limits))
    assert found.util_time_share == round(22 / 60, 6)
    assert found.util_period_share == 1.0
    polled, sampled = series_of(found.by_period), series_of(found.by_time)
    assert polled.periods == 4
    assert polled.values == [1.0, 1.0, *[None] * 8, 1.0, 1.0]
    assert sampled.values == [0.5, 0.1, *[None] * 8, 0.5, 0.1]
    # The lowest and the highest are of whole periods: those of 20 ms.
    assert (sampled.lowest, sampled.highest) == (0.5, 0.5)


def test_a_partial_last_period_weighs_as_long_as_it_is(tmp_path: Path) -> None:
    """
    0         10        20   25 ms
    [#]                 [####]        polls of 10 ms: 1, 0, 1; the last one of 5 ms
    """
    trace = TraceBuilder().kernel(1, 1 * MS + 1).kernel(20 * MS + 1, 25 * MS + 1)
    limits = UtilizationThresholds(poll_ns=10 * MS, sample_ns=10 * MS)
    found = utilization(trace, tmp_path, Settings(utilization=limits))
    assert (found.util_time_share, found.util_period_share) == (0.24, 0.6)
    assert series_of(found.by_period).values == [1.0, 0.0, 1.0]
    assert series_of(found.by_time).values == [0.1, 0.0, 1.0]


def test_a_window_of_less_than_one_sample(tmp_path: Path) -> None:
    found = utilization(TraceBuilder().kernel(MS, 2 * MS).kernel(4 * MS, 5 * MS), tmp_path)
    assert series_of(found.by_time).values == [0.5]
    assert found.notes == [
        "the window holds 4.00 ms, less than one sample of a counter (167 ms): a real one shows time outside of the "
        "window as well"
    ]


def test_a_long_window_keeps_a_short_series(tmp_path: Path) -> None:
    """400 s: 8,000 polls of 50 ms, eight of them a value; a kernel of 25 ms in every second poll."""
    trace = TraceBuilder()
    for at in range(4000):
        trace.kernel(1 + 100 * MS * at, 1 + 100 * MS * at + 25 * MS)
    trace.kernel(399_950 * MS + 1, 400_000 * MS + 1)
    found = utilization(trace, tmp_path)
    assert found.util_period_share == round(4001 / 8000, 6)
    polled = series_of(found.by_period)
    assert (polled.period_ns, polled.periods, polled.step_ns) == (50 * MS, 8000, 200 * MS)
    assert polled.values == [0.5] * 1999 + [0.75]
    assert (polled.lowest, polled.highest) == (0.0, 1.0)


def test_nothing_ran(tmp_path: Path) -> None:
    """A kernel of no length makes a device, and no window."""
    found = utilization(TraceBuilder().kernel(MS, MS), tmp_path)
    assert (found.util_time_share, found.util_period_share, found.by_time, found.idle_share) == (None, None, None, None)
    assert (found.sm_active_share, found.efficiency) == (None, None)
    assert found.sentence == "No GPU work in this window."


@pytest.mark.parametrize("field", ["sample_ns", "poll_ns"])
@pytest.mark.parametrize("ns", [0, -5, MS - 1, 1000 * MS + 1])
def test_periods_that_no_counter_has(field: str, ns: int, tmp_path: Path) -> None:
    limits = UtilizationThresholds(**{field: ns})
    with pytest.raises(UsageError, match=field):
        utilization(TraceBuilder().kernel(MS, 2 * MS), tmp_path, Settings(utilization=limits))


@pytest.mark.parametrize("ns", [MS, 1000 * MS])
def test_periods_at_the_bounds(ns: int, tmp_path: Path) -> None:
    limits = UtilizationThresholds(sample_ns=ns, poll_ns=ns)
    found = utilization(TraceBuilder().kernel(MS, 2 * MS), tmp_path, Settings(utilization=limits))
    assert series_of(found.by_time).period_ns == series_of(found.by_period).period_ns == ns


def test_changed_settings_are_told() -> None:
    settings = Settings(utilization=UtilizationThresholds(poll_ns=20 * MS, hollow_activity=0.5))
    assert settings.changed() == {"utilization": {"poll_ns": 20_000_000, "hollow_activity": 0.5}}


# ---- the SMs -----------------------------------------------------------------------------------------------------


def test_one_block_on_132_sms(tmp_path: Path) -> None:
    found = utilization(chip().kernel(MS, 101 * MS, shape=blocks(1)), tmp_path)
    estimate = found.estimate
    assert (found.util_time_share, found.sm_source, estimate.source) == (1.0, "estimate", "estimate")
    assert found.sm_active_share == estimate.sm_active_share == round(1 / 132, 6) == 0.007576
    assert estimate.resident_share == round(1 / (132 * 8), 6) == 0.000947
    assert (estimate.covered_share, estimate.missing, found.efficiency) == (1.0, "", 0.007576)
    assert found.sentence == "100.0% on a dashboard, but an estimated 0.8% of the SMs have work."


def test_one_block_where_only_the_number_of_sms_is_known(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0, "NVIDIA H100 80GB HBM3", sm_count=132).kernel(MS, 101 * MS, shape=blocks(1))
    found = utilization(trace, tmp_path)
    assert (found.util_time_share, found.sm_active_share) == (1.0, 0.007576)
    assert (found.estimate.covered_share, found.estimate.resident_share) == (1.0, None)
    (kernel,) = found.kernels
    assert (kernel.blocks_per_sm, kernel.waves, kernel.sm_share) == (None, None, 0.007576)


def test_while_computing_leaves_communication_out(tmp_path: Path) -> None:
    """A kernel on 66 of 132 SMs for 10 ms, then one block of NCCL for 30 ms."""
    trace = chip().kernel(MS, 11 * MS, shape=blocks(66))
    trace.kernel(11 * MS, 41 * MS, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", shape=blocks(1))
    estimate = utilization(trace, tmp_path).estimate
    assert estimate.sm_active_computing == 0.5
    assert estimate.sm_active_running == round((10 / 2 + 30 / 132) / 40, 6)


def test_while_computing_leaves_unknown_shapes_out(tmp_path: Path) -> None:
    trace = chip().kernel(MS, 11 * MS, shape=blocks(33)).kernel(11 * MS, 21 * MS, shape={"gridX": 0})
    assert utilization(trace, tmp_path).estimate.sm_active_computing == 0.25


def test_two_kernels_side_by_side_fill_half_each(tmp_path: Path) -> None:
    """
    stream 7   [--- 66 of 132 SMs ---)                    1 .. 21 ms
    stream 9             [--- 66 of 132 SMs ---)         11 .. 31 ms
    SMs        1/2       1             1/2
    """
    trace = chip().kernel(MS, 21 * MS, shape=blocks(66)).kernel(11 * MS, 31 * MS, stream=9, shape=blocks(66))
    estimate = utilization(trace, tmp_path).estimate
    assert estimate.sm_active_share == estimate.sm_active_running == round(2 / 3, 6)
    assert estimate.resident_share == round((10 * 66 + 10 * 132 + 10 * 66) / (30 * 132 * 8), 6)


def test_more_than_all_sms_is_all_sms(tmp_path: Path) -> None:
    trace = chip()
    for stream in range(3):
        trace.kernel(MS, 21 * MS, stream=stream + 7, shape=blocks(66))
    assert utilization(trace, tmp_path).sm_active_share == 1.0


def test_of_the_window_and_of_the_time_with_kernels(tmp_path: Path) -> None:
    """A kernel on 33 of 132 SMs for 10 ms, 20 ms of nothing, the same again: a quarter of half of the time."""
    trace = chip().kernel(MS, 11 * MS, shape=blocks(33)).kernel(31 * MS, 41 * MS, shape=blocks(33))
    found = utilization(trace, tmp_path)
    assert (found.util_time_share, found.sm_active_share) == (0.5, 0.125)
    assert (found.estimate.sm_active_running, found.efficiency) == (0.25, 0.25)


def test_only_the_parts_of_a_window_count(tmp_path: Path) -> None:
    trace = chip().kernel(MS, 11 * MS, shape=blocks(33)).kernel(11 * MS, 21 * MS, shape=blocks(132))
    found = utilization(trace, tmp_path, Settings(start_ns=6 * MS, end_ns=16 * MS))
    assert found.sm_active_share == round((5 * 0.25 + 5 * 1.0) / 10, 6)


def test_a_tail_wave(tmp_path: Path) -> None:
    """1056 blocks fit at a time; 1122 are a wave and a tail of 66 blocks on half of the SMs."""
    found = utilization(chip().kernel(MS, 3 * MS, shape=blocks(1122)), tmp_path)
    assert found.sm_active_share == 0.75
    assert found.estimate.resident_share == round(1122 / 2112, 6)
    (kernel,) = found.kernels
    assert (kernel.blocks, kernel.threads, kernel.registers, kernel.blocks_per_sm) == (1122, 256, 32, 8)
    assert (kernel.waves, kernel.sm_share, kernel.limit) == (1.0625, 0.75, "warps")


def test_without_the_chip_nothing_is_claimed(tmp_path: Path) -> None:
    found = utilization(TraceBuilder().kernel(MS, 101 * MS, shape=blocks(1)), tmp_path)
    estimate = found.estimate
    assert (found.util_time_share, found.sm_active_share, found.sm_source) == (1.0, None, None)
    assert (estimate.sm_active_share, estimate.sm_active_at_most, estimate.covered_share) == (None, None, 0.0)
    assert "--gpu-metrics-devices=all" in estimate.missing
    assert found.efficiency is None
    assert (
        found.sentence == "In this window a dashboard would show 100.0%; this trace cannot tell how many SMs had work."
    )
    (kernel,) = found.kernels
    assert (kernel.blocks, kernel.waves, kernel.sm_share, kernel.limit) == (1, None, None, None)


@pytest.mark.parametrize("column", ["gridX", "blockX"])
def test_kernels_without_a_shape(column: str, tmp_path: Path) -> None:
    """
    [== 33 of 132 SMs, 10 ms ==)[== nobody knows, 10 ms ==)   a quarter of half of it at least, at most 5/8
    """
    trace = chip().kernel(MS, 11 * MS, shape=blocks(33)).kernel(11 * MS, 21 * MS, shape={column: 0})
    found = utilization(trace, tmp_path)
    estimate = found.estimate
    assert (estimate.sm_active_share, estimate.sm_active_at_most) == (0.125, 0.625)
    assert (estimate.covered_share, len(found.kernels)) == (0.5, 1)
    assert "no launch shape" in estimate.missing
    # With all SMs in the half that nobody knows the chip would be full.
    assert (
        found.sentence
        == "In this window a dashboard would show 100.0%, with work on an estimated 12.5% to 62.5% of the SMs on "
        "average."
    )


def test_a_graph_as_a_whole_has_no_shape(tmp_path: Path) -> None:
    found = utilization(chip().graph_trace(MS, 11 * MS), tmp_path)
    assert (found.util_time_share, found.sm_active_share, found.estimate.covered_share) == (1.0, None, 0.0)
    assert "--cuda-graph-trace=node" in found.estimate.missing


def test_what_covers_too_little_is_no_empty_chip(tmp_path: Path) -> None:
    """1% of the time with one block, 99% in a graph that nobody looked into."""
    trace = chip().kernel(MS, 2 * MS, shape=blocks(1)).graph_trace(2 * MS, 101 * MS)
    found = utilization(trace, tmp_path)
    assert found.estimate.covered_share == 0.01
    assert (found.estimate.sm_active_running, found.estimate.sm_active_computing) == (None, None)
    assert found.sentence == (
        "In this window a dashboard would show 100.0%; this trace cannot tell how many SMs had work."
    )


def test_the_older_table_of_gpus(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(MS, 2 * MS, shape=blocks(40))
    columns = {
        "deviceId": 0,
        "pid": 4242,
        "name": "'Tesla P100'",
        "numMultiprocessors": 56,
        "maxWarpsPerMultiprocessor": 64,
        "maxBlocksPerMultiprocessor": 32,
        "maxRegistersPerMultiprocessor": 65_536,
        "maxSharedMemoryPerMultiprocessor": 65_536,
        "numThreadsPerWarp": 32,
        "computeCapabilityMajor": 6,
        "computeCapabilityMinor": 0,
    }
    path = trace.write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE TARGET_INFO_CUDA_GPU ({', '.join(columns)})")
        connection.execute(f"INSERT INTO TARGET_INFO_CUDA_GPU VALUES ({', '.join(map(str, columns.values()))})")
    found = utilization(trace, tmp_path)
    assert found.sm_active_share == round(40 / 56, 6)
    assert found.kernels[0].blocks_per_sm == 8


# ---- kernels by their shapes -------------------------------------------------------------------------------------


def test_one_name_in_several_shapes(tmp_path: Path) -> None:
    """gemm: 66 blocks for 30 ms, 132 for 10 ms twice; wide: 512 threads and 64 KiB for 5 ms."""
    trace = chip().kernel(MS, 31 * MS, shape=blocks(66))
    trace.kernel(31 * MS, 41 * MS, shape=blocks(132)).kernel(41 * MS, 51 * MS, shape=blocks(132))
    wide: dict[str, Value] = {"gridX": 2, "gridY": 132, "blockX": 512, "dynamicSharedMemory": 65_536}
    trace.kernel(51 * MS, 56 * MS, name="wide", shape=wide)
    gemm, other = utilization(trace, tmp_path).kernels
    assert (gemm.short_name, gemm.count, gemm.total_ns, gemm.shapes, gemm.blocks) == ("gemm", 3, 50 * MS, 2, 132)
    assert (gemm.sm_share, gemm.resident_share) == (0.7, round((30 * 66 + 20 * 132) / 50 / 1056, 6))
    assert (gemm.waves, gemm.limit) == (round((30 * 0.0625 + 20 * 0.125) / 50, 6), "grid too small")
    # 65,536 B and 1,024 are 66,560: three blocks of 233,472 B. 264 blocks are less than 396.
    assert (other.blocks, other.threads, other.shared_bytes, other.blocks_per_sm) == (264, 512, 65_536, 3)
    assert (other.sm_share, other.resident_share, other.limit) == (1.0, round(264 / 396, 6), "grid too small")


def test_kernels_outside_of_the_window_do_not_count(tmp_path: Path) -> None:
    trace = chip().kernel(MS, 11 * MS).kernel(11 * MS, 21 * MS).kernel(21 * MS, 31 * MS, name="late")
    found = utilization(trace, tmp_path, Settings(start_ns=11 * MS, end_ns=21 * MS))
    assert [(row.short_name, row.count, row.total_ns) for row in found.kernels] == [("gemm", 1, 10 * MS)]


def test_at_most_200_names(tmp_path: Path) -> None:
    trace = chip()
    for at in range(205):
        trace.kernel(MS + at * MS, MS + at * MS + 1000 + at, name=f"kernel_{at}")
    rows = utilization(trace, tmp_path).kernels
    assert [row.short_name for row in rows] == [f"kernel_{at}" for at in range(204, 4, -1)]
