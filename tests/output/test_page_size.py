"""Pages stay small: a report is sent around, and opens at once."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.functions import bundled_trace
from tests.simulator.engine import US
from tests.simulator.large import write_large
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

MOST, MOST_OF_LARGE = 1_000_000, 1_250_000
"""Bytes of a page: that of a usual trace, and that of one with far more events than there is room for."""


def size_of(trace: Path) -> int:
    return len(FORMATS["html"].render(analyze(trace), RenderOptions()))


def two_ranks(steps: int, operators: int) -> Simulation:
    """Two processes with a GPU each, and a range with a name of its own around every launch, as PyTorch makes them.

    rank   [step 0 [aten::op_0, seq = 0, op_id = 0 [launch]][aten::op_1, seq = 1, op_id = 3 [launch]] ... [sync]]
    """
    sim = Simulation(gpus=2)

    def body(t: Thread) -> Body:
        number = 0
        for step in range(steps):
            t.push(f"step {step}")
            for at in range(operators):
                t.push(f"aten::operator_{at % 60}, seq = {number}, op_id = {3 * number}")
                yield from t.compute((3 + (7 * number) % 11) * US + number % 89, f"host_function_{at % 60}")
                kernel = f"elementwise_kernel<functor_{at % 60}, std::array<char*, 2>>"
                yield from t.launch(kernel, 9 * US + number % 997)
                t.pop()
                number += 1
            yield from t.synchronize()
            t.pop()

    for gpu in range(2):
        sim.thread(sim.process([gpu]), body)
    return sim.run()


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    trace = tmp_path / "demo.sqlite"
    trace.write_bytes(gzip.decompress(bundled_trace()))
    assert size_of(trace) < MOST


@pytest.mark.thorough
def test_two_gpus_and_thousands_of_names(tmp_path: Path) -> None:
    assert size_of(two_ranks(20, 250).write(tmp_path / "ranks.sqlite")) < MOST


@pytest.mark.thorough
def test_a_large_trace(tmp_path: Path) -> None:
    assert size_of(write_large(tmp_path / "large.sqlite", 200_000)) < MOST_OF_LARGE
