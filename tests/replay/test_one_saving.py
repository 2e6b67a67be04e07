"""A saving is one number: in the report, in its bars, in the list of `whatif`, and in `whatif --finding`."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.diagnosis.facts import REPLAY
from nsysdiag.findings.facts import Finding
from nsysdiag.pipeline.changes import Replayed, whatif
from nsysdiag.replay.facts import Saving, Transform, WhatIf
from nsysdiag.replay.predict import answered, identity_of
from nsysdiag.report import Report
from tests.replay.making import SETTINGS, VARIED, modelled, replay_of_pair
from tests.replay.test_invariants import TRACES
from tests.shared import Shared
from tests.simulator.scenarios import SCENARIOS

LOADING = ("worker slower than a sleep", "worker that a sleep hides", "sleep and a slower worker")

UNPREDICTED = (
    "host code behind a full queue",
    "kernels halved in both streams",
    "kernel of two streams halved, events not recorded",
    "barriers of the legacy default stream",
)
"""Their findings are on kernels, or promise nothing."""


def assert_one_saving(report: Report, finding: Finding, of: WhatIf | Saving, now: int) -> None:
    """A report has no saving below 0."""
    saves = finding.saves
    assert saves is not None
    expected = [max(now - ns, 0) for ns in (of.predicted_ns, of.high_ns, of.low_ns)]
    assert [saves.ns, saves.low_ns, saves.high_ns] == expected
    assert (saves.of_ns, saves.cannot_tell) == (now, of.cannot_tell)
    drawn = [each for each in report.outlooks if each.finding == finding.id]
    assert len(drawn) == (not saves.cannot_tell)
    for each in drawn:
        assert (each.per, sum(each.now.values()), sum(each.predicted.values())) == (saves.per, now, of.predicted_ns)


def assert_they_agree(found: Replayed) -> int:
    """The savings that were predicted."""
    report, model = found.report, modelled(found)
    identity = identity_of(model)
    listed = answered(report, model, [], identity, found.told)
    alone = {each.finding: each for each in listed.savings if each.finding is not None and each.refused is None}
    predicted = [each for each in report.findings if each.saves and each.saves.method == REPLAY]
    assert {each.id for each in predicted} <= alone.keys()
    for each in predicted:
        one = answered(report, model, [Transform("finding", each.id)], identity, found.told)
        assert one.now_ns == listed.now_ns
        assert_one_saving(report, each, alone[each.id], listed.now_ns)
        assert_one_saving(report, each, one, one.now_ns)
    return len(predicted)


def assert_of_trace(found: Replayed) -> None:
    """Where it has a model."""
    if not isinstance(found.model, str):
        assert_they_agree(found)


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize("name", [*VARIED, *LOADING])
def test_of_a_simulated_program(name: str) -> None:
    assert assert_they_agree(replay_of_pair(name)) > 0 or name in UNPREDICTED


@pytest.mark.sampled(quick=53, normal=19)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_of_scenarios(name: str, shared: Shared) -> None:
    assert_of_trace(shared.replayed(shared.trace(name)))


@pytest.mark.parametrize("name", VARIED[:3])
def test_bounds_are_of_the_same_length(name: str) -> None:
    report = replay_of_pair(name).report
    assert len({(each.saves.per, each.saves.of_ns) for each in report.findings if each.saves}) == 1


@pytest.mark.slow
def test_of_the_commands(shared: Shared) -> None:
    """`analyze` and `whatif` read a trace each for itself."""
    trace = shared.trace("slow_rank")
    report, listed = analyze(trace, Settings(timeline=False)), whatif(trace, (), SETTINGS)
    alone = {each.finding: each for each in listed.savings}
    predicted = [each for each in report.findings if each.saves and each.saves.method == REPLAY]
    assert predicted
    for each in predicted[:2]:
        assert_one_saving(report, each, alone[each.id], listed.now_ns)
        assert_one_saving(report, each, whatif(trace, [Transform("finding", each.id)], SETTINGS), listed.now_ns)


@pytest.mark.sampled(normal=6)
@pytest.mark.real
@pytest.mark.parametrize("trace", TRACES or [Path("none")], ids=lambda path: path.stem)
def test_of_real_traces(trace: Path, shared: Shared) -> None:
    assert_of_trace(shared.replayed(trace))
