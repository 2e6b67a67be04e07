"""Utilization of every real trace at hand: shares that are shares, series that mean what the numbers say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport
    from nsysdiag.utilization.facts import Utilization, UtilizationSeries
    from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = sorted(FOLDER.glob("*.sqlite"))

pytestmark = pytest.mark.real


def weighted_mean(series: UtilizationSeries, device: DeviceReport) -> float:
    """The values weighed by how much of the window lies in each step."""
    total = weight = 0.0
    for at, value in enumerate(series.values):
        start = series.start_ns + at * series.step_ns
        end = start + series.step_ns
        inside = sum(max(min(end, until) - max(start, begin), 0) for begin, until in device.window.parts)
        assert (value is None) == (inside == 0)
        total, weight = total + (value or 0.0) * inside, weight + inside
    assert weight == device.window_ns
    return total / weight


def shares_of(found: Utilization) -> list[float | None]:
    estimate = found.estimate
    return [
        *(found.util_time_share, found.util_period_share, found.busy_share, found.compute_share, found.idle_share),
        *(found.exposed_comm_share, found.exposed_copy_share, found.sm_active_share, estimate.resident_share),
        *(estimate.sm_active_running, estimate.resident_running, estimate.sm_active_at_most, estimate.covered_share),
    ]


@pytest.mark.parametrize("trace", FILES or [Path("none")], ids=lambda path: path.stem)
def test_numbers_fit_together(trace: Path, shared: Shared) -> None:
    for device in shared.report(trace).devices:
        found = device.utilization
        assert all(share is None or 0 <= share <= 1 for share in shares_of(found))
        assert found.util_time_share is not None
        assert found.util_period_share is not None
        assert found.util_time_share <= found.util_period_share + 1e-6
        assert found.util_time_share == round((device.compute_ns + device.exposed_comm_ns) / device.window_ns, 6)
        for series, number in ((found.by_time, found.util_time_share), (found.by_period, found.util_period_share)):
            assert series is not None
            assert weighted_mean(series, device) == pytest.approx(number, abs=1e-4)
            assert 0 <= series.lowest <= series.highest <= 1
        if found.sm_active_share is not None:
            assert found.estimate.resident_share is not None
            assert found.estimate.resident_share <= found.sm_active_share <= found.util_time_share
        assert (found.sm_active_share is None) == bool(found.estimate.missing and not found.estimate.covered_share)
        for row in found.kernels:
            assert row.sm_share is None or 0 < row.sm_share <= 1
            assert row.resident_share is None or row.sm_share is None or 0 < row.resident_share <= row.sm_share


KNOWN = {
    # Two blocks of 512 threads on 108 SMs: 2 / 108 of the SMs while it runs.
    "pipit_saxpy-mpi": (0.080717, round(2 / 108, 6), 4, "grid too small"),
    # 32 blocks of 1,024 threads on 40 SMs, each of which holds one.
    "awsgpu-um": (1.0, 0.8, 1, "grid too small"),
    # One block on 68 SMs.
    "nsysai_mock-vecadd": (0.000184, round(1 / 68, 6), 16, "grid too small"),
}


@pytest.mark.parametrize("stem", KNOWN)
def test_known_traces(stem: str, shared: Shared) -> None:
    found = [path for path in FILES if path.name.startswith(stem)]
    if not found:
        pytest.skip(f"no trace {stem}")
    (device,) = shared.report(found[0]).devices
    first = device.utilization.kernels[0]
    told = (device.utilization.util_time_share, first.sm_share, first.blocks_per_sm, first.limit)
    assert told == KNOWN[stem]


def test_what_a_trace_does_not_say_is_not_guessed(shared: Shared) -> None:
    """No row in TARGET_INFO_GPU: both numbers of a dashboard, and nothing about the SMs."""
    found = [path for path in FILES if path.name.startswith("nsysai_mfu-2gpu")]
    if not found:
        pytest.skip("no trace nsysai_mfu-2gpu")
    for path in found:
        for device in shared.report(path).devices:
            assert device.utilization.sm_active_share is None
            assert "--gpu-metrics-devices=all" in device.utilization.estimate.missing
            assert all(row.sm_share is None and row.blocks > 0 for row in device.utilization.kernels)
