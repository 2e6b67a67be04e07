"""Predictions as records: what adds up, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag import Settings
from nsysdiag.messages import UsageError
from nsysdiag.pipeline.changes import whatif
from nsysdiag.record import to_json
from nsysdiag.replay.facts import Identity, Transform, WhatIf
from nsysdiag.replay.predict import answered, identity_of, refused
from nsysdiag.replay.run import adding_up
from nsysdiag.replay.transforms import causes_of
from nsysdiag.saved import from_json
from tests.builder import TraceBuilder
from tests.replay.making import SETTINGS, VARIED, modelled, replay_of, replay_of_pair
from tests.shared import Shared

EXACT = Identity(exact=True, length_error=0.0)


def assert_it_adds_up(found: WhatIf) -> None:
    """Four parts make the length, causes the idle part; all are 0 or more."""
    assert found.low_ns <= found.predicted_ns <= found.high_ns
    for device in found.devices:
        assert (device.now_ns, device.predicted_ns) == (found.now_ns, found.predicted_ns)
        for length, parts in ((found.now_ns, device.now), (found.predicted_ns, device.predicted)):
            four = parts.compute_ns, parts.exposed_comm_ns, parts.exposed_copy_ns, parts.idle_ns
            assert sum(four) == length
            assert min(four) >= 0
        assert sum(device.ledger.values()) == device.predicted.idle_ns
        assert min(device.ledger.values(), default=0) >= 0
    assert sum(each.from_ns for each in found.waterfall) == sum(each.now.idle_ns for each in found.devices)
    assert sum(each.to_ns for each in found.waterfall) == sum(each.predicted.idle_ns for each in found.devices)


@pytest.mark.sampled(quick=10, normal=5)
@pytest.mark.parametrize("name", VARIED)
def test_an_answer_adds_up(name: str) -> None:
    found = replay_of_pair(name)
    model = modelled(found)
    for cause in causes_of(model)[:2]:
        answer = answered(found.report, model, [Transform("without", cause)], identity_of(model))
        assert_it_adds_up(answer)
        assert answer.savings == []
        assert from_json(to_json(answer), WhatIf) == answer


@pytest.mark.parametrize("name", VARIED)
def test_without_transforms_nothing_changes(name: str) -> None:
    found = replay_of_pair(name)
    model = modelled(found)
    answer = answered(found.report, model, [], identity_of(model))
    assert_it_adds_up(answer)
    assert answer.now_ns == answer.predicted_ns == answer.low_ns == answer.high_ns
    assert all(each.from_ns == each.to_ns for each in answer.waterfall)
    assert {each.finding for each in answer.savings} - {None} == {each.id for each in found.report.findings}
    assert answer.floor_ns is not None
    assert answer.floor_ns <= answer.now_ns


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(0, 10**18), max_size=6), st.integers(0, 10**18))
def test_parts_add_up_to_any_total(parts: dict[str, int], total: int) -> None:
    found = adding_up(parts, total if sum(parts.values()) else 0)
    assert sum(found.values()) == (total if sum(parts.values()) else 0)
    assert list(found) == list(parts)
    for name, ns in found.items():
        assert abs(ns - parts[name] * total / max(sum(parts.values()), 1)) <= 1 + 1e-9 * total


def test_a_trace_without_gpu_work_is_refused(tmp_path: Path) -> None:
    found = whatif(TraceBuilder().api("cudaMalloc", 10, 20).write(tmp_path / "trace.sqlite"), (), SETTINGS)
    assert found.refused == "no GPU work was recorded"
    assert (found.now_ns, found.devices, found.savings, found.identity) == (0, [], [], None)


@pytest.mark.slow
def test_a_start_is_replayed_from_its_first_call_on(shared: Shared) -> None:
    """Nothing repeats in it."""
    trace = shared.trace("library_load")
    found = whatif(trace, [Transform("without", "module_load")], SETTINGS)
    assert (found.refused, found.per, found.steps) == (None, "window", 0)
    assert_it_adds_up(found)
    assert found.low_ns < found.predicted_ns < found.high_ns < found.now_ns
    report = replay_of(trace).report
    assert report.diagnosis is not None
    assert report.diagnosis.basis == "cold"
    phases = [phase for phase in report.phases if phase.judged]
    assert found.now_ns == phases[-1].end_ns - phases[0].start_ns


@pytest.mark.slow
def test_the_step_of_a_refused_prediction_is_the_mean_one() -> None:
    """As are the steps that findings save a part of."""
    report = replay_of_pair("sleep").report
    steps = next(each.steps for each in report.phases if each.judged and each.steps)
    assert steps.mean_ns != steps.median_ns
    assert refused(report, [], "too few rows").now_ns == steps.mean_ns


@pytest.mark.slow
def test_a_trace_of_device_rows_alone_has_an_answer(shared: Shared) -> None:
    """No launch is known: operations wait for each other only, and the model is far off."""
    trace = shared.trace("device_rows_only")
    assert "off the recorded length" in (whatif(trace, (), SETTINGS).refused or "")
    found = replay_of(trace)
    assert_it_adds_up(answered(found.report, modelled(found), [], EXACT))


@pytest.mark.slow
def test_what_matches_nothing_is_an_error(shared: Shared) -> None:
    with pytest.raises(UsageError, match=r"--kernel 'none\*0.5' matches nothing") as error:
        whatif(shared.trace("slow_rank"), [Transform("kernel", "none", 0.5)], SETTINGS)
    assert error.value.hint is not None
    assert error.value.hint.startswith("near names: ")


@pytest.mark.slow
def test_only_the_devices_that_are_asked_for(shared: Shared) -> None:
    """What the threads of the other devices do is not read then."""
    for device in ("gpu0", "gpu1"):
        found = whatif(shared.trace("slow_rank"), (), Settings(timeline=False, device=device))
        assert [each.key for each in found.devices] == [device]
        assert found.identity is not None
        assert found.identity.exact
        assert_it_adds_up(found)


@pytest.mark.parametrize("length", [0, 1], ids=["no time", "a nanosecond"])
def test_kernels_that_take_no_time(length: int, tmp_path: Path) -> None:
    """They start at once, or follow each other closely, at times as large as there are."""
    trace, begin = TraceBuilder(), 4 * 10**17
    for step in range(30):
        for kernel in range(3):
            at, called = begin + 1_000 * step + kernel // 2, begin + 1_000 * step - 300 + 9 * kernel
            trace.kernel(at, at + length, launch=(called, called + 5))
    found = whatif(trace.write(tmp_path / "trace.sqlite"), (), SETTINGS)
    assert_it_adds_up(found)
    assert found.identity is None or found.identity.exact


def test_one_kernel_of_no_time(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(500, 500, launch=(100, 200))
    found = whatif(trace.write(tmp_path / "trace.sqlite"), (), SETTINGS)
    assert found.now_ns == found.predicted_ns
