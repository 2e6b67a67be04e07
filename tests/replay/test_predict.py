"""Predictions: their bounds, the lengths of steps, and what a model is worth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.messages import UsageError
from nsysdiag.replay.bounds import StepSamples
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.predict import identity_of, predict
from nsysdiag.replay.run import Run, four_parts, run_of
from nsysdiag.replay.transforms import causes_of
from nsysdiag.replay.work import LEAST_ERROR
from tests.replay.making import VARIED, model_of_pair, replay_of_pair

SYNCS = "sync after each kernel of 60 µs"
EXACT = Identity(exact=True, length_error=0.0)


@pytest.mark.parametrize("name", VARIED)
def test_a_prediction_lies_within_its_bounds(name: str) -> None:
    model = model_of_pair(name)
    for cause in causes_of(model):
        found = predict(model, [Transform("without", cause)], EXACT)
        assert 0 <= found.low_ns <= found.run.ns <= found.high_ns
        assert found.low_ns <= found.now.ns
        assert found.high_ns - found.low_ns >= 2 * round(LEAST_ERROR * found.now.ns) - 1


@pytest.mark.parametrize("name", VARIED)
def test_the_borders_of_steps_do_not_descend(name: str) -> None:
    model = model_of_pair(name)
    run = run_of(Changes.none(model))
    assert (run.steps >= 0).all()
    assert run.ns == round((run.span[1] - run.span[0]) / len(run.steps))


@pytest.mark.parametrize("name", VARIED)
def test_a_model_gives_the_trace_back(name: str) -> None:
    found = identity_of(model_of_pair(name))
    assert found.exact
    assert found.length_error <= 0.02


@pytest.mark.slow
def test_an_end_that_is_not_given_back_is_not_exact() -> None:
    """The model's ends are those of its lengths and starts; a meeting that moves makes them differ."""
    model = model_of_pair("exchange longer than the kernels")
    moved = replace(model, graph=replace(model.graph, time=model.graph.time.copy()))
    met = moved.places.end[moved.places.end != moved.places.operation]
    moved.graph.time[met[len(met) // 2]] += 1
    assert not identity_of(moved).exact


def test_the_error_of_the_model_widens_both_bounds() -> None:
    model, shorter = model_of_pair(SYNCS), Transform("kernel", "*", 0.5)
    narrow, wide = (predict(model, [shorter], replace_error(error)) for error in (0.0, 0.02))
    more = round(0.02 * narrow.now.ns) - round(LEAST_ERROR * narrow.now.ns)
    assert narrow.low_ns - wide.low_ns == pytest.approx(more, abs=1)
    assert wide.high_ns - narrow.high_ns == pytest.approx(more, abs=1)


def replace_error(error: float) -> Identity:
    """The model is that far off."""
    return Identity(exact=True, length_error=error)


def test_several_transforms_together_save_no_less_than_one() -> None:
    model = model_of_pair("worker that decodes")
    together = [Transform("without", cause) for cause in causes_of(model)]
    lengths = [predict(model, together[:count], EXACT).run.ns for count in range(len(together) + 1)]
    assert all(after <= before for before, after in pairwise(lengths))


@given(st.lists(st.integers(0, 1_000), max_size=20))
def test_steps_that_all_save_the_same_have_no_spread(steps: list[int]) -> None:
    now = np.array(steps, dtype=np.int64)
    assert StepSamples.of(now + 70, now).of_mean == 0.0


def test_few_steps_that_differ_have_a_spread() -> None:
    now, then = np.full(8, 1_000), np.array([0, 1_000] * 4)
    assert 250 < StepSamples.of(now, then).of_mean < 500
    assert StepSamples.of(np.tile(now, 100), np.tile(then, 100)).of_mean < 50
    assert StepSamples.of(now, then).of_mean == StepSamples.of(now, then).of_mean


def test_a_share_of_steps_that_differ_has_a_spread() -> None:
    """Each step saves 50; of how much that is depends on how many of the others are long."""
    now = np.array([1_000, *[100] * 9])
    assert StepSamples.of(now, now - 50).of_mean == 0.0
    assert StepSamples.of(now, now - 50).spread == StepSamples.of(now, now - 50).of_share > 20
    assert StepSamples.of(np.full(10, 100), np.full(10, 50)).of_share == 0.0
    assert StepSamples.of(np.tile(now, 100), np.tile(now, 100) - 50).of_share < 5


def test_no_step_is_shorter_than_what_its_device_computes() -> None:
    model = model_of_pair(SYNCS)
    found = predict(model, [Transform("without", "sync")], replace_error(0.9))
    parts = four_parts(model, found.run, model.devices[0])
    assert found.low_ns == pytest.approx(parts.compute_ns - LEAST_ERROR * found.now.ns, abs=1)
    assert 0 < found.low_ns < found.run.ns


def test_a_window_is_one_step() -> None:
    run = Run(np.array([0, 5, 20]), np.array([5, 20]), np.array([9, 30]), np.array([5, 30]))
    assert (run.ns, run.span, run.steps.tolist()) == (25, (5, 30), [25])


@pytest.mark.parametrize(
    ("finding", "hint"), [("none-such", "findings: "), ("", "findings: ")], ids=["unknown", "empty"]
)
def test_a_finding_that_is_not_there(finding: str, hint: str) -> None:
    report = replay_of_pair(SYNCS).report
    findings = {each.id: each for each in report.findings}
    with pytest.raises(UsageError, match="there is no finding") as error:
        predict(model_of_pair(SYNCS), [Transform("finding", finding)], EXACT, findings)
    assert error.value.hint is not None
    assert error.value.hint.startswith(hint)
    assert any(each in error.value.hint for each in findings)


def test_a_finding_that_cannot_be_replayed() -> None:
    report = replay_of_pair(SYNCS).report
    unknown = {each.id: replace_cause(each, "uncovered") for each in report.findings}
    with pytest.raises(UsageError, match="cannot be replayed"):
        predict(model_of_pair(SYNCS), [Transform("finding", next(iter(unknown)))], EXACT, unknown)


def replace_cause(finding: object, cause: str) -> object:
    """The finding, of another cause."""
    from msgspec.structs import replace as replaced

    return replaced(finding, cause=cause)  # type: ignore[type-var]
