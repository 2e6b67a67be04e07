"""Pairs of programs with one known change: the right verdict, the right cause, and a way there that adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.messages import NotComparableError
from nsysdiag.pipeline import analyze
from tests.comparison.programs import GEMM, Program
from tests.comparison.samples import adds_up, only, part, report_of, verdicts
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.comparison.facts import DeviceComparison
    from nsysdiag.report import Report

pytestmark = pytest.mark.slow

PLAIN = Program()
SYNC = replace(PLAIN, sync=True, tail=500 * US)
SLOW_PYTHON = replace(PLAIN, python=9.0)
KNOWN = {
    "sync removed": (SYNC, PLAIN, "improved", "sync"),
    "sync added": (PLAIN, SYNC, "regressed", "sync"),
    "pinned copies": (replace(PLAIN, pageable=True), PLAIN, "improved", "exposed_copy"),
    "more workers": (replace(PLAIN, workers=1), replace(PLAIN, workers=3), "improved", "io_wait"),
    "a graph": (SLOW_PYTHON, replace(SLOW_PYTHON, graph=True), "improved", "host_compute"),
    "a slower kernel": (PLAIN, replace(PLAIN, gemm=1.4), "regressed", "compute"),
    "a faster CPU": (SLOW_PYTHON, replace(SLOW_PYTHON, python=6.0), "improved", "host_compute"),
    "a slower disk": (replace(PLAIN, workers=1), replace(PLAIN, workers=1, reading=6 * MS), "regressed", "io_wait"),
}
UNCHANGED = {
    "healthy": PLAIN,
    "starved": replace(PLAIN, workers=1),
    "synchronized": SYNC,
    "without names": replace(PLAIN, named=False),
    "noisy": replace(PLAIN, workers=1, jitter=0.3),
}


def compared(before: Program, after: Program) -> DeviceComparison:
    made = compare_reports([report_of(before)], [report_of(replace(after, seed=before.seed + 1))])
    device = only(made)
    assert made.verdict == device.verdict
    adds_up(device)
    return device


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("name", KNOWN)
def test_the_right_verdict_and_the_right_cause(name: str) -> None:
    before, after, verdict, cause = KNOWN[name]
    device = compared(before, after)
    assert device.verdict == verdict
    assert device.waterfall[0].id == cause
    assert part(device, cause).verdict == verdict
    against = [part(device, row).change_ns for row, said in verdicts(device).items() if said != verdict]
    assert sum(map(abs, against)) < 0.05 * abs(device.length.change_ns)


def test_the_other_way_round_it_is_the_opposite() -> None:
    noisy = replace(SYNC, steps=12, jitter=0.4)
    one, two = (report_of(replace(noisy, seed=seed)) for seed in (1, 2))
    there, back = (only(compare_reports(*sides)).length for sides in (([one], [two]), ([two], [one])))
    assert there.low_ns is not None
    assert there.high_ns is not None
    assert (back.change_ns, back.low_ns, back.high_ns) == (-there.change_ns, -there.high_ns, -there.low_ns)


@pytest.mark.parametrize("name", UNCHANGED)
def test_nothing_changed(name: str) -> None:
    device = compared(UNCHANGED[name], UNCHANGED[name])
    assert device.verdict == "same"
    assert verdicts(device) == {}
    assert device.renaming.verdict == "none"


def test_idle_time_that_was_only_renamed() -> None:
    """The wait for the device is gone, and Python computes as long at the same place."""
    before = replace(PLAIN, sync=True, tail=700 * US)
    device = compared(before, replace(PLAIN, sync=True, thinking=700 * US))
    assert device.verdict == "same"
    assert verdicts(device) == {"sync": "improved", "host_compute": "regressed"}
    assert device.renaming.verdict == "renamed"
    assert device.renaming.renamed_ns > 0.95 * device.renaming.lost_ns
    (move,) = [move for move in device.moves if (move.before, move.after) == ("sync", "host_compute")]
    assert move.seen_ns == pytest.approx(move.ns, rel=0.05)  # between the same operations
    assert "came back as Host code" in device.renaming.sentence
    assert {row.status for row in device.signatures[:1]} == {"recaused"}


def test_the_gap_that_is_gone() -> None:
    """Behind each step the host waited: its gap has an interval, and so have those that stayed as they were."""
    device = compared(SYNC, PLAIN)
    gap, *others = [row for row in device.signatures if row.change.low_ns is not None]
    assert gap.cause_before == "sync"
    assert gap.change.verdict == "improved"
    assert 400 * US < -gap.change.change_ns < 600 * US
    assert gap.change.low_ns is not None
    assert gap.change.high_ns is not None
    assert gap.change.low_ns <= gap.change.change_ns <= gap.change.high_ns < 0
    assert {row.change.verdict for row in others} <= {"same", "improved"}
    assert len(others) == len(device.signatures) - 1
    total = sum(row.change.after_ns for row in device.signatures)
    assert total == pytest.approx(part(device, "idle").after_ns, abs=len(device.signatures))


def test_gaps_of_several_captures_and_of_cut_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [report_of(replace(SYNC, seed=seed)) for seed in (1, 2, 3)]
    after = [report_of(replace(PLAIN, seed=seed)) for seed in (4, 5, 6)]
    gap = only(compare_reports(before, after)).signatures[0]
    assert (gap.cause_before, gap.change.verdict) == ("sync", "improved")
    kernels = only(compare_reports(before, after)).kernels
    assert {row.change.verdict for row in kernels} == {"same"}
    monkeypatch.setattr("nsysdiag.comparison.rows.MOST", 1)
    found = only(compare_reports(before, after)).signatures
    lone = {row.change.verdict for row in found if row.status in ("gone", "added")}
    assert lone == {"unknown"}  # below the others on that side, perhaps
    assert "same" in {row.change.verdict for row in found if row.status == "both"}


def test_reports_without_gaps_one_by_one() -> None:
    """As an older version saved them."""
    sides = [[without_gaps(report_of(each))] for each in (SYNC, PLAIN)]
    assert {row.change.verdict for row in only(compare_reports(*sides)).signatures if row.status == "both"} == {
        "unknown"
    }


def without_gaps(report: Report) -> Report:
    iterations = report.devices[0].iterations
    assert iterations is not None
    assert iterations.packed is not None
    packed = structs.replace(iterations.packed, signatures=[])
    device = structs.replace(report.devices[0], iterations=structs.replace(iterations, packed=packed))
    return structs.replace(report, devices=[device])


def test_idle_time_that_is_gone() -> None:
    device = compared(SYNC, PLAIN)
    assert device.renaming.verdict == "removed"
    assert device.renaming.removed_ns == device.renaming.lost_ns > 400 * US


def test_the_kernel_that_got_slower() -> None:
    kernel = compared(PLAIN, replace(PLAIN, gemm=1.4)).kernels[0]
    assert kernel.short_name == GEMM
    assert kernel.change.verdict == "regressed"
    assert kernel.mean_after_ns / kernel.mean_before_ns == pytest.approx(1.4, rel=0.02)
    assert kernel.count_before == pytest.approx(6, rel=0.01)
    assert kernel.count_after == pytest.approx(6, rel=0.01)


def test_fewer_launches_are_a_change_of_workload_and_no_refusal() -> None:
    from tests.simulator.capture import Capture

    whole = Capture(graphs="graph")
    before = report_of(SLOW_PYTHON, whole)
    device = only(compare_reports([before], [report_of(replace(SLOW_PYTHON, seed=1, graph=True), whole)]))
    assert device.verdict == "improved"
    changed = {row.id: (row.before, row.after) for row in device.workload if row.changed}
    assert changed == {"kernel": (18.0, 0.0), "graph": (0.0, 1.0)}
    assert "The workload changed" in device.notes[0]


def test_iterations_by_another_name_are_brought_to_the_same_work() -> None:
    """Without names one side's iterations go by a kernel that comes six times a step."""
    named = report_of(PLAIN)
    anchored = report_of(replace(PLAIN, seed=1, named=False))
    for before, after in ((named, anchored), (anchored, named)):
        device = only(compare_reports([before], [after]))
        assert device.verdict == "same"
        kernels = next(row for row in device.workload if row.id == "kernel")
        assert not kernels.changed
        adds_up(device)


def test_iterations_of_another_program_are_no_unit_in_common(tmp_path: Path) -> None:
    """Both come round, but nothing that one runs is run by the other."""
    from tests.iterations.test_iterations import training

    path = training((4 * MS,) * 10, name="epoch {}").write(tmp_path / "other.sqlite")
    other = analyze(path)
    with pytest.raises(NotComparableError, match="They share no iterations"):
        compare_reports([report_of(PLAIN)], [other], across_gpus=True)
    same_name = analyze(training((4 * MS,) * 10, name="step {}").write(tmp_path / "renamed.sqlite"))
    assert compare_reports([report_of(PLAIN)], [same_name], across_gpus=True).devices


def test_a_cut_list_of_gaps_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [report_of(PLAIN), report_of(replace(PLAIN, seed=1))]
    assert not any("gap groups" in note for note in only(compare_reports(reports[:1], reports[1:])).notes)
    monkeypatch.setattr("nsysdiag.comparison.rows.MOST", len(reports[0].devices[0].signatures))
    assert any("gap groups" in note for note in only(compare_reports(reports[:1], reports[1:])).notes)
