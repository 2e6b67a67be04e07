"""Idle time of a replay by cause, beside that of the report."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.arrays.intervals import Intervals, complement, union
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.run import Run, _apart, idle_by_cause, run_of
from nsysdiag.replay.transforms import apply, causes_of
from tests.replay.making import VARIED, model_of_pair, modelled, replay_of_pair
from tests.replay.pairs import PAIRS

LIKE_THE_LEDGER = (
    "sync after each kernel of 60 µs",
    "read-back after each step",
    "host code between launches",
    "sleep",
    "file read",
    "cudaMalloc in each step",
    "graph in place of slow launches",
    "worker that decodes",
    "pageable copies, many and small",
)
DIFFERENT = 0.04
"""Of the idle time: it may have another cause than in the ledger."""


def idle_time(changes: Changes, run: Run, device: int) -> int:
    """All idle time of a device in the span of a replay."""
    mine = changes.model.work.device == device
    return complement(union(Intervals(run.start[mine], run.end[mine])), *run.span).total()


@pytest.mark.parametrize("name", VARIED)
def test_causes_add_up_to_the_idle_time(name: str) -> None:
    model = model_of_pair(name)
    for cause in ["", *causes_of(model)]:
        changes = Changes.none(model)
        if cause:
            apply(changes, Transform("without", cause))
        run = run_of(changes)
        for device in sorted(set(model.work.device.tolist())):
            found = idle_by_cause(changes, run, device)
            assert all(ns > 0 for ns in found.values())
            assert sum(found.values()) == idle_time(changes, run, device)


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("name", LIKE_THE_LEDGER)
def test_with_nothing_changed_causes_are_those_of_the_ledger(name: str) -> None:
    """Shares of the idle time: the ledger is about all of the judged time, the replay about most of it."""
    assert PAIRS[name].gpus == 1
    found = replay_of_pair(name)
    model, report = modelled(found), found.report
    (ledger,) = [phase.devices[0].ledger for phase in report.phases if phase.judged]
    changes = Changes.none(model)
    replayed = idle_by_cause(changes, run_of(changes), 0)
    shares = [{cause: ns / sum(each.values()) for cause, ns in each.items()} for each in (ledger, replayed)]
    differ = sum(abs(shares[0].get(cause, 0) - shares[1].get(cause, 0)) for cause in {**ledger, **replayed}) / 2
    assert differ <= DIFFERENT, (ledger, replayed)


@pytest.mark.parametrize("name", ["sleep", "file read", "host code between launches"])
def test_a_cause_that_is_taken_out_is_gone(name: str) -> None:
    (transform,) = PAIRS[name].transforms
    model = model_of_pair(name)
    changes = Changes.none(model)
    before = idle_by_cause(changes, run_of(changes), 0)
    apply(changes, transform)
    after = idle_by_cause(changes, run_of(changes), 0)
    if transform.option == "without":
        assert before[transform.of] > 0
        assert transform.of not in after
    assert sum(after.values()) < sum(before.values())


def test_a_device_that_is_never_idle_waits_for_nothing() -> None:
    model = model_of_pair("sleep")
    run = run_of(Changes.none(model))
    first = replace(run, borders=np.array([run.start[0], run.end[0]]))
    assert idle_by_cause(Changes.none(model), first, 0) == {}


def test_intervals_that_overlap_end_where_the_next_begins() -> None:
    spans = _apart(Intervals.of([(0, 5), (4, 9), (9, 12), (9, 10)]))
    assert list(zip(spans.start.tolist(), spans.end.tolist(), strict=True)) == [(0, 4), (4, 9), (9, 9), (9, 10)]
