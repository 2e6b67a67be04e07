"""Changes in a model: none change nothing, and what is taken away makes nothing later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.replay.changes import SURE, Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import EdgeKind, replay
from nsysdiag.replay.transforms import causes_of, of_cause, take_out
from tests.levels import examples
from tests.replay.making import VARIED, model_of_pair

both_bounds = pytest.mark.parametrize("proven", [False, True], ids=["hopeful", "proven"])
every_model = pytest.mark.parametrize("name", VARIED)


def times_of(changes: Changes, *, proven: bool) -> IntArray:
    """When each moment is."""
    ns, residual = replace(changes, proven=proven).edges()
    return replay(changes.model.graph, ns, residual)


@every_model
@both_bounds
def test_without_changes_every_moment_is_when_it_was(name: str, proven: bool) -> None:
    model = model_of_pair(name)
    assert np.array_equal(times_of(Changes.none(model), proven=proven), model.graph.time)


@pytest.mark.sampled(quick=3)
@every_model
@both_bounds
@settings(max_examples=examples(30))
@given(data=st.data())
def test_what_is_taken_away_makes_nothing_later(name: str, proven: bool, data: st.DataObject) -> None:
    """Some changes, and then some more, in any order."""
    changes = Changes.none(model_of_pair(name))
    before = times_of(changes, proven=proven)
    for less in data.draw(st.lists(st.sampled_from(sorted(LESS)), min_size=1, max_size=4)):
        LESS[less](changes, np.random.default_rng(data.draw(st.integers(0, 99))))
        after = times_of(changes, proven=proven)
        assert (after <= before).all(), less
        before = after


def _some(there: int, chance: np.random.Generator) -> BoolArray:
    found: BoolArray = chance.random(there) < chance.choice([0.1, 0.5, 1.0])
    return found


def _shorter_host(changes: Changes, chance: np.random.Generator) -> None:
    changes.time[_some(len(changes.time), chance)] *= chance.choice([0.0, 0.5])


def _shorter_lags(changes: Changes, chance: np.random.Generator) -> None:
    changes.lag[_some(len(changes.lag), chance)] *= chance.choice([0.0, 0.5])


def _shorter_operations(changes: Changes, chance: np.random.Generator) -> None:
    changes.length[_some(len(changes.length), chance)] //= 2


def _cheaper_launches(changes: Changes, chance: np.random.Generator) -> None:
    changes.cost[_some(len(changes.cost), chance)] //= 2


def _no_waits(changes: Changes, chance: np.random.Generator) -> None:
    for there in (changes.held, changes.full, changes.woken, changes.others):
        there[_some(len(there), chance)] = False


def _eager(changes: Changes, chance: np.random.Generator) -> None:
    changes.eager[_some(len(changes.eager), chance)] = True


LESS: dict[str, Callable[[Changes, np.random.Generator], None]] = {
    "host time": _shorter_host,
    "lags": _shorter_lags,
    "operations": _shorter_operations,
    "launches": _cheaper_launches,
    "waits": _no_waits,
    "eager": _eager,
}


@every_model
@both_bounds
def test_edges_that_are_dropped_make_nothing_later(name: str, proven: bool) -> None:
    model = model_of_pair(name)
    for seed in range(4):
        changes = Changes.none(model)
        changes.dropped[_some(len(changes.dropped), np.random.default_rng(seed))] = True
        assert (times_of(changes, proven=proven) <= model.graph.time).all()


@every_model
@both_bounds
def test_without_one_cause_after_another(name: str, proven: bool) -> None:
    changes = Changes.none(model_of_pair(name))
    before = times_of(changes, proven=proven)
    for cause in causes_of(changes.model):
        part = of_cause(changes.model, cause)
        assert part.anything
        take_out(changes, cause, part)
        after = times_of(changes, proven=proven)
        assert (after <= before).all(), cause
        before = after


@every_model
def test_edges_in_doubt_are_kept_in_the_bound_that_promises_least(name: str) -> None:
    changes = Changes.none(model_of_pair(name))
    changes.dropped[_some(len(changes.dropped), np.random.default_rng(3))] = True
    assert changes.certain == (changes.model.threads.woken.confidence >= SURE).all()
    changes.doubted[:] = changes.dropped
    assert changes.certain == (not changes.dropped.any())
    kept = Changes.none(changes.model)
    assert np.array_equal(times_of(changes, proven=True), times_of(kept, proven=True))
    assert (times_of(changes, proven=False) <= times_of(kept, proven=False)).all()


@every_model
def test_both_bounds_are_one_where_all_is_certain(name: str) -> None:
    changes = Changes.none(model_of_pair(name))
    if changes.certain:
        _shorter_host(changes, np.random.default_rng(1))
        assert np.array_equal(times_of(changes, proven=True), times_of(changes, proven=False))


def test_a_launch_costs_what_stays_of_its_call() -> None:
    """But for the last operation, which is launched behind the replayed time."""
    model = model_of_pair("graph in place of slow launches")
    changes = Changes.none(model)
    assert np.array_equal(changes.costs(), model.cost)
    changes.time[model.call_of_piece >= 0] = 0.5
    assert np.abs(2 * changes.costs() - model.cost)[:-1].max() <= 1


def _unsure(model: Model) -> bool:
    return not Changes.none(model).certain or bool((model.graph.edges.kind == EdgeKind.OBSERVED).any())


@every_model
def test_order_that_was_only_seen_makes_nothing_earlier(name: str) -> None:
    model = model_of_pair(name)
    ns, residual = replace(Changes.none(model), observed=False).edges()
    assert (replay(model.graph, ns, residual) <= model.graph.time).all()


@pytest.mark.slow
def test_some_models_have_doubts() -> None:
    """Else the two bounds above are one."""
    assert any(_unsure(model_of_pair(name)) for name in VARIED)
