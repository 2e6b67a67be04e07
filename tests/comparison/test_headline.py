"""What a comparison says first: the step of the job, whether its work is the same, and what changed most."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs
from msgspec.structs import replace as replaced

from nsysdiag.ci.acceptances import check_comparison
from nsysdiag.ci.budgets import UnjudgedError, parse_budgets
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import Speedup, WorkChange
from nsysdiag.comparison.headline import headline
from nsysdiag.pipeline import analyze
from tests.comparison.programs import Program
from tests.comparison.samples import WITHOUT_TIMELINE, adds_up, beside, only, report_of
from tests.output.compare_samples import change, device, job
from tests.simulator.engine import MS, US
from tests.unlike import CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.comparison.facts import Comparison, JobComparison
    from nsysdiag.report import Report

pytestmark = pytest.mark.slow

PLAIN = Program(sync=True, tail=200 * US)
SLOW = replace(PLAIN, tail=500 * US)
TWICE = replace(PLAIN, layers=12, batch=16 << 20)
LONG = replace(PLAIN, steps=60)
PAUSES = replace(LONG, every=7, pause=60 * MS)


def compared(before: Program, after: Program) -> Comparison:
    made = compare_reports([report_of(before)], [report_of(replace(after, seed=before.seed + 1))])
    adds_up(only(made))
    return made


def job_of(made: Comparison) -> JobComparison:
    assert made.job is not None
    return made.job


def without_steps(report: Report) -> Report:
    """The same where nothing was found to repeat."""
    devices = [structs.replace(device, iterations=None) for device in report.devices]
    return structs.replace(report, devices=devices)


def in_phases(reports: Sequence[Report]) -> Report:
    """Their devices as those of one trace, with the phases of each."""
    phases = [
        structs.replace(phase, devices=[structs.replace(each, key=f"gpu{at}") for each in phase.devices])
        for at, report in enumerate(reports)
        for phase in report.phases
    ]
    return structs.replace(beside(reports), phases=phases)


def test_a_change_beyond_chance_that_is_too_small_to_count() -> None:
    steady = replace(PLAIN, steps=30, jitter=0.01)
    made = compared(steady, replace(steady, gemm=1.02))
    assert made.verdict == "same"
    assert made.headline.endswith(": +1.2%, too small to count")
    assert only(made).sentence.endswith("That is too small to count: a verdict takes 2.0%.")


class TestGain:
    def test_is_a_factor_with_its_interval_and_a_cause(self) -> None:
        made = compared(SLOW, PLAIN)
        assert made.headline.startswith("Step time 1.57 → 1.28 ms (1.23× faster, 95% CI 1.2")
        assert made.headline.endswith("; synchronization -291 µs")
        job = job_of(made)
        assert job.speedup is not None
        assert job.speedup.low is not None
        assert job.speedup.high is not None
        assert job.speedup.low < job.speedup.factor < job.speedup.high
        assert job.speedup.factor == pytest.approx(job.step.before_ns / job.step.after_ns, rel=1e-5)

    def test_the_other_way_round_is_a_loss(self) -> None:
        made = compared(PLAIN, SLOW)
        assert "1.24× slower, 95% CI 1.2" in made.headline
        assert made.headline.endswith("; synchronization +293 µs")

    def test_the_account_adds_up_to_the_mean_step(self) -> None:
        job = job_of(compared(SLOW, PLAIN))
        for side in ("before_ns", "after_ns", "change_ns"):
            assert sum(getattr(row, side) for row in job.account) == getattr(job.mean, side)
        (sync,) = (row for row in job.account if row.bottleneck == "sync")
        assert sync.change_ns == pytest.approx(-300 * US, rel=0.1)

    def test_noise_alone_is_no_difference(self) -> None:
        made = compared(PLAIN, PLAIN)
        assert made.headline == "Step time 1.28 ms → 1.28 ms: no difference beyond chance"
        assert job_of(made).top == []


class TestWork:
    def test_twice_the_work_comes_first_and_is_no_plain_loss(self) -> None:
        made = compared(PLAIN, TWICE)
        assert made.verdict == "mixed"
        start = "Not the same work per step: kernels 18 → 36 (2.0×), bytes 8.00 MiB → 16.0 MiB (2.0×); step time "
        assert made.headline.startswith(start)
        assert made.headline.endswith(" per kernel)")
        assert {row.id: row.differs for row in job_of(made).work} == {"kernels": True, "launches": False, "bytes": True}
        assert compared(TWICE, PLAIN).verdict == "mixed"

    def test_more_work_in_less_time_is_a_gain(self) -> None:
        made = compared(replace(PLAIN, tail=3 * MS), TWICE)
        assert made.verdict == "improved"
        assert made.headline.startswith("Not the same work per step")

    def test_budgets_judge_the_numbers(self) -> None:
        (budget,) = parse_budgets(["length:+50%"], "fail", "test")
        (result,) = check_comparison(compared(PLAIN, TWICE), {"after": report_of(TWICE)}, [budget])
        assert result.broken
        assert result.value == pytest.approx(0.83, rel=0.02)

    def test_a_host_that_runs_ahead_says_nothing_of_bytes(self) -> None:
        """Its copies come before their steps."""
        ahead = replace(PLAIN, sync=False)
        found = {row.id: row for row in job_of(compared(PLAIN, ahead)).work}
        assert found.keys() == {"kernels", "launches", "threads"}
        assert not any(row.differs for row in found.values())

    def test_a_read_back_less_is_the_same_work(self, tmp_path: Path) -> None:
        """All that two models copy is a number that tells of each step."""
        kind = CLASSES["two_models_in_turn"]
        sizes = kind.made(24002)
        (fix,) = (each for each in kind.fixes(sizes) if each.name == "no read-back")
        runs = [kind.run(each)[0] for each in (sizes, sizes.but(**fix.change))]
        traces = [run.write(tmp_path / f"{at}.sqlite", kind.capture) for at, run in enumerate(runs)]
        made = compare_reports(*([analyze(trace, WITHOUT_TIMELINE)] for trace in traces))
        assert made.verdict == "improved"
        assert [(row.before, row.after) for row in job_of(made).work if row.id == "bytes"] == [(8, 0)]

    def test_bytes_that_start_up_alone_copies_are_no_work(self) -> None:
        report = report_of(PLAIN)
        (row, *others) = report.devices[0].copies.rows
        copies = structs.replace(report.devices[0].copies, rows=[structs.replace(row, bytes=9 * row.bytes), *others])
        device = structs.replace(report.devices[0], copies=copies)
        made = compare_reports([report], [structs.replace(report, devices=[device])])
        assert not any(row.differs for row in job_of(made).work)


class TestSlowSteps:
    def test_a_few_do_not_hide_a_gain(self) -> None:
        """Checkpoints between the steps, which are parts of some."""
        before = replace(PAUSES, tail=700 * US, every=9)
        made = compared(before, replace(PAUSES, every=11))
        assert made.verdict == "improved"
        assert job_of(made).statistic == "median"
        assert job_of(made).step.change_ns == pytest.approx(-500 * US, rel=0.1)

    def test_they_make_no_other_step_by_themselves(self) -> None:
        job = job_of(compared(LONG, replace(LONG, every=40)))  # one in 60
        assert job.step.after_ns == pytest.approx(job.step.before_ns, rel=0.02)

    def test_where_they_alone_changed_it_is_said(self) -> None:
        made = compared(LONG, replace(LONG, every=6))
        assert made.verdict == "regressed"
        assert made.headline.startswith("Mean step time 1.28 → 4.")
        assert "by the slow steps: the median step shows no difference" in made.headline
        assert only(made).step is not None
        assert only(made).slow_steps


class TestSteadyPhases:
    def test_a_longer_start_up_changes_nothing(self) -> None:
        """Neither where steps are known, nor where the steady phases alone are."""
        longer = replace(PLAIN, tuning=300, seed=1)
        named = compare_reports([report_of(PLAIN)], [report_of(longer)])
        assert named.verdict == "same"
        device = only(compare_reports([without_steps(report_of(PLAIN))], [without_steps(report_of(longer))]))
        adds_up(device)
        assert device.unit.kind == "phases"
        assert device.length.after_ns == pytest.approx(device.length.before_ns, rel=0.02)
        assert report_of(longer).devices[0].window_ns > 5 * device.length.after_ns  # what windows would say

    def test_steps_that_go_by_other_operations(self) -> None:
        """Behind a long start-up another operation repeats: those steps are not compared with each other."""
        before, after = (replace(PLAIN, named=False, tuning=count, seed=count) for count in (0, 200))
        device = only(compare_reports([report_of(before)], [report_of(after)]))
        assert abs(device.length.change_ns) <= device.length.least_ns

    def test_roots_are_not_known_of_phases(self) -> None:
        before, after = without_steps(report_of(PLAIN)), without_steps(report_of(SLOW))
        device = only(compare_reports([before], [after]))
        assert {row.id: row.change for row in device.ledger} == {row.id: row.change for row in device.root_ledger}
        assert any("Root causes are known only for whole windows" in note for note in device.notes)
        (budget,) = parse_budgets(["root_ledger.sync:+5%"], "fail", "test")
        with pytest.raises(UnjudgedError, match="root causes are not known of steady phases"):
            check_comparison(compare_reports([before], [after]), {"after": after}, [budget])

    def test_older_reports_have_windows(self) -> None:
        before, after = (
            structs.replace(without_steps(report_of(each)), phases=[], diagnosis=None) for each in (PLAIN, SLOW)
        )
        made = compare_reports([before], [after])
        assert only(made).unit.kind == "kernels"
        assert made.headline.startswith("Window, for the same work: ")
        assert job_of(made).account == []


class TestDevices:
    def test_the_slowest_is_the_job(self) -> None:
        fast, slow = report_of(PLAIN), report_of(replace(SLOW, tail=900 * US, seed=2))
        faster = report_of(replace(SLOW, seed=3))
        made = compare_reports([beside([fast, slow])], [beside([fast, faster])])
        assert " on gpu1 (" in made.headline
        assert job_of(made).step.before_ns == pytest.approx(1_980 * US, rel=0.02)
        assert job_of(made).device_before == job_of(made).device_after == "gpu1"
        assert job_of(made).top == []  # waits of one device for another are charged to what they wait for

    def test_what_changed_most_is_told_by_the_account_of_all(self) -> None:
        reports = [report_of(replace(each, seed=seed)) for seed, each in enumerate((SLOW, SLOW, PLAIN, PLAIN))]
        made = compare_reports([in_phases(reports[:2])], [in_phases(reports[2:])])
        assert made.verdict == "improved"
        assert re.search(r"; synchronization -2\d\d µs$", made.headline)
        job = job_of(made)
        assert sum(row.after_ns for row in job.account) == job.mean.after_ns

    def test_each_side_has_its_own_slowest(self) -> None:
        fast, slow = report_of(PLAIN), report_of(replace(SLOW, tail=900 * US, seed=2))
        made = compare_reports([beside([fast, slow])], [beside([slow, fast])])
        job = job_of(made)
        assert (job.device_before, job.device_after) == ("gpu1", "gpu0")
        assert job.step.change_ns == 0
        assert made.verdict == "mixed"

    def test_another_device_may_change_alone(self) -> None:
        """The slowest one takes as long as before: the verdict is not about it, and the line says so."""
        slow = report_of(replace(SLOW, tail=900 * US, seed=2))
        before, after = (report_of(replace(PLAIN, tail=tail, seed=seed)) for tail, seed in ((500 * US, 3), (0, 4)))
        made = compare_reports([beside([slow, before])], [beside([slow, after])])
        assert made.verdict == "improved"
        assert re.match(
            r"Step time 1.97 → 1.97 ms on gpu0: no difference beyond chance; improved on another GPU", made.headline
        )

    def test_devices_alike_are_not_named(self) -> None:
        reports = [report_of(replace(PLAIN, seed=seed)) for seed in range(4)]
        made = compare_reports([beside(reports[:2])], [beside(reports[2:])])
        assert "gpu" not in made.headline.lower()


class TestWords:
    """The sentence alone, of a job made by hand: 1.05 ms before, 777 µs after, 1.35 times as fast."""

    JOB = job(device())
    PARTS = replaced(JOB.unit, part_of_step=True)

    def test_parts_of_steps_are_longer_or_shorter_and_judge_nothing(self) -> None:
        parts = replaced(self.JOB, unit=self.PARTS, verdict="unknown", top=[], account=[])
        doubt = "which does not show what the change did"
        said = f"Parts of steps, for the same work: 1.05 ms → 777 µs (1.35× shorter, 95% CI 1.34 to 1.37), {doubt}"
        assert headline(parts, {}) == said
        back = replaced(parts, step=change(777, 1052), speedup=Speedup(factor=0.5, low=0.4, high=0.8))
        said = f"Parts of steps, for the same work: 777 µs → 1.05 ms (2.00× longer, 95% CI 1.25 to 2.50), {doubt}"
        assert headline(back, {}) == said

    def test_no_factor_where_a_side_took_no_time(self) -> None:
        nothing = replaced(self.JOB, step=change(0, 777), speedup=None, verdict="regressed", top=[], account=[])
        assert headline(nothing, {}) == "Step time 0 ns → 777 µs (no factor: nothing on one side)"

    @pytest.mark.parametrize(
        ("verdict", "remark"),
        [
            ("same", "no difference beyond chance"),
            ("improved", "1.35× faster, 95% CI 1.34 to 1.37"),
        ],
    )
    def test_other_bytes_alone_tell_no_time_per_kernel(self, verdict: str, remark: str) -> None:
        work = [
            WorkChange(id="kernels", before=18.0, after=18.0, differs=False),
            WorkChange(id="bytes", before=float(1 << 20), after=float(3 << 20), differs=True),
        ]
        made = replaced(self.JOB, work=work, verdict=verdict)
        bytes_first = "Not the same work per step: bytes 1.00 MiB → 3.00 MiB (3.0×)"
        assert headline(made, {}) == f"{bytes_first}; step time 1.05 ms → 777 µs ({remark})"

    def test_kernels_on_one_side_only_have_no_ratio(self) -> None:
        work = [WorkChange(id="kernels", before=0.0, after=18.0, differs=True)]
        said = "Not the same work per step: kernels 0 → 18; step time 1.05 ms → 777 µs (1.35× faster, 95% CI 1.34 to "
        assert headline(replaced(self.JOB, work=work), {}) == f"{said}1.37)"

    @pytest.mark.parametrize(
        ("mean_after", "said"),
        [(777, ""), (795, ""), (900, "; with the slow steps 1.05 ms → 900 µs on average")],
    )
    def test_the_mean_is_told_where_slow_steps_make_it_another_change(self, mean_after: int, said: str) -> None:
        """Two hundredths apart are the same change; a mean may be another one without any step of twice the median."""
        slow = replaced(self.JOB, slow_steps=True, mean=change(1052, mean_after), top=[], account=[])
        whole = "Step time 1.05 ms → 777 µs (1.35× faster, 95% CI 1.34 to 1.37)"
        assert headline(slow, {}) == f"{whole}{said}"
        alike = headline(replaced(slow, slow_steps=False), {})
        assert alike == whole + said.replace("with the slow steps ", "")

    def test_nothing_is_said_of_a_mean_that_took_no_time(self) -> None:
        slow = replaced(self.JOB, slow_steps=True, mean=change(0, 900), top=[], account=[])
        assert headline(slow, {}) == "Step time 1.05 ms → 777 µs (1.35× faster, 95% CI 1.34 to 1.37)"
