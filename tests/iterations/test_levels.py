"""Programs whose steps are known: layers, micro batches and replays are parts of a step, and a log every tenth step is
none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.iterations.programs import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

QUICK = Settings(replay=False, timeline=False)


def report_of(name: str, folder: Path) -> Report:
    return analyze(PROGRAMS[name].run().write(folder / "trace.sqlite"), QUICK)


def near(count: int, true: int) -> bool:
    """Steps may be cut by the ends of the trace, but not of a few."""
    return true - (true > 5) - (true > 20) <= count <= true + (true > 20)


@pytest.mark.sampled(quick=50, normal=13)
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps(name: str, tmp_path: Path) -> None:
    true = PROGRAMS[name]
    report = report_of(name, tmp_path)
    found = report.devices[0].iterations
    judged = [phase.steps.count for phase in report.phases if phase.judged and phase.steps is not None]
    if true.steps == 0:
        assert (found, judged) == (None, [])
        return
    assert found is not None
    assert (found.kind, found.closed) == ("step", True)
    assert near(found.count, true.steps)
    if true.steady:
        assert near(max(judged), true.steps)
    if true.inner:
        assert true.inner in [level.per_iteration for level in found.levels]


class TestDoubt:
    @pytest.mark.slow
    def test_only_a_wait_tells_passes_from_layers(self, tmp_path: Path) -> None:
        report = report_of("layers_then_a_synchronization", tmp_path)
        (steps,) = (phase.steps for phase in report.phases if phase.steps is not None)
        assert steps.words == "15 steps of 12 parts (or the parts are steps: see --step), median 3.98 ms"

    @pytest.mark.slow
    def test_an_output_every_tenth_step(self, tmp_path: Path) -> None:
        report = report_of("output_every_tenth_time_step", tmp_path)
        (steps,) = (phase.steps for phase in report.phases if phase.steps is not None)
        assert steps.words.startswith("50 steps (or 10 of them are one: see --step), mean ")
        found = report.devices[0].iterations
        assert found is not None
        assert found.outer is not None
        assert (found.outer.per_iteration, found.certain) == (10, False)

    @pytest.mark.slow
    def test_optimizer_kernels_leave_none(self, tmp_path: Path) -> None:
        found = report_of("micro_batches_of_four", tmp_path).devices[0].iterations
        assert found is not None
        assert (found.certain, found.outer) == (True, None)


@pytest.mark.slow
def test_levels_in_levels(tmp_path: Path) -> None:
    """Three pairs of layers in a micro batch, eight micro batches in a step."""
    found = report_of("micro_batches_and_a_log_every_fifth", tmp_path).devices[0].iterations
    assert found is not None
    assert found.inner == found.levels[0]
    assert found.levels[0].per_iteration == 8
