"""A pass begins with its first operation, whatever repeats in it, and ends before work of another kind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.iterations.programs import BACKWARD, FORWARD, LAYER, Script, kernels, layers
from tests.simulator.engine import MS, US
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.arrays.intervals import IntArray
    from nsysdiag.report import Report
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

QUICK = Settings(replay=False, timeline=False)
DECODER = (("rms_norm", 10), ("sgemm_qkv", 40), ("sgemm_o", 40), ("silu_mul", 15))


@dataclass(frozen=True)
class Case:
    """So many whole passes, each of so many operations, behind others; `inner` repeats in each."""

    script: Script
    passes: int
    each: int
    before: int = 0
    inner: int = 0


CASES: dict[str, Case] = {}


def case(passes: int, each: int, *, before: int = 0, inner: int = 0) -> Callable[[Script], Script]:
    def add(script: Script) -> Script:
        CASES[script.__name__] = Case(script, passes, each, before, inner)
        return script

    return add


def hot(t: Thread, *parts: tuple[str, int]) -> Body:
    """Kernels that are launched faster than they run: the device is never idle."""
    yield from kernels(t, *parts, host=1)


@case(10, 164, inner=32)
def all_names_are_those_of_layers(t: Thread) -> Body:
    for _ in range(10):
        yield from hot(t, ("gather", 10), ("rms_norm", 20), *LAYER * 32, ("rms_norm", 20), ("sgemm_128x64", 300))
    yield from t.synchronize()


@case(9, 163, before=40, inner=32)
def slow_first_passes_behind_a_start(t: Thread) -> Body:
    for number in range(40):
        yield from kernels(t, ("normal_fill", 20 + number))
    for number in range(9):
        slower = 1 + (number < 2)
        parts = [(name, slower * length) for name, length in LAYER * 32]
        yield from hot(t, ("gather", 10), *parts, ("rms_norm", 20), ("sgemm_128x64", 300))
    yield from t.synchronize()


@case(12, 85, inner=4)
def four_micro_batches(t: Thread) -> Body:
    for _ in range(12):
        for _ in range(4):
            yield from t.copy("HtoD", 1 << 20, 60 * US)
            yield from layers(t, 3, FORWARD)
            yield from layers(t, 3, BACKWARD)
        yield from layers(t, 8, (("adam_update", 30),))
        yield from t.fill(1 << 22, 20 * US)


@case(11, 84, inner=4)
def micro_batches_that_the_capture_cuts(t: Thread) -> Body:
    for number in range(12):
        for _ in range(3 if number == 11 else 4):
            yield from t.copy("HtoD", 1 << 20, 60 * US)
            yield from layers(t, 3, FORWARD)
            yield from layers(t, 3, BACKWARD)
        if number < 11:
            yield from layers(t, 8, (("adam_update", 30),))
    yield from t.synchronize()


@case(8, 124, inner=24)
def a_last_pass_that_the_capture_cuts(t: Thread) -> Body:
    ends = (("final_norm", 20), ("lm_head", 200))
    for number in range(9):
        parts = LAYER * 15 if number == 8 else (*LAYER * 24, *ends)
        yield from hot(t, ("embed", 15), ("position", 10), *parts)
    yield from t.synchronize()


@case(40, 64, inner=12)
def tokens_that_take_longer_and_longer(t: Thread) -> Body:
    for number in range(40):
        yield from kernels(t, ("embed", 8), *(*DECODER, ("paged_attention", 20 + 3 * number)) * 12)
        yield from kernels(t, ("lm_head", 80), ("argmax", 10))
        yield from t.blocking_copy("DtoH", 8, 2 * US)


@case(10, 104, inner=20)
def host_code_inside_a_pass(t: Thread) -> Body:
    """The longest idle time is not where a pass begins."""
    for _ in range(10):
        yield from kernels(t, ("embed", 15), ("position", 10), *LAYER * 20, ("final_norm", 20))
        yield from t.compute(300 * US)
        yield from kernels(t, ("lm_head", 200))
    yield from t.synchronize()


def advance(t: Thread, steps: int) -> Body:
    for _ in range(steps):
        yield from layers(t, 4, (("advec_x", 200), ("advec_y", 200), ("flux", 90), ("pdv", 120)))
        yield from kernels(t, ("calc_dt", 40))
        yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from t.os_call("write", 200 * US, "io_wait")


@case(10, 18)
def a_summary_behind_the_steps(t: Thread) -> Body:
    yield from advance(t, 10)
    yield from kernels(t, ("ideal_gas", 300), ("field_summary", 900), ("field_summary", 900))
    yield from t.blocking_copy("DtoH", 64, 2 * US)


@case(30, 18)
def results_copied_behind_the_steps(t: Thread) -> Body:
    yield from advance(t, 30)
    for _ in range(8):
        yield from t.blocking_copy("DtoH", 1 << 24, 1500 * US)


def run(script: Script, folder: Path) -> tuple[Report, IntArray]:
    """The report, and when each operation starts."""
    simulation = Simulation(1)
    simulation.thread(simulation.process(), script)
    trace = simulation.run().write(folder / "trace.sqlite")
    with closing(sqlite3.connect(trace)) as database, database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kinds = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET")]
        rows = [database.execute(f"SELECT start FROM {kind}").fetchall() for kind in kinds if kind in tables]
    return analyze(trace, QUICK), np.sort(np.concatenate(rows).ravel())


@pytest.mark.sampled(quick=9, normal=3)
@pytest.mark.parametrize("name", CASES)
def test_passes_begin_with_their_first_operation(name: str, tmp_path: Path) -> None:
    true = CASES[name]
    report, start = run(true.script, tmp_path)
    found = report.devices[0].iterations
    assert found is not None
    begins = start[true.before :][:: true.each][: true.passes]
    whole = [row.start_ns for row in found.rows][: true.passes]
    assert whole == begins.tolist()
    assert [phase.steps.count for phase in report.phases if phase.steps is not None] == [true.passes]
    if true.inner:
        assert true.inner in [level.per_iteration for level in found.levels]


@pytest.mark.parametrize("script", [a_summary_behind_the_steps, results_copied_behind_the_steps])
def test_the_end_of_a_program_is_not_judged_as_steps(script: Script, tmp_path: Path) -> None:
    report, start = run(script, tmp_path)
    true = CASES[script.__name__]
    steady, teardown = report.phases
    assert (steady.judged, teardown.name, teardown.judged) == (True, "teardown", False)
    assert start[true.passes * true.each - 1] < steady.end_ns <= start[true.passes * true.each]


@pytest.mark.parametrize(
    ("behind", "is_other"), [(("ideal_gas", "field_summary", "field_minimum"), True), (("log",), False)]
)
def test_sweeps_in_turn_and_what_follows_them(behind: tuple[str, ...], is_other: bool, tmp_path: Path) -> None:
    """Every second step sweeps in another order, once more of one kind. A log in the last step is a part of it."""

    def step(t: Thread, number: int) -> Body:
        for name in ("x", "y", "x") if number % 2 else ("y", "x"):
            yield from kernels(t, (f"advec_{name}", 300), ("flux", 90), ("pdv", 120))
        yield from kernels(t, ("ideal_gas", 100), ("viscosity", 80))
        if number == 11 and not is_other:
            yield from kernels(t, *((name, 800) for name in behind))
        yield from kernels(t, *(("update_halo", 20),) * 6, ("calc_dt", 40))
        yield from t.blocking_copy("DtoH", 8, 2 * US)

    def script(t: Thread) -> Body:
        for number in range(12):
            yield from step(t, number)
        if is_other:
            yield from kernels(t, *((name, 900) for name in behind))
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    report, start = run(script, tmp_path)
    steady = [phase for phase in report.phases if phase.judged]
    assert [phase.steps.count for phase in steady if phase.steps is not None] == [12]
    last = int(start[-3]) if is_other else int(start[-1])  # ideal_gas is in each step: it may be of the last one
    assert (steady[-1].end_ns <= last) == is_other


@pytest.mark.slow
def test_an_end_between_two_layers_shows_no_begin(tmp_path: Path) -> None:
    """The layers at both ends make one whole pass by chance."""

    def script(t: Thread) -> Body:
        yield from hot(t, *LAYER * 9, ("final_norm", 20), ("lm_head", 200))
        for number in range(9):
            behind = () if number == 8 else (("final_norm", 20), ("lm_head", 200))
            yield from hot(t, ("embed", 15), ("position", 10), *LAYER * (15 if number == 8 else 24), *behind)
        yield from t.synchronize()

    report, start = run(script, tmp_path)
    found = report.devices[0].iterations
    assert found is not None
    place = (np.searchsorted(start, [row.start_ns for row in found.rows]) - 45) % 124
    assert set(place.tolist()) <= {0, 1, 2, 3, 4}  # among the operations that are of no layer


def test_time_of_the_host_behind_the_last_step_is_not_its_own(tmp_path: Path) -> None:
    """The last step ends after the usual time at the latest."""

    def script(t: Thread) -> Body:
        yield from advance(t, 20)
        yield from t.compute(1 * MS)
        yield from kernels(t, ("field_summary", 900), ("field_minimum", 900))

    report, _ = run(script, tmp_path)
    found = report.devices[0].iterations
    assert found is not None
    assert found.rows[-1].end_ns - found.rows[-1].start_ns <= 1.01 * found.p50_ns


@pytest.mark.slow
def test_a_first_pass_that_the_capture_cuts_is_none(tmp_path: Path) -> None:
    """Only the end of the trace shows where passes begin."""

    def script(t: Thread) -> Body:
        yield from hot(t, *LAYER * 9, ("final_norm", 20), ("lm_head", 200))
        for _ in range(9):
            yield from hot(t, ("embed", 15), ("position", 10), *LAYER * 24, ("final_norm", 20), ("lm_head", 200))
        yield from t.synchronize()

    report, start = run(script, tmp_path)
    found = report.devices[0].iterations
    assert found is not None
    assert [row.start_ns for row in found.rows] == start[47::124].tolist()


def test_what_runs_beside_the_next_step_is_of_the_last_one(tmp_path: Path) -> None:
    """
    kernels    [= gemm =][= gemm =][= gemm =]
    exchange             [reduce]  [reduce]  [reduce]
    """

    def script(t: Thread) -> Body:
        side = t.process.stream()
        for _ in range(20):
            yield from hot(t, ("gemm", 1500))
            event = t.event()
            yield from t.record(event, t.process.null)
            yield from t.wait_event(side, event)
            yield from t.launch("exchange", 500 * US, side)
        yield from t.synchronize()

    report, _ = run(script, tmp_path)
    found = report.devices[0].iterations
    assert found is not None
    assert found.rows[-1].end_ns == report.phases[-1].end_ns == report.devices[0].window.end_ns
