"""Signatures: which gaps are alike, and the figures of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.gap_groups.groups import normal_range
from tests.builder import TraceBuilder
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path


def steps(lengths: list[int]) -> TraceBuilder:
    """Each step is 100_000 of work and an idle stretch; the last 20_000 of that are its launch:

    ```
    nvtx    [step 0             ][step 1    ...
    device  [=K=)......[=K=)......
    ```
    """
    trace = TraceBuilder()
    start = 1_000_000
    for number, idle in enumerate(lengths):
        issued = start - 20_000
        trace.kernel(start, start + 100_000, name=f"triton_poi_fused_add_{number}", launch=(issued, issued + 10_000))
        trace.nvtx(f"step {number}", issued - 1_000, start + 100_000 + idle - 25_000)
        start += 100_000 + idle
    return trace


def test_counters_in_kernels_and_ranges_are_no_difference(tmp_path: Path) -> None:
    """Seven launches of one fused kernel, each with a number of its own: six gaps of one kind, 100 µs to 600 µs."""
    (row,) = only_device(steps([300_000, 100_000, 600_000, 200_000, 500_000, 400_000, 0]), tmp_path).signatures
    assert (row.previous_op, row.next_op, row.nvtx) == ("triton_poi_fused_add_#", "triton_poi_fused_add_#", ["step #"])
    assert (row.count, row.total_ns, row.max_ns) == (6, 2_100_000, 600_000)
    assert (row.median_ns, row.p95_ns) == (300_000, 600_000)
    assert (row.representative_index, row.representative_start_ns) == (2, 1_700_000)
    assert row.share_of_idle == 1.0


def test_cost_of_a_steady_iteration(tmp_path: Path) -> None:
    """Eight steps with 300_000 idle between them; all steady: seven gaps in eight iterations."""
    device = only_device(steps([300_000] * 7 + [0]), tmp_path)
    (row,) = device.signatures
    assert device.iterations is not None
    assert (device.iterations.count, device.iterations.left_out) == (8, [7])
    assert row.per_iteration_ns == 300_000


def test_no_iterations_no_cost_of_one(tmp_path: Path) -> None:
    (row,) = only_device(steps([300_000, 0]), tmp_path).signatures
    assert row.per_iteration_ns is None


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("step 17", "step #"),
        ("step_17", "step_#"),
        ("layer12.attn", "layer#.attn"),
        ("conv2d", "conv2d"),
        ("epoch 3 batch 44", "epoch # batch #"),
        ("Tensor at 0x7f12ab", "Tensor at #"),
        ("aten::add, seq = 12, op_id = 9", "aten::add"),
        ("aten::add, op_id = 9", "aten::add"),
        ("aten::add, seq = 3, op_id = 9, sizes = [[2, 3], []]", "aten::add"),
        ("sweep, seq = 3 of 9", "sweep, seq = # of #"),
    ],
)
def test_names_of_ranges(name: str, normal: str) -> None:
    assert normal_range(name) == normal
