"""The scenarios: one for each cause of the idle ledger, and mixes that mislead."""

from tests.simulator.scenarios import calls, devices, hosts, mixes, training
from tests.simulator.scenarios.registry import SCENARIOS, Scenario
from tests.simulator.simulation import Simulation

__all__ = ["SCENARIOS", "Scenario", "calls", "devices", "hosts", "mixes", "scenario", "training"]


def scenario(name: str) -> Simulation:
    """Run a scenario afresh."""
    return SCENARIOS[name].run()
