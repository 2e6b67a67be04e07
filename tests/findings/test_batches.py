"""Findings on waits for input say what the worker does longest in a batch, whichever part of it overlaps the wait."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from tests.diagnosis.programs.registry import MS, US, Marks
from tests.replay.pairs.pair import STEPS, loop, simulated, varied, waking

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding
    from tests.simulator import Simulation
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

Works = tuple[tuple[str, int], ...]
DECODES_FIRST: Works = (("decodes", 8 * MS), ("reads", 4 * MS))
READS_FIRST: Works = (("reads", 8 * MS), ("decodes", 4 * MS))


def loading(
    sim: Simulation,
    marks: Marks,
    *,
    workers: tuple[Works, ...],
    step_ns: int,
    by: str = "sem_wait",
    asks: str = "",
    start: tuple[Works, ...] = (),
) -> None:
    """Workers load batches in turn, each after it was asked where it waits for that in the call `asks`. Before the
    first one, each does the works of its own in `start`.

    worker  [decodes ========][reads ....](post)[decodes ========][reads ....](post)
    T       [copy][l][sync ......][wait        ][copy][l][sync ......][wait
    """
    trainer = sim.process()
    batches, asked = [sim.channel() for _ in workers], [sim.channel() for _ in workers]
    signals = {"sem_wait": "sem_post", "read": "write", "poll": "write"}

    def works(t: Thread, what: Works, number: int) -> Body:
        for name, ns in what:
            took = varied(ns, name, number)
            yield from t.read_file(took, "pread64") if name == "reads" else t.compute(took, "jpeg_idct_islow")

    def load(t: Thread, worker: int) -> Body:
        yield from works(t, start[worker] if start else (), 0)
        for number in range(worker, STEPS, len(workers)):
            if asks:
                yield from t.get(asked[worker], asks)
            yield from works(t, workers[worker], number)
            yield from t.put(batches[worker], signals[by])

    def step(t: Thread, number: int) -> Body:
        worker = number % len(workers)
        if asks:
            yield from t.put(asked[worker], signals[asks])
        yield from t.get(batches[worker], by)
        yield from t.copy("HtoD", 1 << 20, 80 * US)
        for kernel in range(4):
            yield from t.launch("ampere_sgemm_128x64_tn", varied(step_ns // 4, "gemm", number, kernel))
        yield from t.synchronize(t.process.null)

    for worker in range(len(workers)):
        process = sim.process(gpus=[]) if by == "read" else trainer
        waking(sim.thread(process, partial(load, worker=worker), name=f"pt_data_worker {worker}", loads="name"))
    waking(loop(sim, marks, step, process=trainer))


def input_wait(folder: Path, **program: object) -> Finding:
    """The finding on waits for input, the largest where there are several."""
    return max(input_waits(folder, **program), key=lambda each: each.share)


def input_waits(folder: Path, **program: object) -> list[Finding]:
    """All findings on waits for input."""
    trace = simulated(partial(loading, **program), 1)[0].write(folder / "trace.sqlite")  # type: ignore[arg-type]
    found = analyze(trace, Settings(timeline=False)).findings
    return [each for each in found if each.cause == "data_loading"]


@pytest.mark.sampled(quick=8)
@pytest.mark.parametrize(
    ("works", "variant"),
    [
        (DECODES_FIRST, "computes"),
        (READS_FIRST, "reads"),
        ((("decodes", 4 * MS), ("reads", 5 * MS)), "reads"),
        ((("decodes", 2 * MS), ("reads", 1 * MS), ("decodes", 3 * MS), ("reads", 3500 * US)), "computes"),
    ],
)
@pytest.mark.parametrize("by", ["sem_wait", "read"])
def test_what_the_worker_does_longest(works: Works, variant: str, by: str, tmp_path: Path) -> None:
    """Most of it, or all, is over when the launching thread begins to wait."""
    found = input_wait(tmp_path, workers=(works,), step_ns=sum(ns for _, ns in works[:-1]), by=by)
    assert found.variant == variant
    assert found.title.startswith(f"Waiting for input data: the worker {variant}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("works", "call", "said", "advice"),
    [
        (DECODES_FIRST, "jpeg_idct_islow", "the worker computes 3", "decodes or augments"),
        (READS_FIRST, "pread64", "the worker reads 3", "pack samples"),
    ],
)
def test_all_that_is_said_is_about_that(works: Works, call: str, said: str, advice: str, tmp_path: Path) -> None:
    """What mostly overlaps the waits is no name for it."""
    found = input_wait(tmp_path, workers=(works,), step_ns=9 * MS)
    assert found.call in (call, None)
    assert found.summary in (f"{said[:-2]} ({call}), awaited in step #", f"{said[:-2]}, awaited in step #")
    assert any(line.startswith(f"over whole batches: {said}") for line in found.evidence)
    assert advice in found.advice[0]


@pytest.mark.slow
@pytest.mark.parametrize(("works", "variant"), [(DECODES_FIRST, "computes"), (READS_FIRST, "reads")])
def test_several_workers(works: Works, variant: str, tmp_path: Path) -> None:
    assert input_wait(tmp_path, workers=(works, works, works), step_ns=3 * MS).variant == variant


@pytest.mark.slow
def test_workers_that_do_different_things(tmp_path: Path) -> None:
    """There is a finding for each. One begins later, so that each of them is waited for."""
    works = ((("decodes", 9 * MS), ("reads", 3 * MS)), (("reads", 9 * MS), ("decodes", 3 * MS)))
    found = input_waits(tmp_path, workers=works, step_ns=3 * MS, start=((), (("decodes", 6 * MS),)))
    assert {each.variant for each in found} == {"computes", "reads"}


@pytest.mark.slow
@pytest.mark.parametrize("asks", ["sem_wait", "read", "poll"])
def test_a_worker_that_waits_to_be_asked_does_not_read_then(asks: str, tmp_path: Path) -> None:
    """It waits for longer than it works, in a call that also reads files, or waits for data of others."""
    works = (("decodes", 3 * MS), ("reads", 1 * MS))
    found = input_wait(tmp_path, workers=(works,), step_ns=9 * MS, asks=asks)
    assert found.variant == "computes"


@pytest.mark.slow
def test_what_it_does_before_the_first_batch_is_no_part_of_one(tmp_path: Path) -> None:
    found = input_wait(tmp_path, workers=(DECODES_FIRST,), step_ns=9 * MS, start=((("reads", 900 * MS),),))
    assert found.variant == "computes"


@pytest.mark.slow
@pytest.mark.parametrize("works", [DECODES_FIRST, READS_FIRST])
def test_a_worker_behind_which_nothing_is_hidden(works: Works, tmp_path: Path) -> None:
    """All of the batch overlaps the wait."""
    found = input_wait(tmp_path, workers=(works,), step_ns=500 * US)
    assert found.variant == ("computes" if works is DECODES_FIRST else "reads")
