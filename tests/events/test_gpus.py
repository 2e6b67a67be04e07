"""Which operations share a physical GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.messages import UsageError
from tests.builder import TraceBuilder
from tests.ledger.traces import devices, only_device, report_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport

FIRST, SECOND = (4242, 4242), (5000, 5000)


def two_processes(schema: str, *, ordinals: tuple[int, int] = (0, 0)) -> TraceBuilder:
    """
    process 4242  [1_000, 5_000)
    process 5000         [3_000, 9_000)      both call their device by an ordinal of their own
    """
    trace = TraceBuilder(schema=schema).kernel(1_000, 5_000, device=ordinals[0], launch=(1, 2), thread=FIRST)
    return trace.kernel(3_000, 9_000, device=ordinals[1], launch=(1, 2), thread=SECOND)


def ids(device: DeviceReport) -> list[tuple[int, int]]:
    return [(one.pid, one.device_id) for one in device.ids]


def test_a_map_unites_processes_on_one_gpu(tmp_path: Path) -> None:
    trace = two_processes("3.17.2").cuda_device(0, 0, pid=4242).cuda_device(0, 0, pid=5000)
    device = only_device(trace, tmp_path)
    assert (device.key, ids(device)) == ("gpu0", [(4242, 0), (5000, 0)])
    assert (device.window_ns, device.busy_ns) == (8_000, 8_000)
    assert device.notes == []


def test_a_map_tells_equal_ordinals_apart(tmp_path: Path) -> None:
    """CUDA_VISIBLE_DEVICES: both processes say 0 and mean GPU 2 and GPU 5."""
    trace = two_processes("3.17.2").cuda_device(2, 0, pid=4242).cuda_device(5, 0, pid=5000)
    found = devices(trace, tmp_path)
    assert {key: (ids(device), device.busy_ns) for key, device in found.items()} == {
        "gpu2": ([(4242, 0)], 4_000),
        "gpu5": ([(5000, 0)], 6_000),
    }


def test_a_map_unites_different_ordinals(tmp_path: Path) -> None:
    trace = two_processes("3.17.2", ordinals=(1, 0)).cuda_device(3, 1, pid=4242).cuda_device(3, 0, pid=5000)
    device = only_device(trace, tmp_path)
    assert (device.key, ids(device)) == ("gpu3", [(4242, 1), (5000, 0)])


def test_without_a_map_processes_stay_apart_and_that_is_said(tmp_path: Path) -> None:
    found = devices(two_processes("3.13.2"), tmp_path)
    assert {key: ids(device) for key, device in found.items()} == {
        "gpu0-pid4242": [(4242, 0)],
        "gpu0-pid5000": [(5000, 0)],
    }
    assert all("--same-gpu" in device.notes[0] for device in found.values())


@pytest.mark.slow
def test_same_gpu_unites_them(tmp_path: Path) -> None:
    device = only_device(two_processes("3.13.2"), tmp_path, Settings(same_gpu=True))
    assert (device.key, ids(device), device.busy_ns) == ("gpu0", [(4242, 0), (5000, 0)], 8_000)
    assert device.notes == []


def test_one_process_needs_no_map(tmp_path: Path) -> None:
    device = only_device(TraceBuilder().kernel(1_000, 5_000, launch=(1, 2)), tmp_path)
    assert (device.key, ids(device), device.notes) == ("gpu0", [(4242, 0)], [])


def test_a_device_that_is_not_number_0(tmp_path: Path) -> None:
    device = only_device(TraceBuilder().kernel(1_000, 5_000, device=1, launch=(1, 2)), tmp_path)
    assert (device.key, ids(device), device.busy_ns) == ("gpu1", [(4242, 1)], 4_000)


def test_every_device_is_looked_at(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in (0, 1, 2, 10):
        trace.kernel(1_000, 5_000 + number, device=number, launch=(1, 2))
    found = report_of(trace, tmp_path).devices
    assert [(device.key, device.busy_ns) for device in found] == [
        ("gpu0", 4_000),
        ("gpu1", 4_001),
        ("gpu2", 4_002),
        ("gpu10", 4_010),
    ]


def test_the_name_of_the_gpu_follows_the_map(tmp_path: Path) -> None:
    trace = two_processes("3.17.2").cuda_device(2, 0, pid=4242).cuda_device(5, 0, pid=5000)
    trace.gpu(2, "NVIDIA H100", sm_count=132).gpu(5, "NVIDIA A100")
    found = devices(trace, tmp_path)
    assert {key: (device.name, device.sm_count) for key, device in found.items()} == {
        "gpu2": ("NVIDIA H100", 132),
        "gpu5": ("NVIDIA A100", 108),
    }


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("wanted", ["gpu1", "1", "h100"])
def test_a_device_can_be_chosen(wanted: str, tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0, "NVIDIA A100").gpu(1, "NVIDIA H100")
    for number in (0, 1):
        trace.kernel(1_000, 5_000, device=number, launch=(1, 2))
    assert only_device(trace, tmp_path, Settings(device=wanted)).key == "gpu1"


def test_a_device_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 5_000, launch=(1, 2))
    with pytest.raises(UsageError, match="no device 'gpu7'") as caught:
        report_of(trace, tmp_path, Settings(device="gpu7"))
    assert "gpu0" in (caught.value.hint or "")
