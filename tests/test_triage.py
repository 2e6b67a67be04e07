"""Which kind of bottleneck comes first, over whole simulated traces of which it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.levels import quick
from tests.simulator.engine import MS
from tests.simulator.scenarios.serving import ARRIVALS

if TYPE_CHECKING:
    from nsysdiag.diagnosis.facts import Triage
    from nsysdiag.report import DeviceReport
    from tests.shared import Shared

FIRST = {
    "starved_training": ("feed", "steps"),
    "slow_read_and_condition": ("feed", "steps"),
    "loss_read_each_step": ("feed", "steps"),
    "copy_set_up": ("feed", "unclear"),
    "slow_rank": ("communication", "steps"),
    "launch_call": ("runtime", "steps"),
    "launch_bound": ("runtime", "steps"),
    "memory_allocation": ("runtime", "steps"),
    "healthy": ("kernels", "steps"),
    "stream_wait": ("none", "steps"),
    "uncovered": ("unresolved", "steps"),
    "rarely_asked": ("sizing", "bursts"),
    "late_when_asked": ("feed", "bursts"),
}


def analyzed(name: str, shared: Shared) -> tuple[DeviceReport, Triage]:
    device = shared.report(shared.trace(name)).devices[0]
    assert device.triage is not None
    return device, device.triage


@pytest.mark.parametrize("name", quick(list(FIRST), 4))
def test_first_comes(name: str, shared: Shared) -> None:
    _, found = analyzed(name, shared)
    assert (found.id, found.workload.kind) == FIRST[name]


def test_time_between_bursts_is_no_loss(shared: Shared) -> None:
    """The waits for requests are left out, and what a request itself waits for remains: eight times 500 us on the CPU
    before its kernels, of which the first lies before the burst and the others hide 300 us behind the kernel before."""
    device, found = analyzed("late_when_asked", shared)
    between = found.workload.between_ns
    assert sum(ARRIVALS) * MS * 0.9 < between < sum(ARRIVALS) * MS
    assert found.workload.judged_ns == device.window_ns - between
    assert found.workload.bursts == len(ARRIVALS) + 1
    feed = found.kinds[0]
    assert feed.share is not None
    late = len(ARRIVALS) * 7 * 200_000
    assert late * 0.95 < feed.share * found.workload.judged_ns < late * 1.05
