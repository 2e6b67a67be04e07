"""What a report says of savings without a replay: bounds that hold, and of steps that are not all."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import REPLAY, Predicted
from nsysdiag.diagnosis.savings import _predicted
from nsysdiag.findings.facts import Finding
from nsysdiag.phases.facts import PhaseSteps
from tests.replay.making import replay_of_pair
from tests.replay.pairs import PAIRS
from tests.replay.pairs.pair import simulated, truth

SETTINGS = Settings(timeline=False, replay=False)
MORE_THAN_ITS_IDLE_TIME = (
    "file read behind a pipeline, ahead",
    "file read by another thread ahead, as its finding says",
    "file read before a sync of an event that is over",
    "sync for graphs without rows",
)
"""A fix saves more than the idle time of its cause: what it takes is beside other work."""
ABOUT = 0.005


@pytest.mark.parametrize("name", MORE_THAN_ITS_IDLE_TIME)
def test_no_more_is_saved_than_the_bound(name: str, tmp_path: Path) -> None:
    pair = PAIRS[name]
    cause = pair.finding or pair.transforms[0].of
    report = analyze(simulated(pair.before, pair.gpus, pair.capture)[0].write(tmp_path / "trace.sqlite"), SETTINGS)
    finding = max(
        (each for each in report.findings if cause in (each.bottleneck, each.cause)), key=lambda each: each.share
    )
    saves, true = finding.saves, truth(pair).saved
    assert saves is not None
    assert saves.method != REPLAY
    assert saves.low_ns == 0
    assert finding.share + 2 * ABOUT < true <= saves.most + ABOUT
    assert saves.ns / saves.of_ns == pytest.approx(finding.share, abs=2 * ABOUT), "it is ordered by its own time"
    assert saves.figure.startswith("up to ")


def predicted_finding() -> Finding:
    report = replay_of_pair("file read and sleep").report
    return next(each for each in report.findings if each.saves and each.saves.method == REPLAY)


@pytest.mark.parametrize(
    ("of_ns", "said"),
    [(2_000_000, "200 µs of 2.00 ms"), (2_500_000, "200 µs of 2.50 ms, the mean of 7 replayed steps")],
)
def test_a_step_of_another_length_says_which_it_is(of_ns: int, said: str) -> None:
    """The mean of all steps is 2 ms."""
    steps = PhaseSteps(count=90, median_ns=1_990_000, source="nvtx", mean_ns=2_000_000)
    told = Predicted("step", of_ns, 200_000, 200_000, 200_000, steps=7)
    found = _predicted(predicted_finding(), told, FindingThresholds(), steps).saves
    assert found is not None
    assert found.time == said
