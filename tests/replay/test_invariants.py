"""What holds for the replay of every trace at hand: simulated scenarios and programs, and real traces."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.messages import UsageError
from nsysdiag.pipeline.changes import Replayed
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import replay
from nsysdiag.replay.predict import MOST_ERROR, answered, floor_of, identity_of, predict
from nsysdiag.replay.run import run_of
from nsysdiag.replay.transforms import apply, causes_of
from nsysdiag.replay.work import Class
from tests.diagnosis.programs import PROGRAMS
from tests.replay.making import replay_of
from tests.replay.test_answer import assert_it_adds_up
from tests.replay.test_host_time import assert_tiled
from tests.shared import Shared
from tests.simulator import CUDA_ONLY, EVERYTHING, Capture
from tests.simulator.scenarios import SCENARIOS
from tests.simulator.scenarios.arbitrary import arbitrary

TRACES = sorted(Path(os.environ.get("NSYSDIAG_TRACES", "nowhere")).glob("*.sqlite"))
CAPTURES = (
    EVERYTHING,
    EVERYTHING.but(api=False),
    EVERYTHING.but(schema="3.13.2", sync_rows=False),
    CUDA_ONLY,
    EVERYTHING.but(graphs="graph"),
    EVERYTHING.but(osrt=False),
    EVERYTHING.but(nvtx=False, event_rows=False),
)
SEEDS = (2, 109, 193, *range(200, 217))
"""In the first three the fix of copies moves the first operation of the window."""
LEAST = 0.85
"""Of the traces with a steady phase: so many have a prediction."""


def broken(found: Replayed) -> list[str]:
    """What does not hold for the replay of a trace; nothing, where there is no model, and a reason why."""
    model = found.model
    if isinstance(model, str):
        return [] if model else ["no reason"]
    identity = identity_of(model)
    assert_tiled(model)
    answer = answered(found.report, model, [], identity)
    assert_it_adds_up(answer)
    return [*_of_the_identity(model, identity), *_of_the_floor(model), *_of_causes(model, identity)]


def _of_the_identity(model: Model, identity: Identity) -> list[str]:
    wrong = [] if identity.exact else ["the identity is not exact"]
    wrong += [] if (model.graph.edges.source < model.graph.edges.target).all() else ["an edge goes backward"]
    for proven in (False, True):
        ns, residual = replace(Changes.none(model), proven=proven).edges()
        if not np.array_equal(replay(model.graph, ns, residual), model.graph.time):
            wrong.append(f"moments are not as they were, {proven=}")
    return wrong


def _of_the_floor(model: Model) -> list[str]:
    """The kernels of a stream follow each other, whatever else changes."""
    floor, now, work = floor_of(model, []), run_of(Changes.none(model)), model.work
    begin, end = floor.span
    kernels = (work.kind == Class.COMPUTE) & (floor.start >= begin) & (floor.end <= end)
    kernels &= ~_overlapping(model)
    busiest = int(np.bincount(work.stream[kernels], work.length[kernels], minlength=1).max())
    wrong = [] if floor.ns <= now.ns else [f"the floor {floor.ns} is longer than now {now.ns}"]
    return wrong + ([] if busiest <= end - begin else [f"the floor {end - begin} is shorter than kernels {busiest}"])


def _overlapping(model: Model) -> np.ndarray:
    """Operations that overlap the one before them in what is recorded as one stream, as nodes of graphs do."""
    work = model.work
    order = np.lexsort((work.start, work.stream))
    again = work.stream[order][1:] == work.stream[order][:-1]
    found = np.zeros(len(work), dtype=np.bool_)
    found[order[1:]] = again & (work.end[order][:-1] > work.start[order][1:])
    return found


def _of_causes(model: Model, identity: Identity) -> list[str]:
    """Without any cause nothing is later, and no step is longer by more than its bounds."""
    wrong = []
    for cause in causes_of(model):
        transform, changes = Transform("without", cause), Changes.none(model)
        try:
            apply(changes, transform)
        except UsageError as error:
            wrong.append(str(error))
            continue
        for proven in (False, True):
            ns, residual = replace(changes, proven=proven).edges()
            late = replay(model.graph, ns, residual) > model.graph.time
            wrong += [f"{late.sum()} moments are later without {cause}, {proven=}"] if late.any() else []
        found = predict(model, [transform], identity)
        if not found.low_ns <= min(found.run.ns, found.now.ns):
            wrong.append(f"longer without {cause}")
    return wrong


@pytest.mark.sampled(quick=53, normal=23)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_of_scenarios(name: str, shared: Shared) -> None:
    assert broken(shared.replayed(shared.trace(name))) == []


@pytest.mark.sampled(quick=64, normal=23)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_of_programs(name: str, shared: Shared) -> None:
    assert broken(shared.replayed(_program(name, shared))) == []


@pytest.mark.sampled(normal=17)
@pytest.mark.parametrize(("seed", "capture"), [(seed, CAPTURES[seed % len(CAPTURES)]) for seed in SEEDS])
def test_of_arbitrary_programs(seed: int, capture: Capture, tmp_path: Path) -> None:
    assert broken(replay_of(arbitrary(seed).write(tmp_path / "trace.sqlite", capture, shuffle_seed=seed))) == []


@pytest.mark.sampled(normal=6)
@pytest.mark.real
@pytest.mark.parametrize("trace", TRACES or [Path("none")], ids=lambda path: path.stem)
def test_of_real_traces(trace: Path, shared: Shared) -> None:
    assert broken(shared.replayed(trace)) == []


def _program(name: str, shared: Shared) -> Path:
    return shared.file(f"{name}.sqlite", partial(_write, name))


def _write(name: str, path: Path) -> None:
    PROGRAMS[name].run()[0].write(path)


def _error(found: Replayed) -> float | None:
    """How far off the model of a trace is, as a part of the length; None where nothing is steady."""
    steady = found.report.diagnosis is not None and found.report.diagnosis.basis == "steady"
    if not steady:
        return None
    return 1.0 if isinstance(found.model, str) else identity_of(found.model).length_error


def _share_of_answers(paths: list[Path], shared: Shared) -> float:
    errors = [error for path in paths if (error := _error(shared.replayed(path))) is not None]
    return float(np.mean([error <= MOST_ERROR for error in errors]))


@pytest.mark.thorough
def test_most_simulated_traces_have_a_prediction(shared: Shared) -> None:
    traces = [*map(shared.trace, SCENARIOS), *(_program(name, shared) for name in PROGRAMS)]
    assert _share_of_answers(traces, shared) >= LEAST


@pytest.mark.thorough
@pytest.mark.real
def test_most_real_traces_have_a_prediction(shared: Shared) -> None:
    assert _share_of_answers(TRACES, shared) >= LEAST
