"""The end of a job: what is a part of its last step is no phase that repeats."""

from __future__ import annotations

from tests.diagnosis.programs import PROGRAMS
from tests.shared import Shared


def test_a_last_collective_is_no_steady_phase(shared: Shared) -> None:
    """It has the name of a kernel of each step, and is one of several."""
    simulation, _ = PROGRAMS["slow_exchange_of_equal_ranks"].run()
    report = shared.report(shared.file("last-collective.sqlite", simulation.write))
    assert [phase.name for phase in report.phases] == ["start-up", "steady", "teardown"]
