"""Waits for host functions, by the log of simulated programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nsysdiag
from tests.builder import TraceBuilder
from tests.simulator import Simulation
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

NEWEST = CUDA_ONLY.but(schema="3.28.1")
FUNCTION = 900 * US


def queued(t: Thread) -> Body:
    """The kernel behind the function is launched long before the function returns."""
    for _step in range(12):
        yield from t.launch("gemm", 300 * US)
        yield from t.host_function(FUNCTION)
        yield from t.launch("norm", 200 * US)
        yield from t.synchronize(t.process.null)


def awaited(t: Thread) -> Body:
    """The thread waits for the function, then launches."""
    for _step in range(12):
        yield from t.launch("gemm", 300 * US)
        yield from t.host_function(FUNCTION)
        yield from t.synchronize(t.process.null)
        yield from t.compute(150 * US)


def read_back(t: Thread) -> Body:
    """The thread reads a value back behind the function."""
    for _step in range(12):
        yield from t.launch("gemm", 300 * US)
        yield from t.host_function(FUNCTION)
        yield from t.blocking_copy("DtoH", 64, 2 * US)
        yield from t.compute(150 * US)


def elsewhere(t: Thread) -> Body:
    """The function holds another stream than the one that the thread waits for and launches to."""
    side = t.process.stream()
    for _step in range(12):
        yield from t.host_function(FUNCTION, side)
        yield from t.launch("gemm", 300 * US)
        yield from t.synchronize(t.process.null)
        yield from t.compute(400 * US)


def traced(main: Callable[[Thread], Body], path: Path, schema: str) -> tuple[dict[str, int], dict[str, int]]:
    """The ledger of the report, and the true one."""
    simulation = Simulation()
    simulation.thread(simulation.process(), main)
    simulation.run().write(path, NEWEST.but(schema=schema))
    (truth,) = simulation.truth(NEWEST.but(schema=schema)).values()
    (device,) = nsysdiag.analyze(path).devices
    return device.ledger, truth.ledger


@pytest.mark.parametrize("main", [queued, awaited, read_back, elsewhere])
@pytest.mark.parametrize("schema", ["3.28.1", pytest.param("3.24.8", marks=pytest.mark.slow)])
def test_idle_time_behind_a_host_function_is_its_own(
    main: Callable[[Thread], Body], schema: str, tmp_path: Path
) -> None:
    found, true = traced(main, tmp_path / "trace.sqlite", schema)
    assert sum(found.values()) == sum(true.values())
    named = schema == "3.28.1" and main is not elsewhere
    assert (true.get("host_function", 0) >= 10 * FUNCTION) == named
    for cause in {*found, *true}:
        assert found.get(cause, 0) == pytest.approx(true.get(cause, 0), abs=12 * 20 * US), cause


def test_a_host_node_inside_a_graph_is_no_pause_between_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.28.1")
    for at in range(1, 9):
        start = at * 2_000_000
        shared = {"correlation": at, "stream": 9}
        trace.api("cudaGraphLaunch", start - 30_000, start - 10_000, correlation=at)
        trace.kernel(start, start + 300_000, name="a", graph_node=1, **shared)
        trace.host_function(start + 301_000, start + 800_000, node=2, **shared)
        trace.kernel(start + 802_000, start + 1_000_000, name="b", graph_node=3, **shared)
    (device,) = nsysdiag.analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger["host_function"] == 8 * 502_000
    assert "intra_graph" not in device.ledger
