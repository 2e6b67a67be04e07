"""The window split four ways: compute, exposed communication, exposed copies, idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from tests.builder import MAIN, TraceBuilder
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def split(device: DeviceReport) -> tuple[int, int, int, int]:
    return device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns, device.idle_ns


def test_every_kind_beside_every_other(tmp_path: Path) -> None:
    """
    compute  [1_000,       5_000)
    comm              [4_000,      7_000)
    copy  [500,  1_500)               [6_000, 9_000)
    set                                             [9_500, 9_800)
    """
    trace = TraceBuilder().kernel(1_000, 5_000, launch=(1, 2))
    trace.kernel(4_000, 7_000, name=NCCL, stream=8, launch=(3, 4))
    trace.memcpy(500, 1_500, stream=9, launch=(5, 6)).memcpy(6_000, 9_000, stream=9, launch=(7, 8))
    trace.memset(9_500, 9_800, stream=9, launch=(9, 10))
    device = only_device(trace, tmp_path)
    assert split(device) == (4_000, 2_000, 500 + 2_000 + 300, 500)
    assert device.overlapped_comm_ns == 1_000
    assert (device.window_ns, device.busy_ns) == (9_300, 8_800)


def test_streams_side_by_side_are_busy_once(tmp_path: Path) -> None:
    """
    stream 7  [1_000,   5_000)
    stream 8  [1_000,   5_000)         a sum over streams would be 8_000
    stream 9     [2_000, 6_000)
    """
    trace = TraceBuilder()
    for stream, (start, end) in {7: (1_000, 5_000), 8: (1_000, 5_000), 9: (2_000, 6_000)}.items():
        trace.kernel(start, end, stream=stream, launch=(1, 2))
    assert split(only_device(trace, tmp_path)) == (5_000, 0, 0, 0)


def test_a_graph_computes(tmp_path: Path) -> None:
    assert split(only_device(TraceBuilder().graph_trace(1_000, 5_000, launch=(1, 2)), tmp_path)) == (4_000, 0, 0, 0)


def test_copies_are_not_idle(tmp_path: Path) -> None:
    """
    device  [K)[=======copy=======)[K)      kernels alone would say 97% idle
    """
    trace = TraceBuilder().kernel(1_000, 1_100, launch=(1, 2)).memcpy(1_100, 8_900, launch=(3, 4))
    trace.kernel(8_900, 9_000, launch=(5, 6))
    device = only_device(trace, tmp_path)
    assert split(device) == (200, 0, 7_800, 0)
    assert device.verdict.id == "copy-bound"


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("name", "communication"),
    [
        (NCCL, True),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", True),
        ("NCCLkernel", True),
        ("nvshmemi_barrier", True),
        ("rccl_kernel", True),
        ("multimem_all_reduce_kernel", True),
        ("two_shot_all_reduce_kernel_inplace", True),
        ("cross_device_reduce_2stage", True),
        ("my_nccl_like_kernel", False),
        ("gemm", False),
    ],
)
def test_communication_by_the_beginning_of_the_short_name(name: str, communication: bool, tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 5_000, name=name, demangled=f"void {name}(Args)", launch=(1, 2))
    assert split(only_device(trace, tmp_path)) == ((0, 4_000, 0, 0) if communication else (4_000, 0, 0, 0))


def test_the_patterns_are_a_setting(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 5_000, name="my_ring", launch=(1, 2))
    device = only_device(trace, tmp_path, Settings(communication_patterns=("my_",)))
    assert split(device) == (0, 4_000, 0, 0)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("domain", "launch", "communication"),
    [("NCCL", (150, 160), True), ("NCCL", (205, 210), False), ("torch", (150, 160), False)],
)
def test_communication_by_the_domain_that_launched_it(
    domain: str, launch: tuple[int, int], communication: bool, tmp_path: Path
) -> None:
    """
    device                         [==kernel==)
    thread    [launch]
    NVTX    [ncclAllReduce   )                     in the domain named NCCL
    """
    trace = TraceBuilder().nvtx(domain, 10, None, domain=6, event_type=75)
    trace.nvtx("ncclAllReduce", 100, 200, domain=6).kernel(1_000, 5_000, launch=launch)
    assert split(only_device(trace, tmp_path)) == ((0, 4_000, 0, 0) if communication else (4_000, 0, 0, 0))


def test_a_domain_number_of_another_process_is_another_domain(tmp_path: Path) -> None:
    other = (5000, 5000)
    trace = TraceBuilder().nvtx("NCCL", 10, None, domain=6, event_type=75, thread=other)
    trace.nvtx("step", 100, 200, domain=6).kernel(1_000, 5_000, launch=(150, 160), thread=MAIN)
    assert split(only_device(trace, tmp_path)) == (4_000, 0, 0, 0)
