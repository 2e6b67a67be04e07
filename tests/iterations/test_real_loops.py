"""Loops of real traces, beside what an engineer counts in them with SQL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
pytestmark = pytest.mark.real

STEPS = {
    "pipit_cloverleaf": [(10, 32_400_000)],
    "pipit_saxpy-mpi": [(5, 251_000_000)],
    "nways_jacobi": [(1_000, 2_102_000)],
    "gpubootcamp": [(1_000, 3_500_000)],
}
LAYERS = {"nsysai_mfu-2gpu-before": 17, "nsysai_mfu-2gpu-after": 15}
NOTHING = ["nsysai_mock-vecadd", "fuser_small", "awsgpu", "mordred"]


def trace(name: str) -> Path:
    found = [path for path in FOLDER.glob("*.sqlite") if path.name.startswith(name)]
    if not found:
        pytest.skip(f"{name} is not at hand")
    return found[0]


@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str, shared: Shared) -> None:
    found = [each.iterations for each in shared.report(trace(name)).devices]
    assert [(each.count, each.kind) for each in found if each] == [(count, "step") for count, _ in STEPS[name]]
    assert [each.p50_ns for each in found if each] == [pytest.approx(ns, rel=0.01) for _, ns in STEPS[name]]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_one_forward_pass(name: str, shared: Shared) -> None:
    for device in shared.report(trace(name)).devices:
        assert device.iterations is not None
        assert not device.iterations.closed
        assert abs(device.iterations.count - LAYERS[name]) <= 1


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_repeats(name: str, shared: Shared) -> None:
    assert [each.iterations for each in shared.report(trace(name)).devices] == [None]
