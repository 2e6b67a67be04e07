"""Synchronizations that outlast what they are known to wait for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from nsysdiag.pipeline.changes import whatif
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.predict import identity_of, predict, reason_against
from tests.diagnosis.programs.registry import MS, US
from tests.replay.making import SETTINGS, model_of_pair, modelled, replay_of_program
from tests.replay.pairs import PAIRS
from tests.replay.pairs.outlasting import LOST, outlasting
from tests.replay.pairs.pair import simulated


@pytest.mark.slow
def test_kernels_without_rows_refuse_a_model() -> None:
    model = model_of_pair("kernels without rows, halved as well")
    assert model.outlived.share == pytest.approx(0.65, abs=0.05)
    assert "synchronizations wait for something that is not in the trace" in reason_against(model, identity_of(model))


@pytest.mark.slow
def test_it_is_said(tmp_path: Path) -> None:
    pair = PAIRS["sync for kernels without rows"]
    trace = simulated(pair.before, pair.gpus, pair.capture)[0].write(tmp_path / "trace.sqlite")
    found = whatif(trace, pair.transforms, SETTINGS)
    assert found.refused is not None
    assert "not in the trace" in found.refused


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["sync of two streams in turns", "sync after each kernel of 60 µs", "sleep"])
def test_nothing_outlasts_what_is_recorded(name: str) -> None:
    model = model_of_pair(name)
    assert model.outlived.share == 0
    assert not model.outlived.ns.any()


@pytest.mark.slow
def test_a_few_widen_the_bounds() -> None:
    """The host code is hidden behind kernels without rows: nothing is saved, though the model does not know them."""
    build = partial(outlasting, first=True, known=3 * MS, unknown=4200 * US, host=900 * US)
    model = modelled(replay_of_program(build, capture=LOST))
    assert 0 < model.outlived.share < 0.2
    identity = identity_of(model)
    assert identity.exact
    found = predict(model, [Transform("host", "prepare", 0.5)], identity)
    assert found.run.ns < 0.95 * found.now.ns
    assert found.high_ns >= found.now.ns
    assert found.low_ns < found.run.ns
