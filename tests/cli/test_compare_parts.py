"""`compare` of a part of each side: a device, a time, ranges, a phase."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.comparison.facts import Comparison
from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from nsysdiag.pipeline.aligning import phase_named
from nsysdiag.saved import from_json
from tests.comparison.programs import Program
from tests.comparison.test_two_loops import two_loops
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

    Cli = Callable[..., Result]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("analyzed_once")]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two loops; a step of the second one takes 2.2 times as long after."""
    folder = tmp_path_factory.mktemp("sides")
    for name, solve in (("before", 1.0), ("after", 2.2)):
        two_loops(folder / f"{name}.sqlite", solve, ranges=False)
    return str(folder / "before.sqlite"), str(folder / "after.sqlite")


def compared(cli: Cli, *arguments: str) -> Comparison:
    result = cli("compare", *arguments, "-o", "-", "--format", "json", "-q")
    assert (result.code, result.stderr) == (0, "")
    return from_json(result.stdout, Comparison)


@pytest.mark.parametrize(
    ("phase", "verdict", "said"),
    [("steady", "same", "1.85 ms → 1.85 ms"), ("steady 2", "regressed", "1.85 → 4.01 ms (2.17× slower, 95% CI")],
)
def test_each_loop_with_its_own(cli: Cli, phase: str, verdict: str, said: str, sides: tuple[str, str]) -> None:
    made = compared(cli, *sides, "--phase", phase)
    assert made.verdict == verdict
    assert said in made.headline


def test_a_loop_beside_the_compared_one_is_judged_as_by_its_phase(cli: Cli, tmp_path: Path) -> None:
    sides = [str(tmp_path / name) for name in ("before.sqlite", "after.sqlite")]
    for path, solve in zip(sides, (1.0, 0.9), strict=True):
        two_loops(Path(path), solve, ranges=True)
    job, alone = compared(cli, *sides).job, compared(cli, *sides, "--phase", "steady 2").devices[0].length
    assert job is not None
    (row,) = (each.change for each in job.phases if each.number == 2)
    assert row.verdict == alone.verdict == "improved"
    expected = [alone.before_ns, alone.after_ns, alone.low_ns, alone.high_ns]
    assert [row.before_ns, row.after_ns, row.low_ns, row.high_ns] == pytest.approx(expected, rel=0.01)


def test_another_part_on_each_side(cli: Cli, sides: tuple[str, str]) -> None:
    made = compared(cli, sides[1], sides[1], "--phase", "steady", "--phase", "steady 2", "--step", "kernel=*_kernel_0")
    assert "1.00 → 2.00" not in made.headline
    assert made.verdict != "same"


def test_a_phase_has_the_name_that_is_shown(tmp_path: Path) -> None:
    simulation = Simulation()

    def body(t: Thread) -> Body:
        for steps in (40, 3):
            for _ in range(steps):
                yield from t.launch("k", 4_000_000)
                yield from t.synchronize()
                yield from t.compute(200_000)
            yield from t.compute(30_000_000)

    simulation.thread(simulation.process(), body)
    report = analyze(simulation.run().write(tmp_path / "a.sqlite"), Settings(replay=False, timeline=False))
    assert phase_named(report, "repeats") == phase_named(report, "steady 2")
    assert phase_named(report, "steady").start_ns < phase_named(report, "repeats").start_ns


def test_two_phases_at_once_are_not_hidden_behind_the_first(cli: Cli, sides: tuple[str, str]) -> None:
    assert compared(cli, *sides).verdict != "same"


def test_a_time_of_each_side(cli: Cli, tmp_path: Path) -> None:
    for name in ("before", "after"):
        Program(seed=len(name)).write(tmp_path / f"{name}.sqlite")
    paths = [str(tmp_path / f"{name}.sqlite") for name in ("before", "after")]
    made = compared(cli, *paths, "--from", "10ms", "--to", "30ms")
    assert made.verdict == "same"
    (device,) = made.devices
    assert device.unit.kind == "iterations"
    assert 15 <= device.unit.count_before <= 20
    assert compared(cli, *paths, "--nvtx", "step 3", "--nvtx", "step 4").verdict == "unknown"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--phase", "steady 3"], "no phase 'steady 3'"),
        (["--phase", "later"], "no phase 'later'"),
        (["--phase", "steady", "--from", "1ms"], "--phase excludes"),
        (["--nvtx", "a", "--from", "1ms"], "exclude each other"),
        (["--to", "1ms"] * 3, "--to is given 3 times"),
        (["--device", "gpu7"], "no device 'gpu7'"),
        (["--step", "epoch"], "before.sqlite: the trace has no NVTX range named 'epoch'"),
    ],
)
def test_what_is_refused(cli: Cli, arguments: list[str], said: str, sides: tuple[str, str]) -> None:
    done = cli("compare", *sides, *arguments)
    assert done.code == 2
    assert said in done.stderr


def test_a_saved_report_has_no_parts(cli: Cli, sides: tuple[str, str], tmp_path: Path) -> None:
    saved = str(tmp_path / "before.json")
    assert cli("analyze", sides[0], "-o", saved, "-q").code == 0
    for option in (["--phase", "steady"], ["--from", "1ms"]):
        done = cli("compare", saved, sides[1], *option)
        assert done.code == 2
        assert "it is a saved report" in done.stderr
