"""What holds up whole simulated traces of which it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Shared

LEADS = {
    "starved_training": ("input", "kernels", "data_loading"),
    "loss_read_each_step": ("kernels", "sync", "single_precision"),
    "launch_call": ("launch", "kernels", "launch_call"),
    "uncovered": ("unknown", None, "uncovered"),
    "slow_read_and_condition": ("input", None, "io_wait"),
    "slow_rank": ("host", "kernels", "late_rank"),
    "launch_bound": ("launch", "host", "host_compute"),
    "memory_allocation": ("memory", "kernels", "memory_allocation"),
    "healthy": ("kernels", None, "dispatch"),
    "stream_wait": ("kernels", None, "other_gpu"),
}
"""The bottleneck, the next one of 10% or more, and the cause of the first finding."""


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize("name", list(LEADS))
def test_the_lead(name: str, shared: Shared) -> None:
    report = shared.report(shared.trace(name))
    found = report.diagnosis
    assert found is not None
    second = found.second.bottleneck if found.second else None
    assert (found.basis, found.bottleneck, second, report.findings[0].cause) == ("steady", *LEADS[name])


@pytest.mark.slow
def test_the_trace_of_a_healthy_program_asks_for_next_to_nothing(shared: Shared) -> None:
    report = shared.report(shared.trace("healthy"))
    assert all(each.saves is None or each.saves.ns < 0.05 * each.saves.of_ns for each in report.findings)
    assert [device.verdict.id for device in report.devices] == ["gpu-bound"]
