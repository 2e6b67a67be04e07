"""Steps that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.file import StepChoice, parse_step
from nsysdiag.config.settings import Settings
from nsysdiag.iterations.loop import Called, Loop
from nsysdiag.messages import UsageError
from nsysdiag.pipeline import analyze
from tests.iterations.programs import PROGRAMS
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.iterations.facts import IterationReport
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body


def steps_of(name: str, step: str, folder: Path, iterations: tuple[int, int] | None = None) -> IterationReport | None:
    path = folder / f"{name}.sqlite"
    if not path.exists():
        PROGRAMS[name].run().write(path)
    return analyze(path, Settings(replay=False, timeline=False, step=step, iterations=iterations)).devices[0].iterations


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("train_step*", StepChoice("nvtx", "train_step*")),
        ("a=b", StepChoice("nvtx", "a=b")),
        ("kernel=gemm<float, 4>", StepChoice("kernel", "gemm<float, 4>")),
        ("count=6", StepChoice("count", number=6)),
        ("every=10", StepChoice("every", number=10)),
    ],
)
def test_what_a_text_says(text: str, choice: StepChoice) -> None:
    assert parse_step(text) == choice


@pytest.mark.parametrize("text", ["", " ", "kernel=", "count=0", "count=1", "count=-3", "every=1", "every=1.5"])
def test_a_text_that_says_nothing(text: str) -> None:
    with pytest.raises(UsageError, match="--step"):
        parse_step(text)


@pytest.mark.sampled(quick=12, normal=5)
@pytest.mark.parametrize(
    ("name", "step", "count"),
    [
        ("batches_of_epochs_by_name", "batch *", 60),
        ("batches_of_epochs_by_name", "batch #", 60),
        ("batches_of_epochs_by_name", "batch 0", 6),
        ("a_log_every_tenth_step", "kernel=cross_entropy", 60),
        ("a_log_every_tenth_step", "kernel=cross_*", 60),
        ("a_log_every_tenth_step", "every=10", 6),
        ("a_log_every_tenth_step", "count=6", 6),
        ("a_log_every_tenth_step", "count=60", 60),
        ("layers_then_a_synchronization", "count=180", 180),
        ("irregular_kernels", "kernel=scan", 25),
        ("ranges_without_one_for_the_step", "forward_backward", 30),
        ("ranges_without_one_for_the_step", "update", 10),
    ],
)
def test_steps_that_are_named(name: str, step: str, count: int, tmp_path: Path) -> None:
    found = steps_of(name, step, tmp_path)
    assert found is not None
    assert (found.count, found.kind, found.certain) == (count, "step", True)


@pytest.mark.slow
def test_groups_hold_their_parts(tmp_path: Path) -> None:
    found = steps_of("a_log_every_tenth_step", "every=10", tmp_path)
    assert found is not None
    assert found.inner is not None
    assert (found.inner.per_iteration, found.source) == (10, "anchor")


@pytest.mark.slow
def test_iterations_are_those_that_are_named(tmp_path: Path) -> None:
    path = PROGRAMS["a_log_every_tenth_step"].run().write(tmp_path / "a.sqlite")
    settings = Settings(replay=False, timeline=False, step="every=10", iterations=(2, 4))
    window = analyze(path, settings).devices[0].window
    assert 42_000_000 < window.end_ns - window.start_ns < 45_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "said", "hint"),
    [
        ("batc", "no NVTX range named 'batc'", "did you mean"),
        ("optimizer", "no NVTX range named 'optimizer'", "the names in it: 'batch 0', "),
        ("kernel=conv_fprob", "fewer than two kernels are named 'conv_fprob'", "near names: conv_fprop"),
        ("count=7", "nothing that repeats divides the work into 7 equal steps", "--step kernel=NAME"),
        ("every=50", "fewer than two steps of 50 repeats", "--step NVTX"),
    ],
)
def test_what_nothing_fits(step: str, said: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as error:
        steps_of("batches_of_epochs_by_name", step, tmp_path)
    assert hint in (error.value.hint or "")
    assert error.value.exit_code == 2


@pytest.mark.slow
def test_no_gpu_work_in_the_ranges(tmp_path: Path) -> None:
    simulation = PROGRAMS["steps_on_two_streams"]
    path = simulation.run().write(tmp_path / "a.sqlite")
    with pytest.raises(UsageError, match="the trace has no NVTX range") as error:
        analyze(path, Settings(step="step"))
    assert error.value.hint == "the trace has no NVTX ranges"


def ranges_beside_the_work() -> Simulation:
    """A main thread whose ranges hold what another thread launches."""
    simulation = Simulation()
    process, begin, done = simulation.process(), simulation.channel(), simulation.channel()

    def main(t: Thread) -> Body:
        for number in range(8):
            t.push(f"frame {number}")
            yield from t.put(begin)
            yield from t.get(done)
            t.pop()

    def work(t: Thread) -> Body:
        for _ in range(8):
            t.push("wait")
            yield from t.get(begin)
            t.pop()
            yield from t.launch("render", 900_000)
            yield from t.synchronize()
            yield from t.put(done)

    simulation.thread(process, main)
    simulation.thread(process, work)
    return simulation.run()


@pytest.mark.slow
def test_ranges_of_a_thread_that_launches_nothing_hold_what_its_process_does(tmp_path: Path) -> None:
    path = ranges_beside_the_work().write(tmp_path / "a.sqlite")
    settings = Settings(replay=False, timeline=False)
    found = analyze(path, replace(settings, step="frame #")).devices[0].iterations
    assert found is not None
    assert (found.count, found.kind) == (8, "step")
    chosen = analyze(path, replace(settings, nvtx="frame [2-4]")).devices[0]
    assert chosen.ops.kernel == 3
    with pytest.raises(UsageError, match="no NVTX range named 'wait' launches GPU work"):
        analyze(path, replace(settings, step="wait"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "narrowed", "count", "basis"),
    [
        ("kernel=cross_entropy", {"start_ns": 20_000_000, "end_ns": 70_000_000}, 22, "steady"),
        ("every=10", {"start_ns": 20_000_000, "end_ns": 70_000_000}, 2, "phase"),
        ("every=10", {"iterations": (1, 4)}, 3, "phase"),
        ("kernel=cross_entropy", {"device": "gpu0"}, 59, "steady"),
    ],
)
def test_steps_of_a_narrowed_window(
    step: str, narrowed: dict[str, Any], count: int, basis: str, tmp_path: Path
) -> None:
    path = PROGRAMS["a_log_every_tenth_step"].run().write(tmp_path / "a.sqlite")
    report = analyze(path, Settings(replay=False, timeline=False, step=step, **narrowed))
    assert report.diagnosis is not None
    steps = next(phase.steps for phase in report.phases if phase.judged)
    assert (report.diagnosis.basis, steps and steps.count) == (basis, count)
    assert "each step" in report.diagnosis.headline


@pytest.mark.slow
def test_without_a_name_a_narrowed_window_has_no_steps(tmp_path: Path) -> None:
    path = PROGRAMS["a_log_every_tenth_step"].run().write(tmp_path / "a.sqlite")
    report = analyze(path, Settings(replay=False, timeline=False, start_ns=20_000_000, end_ns=70_000_000))
    assert [phase.steps for phase in report.phases] == [None]


def test_repeats_inside_a_set_of_time() -> None:
    starts = np.arange(0, 60, 10)
    loop = Loop(Called("step"), starts, starts + 10, np.array([False] * 5 + [True]))
    inside = loop.inside(Intervals.of([(5, 32), (40, 70)]))
    assert inside.starts.tolist() == [10, 20, 40, 50]
    assert inside.open.tolist() == [False, True, False, True]
    assert len(loop.inside(Intervals.empty())) == 0
