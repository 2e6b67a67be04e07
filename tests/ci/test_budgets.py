"""Budgets on reports: what is kept, what is broken, and what cannot be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.ci.budgets import Budget, check, judge, parse_budgets
from nsysdiag.ci.expressions import parse
from nsysdiag.messages import UsageError
from nsysdiag.report import Capability, DeviceReport, Report
from nsysdiag.trace.capabilities import KINDS
from nsysdiag.utilization.facts import Utilization
from tests.comparison.programs import Program
from tests.comparison.samples import report_of
from tests.output import samples
from tests.output.gpu_metric_samples import gpu_metrics
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BudgetResult

MS = 1_000_000


def report(*devices: DeviceReport, **changes: object) -> Report:
    return replace(samples.one_device(), devices=list(devices) or [samples.device()], **changes)


def judged(made: Report, text: str, trace: str = "train.sqlite", **limits: str) -> BudgetResult:
    (result,) = check(made, [Budget(parse(text, "--fail-on"), "fail", "--fail-on", **limits)], trace)  # type: ignore[arg-type]
    return result


def refused(made: Report, text: str, **limits: str) -> str:
    with pytest.raises(UsageError) as raised:
        judged(made, text, **limits)
    assert raised.value.exit_code == 2
    return raised.value.message


class TestJudgedTime:
    """What the diagnosis is about, which leaves out start-up and tail."""

    def test_shares_are_those_of_the_judged_phase(self, simulated: Report) -> None:
        assert simulated.diagnosis is not None
        assert simulated.diagnosis.phase is not None
        (found,) = simulated.phases[simulated.diagnosis.phase].devices
        whole = sum(found.account.values())
        assert judged(simulated, "judged.idle_share > 0").value == pytest.approx(found.idle_ns / whole)
        assert judged(simulated, "judged.kernels_share > 0").value == pytest.approx(found.account["kernels"] / whole)
        assert judged(simulated, "judged.sync_share > 0").value == pytest.approx(found.account["sync"] / whole)

    def test_idle_time_elsewhere_does_not_count(self, simulated: Report) -> None:
        assert simulated.diagnosis is not None
        at = simulated.diagnosis.phase
        assert at is not None
        (found,) = simulated.phases[at].devices
        phases = [*simulated.phases]
        phases[at] = replace(phases[at], devices=[replace(found, idle_ns=0)])
        busy = replace(simulated, phases=phases)
        assert judged(busy, "judged.idle_share > 0").value == 0.0
        assert judged(busy, "idle_share > 0").value > 0.3

    def test_the_headline(self, simulated: Report) -> None:
        assert simulated.diagnosis is not None
        assert judged(simulated, "diagnosis.share > 99%").value == simulated.diagnosis.share
        assert "of all devices" in refused(simulated, "diagnosis.share > 1%", device="gpu0")

    @pytest.mark.parametrize("text", ["judged.idle_share > 1%", "diagnosis.share > 1%"])
    def test_nothing_judged_cannot_be_told(self, text: str) -> None:
        assert "judges no time" in refused(report(diagnosis=None, phases=[]), text)


@pytest.fixture(scope="module")
def simulated() -> Report:
    return report_of(Program(steps=12, sync=True, tail=500 * US))


class TestValues:
    """A device of 100 ms: 45 compute, 10 exposed communication, 5 exposed copies, 40 idle."""

    @pytest.mark.parametrize(
        ("text", "value", "broken"),
        [
            ("idle_ns > 39ms", 40 * MS, True),
            ("idle_ns > 40ms", 40 * MS, False),
            ("idle_ns >= 40ms", 40 * MS, True),
            ("idle_share == 40%", 0.4, True),
            ("idle_share != 40%", 0.4, False),
            ("compute_share < 45.1%", 0.45, True),
            ("compute_share < 45%", 0.45, False),
            ("compute_share <= 45%", 0.45, True),
            ("ledger.sync > 17ms", 18 * MS, True),
            ("ledger.sync_share > 18%", 0.18, False),
            ("root_ledger.host_compute_share > 4%", 0.09, True),
            ("ledger.sleep > 0", 0, False),  # known to the rules, none of it here
            ("exposed_copy_ns > 4ms", 5 * MS, True),
            ("copies.exposed_share > 6%", 0.05, False),
            ("copies.tiny.count > 0", 0, False),  # there are none
            ("launch.graphs.launches == 0", 0, True),
            ("gap_count > 1233", 1234, True),
            ("ops.kernel > 4012", 4012, False),
            ("sync_drained.gaps > 30", 33, True),
            ("iterations.p95_ns > 4ms", 4_500_000, True),
            ("coverage < 95%", 0.947, True),
            ("utilization.util_time_share < 1%", samples.device().utilization.util_time_share, False),
            ("launch.median_kernel_ns < 10us", 9_800, True),
        ],
    )
    def test_of_one_device(self, text: str, value: float, broken: bool) -> None:
        result = judged(report(), text)
        assert (result.value, result.broken, result.device) == (value, broken, "gpu0")
        assert (result.budget, result.source, result.level, result.nvtx) == (text, "--fail-on", "fail", "")

    def test_any_device_breaks_it(self) -> None:
        made = report(samples.device(0), samples.device(1, idle_ns=60 * MS), samples.device(2))
        assert judged(made, "idle_share > 50%").device == "gpu1"
        assert judged(made, "idle_share < 50%").device == "gpu0"
        assert judged(made, "idle_share != 40%").device == "gpu1"
        assert judged(made, "idle_share == 40%").broken

    def test_a_device_that_did_nothing_is_not_judged(self) -> None:
        idle = samples.device(1, window_ns=0, idle_ns=0)
        assert judged(report(samples.device(0), idle), "idle_share < 50%").device == "gpu0"
        assert "nothing ran on gpu1" in refused(report(samples.device(0), idle), "idle_share < 50%", device="gpu1")
        assert "no GPU work" in refused(report(idle), "idle_share < 50%")
        assert "no GPU work" in refused(replace(report(), devices=[]), "findings.all > 0")

    def test_each_device_has_its_value(self) -> None:
        made = report(samples.device(0), samples.device(1, idle_ns=60 * MS))
        found = [(each.device, each.value, each.broken) for each in judged(made, "idle_share > 50%").devices]
        assert found == [("gpu0", 0.4, False), ("gpu1", 0.6, True)]
        assert judged(made, "findings.all > 0").devices == []

    def test_what_one_device_cannot_tell_the_others_may(self) -> None:
        """The exit code is that of a budget that cannot be judged, and what the other breaks is still said."""
        made = report(samples.device(0), samples.device(1, iterations=None))
        budget = Budget(parse("iterations.p50_ns > 0", "--fail-on"), "fail", "--fail-on")
        found = judge([budget], lambda each: check(made, [each], "x.sqlite"))
        assert [(each.broken, [one.device for one in each.devices]) for each in found.results] == [(True, ["gpu0"])]
        (unjudged,) = found.unjudged
        assert unjudged.devices == ["gpu1"]
        assert unjudged.why.startswith("gpu1: nothing repeats in it")

    def test_devices_by_key_number_and_name(self) -> None:
        made = report(samples.device(0), samples.device(1, name="NVIDIA A100", idle_ns=60 * MS))
        assert [judged(made, "idle_share > 50%", device=name).broken for name in ("gpu0", "0", "h100")] == [False] * 3
        assert [judged(made, "idle_share > 50%", device=name).broken for name in ("gpu1", "1", "a100")] == [True] * 3
        assert "it has no device 'gpu2'; its devices: gpu0 (NVIDIA H100" in refused(made, "idle_ns > 0", device="gpu2")

    def test_findings_are_counted(self) -> None:
        kinds = ["high", "medium", "medium", "low"]
        found = [samples.finding(f"f-{at}", severity=kind, device=f"gpu{at % 2}") for at, kind in enumerate(kinds)]
        made = report(samples.device(0), samples.device(1), findings=found)
        assert [judged(made, f"findings.{level} > 0").value for level in ("high", "medium", "low", "info", "all")] == [
            *(1, 2, 1, 0, 4)
        ]
        assert judged(made, "findings.all > 1", device="gpu1").value == 2
        assert judged(made, "findings.high > 0").device == ""

    def test_findings_that_a_report_left_out_may_decide(self) -> None:
        found = [samples.finding(f"f-{at}", severity="medium") for at in range(12)]
        made = report(findings=found)
        assert "its report keeps 12 findings: raise most under [findings]" in refused(made, "findings.all > 12")
        assert "raise most" in refused(made, "findings.medium <= 12")
        assert judged(made, "findings.medium > 11").broken
        assert not judged(made, "findings.high > 3").broken  # one of lower severity is among them
        assert not judged(
            replace(made, settings={"findings": {"smallest": 0.1, "most": 30}}), "findings.all > 12"
        ).broken


class TestPerIteration:
    def test_is_the_mean_of_the_steady_ones(self, simulated: Report) -> None:
        (device,) = simulated.devices
        assert device.iterations is not None
        steady = [row for row in device.iterations.rows if row.steady]
        assert len(steady) == device.iterations.steady > 5
        for name in ("sync", "dispatch"):
            mean = sum(row.ledger.get(name, 0) for row in steady) / len(steady)
            assert mean > 0
            assert judged(simulated, f"ledger.{name} > 0/iter").value == pytest.approx(mean)
        idle = sum(sum(row.ledger.values()) for row in steady) / len(steady)
        assert judged(simulated, "idle_ns > 0/iter").value == pytest.approx(idle)
        length = sum(row.end_ns - row.start_ns for row in steady) / len(steady)
        assert judged(simulated, "window_ns > 0/iter").value == pytest.approx(length)
        assert judged(simulated, "ops.kernel > 0/iter").value == pytest.approx(18)
        assert judged(simulated, "ledger.graph_build > 0/iter").value == 0

    def test_what_only_the_window_knows_is_divided_by_what_it_holds(self, simulated: Report) -> None:
        """Six copies in twelve steps would be half a copy a step, however many of the steps are steady."""
        (device,) = simulated.devices
        assert judged(simulated, "copies.bytes > 0/iter").value == pytest.approx(device.copies.bytes / 12, rel=0.05)

    def test_a_report_without_each_of_them(self) -> None:
        """As reports were before: 18 steady ones."""
        assert judged(report(), "ledger.sync > 0/iter").value == 1 * MS

    def test_without_iterations_it_cannot_be_judged(self) -> None:
        made = report(samples.device(iterations=None))
        assert "nothing repeats in it" in refused(made, "idle_ns > 1ms/iter")
        assert "--trace=nvtx" in refused(made, "iterations.p95_ns > 1ms")
        assert "nothing repeats" in refused(made, "gap_count > 1/iter")


class TestWhatCannotBeJudged:
    @pytest.mark.parametrize(
        ("cause", "missing", "words"),
        [
            ("lock_wait", ["os-runtime"], "no os-runtime evidence: --trace=osrt brings it"),
            ("blocked", ["scheduling"], "no scheduling evidence: --cpuctxsw=process-tree brings it"),
            ("off_cpu", ["os-runtime", "scheduling"], "no os-runtime and scheduling evidence: --trace=osrt --cpuctxsw"),
            ("host_compute", ["scheduling", "cpu-samples"], "--cpuctxsw=process-tree --sample=process-tree brings it"),
            ("sync", ["cuda-api"], "--trace=cuda brings it"),
            ("gpu_context_switch", ["gpu-context-switch"], "--gpuctxsw=true brings it"),
            ("host_compute", ["scheduling"], None),
            ("host_compute", ["cpu-samples"], None),
            ("host_compute", ["os-runtime"], None),
            ("sync", ["os-runtime", "scheduling", "cpu-samples"], None),
            ("queue_full", ["overhead"], None),  # there are rows only where it happened
            ("uncovered", [kind for kind in KINDS if kind != "cuda-api"], None),
        ],
    )
    def test_causes_without_evidence(self, cause: str, missing: list[str], words: str | None) -> None:
        capabilities = [Capability(id=kind, available=kind not in missing, why="") for kind in KINDS]
        made = report()
        made = replace(made, trace=replace(made.trace, capabilities=capabilities))
        names = (f"ledger.{cause}", f"root_ledger.{cause}", f"launch.launch_bound.causes.{cause}")
        for text in [f"{name} > 99s{each}" for name in names for each in ("", "/iter")]:
            if words is None:
                assert not judged(made, text).broken
            else:
                said = refused(made, text)
                assert said.startswith(f"--fail-on: '{text}' cannot be judged by train.sqlite: ")
                assert words in said

    def test_launches_need_their_calls(self) -> None:
        made = report()
        without = [Capability(id="cuda-api", available=False, why="")]
        blind = replace(made, trace=replace(made.trace, capabilities=without))
        for text in ("launch.launch_bound.count > 3", "launch.graphs.launches > 3", "sync_drained.gaps > 900"):
            assert not judged(made, text).broken
            assert "no cuda-api evidence: --trace=cuda brings it" in refused(blind, text)

    def test_a_cause_that_was_disabled(self) -> None:
        made = report(settings={"disabled": ["sleep", "sync"]})
        assert "the cause sync was disabled" in refused(made, "ledger.sync > 1ms")
        assert judged(made, "ledger.host_compute > 1ms").broken

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("coverage < 1%", "no idle time that the host must explain"),
            ("gpu_metrics.sm_active < 1%", "--gpu-metrics-devices=all"),
            ("gpu_metrics.clocks.low_share > 1%", "--gpu-metrics-devices=all"),
            ("utilization.sm_active_share < 1%", "--gpu-metrics-devices=all"),
            ("memory.peak_bytes > 1", "--cuda-memory-usage=true"),
            ("unified_memory.count > 1", "--cuda-um-cpu-page-faults=true"),
            ("cost.lost.hour > 1", "--gpu-hour-cost"),
            ("launch.queue_depth.mean < 1", f"the report has no value for it; a fuller capture: {samples.RECAPTURE}"),
            ("copies.tiny.per_iteration > 1", "the report has no value for it"),
        ],
    )
    def test_what_was_not_measured(self, text: str, words: str) -> None:
        made = report(samples.device(coverage=None, utilization=Utilization()))
        assert words in refused(made, text)

    def test_what_is_null_within_a_record(self) -> None:
        """Not for want of the record: its advice would not help."""
        made = report(samples.device(memory=replace(samples.MEMORY, limit_bytes=None, headroom_bytes=None)))
        for name in ("memory.limit_bytes", "memory.headroom_bytes"):
            said = refused(made, f"{name} > 0")
            assert "the report has no value for it" in said
            assert "--cuda-memory-usage" not in said

    def test_what_is_counted_by_iterations_needs_them(self) -> None:
        memory = replace(samples.MEMORY, churn=replace(samples.MEMORY.churn, per_iteration=None))
        made = report(samples.device(memory=memory, iterations=None))
        assert "nothing repeats in it" in refused(made, "memory.churn.per_iteration > 1")

    def test_counters_that_were(self) -> None:
        made = report(samples.device(gpu_metrics=gpu_metrics()))
        sampled = {each.id: each for each in gpu_metrics().metrics}
        assert judged(made, "gpu_metrics.sm_active < 99%").value == sampled["sm_active"].window
        assert judged(made, "gpu_metrics.sm_active.gaps < 99%").value == sampled["sm_active"].gaps
        assert "sys_clock" not in sampled
        assert "--gpu-metrics-devices=all" in refused(made, "gpu_metrics.sys_clock > 1")

    def test_a_change_needs_two_captures(self) -> None:
        assert "is about a change, and here is one capture alone" in refused(report(), "idle_ns:+10%")
        shared = Budget(parse("idle_ns:+10%", ""), "fail", "nsysdiag.toml: budgets[0].fail", shared=True)
        assert check(report(), [shared], "train.sqlite") == []  # left to compare

    def test_a_capture_of_cuda_alone(self) -> None:
        made = report_of(Program(steps=8, sync=True), CUDA_ONLY)
        assert judged(made, "ledger.sync > 0").broken
        assert "os-runtime" in refused(made, "ledger.io_wait > 0")


class TestTraces:
    @pytest.mark.parametrize("trace", ["rank0.sqlite", "runs/rank0.sqlite", "/data/runs/rank12.sqlite"])
    def test_a_pattern_that_fits(self, trace: str) -> None:
        budget = Budget(parse("idle_ns > 0", ""), "fail", "x", trace="rank*.sqlite")
        assert len(check(report(), [budget], trace)) == 1

    @pytest.mark.parametrize("trace", ["rank0.json", "Rank0.sqlite", "runs/other.sqlite", "rank0.sqlite/x"])
    def test_one_that_does_not(self, trace: str) -> None:
        budget = Budget(parse("idle_ns > 0", ""), "fail", "x", trace="rank*.sqlite")
        assert check(report(), [budget], trace) == []

    def test_a_saved_report_is_also_called_by_its_trace(self) -> None:
        made = report()
        budget = Budget(parse("idle_ns > 0", ""), "fail", "x", trace=made.trace.file)
        assert len(check(made, [budget], "report.json")) == 1

    def test_folders_in_a_pattern(self) -> None:
        budget = Budget(parse("idle_ns > 0", ""), "fail", "x", trace="nightly/*/train.sqlite")
        assert [len(check(report(), [budget], trace)) for trace in ("nightly/1/train.sqlite", "a/1/train.sqlite")] == [
            1,
            0,
        ]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("idle_share > 20%", "idle_share on gpu0 is 40%, which is > 20%"),
            ("idle_share > 50%", "idle_share on gpu0 is 40%, which is not > 50%"),
            ("idle_ns > 1ms/iter", "idle_ns on gpu0 is 2.22 ms per iteration, which is > 1.00 ms"),
            ("ledger.launch_call > 3.998ms", "ledger.launch_call on gpu0 is 3,998,766 ns, which is > 3,998,000 ns"),
            ("coverage < 94.70001%", "coverage on gpu0 is 94.7%, which is < 94.70001%"),
            ("gap_count > 1,000".replace(",", ""), "gap_count on gpu0 is 1,234, which is > 1,000"),
        ],
    )
    def test_of_a_device(self, text: str, sentence: str) -> None:
        assert judged(report(), text).sentence == sentence

    def test_of_a_whole_trace(self) -> None:
        made = report(findings=[samples.finding()])
        assert judged(made, "findings.high > 0").sentence == "findings.high is 1, which is > 0"

    def test_ids_are_of_what_is_asked(self) -> None:
        first, second = parse_budgets(["idle_ns > 1ms", "idle_ns > 2ms"], "fail", "--fail-on")
        (elsewhere,) = parse_budgets([" idle_ns > 1ms "], "fail", "nsysdiag.toml: budgets[3].fail")
        (warned,) = parse_budgets(["idle_ns > 1ms"], "warn", "--warn-on")
        assert len({first.id, second.id, warned.id}) == 3
        assert elsewhere.id == first.id
