"""Predictions of long programs made by chance in which nothing repeats, against the fixed programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nsysdiag import Settings, Transform, analyze, whatif
from nsysdiag.findings.facts import Finding
from tests.replay.pairs.chance_windows import ENDS, FEWEST, MOST, PAUSES, causes, made, pair_of, pairs
from tests.replay.pairs.pair import Pair, length, simulated
from tests.replay.pairs.prediction import Outcome, predicted

SETTINGS = Settings(timeline=False)
SOON = 9_000
"""The launches of the quick programs at most."""
MOST_ERROR = 0.025
"""Of the time: a call puts its launch on its way before it ends, and how much before is not in the trace."""
WHOLE = 0.01
"""Programs of which the report judges a part are left out: their batches are steps where the host waits after each."""


def outcomes(seed: int, most: int) -> Iterator[tuple[Finding, Outcome]]:
    """For each cause that is one finding: this one, and what is true beside what the report says."""
    fixes = list(pairs(seed, most))
    simulation, marks = simulated(fixes[0].before, fixes[0].gpus)
    before = length(simulation, marks, 0, 0)
    with TemporaryDirectory() as folder:
        told = analyze(simulation.write(Path(folder) / "trace.sqlite"), SETTINGS).findings
    for pair in fixes:
        found = [each for each in told if each.cause == pair.finding and each.saves is not None]
        if len(found) == 1 and found[0].saves and abs(found[0].saves.of_ns - before) < WHOLE * before:
            yield found[0], _outcome(pair, found[0], before)


def _outcome(pair: Pair, finding: Finding, before: float) -> Outcome:
    saves = finding.saves
    assert saves is not None
    true = 1 - length(*simulated(pair.after, pair.gpus), 0, 0) / before
    predicted, low, high = (ns / saves.of_ns for ns in (saves.ns, saves.low_ns, saves.high_ns))
    return Outcome(pair.name, max(true, 0.0), predicted, low, high)


def wrong(seeds: Iterable[int], most: int, fewest: int) -> list[Outcome]:
    """The outcomes outside of their bounds; there are so many in all."""
    found = [each for seed in seeds for _, each in outcomes(seed, most)]
    assert len(found) >= fewest
    return [each for each in found if not each.inside(MOST_ERROR)]


@pytest.mark.slow
def test_some_windows_without_steps() -> None:
    assert wrong((2, 9), SOON, 2) == []


@pytest.mark.thorough
def test_windows_without_steps() -> None:
    assert wrong(range(24), SOON, 6) == []


@pytest.mark.thorough
def test_long_windows_without_steps() -> None:
    assert wrong(range(12), MOST, 3) == []


@pytest.mark.slow
def test_a_helper_that_was_ready_in_time_is_waited_for_once_the_window_is_short(tmp_path: Path) -> None:
    """It is asked at the start of a batch and waited for at its end: no wait for it is in the trace."""
    window = made(3, 2_500)
    launches = sum(window.batches) / len(window.batches)
    window = window._replace(asks_early=True, helper=round(0.7 * launches * (window.call + window.host)))
    pair = pair_of(window, "host_compute")
    found = predicted(pair, tmp_path)
    assert not found.refused
    assert found.inside(MOST_ERROR)
    assert found.predicted - found.true > 0.1, "the replay itself does not wait for the helper"


@pytest.mark.slow
def test_the_report_and_whatif_say_one_number(tmp_path: Path) -> None:
    """Of a window of more than 6,000 operations."""
    simulation, _ = simulated(next(pairs(0, SOON)).before, 1)
    trace = simulation.write(tmp_path / "trace.sqlite")
    predicted = [each for each in analyze(trace, SETTINGS).findings if each.saves and each.saves.method == "replay"]
    assert len(predicted) > 1
    for each in predicted:
        found = whatif(trace, [Transform("finding", each.id)], SETTINGS)
        expected = [found.now_ns - ns for ns in (found.predicted_ns, found.high_ns, found.low_ns)]
        assert each.saves
        assert [each.saves.ns, each.saves.low_ns, each.saves.high_ns] == expected


@pytest.mark.slow
def test_of_a_window_that_is_too_long_the_report_names_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is saved is more than the idle time of the cause; `whatif` predicts it."""
    pair = next(pairs(2, SOON))
    simulation, marks = simulated(pair.before, 1)
    trace = simulation.write(tmp_path / "trace.sqlite")
    monkeypatch.setattr("nsysdiag.pipeline.replaying.MOST_IN_ANALYSIS", FEWEST)
    report = analyze(trace, SETTINGS)
    calls = next(each for each in report.findings if each.cause == "launch_call")
    saves = calls.saves
    assert saves is not None
    assert saves.reason.endswith("and no steps, too many to replay")
    true = length(simulation, marks, 0, 0) - length(*simulated(pair.after, 1), 0, 0)
    assert saves.ns < true < calls.ceiling_ns <= saves.high_ns
    assert saves.words == "an unknown part of the judged time: too many operations for a replay in the report"
    found = whatif(trace, [Transform("finding", calls.id)], SETTINGS)
    assert found.now_ns - found.high_ns <= true <= found.now_ns - found.low_ns


@pytest.mark.slow
def test_chance_makes_all_windows() -> None:
    """Each end and pause, with and without a helper; few and many launches; the same for the same seed."""
    programs = [made(seed) for seed in range(24)]
    assert {each.end for each in programs} == ENDS.keys()
    assert {each.pause for each in programs} == PAUSES.keys()
    assert {each.helper > 0 for each in programs} == {False, True}
    assert {cause for each in programs for cause in causes(each)} == (ENDS.keys() | PAUSES.keys() | {"launch_call"}) - {
        ""
    }
    launches = [sum(each.batches) for each in programs]
    assert FEWEST <= min(launches) < 2 * FEWEST
    assert MOST / 2 < max(launches) < 1.1 * MOST
    assert programs == [made(seed) for seed in range(24)]
