"""A prediction on a side of a comparison: what it promises, how good it was, and what cannot be compared."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from msgspec.structs import replace

from nsysdiag import analyze, compare
from nsysdiag import whatif as nsysdiag_whatif
from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.predicted import NOT_PREDICTED, compare_sides, of_captures
from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.formats import RenderOptions
from nsysdiag.messages import NotComparableError, UsageError
from nsysdiag.record import json_schema, to_json
from nsysdiag.replay.facts import FourParts, Transform, WhatIf
from nsysdiag.saved import from_json
from nsysdiag.share.redaction import redacted
from tests.comparison.programs import Program
from tests.output.whatif_samples import GEMM, SYNC, device, listing, refused, whatif
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

SLOW, FAST = Program(steps=12, sync=True, tail=500 * US), Program(steps=12, seed=1)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report]:
    """A program that synchronizes at every step, and after that was taken out."""
    folder = tmp_path_factory.mktemp("predicted")
    return analyze(SLOW.write(folder / "before.sqlite")), analyze(FAST.write(folder / "after.sqlite"))


@pytest.fixture
def before(sides: tuple[Report, Report]) -> Report:
    return sides[0]


@pytest.fixture
def after(sides: tuple[Report, Report]) -> Report:
    return sides[1]


def step(report: Report) -> int:
    return of_captures([report], "step").step.ns


def predicted(of: Report, like: Report, low: float = 0.98, high: float = 1.04, **changes: Any) -> WhatIf:
    """A prediction of one capture that says what another one took."""
    measured, now = (of_captures([each], "step").devices[0] for each in (like, of))
    ns = measured.length.ns
    parts, was = ({f"{name}_ns": value for name, value in each.parts.items()} for each in (measured, now))
    gpu = device(
        name=measured.name,
        now_ns=now.length.ns,
        predicted_ns=ns,
        now=FourParts(**was),
        predicted=FourParts(**parts),
        ledger=measured.ledger,
    )
    facts = {
        "trace": of.trace,
        "now_ns": now.length.ns,
        "predicted_ns": ns,
        "low_ns": round(low * ns),
        "high_ns": round(high * ns),
        "devices": [gpu],
        "causes": of.causes,
    }
    return replace(whatif(), **facts | changes)


class TestPromise:
    @pytest.mark.slow
    def test_headline_and_verdict(self, before: Report, after: Report) -> None:
        made = compare_sides([before], [predicted(before, after)])
        assert made.headline.startswith("Step time 1.5")
        assert " → 1.05 ms predicted (1.49× faster, between " in made.headline
        assert made.headline.endswith("): --without sync")
        assert made.verdict == "improved"
        assert made.sentence == "The change is predicted to save time."

    def test_step_parts_and_causes_add_up(self, before: Report, after: Report) -> None:
        made = compare_sides([before], [predicted(before, after)])
        (gpu,) = made.devices
        assert (gpu.length.before_ns, gpu.length.after_ns) == (step(before), step(after))
        for at in ("before_ns", "after_ns"):
            parts = {row.id: getattr(row.change, at) for row in gpu.parts}
            assert sum(parts.values()) == getattr(gpu.length, at)
            assert sum(getattr(row.change, at) for row in gpu.ledger) == parts["idle"]
        assert gpu.length.before_ns + sum(each.change_ns for each in gpu.waterfall) == gpu.length.after_ns
        sync = next(row.change for row in gpu.ledger if row.id == "sync")
        assert sync.after_ns < 0.2 * sync.before_ns
        assert (sync.low_ns, sync.verdict) == (None, "unknown")
        assert made.job is not None
        assert made.job.top[0].id == "sync"

    def test_bounds_are_the_interval(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        change = compare_sides([before], [found]).devices[0].length
        assert change.low_ns == found.low_ns - step(before)
        assert change.high_ns == found.high_ns - step(before)

    def test_bounds_far_apart_are_no_figure(self, before: Report, after: Report) -> None:
        made = compare_sides([before], [predicted(before, after, 0.5, 1.4, cannot_tell=True)])
        assert re.search(r"; predicted anywhere between 52\d µs and 1.47 ms \(the trace cannot tell\): ", made.headline)

    def test_bounds_on_both_sides_of_today_are_no_change(self, before: Report) -> None:
        made = compare_sides([before], [predicted(before, before)])
        assert made.verdict == "same"
        assert made.sentence == "The prediction leaves no change within its bounds."

    def test_the_rest_is_not_predicted(self, before: Report, after: Report) -> None:
        made = compare_sides([before], [predicted(before, after)])
        (gpu,) = made.devices
        assert NOT_PREDICTED in made.notes
        assert [gpu.kernels, gpu.signatures, gpu.copies, gpu.communication, gpu.launch, gpu.findings] == [[]] * 6
        assert "The model reproduces the recorded step to within 0.3%." in made.notes

    def test_another_capture_or_other_steps_are_told(self, before: Report, after: Report) -> None:
        assert (
            "The prediction was made from another capture than the one before."
            in compare_sides([after], [predicted(before, after)]).notes
        )
        longer = predicted(before, after, now_ns=2 * step(before))
        assert any(
            note.startswith("The step that was replayed takes ") for note in compare_sides([before], [longer]).notes
        )
        assert not any("replayed" in note for note in compare_sides([before], [predicted(before, after)]).notes)


class TestReplayedSteps:
    """The capture that a prediction was made of is compared as it was replayed."""

    def test_what_was_replayed_stands_before(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        (gpu,) = found.devices
        now = FourParts(compute_ns=60, exposed_comm_ns=0, exposed_copy_ns=0, idle_ns=40)
        gpu = replace(gpu, now_ns=100, now=now, ledger_now={"sync": 30, "host_compute": 10})
        found = replace(found, now_ns=100, steps=7, devices=[gpu])
        made = compare_sides([before], [found])
        (device,) = made.devices
        assert (device.length.before_ns, device.length.after_ns) == (100, found.predicted_ns)
        assert {row.id: row.change.before_ns for row in device.parts} == {
            "compute": 60,
            "exposed_comm": 0,
            "exposed_copy": 0,
            "idle": 40,
        }
        assert {row.id: row.change.before_ns for row in device.ledger if row.change.before_ns} == gpu.ledger_now
        assert device.unit.count_before == 7
        assert not any("replayed" in note for note in made.notes)

    def test_another_capture_stays_as_it_is(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        (gpu,) = found.devices
        found = replace(found, devices=[replace(gpu, ledger_now=gpu.ledger)])
        assert compare_sides([after], [found]).devices[0].length.before_ns == step(after)

    @pytest.mark.slow
    def test_an_analysis_and_its_prediction_agree(self, tmp_path: Path) -> None:
        trace = Program(steps=12, sync=True, thinking=500 * US).write(tmp_path / "before.sqlite")
        found = nsysdiag_whatif(trace, [Transform(option="without", of="sync")])
        made = compare_sides([analyze(trace)], [found])
        assert made.job is not None
        assert (made.job.step.before_ns, made.job.step.after_ns) == (found.now_ns, found.predicted_ns)
        for gpu, row in zip(made.devices, found.devices, strict=True):
            assert sum(each.change.before_ns for each in gpu.ledger) == row.now.idle_ns > 0


class TestKept:
    def test_inside_the_bounds(self, before: Report, after: Report) -> None:
        made = compare_sides([predicted(before, after)], [after])
        assert made.headline.startswith("Step time predicted 1.05 ms (1.03 to 1.09), measured ")
        assert made.headline.endswith(" ms: inside the bounds")
        assert (made.verdict, made.sentence) == ("same", "The change brought what was predicted.")

    @pytest.mark.parametrize(
        ("low", "high", "said", "verdict"),
        [(0.5, 0.9, "above the bounds", "regressed"), (1.1, 1.2, "below the bounds", "improved")],
    )
    def test_outside(self, before: Report, after: Report, low: float, high: float, said: str, verdict: str) -> None:
        found = predicted(before, after, low, high)
        ns = (found.low_ns + found.high_ns) // 2
        found = replace(found, predicted_ns=ns, devices=[replace(found.devices[0], predicted_ns=ns)])
        made = compare_sides([found], [after])
        assert made.headline.endswith(said)
        assert made.verdict == verdict

    def test_units_are_said_once(self) -> None:
        from nsysdiag.comparison.predicted import Length, _bounded

        assert _bounded(Length(18_900 * US, (18_500 * US, 19_600 * US))) == "18.9 ms (18.5 to 19.6)"
        assert _bounded(Length(1_010 * US, (990 * US, 1_020 * US))) == "1.01 ms (990 µs to 1.02 ms)"

    def test_several_captures_after(self, before: Report, after: Report) -> None:
        made = compare_sides([predicted(before, after)], [after, after])
        assert (
            made.devices[0].unit.count_after
            == 2 * compare_sides([predicted(before, after)], [after]).devices[0].unit.count_after
        )
        assert len(made.after) == 2


class TestSides:
    def test_two_predictions(self, before: Report, after: Report) -> None:
        other = predicted(before, after, predicted_ns=10**6, low_ns=10**6 - 5, high_ns=10**6 + 5, transforms=[GEMM])
        made = compare_sides([predicted(before, after)], [other])
        assert "with --without sync, " in made.headline
        assert made.headline.endswith("with --kernel '*gemm**0.5'")
        assert made.verdict == "improved"

    def test_a_device_out_of_step_has_no_bounds(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        slow = replace(found.devices[0], predicted_ns=found.predicted_ns // 2)
        change = compare_sides([replace(found, devices=[slow])], [after]).devices[0].length
        assert (change.low_ns, change.verdict) == (None, "unknown")

    def test_devices_by_key_or_in_order(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        (gpu,) = found.devices
        other = replace(found, devices=[replace(gpu, key="gpu7"), replace(gpu, key="gpu8")])
        made = compare_sides([other], [after])
        assert [each.key for each in made.devices] == ["gpu7"]
        assert made.notes[:2] == [
            "The devices have different numbers; they are compared in order.",
            "Devices found on one side only are left out: gpu8.",
        ]

    def test_other_models(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        other = replace(found, devices=[replace(found.devices[0], name="NVIDIA A100")])
        with pytest.raises(NotComparableError, match="different models: NVIDIA A100"):
            compare_sides([other], [after])
        assert compare_sides([other], [after], across_gpus=True).across_gpus

    def test_of_a_window(self, before: Report, after: Report) -> None:
        found = predicted(before, after, per="window")
        made = compare_sides([before], [found])
        assert made.headline.startswith("Window ")
        assert made.devices[0].length.before_ns == before.devices[0].window_ns

    def test_steps_of_phases_where_no_iterations_are_known(self, before: Report, after: Report) -> None:
        bare = replace(after, devices=[replace(each, iterations=None) for each in after.devices])
        made = compare_sides([predicted(before, after)], [bare])
        assert made.devices[0].length.after_ns == pytest.approx(step(after), rel=0.05)
        none = replace(bare, phases=[replace(each, steps=None) for each in bare.phases])
        with pytest.raises(NotComparableError, match=r"no device has whole steps in after\.sqlite"):
            compare_sides([predicted(before, after)], [none])

    def test_a_device_without_steps_is_left_out(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        (gpu,) = after.devices
        both = replace(after, devices=[gpu, replace(gpu, key="gpu1", iterations=None)])
        made = compare_sides([found], [both])
        assert [each.key for each in made.devices] == ["gpu0"]

    def test_a_prediction_of_one_device_is_held_against_that_device(self, before: Report, after: Report) -> None:
        (gpu,), (long,) = after.devices, before.devices
        both = replace(after, devices=[gpu, replace(long, key="gpu1")])
        made = compare_sides([predicted(before, after)], [both])
        assert made.job is not None
        assert made.job.step.after_ns == made.devices[0].length.after_ns == step(after)
        assert made.notes[0] == "Devices found on one side only are left out: gpu1."

    def test_captures_alone_are_compared_as_ever(self, before: Report, after: Report) -> None:
        assert compare_sides([before], [after]).devices[0].kernels

    def test_in_python(self, before: Report, after: Report) -> None:
        assert compare(before, predicted(before, after)) == compare_sides([before], [predicted(before, after)])


class TestRefused:
    def test_one_that_was(self, before: Report) -> None:
        with pytest.raises(NotComparableError, match=r"was refused: the model is off by 4.1%"):
            compare_sides([before], [refused()])

    def test_one_without_a_change(self, before: Report) -> None:
        with pytest.raises(UsageError, match="changes nothing") as caught:
            compare_sides([listing()], [before])
        assert "--without CAUSE" in (caught.value.hint or "")

    def test_one_without_devices(self, before: Report) -> None:
        with pytest.raises(NotComparableError, match="no GPU work"):
            compare_sides([before], [replace(whatif(), devices=[])])

    def test_beside_others(self, before: Report, after: Report) -> None:
        with pytest.raises(UsageError, match="only input of its side"):
            compare_sides([before, predicted(before, after)], [after])

    def test_of_a_step_and_of_a_window(self) -> None:
        with pytest.raises(NotComparableError, match="one prediction is of a step"):
            compare_sides([whatif()], [replace(whatif(), per="window")])

    def test_other_names(self, before: Report, after: Report) -> None:
        found = predicted(before, after)
        with pytest.raises(NotComparableError, match="numbers instead of names"):
            compare(before, redacted(replace(found, phrases=whatif().phrases)))


class TestShown:
    def shown(self, made: Comparison, name: str, *, details: bool = False) -> str:
        return " ".join(RENDERERS[name](made, RenderOptions(width=140, details=details)).decode().split())

    @pytest.mark.parametrize("name", ["txt", "md", "html"])
    def test_what_it_promises_and_whether_it_kept_it(self, before: Report, after: Report, name: str) -> None:
        found = predicted(before, after)
        promise, kept = compare_sides([before], [found]), compare_sides([found], [after])
        assert "Predicted to improve" in self.shown(promise, name)
        assert "As predicted" in self.shown(kept, name)
        for made in (promise, kept):
            assert "Not predicted and not compared: kernels" in self.shown(made, name).replace("\\", "")
            assert re.search(r"Part +Before +After +Change +Of before +Compute", self.shown(made, "txt"))

    def test_bounds_are_called_so(self, before: Report, after: Report) -> None:
        made = compare_sides([before], [predicted(before, after)])
        for name in RENDERERS:
            assert "95% interval" not in self.shown(made, name, details=True)
            assert "would not count" not in self.shown(made, name, details=True)
        assert "<dt>Bounds</dt>" in self.shown(made, "html")
        assert "before.sqlite (predicted)" in self.shown(made, "txt")

    def test_text_fits_a_screen(self, before: Report, after: Report) -> None:
        made = compare_sides([before], [predicted(before, after)])
        assert len(RENDERERS["txt"](made, RenderOptions(width=100)).decode().splitlines()) <= 25

    @pytest.mark.slow
    def test_it_is_saved_and_read_back(self, before: Report, after: Report) -> None:
        made = compare_sides([predicted(before, after)], [after])
        data = to_json(made)
        assert from_json(data, Comparison) == made
        jsonschema.validate(json.loads(data), json.loads(json_schema(Comparison)))
        assert made.before[0].prediction == "--without sync"


def test_sync_is_what_the_sample_is_about() -> None:
    assert whatif().transforms == [SYNC]
