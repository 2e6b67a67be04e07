"""Steps in which a cause of start-up comes again and again are steps; a start that loads code in its layers is none."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from nsysdiag import Report, Settings, analyze
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.engine import MS, US
from tests.simulator.host import Body

STEPS, NODES = 30, 20


def report_of(body: object, folder: Path) -> Report:
    sim = Simulation()
    sim.thread(sim.process(), body)  # type: ignore[arg-type]
    sim.run()
    return analyze(sim.write(folder / "trace.sqlite"), Settings(timeline=False))


def replay(t: Thread) -> Body:
    yield from t.launch_graph([Node("node", 100 * US) for _ in range(NODES)])
    yield from t.synchronize(t.process.null)


def rebuilt(t: Thread, *, update: int, build: int) -> Body:
    for _ in range(STEPS):
        if build:
            yield from t.build_graph(200, instantiate=build)
        if update:
            yield from t.api("cudaGraphExecUpdate", update, "graph_build")
        yield from replay(t)


@pytest.mark.slow
@pytest.mark.parametrize(("update", "build"), [(0, 5 * MS), (3 * MS, 0), (9 * MS, 0), (0, 500 * US)])
def test_graphs_that_are_built_in_each_step(update: int, build: int, tmp_path: Path) -> None:
    report = report_of(partial(rebuilt, update=update, build=build), tmp_path)
    assert report.diagnosis is not None
    assert report.diagnosis.basis == "steady"
    (judged,) = [phase for phase in report.phases if phase.judged]
    assert judged.steps is not None
    assert judged.steps.count in (STEPS - 1, STEPS)
    leads = max(report.findings, key=lambda each: each.share if each.bottleneck != "kernels" else 0)
    assert leads.bottleneck == "startup"
    assert leads.saves is not None
    assert leads.saves.per == "step"


def loading(t: Thread) -> Body:
    """One pass of many layers, each of which loads its own code."""
    for layer in range(STEPS):
        for part in range(4):
            overhead = [("lazy_load", 8 * MS)] if part == 0 else []
            yield from t.launch(f"conv_{layer}" if part == 0 else "relu", 200 * US, overhead=overhead)
    yield from t.synchronize(t.process.null)


@pytest.mark.slow
def test_one_pass_that_loads_code_is_a_start(tmp_path: Path) -> None:
    report = report_of(loading, tmp_path)
    assert report.diagnosis is not None
    assert report.diagnosis.basis == "cold"
