"""The invariants over every report at hand: simulated scenarios, fixtures, real traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.diagnosis.invariants import broken
from tests.diagnosis.report_json import as_json
from tests.levels import some
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.shared import Shared

TRACES = sorted(Path(os.environ.get("NSYSDIAG_TRACES", "nowhere")).glob("*.sqlite"))
CAPTURED = sorted(
    path.name.removesuffix(".gz") for path in (Path(__file__).parents[1] / "fixtures").glob("*.sqlite.gz")
)


@pytest.mark.sampled(quick=105, normal=5)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_of_scenarios(name: str, shared: Shared) -> None:
    assert broken(as_json(shared.report(shared.trace(name)))) == []


@pytest.mark.fixtures
@pytest.mark.slow
@pytest.mark.parametrize("name", some(CAPTURED, 4))
def test_of_fixtures(name: str, shared: Shared) -> None:
    assert broken(as_json(shared.report(shared.fixture(name)))) == []


@pytest.mark.real
@pytest.mark.parametrize("trace", TRACES or [Path("none")], ids=lambda path: path.stem)
def test_of_real_traces(trace: Path, shared: Shared) -> None:
    assert broken(as_json(shared.report(trace))) == []
