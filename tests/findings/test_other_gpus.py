"""Waits for another GPU: they are no synchronization to remove, also where a view leaves that GPU out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings
from tests.diagnosis.programs import PROGRAMS

if TYPE_CHECKING:
    from nsysdiag.report import Report
    from tests.shared import Shared


def report_of(name: str, device: str | None, shared: Shared) -> Report:
    simulation, _ = PROGRAMS[name].run()
    return shared.report(shared.file(f"{name}-others.sqlite", simulation.write), Settings(device=device))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "device", "other"),
    [
        ("second_stage_waits_for_the_first", "gpu1", "gpu0"),  # by events
        ("model_on_two_gpus", "gpu0", "gpu1"),  # by synchronizations
        ("waits_for_another_gpu", "gpu0", "gpu1"),
    ],
)
def test_a_view_of_one_keeps_what_the_other_did(name: str, device: str, other: str, shared: Shared) -> None:
    report = report_of(name, device, shared)
    found = next(each for each in report.findings if each.cause == "other_gpu")
    assert (found.id, found.title) == (f"f-other_gpu-kernels-{other}", f"Waiting for kernels of {other}")
    assert found.saves is not None
    assert "which --device leaves out" not in " ".join(found.advice)
    assert not any(each.cause in ("sync", "stream_wait") and each.share > 0.05 for each in report.findings)
    assert report.diagnosis is not None
    assert f"{device} waits for kernels of {other}" in report.diagnosis.headline


@pytest.mark.slow
def test_with_all_gpus_it_counts_to_what_the_other_did(shared: Shared) -> None:
    found = report_of("model_on_two_gpus", None, shared).findings
    assert not any("leaves out" in text for each in found for text in (each.title, *each.advice))


@pytest.mark.slow
def test_a_gpu_that_waits_for_none_names_none(shared: Shared) -> None:
    found = report_of("second_stage_waits_for_the_first", "gpu0", shared).findings
    assert not any(each.cause == "other_gpu" for each in found)
