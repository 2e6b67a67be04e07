"""The critical path: against a slow one, against programs of which a part is made shorter, and on real traces."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.critical_path.facts import CriticalPath
from nsysdiag.critical_path.path import chain_to, critical_path
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import EdgeKind
from nsysdiag.replay.run import as_run, run_of
from nsysdiag.replay.work import Class
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.making import VARIED, model_of_pair, modelled, replay_of, replay_of_program
from tests.replay.pairs.pair import length, loop, simulated
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body
from tests.simulator.scenarios.arbitrary import arbitrary

TRACES = sorted(Path(os.environ.get("NSYSDIAG_TRACES", "nowhere")).glob("*.sqlite"))
SEEDS = range(200, 212)
LESS = 2 * US
WITHOUT_WORK = {
    *(EdgeKind.PROGRAM, EdgeKind.LAUNCH, EdgeKind.WAKE, EdgeKind.SLOT, EdgeKind.START, EdgeKind.PACED),
    *(EdgeKind.MEETING, EdgeKind.RELEASED, EdgeKind.PASSED),
}
PARTS = ("host", "kernel", "copy")


def path_of(model: Model) -> CriticalPath:
    found = critical_path(model)
    assert found is not None
    return found


def last_of(model: Model) -> int:
    run = as_run(model, model.graph.time, model.length)
    ends = np.flatnonzero((run.end == run.span[1]) & (model.work.start < model.stretch.end))
    return int(ends[model.length[ends].argmax()])


def slow_longest(model: Model) -> list[int]:
    """The longest way from the first moment to each, with lengths and residuals, edge by edge."""
    graph = model.graph
    into: list[list[tuple[int, int]]] = [[] for _ in graph.time]
    columns = (each.tolist() for each in (graph.edges.source, graph.edges.target, graph.edges.ns))
    for source, target, ns in zip(*columns, strict=True):
        into[target].append((source, ns))
    found = [0]  # ORIGIN
    for moment in range(1, len(into)):
        found.append(max(found[source] + ns for source, ns in into[moment]) + int(graph.residual[moment]))
    return found


def broken(model: Model) -> list[str]:
    """What does not hold for the path of a model."""
    found, graph = path_of(model), model.graph
    run, last = as_run(model, graph.time, model.length), last_of(model)
    chain = chain_to(model, last)
    longest = slow_longest(model)[int(model.places.end[last])] + int(model.length[last])
    wrong = [] if int(chain.end[-1] - chain.start[0]) == longest else ["it is not the longest"]
    wrong += [] if (chain.start[1:] == chain.end[:-1]).all() else ["it has holes"]
    edges = chain.edge[chain.edge >= 0]
    asked = graph.edges.ns[edges] + graph.residual[graph.edges.target[edges]]
    wrong += [] if (asked == (chain.end - chain.start)[chain.edge >= 0]).all() else ["an edge is not tight"]
    wrong += [] if sum(each.ns for each in found.parts) == found.total_ns == run.span[1] - run.span[0] else ["sum"]
    wrong += [] if all(0 <= each.path_ns <= each.total_ns for each in found.work) else ["more than all work"]
    wrong += [] if all(each.ns > 0 for each in found.parts) else ["an empty part"]
    return wrong + ([] if slow_work(model, last) == work_parts(found) else ["work is not what a slow walk finds"])


def slow_work(model: Model, last: int) -> dict[str, int]:
    """The work on the path by kind, walked back moment by moment."""
    edges, names = model.graph.edges, list(OF_WORK)
    chain, (first, end) = chain_to(model, last), as_run(model, model.graph.time, model.length).span
    total = dict.fromkeys(OF_WORK.values(), 0)
    for edge, begin, until in zip(chain.edge.tolist(), chain.start.tolist(), chain.end.tolist(), strict=True):
        kind, row = (int(edges.kind[edge]), int(edges.row[edge])) if edge >= 0 else (-1, last)
        if kind in WITHOUT_WORK:
            continue
        if kind == EdgeKind.DEVICE_WAIT:
            row = int(model.threads.held.target[row])
        if kind == EdgeKind.STREAM and row < 0:
            (row,) = np.flatnonzero(model.places.operation == edges.source[edge]).tolist()
        over = min(begin + int(model.length[row]), until, end) - max(begin, first)
        total[OF_WORK[names[int(model.work.kind[row])]]] += max(over, 0)
    return {name: ns for name, ns in total.items() if ns}


def work_parts(found: CriticalPath) -> dict[str, int]:
    return {each.bottleneck: each.ns for each in found.parts if not each.cause}


@pytest.mark.sampled
@pytest.mark.parametrize("name", VARIED)
def test_programs_of_pairs(name: str) -> None:
    assert broken(model_of_pair(name)) == []


@pytest.mark.sampled(normal=4)
@pytest.mark.parametrize("seed", SEEDS)
def test_arbitrary_programs(seed: int, tmp_path: Path) -> None:
    found = replay_of(arbitrary(seed).write(tmp_path / "trace.sqlite")).model
    assert isinstance(found, str) or broken(found) == []


@pytest.mark.real
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_real_traces(path: Path) -> None:
    found = replay_of(path).model
    assert isinstance(found, str) or broken(found) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", VARIED)
def test_work_off_the_path_may_take_no_time(name: str) -> None:
    """In the replay the last end stays, with all of it; one operation on the path less by 1 µs is no more than that."""
    model = model_of_pair(name)
    chain, now = chain_to(model, last_of(model)), run_of(Changes.none(model))
    on = np.unique(chain.operation[chain.operation >= 0])
    off = np.setdiff1d(np.flatnonzero(model.work.kind != Class.COMMUNICATION), on)
    changes = Changes.none(model)
    changes.length[off] = 0
    assert run_of(changes).span[1] == now.span[1]
    for each in random.Random(name).sample(on.tolist(), min(5, len(on))):
        changes = Changes.none(model)
        changes.length[each] = max(changes.length[each] - US, 0)
        assert now.span[1] - US <= run_of(changes).span[1] <= now.span[1]


# Programs of three parts, of which one is made shorter.


def program(
    sim: Simulation, marks: Marks, *, host: int, kernel: int, copy: int, together: bool, synchronized: bool
) -> None:
    """
    T        [host ][l][l]  [host ][l][l]      a copy behind its kernel (`together`), or in a stream of its own
    gpu            [= kernel =)
    gpu               [= copy =)
    """
    process = solver(sim)
    other = None if together else process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(host, "prepare")
        yield from t.launch("solve", kernel)
        yield from t.copy("DtoH", 8 << 20, copy, other, call=2 * US)
        if synchronized:
            yield from t.synchronize()

    loop(sim, marks, step, process=process)


def share_on_path(found: CriticalPath, part: str) -> float:
    """How much of the time of a part is on the path; of host code that is its share of the path."""
    if part == "host":
        return sum(each.ns for each in found.parts if each.bottleneck == "host") / found.total_ns
    work = [each for each in found.work if each.bottleneck == {"kernel": "kernels", "copy": "copies"}[part]]
    return sum(each.path_ns for each in work) / max(sum(each.total_ns for each in work), 1)


@pytest.mark.sampled(normal=4)
@pytest.mark.parametrize("seed", range(16))
def test_a_part_on_the_path_makes_steps_shorter_and_no_other_does(seed: int) -> None:
    chance = random.Random(seed)
    given = {part: chance.randint(30, 400) * US for part in PARTS}
    how = {"together": seed % 2 == 0, "synchronized": seed % 4 > 1}
    found = path_of(modelled(replay_of_program(partial(program, **given, **how))))
    now = length(*simulated(partial(program, **given, **how), 1), 40, 2)
    for part in PARTS:
        less = {**given, part: given[part] - LESS}
        saved = now - length(*simulated(partial(program, **less, **how), 1), 40, 2)
        on_path = share_on_path(found, part)
        assert (saved > LESS / 2) == (on_path > 0.1), (part, saved, on_path, given, how)


@pytest.mark.slow
def test_hidden_copies_are_off_the_path() -> None:
    given = {"host": 20 * US, "kernel": 300 * US, "copy": 100 * US, "together": False, "synchronized": True}
    found = path_of(modelled(replay_of_program(partial(program, **given))))
    kernels, copies = (next(each for each in found.work if each.bottleneck == name) for name in ("kernels", "copies"))
    assert kernels.path_ns == kernels.total_ns
    assert copies.path_ns < 0.05 * copies.total_ns
    assert found.parts[0].bottleneck == "kernels"
    assert found.parts[0].ns > 0.9 * found.total_ns


@pytest.mark.slow
def test_kernels_that_wait_for_the_host_are_off_the_path() -> None:
    given = {"host": 300 * US, "kernel": 50 * US, "copy": 30 * US, "together": True, "synchronized": False}
    found = path_of(modelled(replay_of_program(partial(program, **given))))
    assert max(share_on_path(found, part) for part in ("kernel", "copy")) < 0.1
    assert found.parts[0].name == "Host code"
