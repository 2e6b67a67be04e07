"""Programs of two loops, `reference` and `solve`: their steps are not compared with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import Report, Settings, analyze
from nsysdiag.comparison.compare import compare_reports
from tests.comparison.samples import only
from tests.diagnosis.programs.registry import MS, US, solver, start_up
from tests.simulator import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

pytestmark = pytest.mark.slow
STEPS = 40


def two_loops(path: Path, solve: float, *, ranges: bool, step: str | None = None, loops: int = 2) -> Report:
    """Steps of six kernels of 300 us each; those of the second loop, if any, take `solve` times as long."""
    simulation = Simulation()
    sim_process = solver(simulation)

    def main(t: Thread) -> Body:
        yield from start_up(t, 20 * MS)
        for name, factor in (("reference", 1.0), ("solve", solve))[:loops]:
            for number in range(STEPS):
                if ranges:
                    t.push(name)
                for kernel in range(6):
                    yield from t.launch(f"{name}_kernel_{kernel % 3}", int(300 * US * factor))
                # A host that needs a little more or less time each step, as every one does.
                yield from t.synchronize(t.process.null, cost=(20 + 3 * (number * 37 % 11)) * US)
                if ranges:
                    t.pop()

    simulation.thread(sim_process, main, name="solver")
    simulation.run().write(path)
    return analyze(path, Settings(timeline=False, step=step))


def leads(report: Report) -> str:
    found = report.devices[0].iterations
    assert found is not None
    return found.name.split("_")[0]


@pytest.mark.parametrize("ranges", [True, False])
def test_steps_of_two_loops_are_never_compared(ranges: bool, tmp_path: Path) -> None:
    """The second loop leads before, and the first after, with steps of 2.2 and 1.8 ms."""
    before = two_loops(tmp_path / "before.sqlite", 1.2, ranges=ranges)
    after = two_loops(tmp_path / "after.sqlite", 0.5, ranges=ranges)
    assert (leads(before), leads(after)) == ("solve", "reference")
    made = compare_reports([before], [after])
    assert only(made).unit.kind == "kernels"
    assert "two loops" in only(made).notes[0]
    assert "1.41× faster" in made.headline  # 88 and 74 ms before, 38 and 74 after, the start apart


def test_a_loop_beside_the_one_that_leads_is_said_to_have_changed(tmp_path: Path) -> None:
    before = two_loops(tmp_path / "before.sqlite", 1.0, ranges=True)
    after = two_loops(tmp_path / "after.sqlite", 0.5, ranges=True)
    assert leads(before) == leads(after) == "reference"
    made = compare_reports([before], [after])
    assert made.verdict == "same"
    assert made.headline.endswith("; another loop (steady 2) 1.85 ms → 947 µs")
    assert made.job is not None
    assert [(each.number, each.changed, each.change.verdict) for each in made.job.phases] == [
        (0, False, "unknown"),
        (2, True, "improved"),
    ]
    assert (
        "| Step of another loop (steady 2), mean | 1.85 ms | 947 µs | \\-900 µs (-48.7%), 95% interval -90"
        in made.to_markdown()
    )
    assert made.notes[0] == (
        "The mean step of another loop (steady 2) is 1.85 ms → 947 µs: --phase 'steady 2' compares it."
    )


def test_nothing_is_said_of_loops_that_did_not_change(tmp_path: Path) -> None:
    before, after = (two_loops(tmp_path / f"{name}.sqlite", 1.0, ranges=True) for name in ("before", "after"))
    assert not [each for each in compare_reports([before], [after]).notes if "loop" in each]


def test_a_step_that_is_chosen_compares_its_loop(tmp_path: Path) -> None:
    sides = [two_loops(tmp_path / f"{solve}.sqlite", solve, ranges=True, step="solve") for solve in (1.0, 2.2)]
    made = only(compare_reports(sides[:1], sides[1:]))
    assert made.unit.kind == "iterations"
    assert made.length.after_ns / made.length.before_ns == pytest.approx(2.17, abs=0.01)


def test_a_loop_more_is_not_the_same_work(tmp_path: Path) -> None:
    """The second loop leads after: no steps are compared, and the windows hold all kernels of before, and others."""
    before = two_loops(tmp_path / "before.sqlite", 2.0, ranges=False, loops=1)
    made = compare_reports([before], [two_loops(tmp_path / "after.sqlite", 2.0, ranges=False)])
    assert made.headline.startswith("Not the same work: kernels 258 → 498 (1.9×); ")
    assert "for the same work" not in made.headline


def test_evaluations_outside_of_the_steps_leave_them_steps(tmp_path: Path) -> None:
    """Kernels that follow every fifth step are a third of all names: four of five steps lack them."""
    simulation = Simulation()

    def main(t: Thread) -> Body:
        for number in range(STEPS):
            t.push(f"iter {number}")
            for kernel in range(8):
                yield from t.launch(f"step_kernel_{kernel % 4}", 200 * US)
            yield from t.synchronize(t.process.null, cost=20 * US)
            t.pop()
            if number % 5 == 4:
                for kernel in range(6):
                    yield from t.launch(f"eval_kernel_{kernel % 2}", 200 * US)
                yield from t.synchronize(t.process.null)

    simulation.thread(simulation.process(), main)
    found = analyze(simulation.run().write(tmp_path / "eval.sqlite"), Settings(timeline=False)).devices[0].iterations
    assert found is not None
    assert (found.name, found.count) == ("iter #", STEPS)
