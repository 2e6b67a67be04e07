"""Which GPU's counters are a device's: by the map, by the only GPU, by a number that one device alone has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builder import TraceBuilder
from tests.ledger.traces import devices, only_device

if TYPE_CHECKING:
    from pathlib import Path

US, MS = 1_000, 1_000_000
SM = "SMs Active [Throughput %]"


def counted(gpus: dict[int, int], *, schema: str = "3.24.8") -> TraceBuilder:
    """Per cent of active SMs by GPU, the same all the time."""
    trace = TraceBuilder(schema=schema)
    for gpu, percent in gpus.items():
        trace.gpu_metric(SM, [(at * 100 * US, percent) for at in range(1, 60)], gpu=gpu)
    return trace


def kernel(trace: TraceBuilder, device: int = 0, pid: int = 4242) -> TraceBuilder:
    return trace.kernel(1 * MS, 4 * MS, device=device, thread=(pid, pid), launch=(MS // 2, MS // 2 + US))


def active(trace: TraceBuilder, folder: Path) -> dict[str, float | None]:
    """What each device says of its SMs over its window; None where it has no metrics."""
    return {
        key: device.gpu_metrics.metrics[0].window if device.gpu_metrics else None
        for key, device in devices(trace, folder).items()
    }


def test_by_the_map_of_devices(tmp_path: Path) -> None:
    """CUDA_VISIBLE_DEVICES=3,1: the process's device 0 is GPU 3."""
    trace = kernel(kernel(counted({0: 10, 1: 20, 3: 40})), 1)
    trace.cuda_device(3, 0).cuda_device(1, 1).gpu(0).gpu(1).gpu(3)
    assert active(trace, tmp_path) == {"gpu3": 0.4, "gpu1": 0.2}


def test_by_the_only_gpu_there_is(tmp_path: Path) -> None:
    trace = kernel(counted({5: 40}, schema="3.13.2").gpu(5, ordinal=None))
    assert active(trace, tmp_path) == {"gpu0": 0.4}


def test_two_processes_on_the_only_gpu(tmp_path: Path) -> None:
    trace = kernel(kernel(counted({0: 40}, schema="3.13.2").gpu(0)), pid=5000)
    assert active(trace, tmp_path) == {"gpu0-pid4242": 0.4, "gpu0-pid5000": 0.4}


def test_by_the_cuda_number_of_the_gpu(tmp_path: Path) -> None:
    """CUDA numbers count the fastest GPU first: device 0 is GPU 1 here."""
    trace = kernel(counted({0: 10, 1: 20}, schema="3.13.2").gpu(0, ordinal=1).gpu(1, ordinal=0))
    assert active(trace, tmp_path) == {"gpu0": 0.2}


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("pids", [(4242, 5000), (4242, 5000, 6000)])
def test_no_guess_where_processes_share_a_number(pids: tuple[int, ...], tmp_path: Path) -> None:
    """Each process may see another GPU under its number 0."""
    trace = counted({0: 10, 1: 20}, schema="3.13.2").gpu(0).gpu(1)
    for pid in pids:
        kernel(trace, pid=pid)
    found = devices(trace, tmp_path)
    assert [device.gpu_metrics for device in found.values()] == [None] * len(pids)
    note = "The GPU metrics of GPU 0, 1 could not be matched: the trace does not show which GPU this device is."
    assert all(note in device.notes for device in found.values())


def test_no_guess_without_any_description(tmp_path: Path) -> None:
    trace = kernel(counted({0: 10, 1: 20}, schema="3.13.2"))
    device = only_device(trace, tmp_path)
    assert device.gpu_metrics is None
    assert "could not be matched" in device.notes[-1]


def test_metrics_of_other_gpus_only(tmp_path: Path) -> None:
    trace = kernel(counted({2: 10}).gpu(0).gpu(2).cuda_device(0, 0))
    device = only_device(trace, tmp_path)
    assert device.gpu_metrics is None
    assert device.notes == ["GPU metrics were captured of GPU 2, not of this one, which is GPU 0."]


def test_metrics_that_nobody_knows_are_named(tmp_path: Path) -> None:
    trace = kernel(TraceBuilder().gpu(0))
    for number in range(7):
        trace.gpu_metric(f"Raster {number}", [(100, 1), (200, 1)])
    named = ", ".join(f"'Raster {number}'" for number in range(5))
    assert only_device(trace, tmp_path).notes == [
        f"GPU_METRICS holds no metric that is known here, but {named} and 2 more."
    ]


def test_metrics_without_names(tmp_path: Path) -> None:
    trace = kernel(counted({0: 10}).gpu(0).drop_table("TARGET_INFO_GPU_METRICS"))
    assert only_device(trace, tmp_path).notes == [
        "GPU_METRICS has rows that cannot be read: no names, or no usable values."
    ]


def test_nothing_captured_and_nothing_said(tmp_path: Path) -> None:
    device = only_device(kernel(TraceBuilder().gpu(0)), tmp_path)
    assert (device.gpu_metrics, device.notes) == (None, [])


def test_no_metrics_inside_the_window(tmp_path: Path) -> None:
    """Sampling ended before the first kernel."""
    trace = kernel(TraceBuilder().gpu(0)).gpu_metric(SM, [(at * 100, 10) for at in range(1, 60)])
    assert only_device(trace, tmp_path).gpu_metrics is None
