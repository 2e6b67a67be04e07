"""Captures that were not made, or not analyzed, alike: what is compared as one, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.config.settings import CostSettings, Settings, Thresholds
from nsysdiag.pipeline import analyze
from tests.comparison.programs import Program
from tests.comparison.samples import WITHOUT_TIMELINE, only, report_of
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

pytestmark = pytest.mark.slow

STARVED = Program(steps=12, workers=1)
SYNC = Program(steps=12, sync=True, tail=500 * US)


def on_gpus(report: Report, *names: str, first: int = 0) -> Report:
    """The same on GPUs of these models, numbered from `first`."""
    devices = [structs.replace(report.devices[0], key=f"gpu{first + at}", name=name) for at, name in enumerate(names)]
    return structs.replace(report, devices=devices)


def test_captures_of_one_side_with_other_evidence() -> None:
    """The side as a whole lacks the evidence, as the other one does, but not all of its captures do."""
    full = report_of(STARVED)
    bare = [report_of(replace(STARVED, seed=seed), CUDA_ONLY) for seed in (1, 2, 3)]
    made = compare_reports([full, bare[0]], bare[1:])
    assert {"io_wait", "off_cpu", "uncovered", "data_loading"} <= set(made.not_compared)
    assert only(made).renaming.verdict == "none"
    assert {row.status for row in only(made).findings if row.cause in made.not_compared} == {"not_compared"}
    assert any("Only some captures have os-runtime evidence" in note for note in made.notes)


def test_no_other_cause_where_evidence_alone_differs() -> None:
    full, bare = report_of(STARVED), report_of(replace(STARVED, seed=1), CUDA_ONLY)
    device = only(compare_reports([full], [bare]))
    assert "not_compared" in {row.cause_before for row in device.signatures}
    assert {row.status for row in device.signatures if row.change.before_ns > 100 * US} == {"both"}


def test_findings_that_other_evidence_alone_brings() -> None:
    """The loader is as slow on both sides: nothing is new or gone but what tells of it."""
    full, bare = report_of(STARVED), report_of(replace(STARVED, seed=1), CUDA_ONLY)
    for sides in (([full], [bare]), ([bare], [full])):
        device = only(compare_reports(*sides))
        assert {row.cause: row.status for row in device.findings if row.status != "both"} == {
            "data_loading": "not_compared",
            "uncovered": "not_compared",
        }
        assert [note for note in device.notes if note.startswith("Findings of these causes are not compared")]
    alike = only(compare_reports([full], [report_of(replace(STARVED, seed=2))]))
    assert {row.status for row in alike.findings} == {"both"}
    assert not any("not compared" in note for note in alike.notes)


def test_a_cause_that_was_disabled_on_one_side(tmp_path: Path) -> None:
    path = SYNC.write(tmp_path / "same.sqlite")
    plain = analyze(path, WITHOUT_TIMELINE)
    without = analyze(path, structs.replace(WITHOUT_TIMELINE, disabled=("sync",)))
    for sides in (([plain], [without]), ([without], [plain])):
        made = compare_reports(*sides)
        assert only(made).renaming.verdict == "none"
        assert {"sync", "uncovered"} <= set(made.not_compared)
        assert any("different causes disabled: sync" in note for note in made.notes)
    assert not compare_reports([without], [without]).not_compared


def test_models_of_gpus_on_each_side() -> None:
    report = report_of(SYNC)
    before = [on_gpus(report, "A100"), on_gpus(report, "H100")]
    made = compare_reports(before, [on_gpus(report, "A100")] * 2, across_gpus=True)
    assert "The GPUs are of different models: A100 and H100 before, A100 after." in made.notes


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("GPU", "A100", "before.sqlite does not name its GPU: it is unknown whether"),
        ("A100", "GPU", "after.sqlite does not name its GPU: it is unknown whether"),
        ("GPU", "", "before.sqlite and after.sqlite do not name their GPUs: it is unknown whether"),
        ("A100", "A100", None),
    ],
)
def test_a_trace_that_does_not_name_its_gpu_is_told(before: str, after: str, told: str | None) -> None:
    report = report_of(SYNC)
    sides = [
        structs.replace(on_gpus(report, name), trace=structs.replace(report.trace, file=file))
        for name, file in ((before, "before.sqlite"), (after, "after.sqlite"))
    ]
    notes = [note for note in compare_reports(sides[:1], sides[1:]).notes if "same model" in note]
    assert [note.partition(" both sides")[0] for note in notes] == ([told] if told else [])


def test_an_unnamed_gpu_among_different_models() -> None:
    report = report_of(SYNC)
    before = [on_gpus(report, "A100"), on_gpus(report, "GPU")]
    made = compare_reports(before, [on_gpus(report, "H100")], across_gpus=True)
    assert "The GPUs are of different models: A100 and an unnamed one before, H100 after." in made.notes


@pytest.mark.parametrize("more", [1, 2])
def test_devices_that_are_left_out_where_no_number_is_common(more: int) -> None:
    report = report_of(SYNC)
    made = compare_reports([on_gpus(report, "A100")], [on_gpus(report, *["A100"] * (1 + more), first=4)])
    assert [device.key for device in made.devices] == ["gpu0"]
    left = ", ".join(f"gpu{number}" for number in range(5, 5 + more))
    assert any(f"more devices, which are left out: {left}." in note for note in made.notes)


def test_nothing_is_said_of_chance_where_it_is_not_known() -> None:
    """Saved reports of an older form hold no single iterations: windows are compared."""
    before, after = (unpacked(report_of(each)) for each in (SYNC, Program(steps=12, seed=1)))
    device = only(compare_reports([before], [after]))
    assert device.renaming.sentence.endswith("The data do not show whether that is more than chance.")
    assert any("does not hold its iterations one by one" in note for note in device.notes)
    same = only(compare_reports([before], [before]))
    assert same.renaming.sentence.endswith("chance is unknown.")


def unpacked(report: Report) -> Report:
    iterations = report.devices[0].iterations
    assert iterations is not None
    device = structs.replace(report.devices[0], iterations=structs.replace(iterations, packed=None))
    return structs.replace(report, devices=[device])


def test_the_same_capture_twice_is_told() -> None:
    one, two = (report_of(replace(SYNC, seed=seed)) for seed in (0, 1))
    again = structs.replace(one, trace=structs.replace(one.trace, file="copy.sqlite"))

    def told(*sides: list[Report]) -> int:
        return sum("the same capture" in note for note in compare_reports(*sides).notes)

    assert told([one], [two]) == 0
    assert told([one], [again]) == 1
    assert told([one, again], [two]) == 1


class TestSettings:
    """What the reports were made with, told where it differs: with both values, those of defaults too."""

    @pytest.fixture
    def trace(self, tmp_path: Path) -> Path:
        return SYNC.write(tmp_path / "same.sqlite")

    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            (
                {"thresholds": Thresholds(busy=0.25, copies=0.75)},
                "thresholds: busy 0.05 before, 0.25 after; copies 0.1 before, 0.75 after.",
            ),
            ({"thresholds": Thresholds(communication=0.5)}, "thresholds: communication 0.333333 before, 0.5 after."),
            ({"thresholds": Thresholds(busy=0.0500125)}, "thresholds: busy 0.05 before, 0.0500125 after."),
            ({"thresholds": Thresholds(busy=1.25e-05)}, "thresholds: busy 0.05 before, 1.25e-05 after."),
            (
                {"communication_patterns": ("mine",)},
                f"communication_patterns: {', '.join(Settings().communication_patterns)} before, mine after.",
            ),
            ({"disabled": ("sync", "launch_call")}, "--disable: none before, sync, launch_call after."),
            ({"nvtx": "step 3"}, "--nvtx: none before, step 3 after."),
            ({"iterations": (2, None)}, "--iterations: none before, 2: after."),
            ({"start_ns": 2 * MS}, "--from: none before, 2000000 ns after."),
            ({"same_gpu": True}, "--same-gpu: none before, given after."),
        ],
    )
    def test_a_difference_is_told(self, changed: dict[str, object], told: str, trace: Path) -> None:
        one, two = (analyze(trace, structs.replace(WITHOUT_TIMELINE, **more)) for more in ({}, changed))
        assert [note for note in compare_reports([one], [two]).notes if "different settings" in note] == [
            f"The reports were made with different settings, {told}"
        ]

    def test_captures_of_one_side(self, trace: Path) -> None:
        plain, narrowed = (
            analyze(trace, structs.replace(WITHOUT_TIMELINE, iterations=which)) for which in (None, (2, 8))
        )
        notes = compare_reports([plain, narrowed], [narrowed]).notes
        assert any(note.endswith("--iterations: none or 2:8 before, 2:8 after.") for note in notes)

    @pytest.mark.parametrize("same", [{}, {"thresholds": Thresholds(busy=0.25)}, {"iterations": (2, None)}])
    def test_nothing_is_told_where_both_are_alike(self, same: dict[str, object], trace: Path, tmp_path: Path) -> None:
        other = replace(SYNC, steps=14).write(tmp_path / "longer.sqlite")
        one, two = (analyze(path, structs.replace(WITHOUT_TIMELINE, **same)) for path in (trace, other))
        notes = compare_reports([one], [two]).notes
        assert [note for note in notes if "settings" in note or "windows" in note] == []

    def test_what_is_not_compared_is_not_told(self, trace: Path) -> None:
        more = {"gaps": 5, "full_hash": True, "timeline": True, "cost": CostSettings(gpu_hour_cost=2.0)}
        one, two = (analyze(trace, structs.replace(WITHOUT_TIMELINE, **each)) for each in ({}, more))
        assert not any("settings" in note for note in compare_reports([one], [two]).notes)
