"""The simulator itself: what it says about a program must hold by its own rules, and by hand where that is possible."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nsysdiag
from tests.levels import some
from tests.simulator import CUDA_ONLY, EVERYTHING, Capture, Simulation
from tests.simulator.fixtures import FIXTURES
from tests.simulator.large import write_large
from tests.simulator.scenarios import SCENARIOS, scenario
from tests.simulator.scenarios.arbitrary import arbitrary
from tests.simulator.shapes import SHAPES
from tests.simulator.truth import rows_of

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.truth import DeviceTruth

pytestmark = pytest.mark.slow

US = 1_000
NAMES = sorted(SCENARIOS)


def only(simulation: Simulation) -> DeviceTruth:
    (truth,) = simulation.truth().values()
    return truth


def programs() -> list[tuple[str, Simulation]]:
    return [(name, scenario(name)) for name in NAMES] + [(f"seed {seed}", arbitrary(seed)) for seed in range(8)]


@pytest.fixture(scope="module")
def simulations() -> list[tuple[str, Simulation]]:
    return programs()


def test_a_tiny_program_has_the_truth_computed_by_hand() -> None:
    """
    T    [launch a 0..5][computes 5..25      ][launch b 25..30]
    gpu            [a 7..17]..................................[b 32..42]
    """
    simulation = Simulation()

    def body(t: Thread) -> Body:
        yield from t.launch("a", 10 * US)
        yield from t.compute(20 * US)
        yield from t.launch("b", 10 * US)

    simulation.thread(simulation.process(), body)
    truth = only(simulation.run())
    assert truth.window == (7 * US, 42 * US)
    assert (truth.compute, truth.exposed_comm, truth.exposed_copy, truth.idle) == (20 * US, 0, 0, 15 * US)
    assert truth.ledger == {"host_compute": 8 * US, "launch_call": 5 * US, "launch_latency": 2 * US}


def test_a_blocked_thread_computed_by_hand() -> None:
    """The read takes 50 µs, waking up another 4 µs that are still inside the read."""
    simulation = Simulation()

    def body(t: Thread) -> Body:
        yield from t.launch("a", 10 * US)
        yield from t.read_file(50 * US)
        yield from t.launch("b", 10 * US)

    simulation.thread(simulation.process(), body)
    truth = only(simulation.run())
    assert truth.ledger == {"io_wait": (59 - 17) * US, "launch_call": 5 * US, "launch_latency": 2 * US}
    assert only_ledger(simulation, osrt=False) == {
        "blocked": (59 - 17) * US,
        "launch_call": 5 * US,
        "launch_latency": 2 * US,
    }


def test_freeing_memory_waits_for_the_device_by_hand() -> None:
    """
    T    [launch a 0..5][cudaFree 5..32          ][launch b 32..37]
    gpu            [a 7..27]..............................[b 39..49]
    """
    simulation = Simulation()

    def body(t: Thread) -> Body:
        yield from t.launch("a", 20 * US)
        yield from t.free(5 * US)
        yield from t.launch("b", 10 * US)

    simulation.thread(simulation.process(), body)
    truth = only(simulation.run())
    assert truth.window == (7 * US, 49 * US)
    assert truth.ledger == {"memory_allocation": 5 * US, "launch_call": 5 * US, "launch_latency": 2 * US}


def only_ledger(simulation: Simulation, **changes: bool) -> dict[str, int]:
    (truth,) = simulation.truth(EVERYTHING.but(**changes)).values()
    return truth.ledger


def test_two_threads_share_a_core_by_hand() -> None:
    """The quantum is 4 ms: a thread that needs 6 ms has 4, waits 4, and has the rest."""
    simulation = Simulation()
    process = simulation.process()

    def body(t: Thread) -> Body:
        yield from t.compute(6_000 * US)

    first = simulation.thread(process, body)
    second = simulation.thread(process, body, share=first)
    simulation.run()
    assert first.cpu == [(0, 4_000 * US), (8_000 * US, 10_000 * US)]
    assert second.cpu == [(4_000 * US, 8_000 * US), (10_000 * US, 12_000 * US)]
    assert [span.state for span in first.spans] == ["cpu", "waiting", "cpu"]


@pytest.mark.thorough
def test_operations_of_one_stream_never_overlap(simulations: list[tuple[str, Simulation]]) -> None:
    for name, simulation in simulations:
        for gpu in simulation.gpus:
            streams = {op.stream for op in gpu.ops}
            for stream in streams:
                ops = sorted((op for op in gpu.ops if op.stream is stream), key=lambda op: op.start)
                assert all(before.end <= after.start for before, after in pairwise(ops)), name


def test_every_operation_ran_after_it_was_enqueued(simulations: list[tuple[str, Simulation]]) -> None:
    for name, simulation in simulations:
        for gpu in simulation.gpus:
            for op in gpu.ops:
                assert 0 < op.enqueued < op.start < op.end, name
                assert op.pieces[-1][0] == op.start, name


def test_a_thread_does_one_thing_at_a_time(simulations: list[tuple[str, Simulation]]) -> None:
    for name, simulation in simulations:
        for process in simulation.processes:
            for thread in process.threads:
                assert all(before.end == after.start for before, after in pairwise(thread.spans)), name
                assert all(before[1] <= after[0] for before, after in pairwise(thread.cpu)), name


def test_calls_nest(simulations: list[tuple[str, Simulation]]) -> None:
    for name, simulation in simulations:
        for process in simulation.processes:
            for thread in process.threads:
                open_calls: list[int] = []
                for call in thread.calls:
                    while open_calls and open_calls[-1] <= call.start:
                        open_calls.pop()
                    assert not open_calls or call.end <= open_calls[-1], name
                    open_calls.append(call.end)


def test_a_core_runs_one_thread_at_a_time(simulations: list[tuple[str, Simulation]]) -> None:
    for name, simulation in simulations:
        threads = [thread for process in simulation.processes for thread in process.threads]
        for core in {thread.core for thread in threads}:
            held = sorted(interval for thread in threads if thread.core is core for interval in thread.cpu)
            assert all(before[1] <= after[0] for before, after in pairwise(held)), name


CAPTURES = [EVERYTHING, CUDA_ONLY, EVERYTHING.but(graphs="graph"), EVERYTHING.but(api=False)]


@pytest.mark.thorough
@pytest.mark.parametrize("capture", CAPTURES)
def test_the_truth_adds_up(simulations: list[tuple[str, Simulation]], capture: Capture) -> None:
    for name, simulation in some(simulations, 2, CAPTURES.index(capture)):
        for truth in simulation.truth(capture).values():
            assert sum(truth.ledger.values()) == truth.idle, name
            assert sum(gap.end - gap.start for gap in truth.gaps) == truth.idle, name
            split = truth.compute + truth.exposed_comm + truth.exposed_copy + truth.idle
            assert split == truth.window[1] - truth.window[0], name


@pytest.mark.parametrize("name", ["exposed_communication", "pageable_copy", "overlapping_streams", "intra_graph"])
def test_the_split_agrees_with_a_painter(name: str) -> None:
    simulation = scenario(name)
    (truth, *_), gpu = list(simulation.truth().values()), simulation.gpus[0]
    start, end = truth.window
    canvas = np.zeros(end - start, dtype=np.int8)
    layers = {"copy": 1, "set": 1, "nccl": 2, "kernel": 3}
    rows = [(layers["nccl" if row.communication else row.kind], row) for row in rows_of(gpu, simulation.capture)]
    for layer, row in sorted(rows, key=lambda pair: pair[0]):
        canvas[row.start - start : row.end - start] = layer
    painted = np.bincount(canvas, minlength=4)
    assert painted.tolist() == [truth.idle, truth.exposed_copy, truth.exposed_comm, truth.compute]


@pytest.mark.parametrize("name", [name for name in NAMES if SCENARIOS[name].expected])
def test_a_scenario_is_about_its_cause(name: str) -> None:
    truths = scenario(name).truth().values()
    leading = {max(truth.ledger, key=lambda cause, truth=truth: truth.ledger[cause]) for truth in truths}  # type: ignore[misc]
    assert SCENARIOS[name].picture
    assert SCENARIOS[name].expected in leading


def test_every_cause_has_a_scenario() -> None:
    from tests.simulator import CAUSES

    assert {found.expected for found in SCENARIOS.values()} - {""} == set(CAUSES)


def test_the_same_program_gives_the_same_rows(tmp_path: Path) -> None:
    for number in range(2):
        SCENARIOS["many_causes"].run().write(tmp_path / f"{number}.sqlite")
    assert (tmp_path / "0.sqlite").read_bytes() == (tmp_path / "1.sqlite").read_bytes()


def test_a_capture_leaves_out_what_it_is_told_to(tmp_path: Path) -> None:
    path = scenario("many_causes").write(tmp_path / "x.sqlite", CUDA_ONLY)
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"} <= tables
    assert not tables & {"OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS"}


@pytest.mark.parametrize("name", FIXTURES)
def test_a_fixture_is_what_its_scenario_writes(name: str, tmp_path: Path) -> None:
    fixture = Path(__file__).parent / "fixtures" / name
    (tmp_path / "fixture.sqlite").write_bytes(gzip.decompress(fixture.read_bytes()))
    scenario(FIXTURES[name]).write(tmp_path / "fresh.sqlite")
    assert contents(tmp_path / "fixture.sqlite") == contents(tmp_path / "fresh.sqlite")
    assert fixture.stat().st_size < 300_000


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}


def test_a_large_trace_has_the_rows_it_promises(tmp_path: Path) -> None:
    found = contents(write_large(tmp_path / "large.sqlite", 4_000))
    assert len(found["CUPTI_ACTIVITY_KIND_KERNEL"]) == 4_000
    assert len(found["CUPTI_ACTIVITY_KIND_RUNTIME"]) == 8_000
    assert len(found["SCHED_EVENTS"]) == 4_000
    assert len(found["OSRT_API"]) == len(found["COMPOSITE_EVENTS"]) == 2_000
    assert len(found["SAMPLING_CALLCHAINS"]) == 20_000
    assert len(found["NVTX_EVENTS"]) == len(found["GPU_METRICS"]) == 2_000


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_trace_of_each_shape_is_one(shape: str, tmp_path: Path) -> None:
    """All kernels are there, and what the shape is heavy in."""
    made = SHAPES[shape](tmp_path / "large.sqlite", 2_000)
    found, kernels = contents(made), 20 if shape == "week" else 2_000
    assert len(found["CUPTI_ACTIVITY_KIND_KERNEL"]) == kernels
    heavy = {
        "two-threads": ("SCHED_EVENTS", 2_000),
        "deep-ranges": ("NVTX_EVENTS", 4_800),
        "threads": ("SCHED_EVENTS", 4_000),
        "samples": ("SAMPLING_CALLCHAINS", 40_000),
    }
    for table, rows in [heavy[shape]] if shape in heavy else []:
        assert len(found[table]) == rows
    report = nsysdiag.analyze(made)
    assert len(report.devices) == (8 if shape == "eight-gpus" else 1)
    assert sum(each.ops.kernel for each in report.devices) == kernels


SCHEMAS = ["2020", "2.9.1", "3.13.2", "3.17.2", "3.24.8"]


@pytest.mark.thorough
@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_can_be_written(schema: str, tmp_path: Path) -> None:
    for name in some(NAMES, 3, SCHEMAS.index(schema)):
        simulation = scenario(name)
        simulation.write(tmp_path / f"{name}.sqlite", simulation.capture.but(schema=schema))


def test_no_write_ends_the_wait_for_a_semaphore() -> None:
    """All calls on a channel are those of a pipe, a semaphore or a condition variable."""
    simulation = Simulation()
    channel = simulation.channel()
    simulation.thread(simulation.process(), lambda t: t.get(channel, "sem_wait"))
    simulation.thread(simulation.process(), lambda t: t.put(channel, "write"), start=1_000_000)
    with pytest.raises(ValueError, match="write on a channel of kind sem_"):
        simulation.run()
