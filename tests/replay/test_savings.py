"""What findings would bring, one by one and together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.replay.bounds import Prediction
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Identity
from nsysdiag.replay.predict import WORTH, Predictions, floor_of, identity_of, savings_of
from nsysdiag.replay.run import run_of
from nsysdiag.replay.work import Class
from tests.replay.making import VARIED, model_of_pair, modelled, replay_of_pair

TWO = ("file read and sleep", "sync and host code", "read-back, write and sleep")


@pytest.mark.slow
@pytest.mark.parametrize("name", TWO)
def test_what_pays_together_pays_more_than_alone(name: str) -> None:
    found = replay_of_pair(name)
    model = modelled(found)
    now = run_of(Changes.none(model)).ns
    savings = savings_of(model, found.report.findings, identity_of(model), {})
    alone = [each for each in savings if each.finding is not None]
    together = [each for each in savings if each.finding is None]
    assert [each.finding for each in alone] == [each.id for each in found.report.findings]
    assert together
    best = min(each.predicted_ns for each in alone)
    lengths = [best, *(each.predicted_ns for each in together)]
    assert all(before - after >= WORTH * now for before, after in pairwise(lengths))
    assert [len(each.findings) for each in together] == list(range(2, 2 + len(together)))
    assert all([transform.of for transform in each.transforms] == each.findings for each in savings)


@pytest.mark.parametrize("name", VARIED)
def test_savings_have_bounds(name: str) -> None:
    found = replay_of_pair(name)
    model = modelled(found)
    now = run_of(Changes.none(model)).ns
    for each in savings_of(model, found.report.findings, identity_of(model), {}):
        assert each.low_ns <= each.predicted_ns <= each.high_ns
        assert each.low_ns <= now
        if each.refused is not None:
            assert each.low_ns == each.predicted_ns == each.high_ns == now


@pytest.mark.parametrize("name", VARIED)
def test_shares_that_findings_save(name: str) -> None:
    found = replay_of_pair(name)
    predictions = Predictions.of(modelled(found))
    assert isinstance(predictions, Predictions)
    for each in found.report.findings:
        told = predictions(each)
        assert 0 <= told.low_ns <= told.ns <= told.high_ns <= told.of_ns


def test_no_predictions_of_a_model_that_is_too_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of_pair("sleep")
    assert isinstance(Predictions.of(model), Predictions)
    monkeypatch.setattr("nsysdiag.replay.predict.identity_of", lambda _: Identity(exact=True, length_error=0.021))
    assert "off the recorded length" in str(Predictions.of(model))


@pytest.mark.parametrize("name", VARIED)
def test_the_floor_is_what_the_devices_take(name: str) -> None:
    """No longer than now, and no shorter than the kernels of any stream in a step."""
    model = model_of_pair(name)
    floor, now = floor_of(model, []), run_of(Changes.none(model))
    assert floor.ns <= now.ns
    assert (floor.start <= now.start).all()
    assert_as_long_as_kernels(model.work.stream, model.work.kind, floor)


def assert_as_long_as_kernels(stream: Sequence[int], kind: Sequence[int], run: object) -> None:
    """Kernels of a stream follow each other, whatever else changes."""
    start, end, span = run.start, run.end, run.span  # type: ignore[attr-defined]
    inside = (np.asarray(kind) == Class.COMPUTE) & (start >= span[0]) & (end <= span[1])
    busy = np.bincount(np.asarray(stream)[inside], (end - start)[inside], minlength=1)
    assert busy.max() <= span[1] - span[0]


@pytest.mark.parametrize("name", [*VARIED, *TWO])
def test_no_fix_goes_below_the_floor(name: str) -> None:
    found = replay_of_pair(name)
    model, findings = modelled(found), found.report.findings
    floor = floor_of(model, findings).ns
    assert all(each.predicted_ns >= floor for each in savings_of(model, findings, identity_of(model), {}))


@pytest.mark.slow
def test_of_no_time_nothing_is_saved() -> None:
    """One operation that takes no time is all of a window."""
    found = replay_of_pair("sleep, as its finding says")
    predictions = Predictions.of(modelled(found))
    assert isinstance(predictions, Predictions)
    finding = next(each for each in found.report.findings if not isinstance(predictions(each), str))
    known = predictions.known[finding.id]
    assert isinstance(known, Prediction)
    nothing = replace(known.now, borders=np.array([5, 5]))
    predictions.known[finding.id] = replace(known, now=nothing, run=nothing, low_ns=0, high_ns=0)
    assert predictions(finding)[1:5] == (0, 0, 0, 0)
