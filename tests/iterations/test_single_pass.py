"""Layers of a single pass are not called steps, and what shows a loop of the program keeps its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.iterations.single_passes import REPEATS, STEPS
from tests.iterations.test_levels import near
from tests.simulator import Simulation
from tests.simulator.actions import Node
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

QUICK = Settings(replay=False, timeline=False)
TWO_GPUS = ("batches_for_the_first_of_two_devices",)


def report_of(name: str, folder: Path, settings: Settings = QUICK) -> Report:
    program = (STEPS | REPEATS)[name]
    return analyze(program.run(2 if name in TWO_GPUS else 1).write(folder / "trace.sqlite"), settings)


@pytest.mark.sampled(quick=11, normal=5)
@pytest.mark.parametrize("name", STEPS)
def test_steps_stay_steps(name: str, tmp_path: Path) -> None:
    report = report_of(name, tmp_path)
    for device in report.devices:
        assert device.iterations is not None
        assert (device.iterations.kind, device.iterations.closed) == ("step", True)
        assert near(device.iterations.count, STEPS[name].steps)
    judged = [phase.steps for phase in report.phases if phase.judged and phase.steps is not None]
    assert any(near(each.count, STEPS[name].steps) and each.words.split()[1] in ("steps,", "steps") for each in judged)


@pytest.mark.sampled(quick=7)
@pytest.mark.parametrize("name", REPEATS)
def test_what_may_be_layers_is_not_called_a_step(name: str, tmp_path: Path) -> None:
    report = report_of(name, tmp_path)
    (device,) = report.devices
    assert device.iterations is not None
    assert (device.iterations.kind, device.iterations.certain) == ("repeat", False)
    assert near(device.iterations.count, REPEATS[name].steps)
    judged = [phase.steps for phase in report.phases if phase.judged and phase.steps is not None]
    assert {(steps.kind, steps.certain) for steps in judged} == {("repeat", False)}
    assert "each step" not in report.diagnosis.headline
    assert device.kernel_families
    assert all(each.step_ns is each.step_count is None for each in device.kernel_families)
    assert all(each.saves is None or each.saves.per == "window" for each in report.findings)


class TestWords:
    def test_layers_of_a_transformer(self, tmp_path: Path) -> None:
        (phase,) = (phase for phase in report_of("layers_once", tmp_path).phases if phase.judged)
        assert phase.steps is not None
        words = "59 repeats of 5 kernels (probably layers of one pass: see --step), median "
        assert phase.steps.words.startswith(words)
        assert words in phase.sentence

    def test_sweeps(self, tmp_path: Path) -> None:
        report = report_of("a_solver_that_checks_nothing", tmp_path)
        (phase,) = (phase for phase in report.phases if phase.judged)
        assert phase.steps is not None
        assert phase.steps.words.startswith("100 repeats of 3 kernels (layers of one pass, or steps: see --step), ")
        assert " of the judged time (" in report.diagnosis.headline


def test_the_user_says_that_they_are_steps(tmp_path: Path) -> None:
    asked = msgspec.structs.replace(QUICK, step="kernel=flux_x")
    report = report_of("a_solver_that_checks_nothing", tmp_path, asked)
    (phase,) = (phase for phase in report.phases if phase.judged)
    assert phase.steps is not None
    assert phase.steps.words.startswith("100 steps, median ")
    assert " of each step (" in report.diagnosis.headline


@pytest.mark.slow
def test_the_window_is_predicted(tmp_path: Path) -> None:
    report = report_of("layers_that_wait_for_their_launches", tmp_path, Settings(timeline=False))
    saves = [each.saves for each in report.findings if each.saves is not None and each.saves.method == "replay"]
    assert saves
    assert {each.per for each in saves} == {"window"}


@pytest.mark.slow
def test_graphs_of_another_gpu_are_no_steps_of_this_one(tmp_path: Path) -> None:
    """Several graphs in each step of both: those of the other one have no rows here, and left all steps in doubt."""
    simulation = Simulation(gpus=2)
    for gpu in range(2):
        process = simulation.process([gpu])

        def train(t: Thread) -> Body:
            for _ in range(30):
                yield from t.compute(40 * US, "prepare")
                yield from t.copy("HtoD", 4096, 4 * US)
                for layer in range(3):
                    yield from t.launch_graph([Node("layer", 30 * US)] * 4, number=layer + 1)
                yield from t.launch("sample", 10 * US)
                yield from t.synchronize()

        simulation.thread(process, train, name="main")
    simulation.run()
    found = analyze(simulation.write(tmp_path / "trace.sqlite"))
    assert [phase.steps and phase.steps.certain for phase in found.phases if phase.judged] == [True]
