"""The scenarios: one for each cause of the idle ledger, and mixes that mislead."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tests.simulator.scenarios import (
    calls,
    chains,
    counted,
    decoys,
    devices,
    hosts,
    mixes,
    patterns,
    serving,
    training,
    waits,
)
from tests.simulator.scenarios.registry import SCENARIOS, Scenario
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark import MarkDecorator, ParameterSet

__all__ = [
    "SCENARIOS",
    "Scenario",
    "calls",
    "cases",
    "chains",
    "counted",
    "decoys",
    "devices",
    "hosts",
    "mixes",
    "patterns",
    "scenario",
    "serving",
    "training",
    "waits",
]


def cases(names: Iterable[str]) -> list[ParameterSet]:
    """Parameters of tests that hold the analysis to scenarios; those that it still gets wrong may fail."""
    import pytest  # here, for scripts that simulate and have no pytest

    return [pytest.param(name, marks=_marks(SCENARIOS[name].not_yet)) for name in names]


def _marks(not_yet: str) -> list[MarkDecorator]:
    import pytest

    return [pytest.mark.xfail(reason=not_yet, strict=False)] if not_yet else []


@lru_cache(maxsize=4)
def scenario(name: str) -> Simulation:
    """A scenario that was run, which nobody changes: a test writes its trace and looks at its truth."""
    return SCENARIOS[name].run()
