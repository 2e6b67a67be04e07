"""What leads an account, and the verdict on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.bottlenecks import BottleneckId
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import Part
from nsysdiag.diagnosis.focus import Scope
from nsysdiag.diagnosis.judge import (
    NO_FOCUS,
    NO_PHASES,
    JobFacts,
    Judgment,
    Leading,
    WithoutWork,
    device_verdict,
    judge,
    leading,
)
from nsysdiag.diagnosis.missing import Missing
from nsysdiag.diagnosis.sentences import unrecorded
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.phases.facts import PhaseDevice, Waited
from nsysdiag.report import Verdict
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path


class TestLeading:
    def test_the_largest_part_leads_and_the_next_is_named(self) -> None:
        assert leading({"sync": 60, "launch": 30, "input": 10}) == Leading("sync", 0.6, Part("launch", 0.3), 0.0)

    def test_kernels_and_parallelism_are_one_candidate_by_the_name_of_the_larger(self) -> None:
        """30 and 25 of 100 ns lead before 45 ns of synchronization, though neither would alone."""
        assert leading({"kernels": 30, "parallelism": 25, "sync": 45}) == Leading(
            "kernels", 0.55, Part("sync", 0.45), 0.0
        )
        assert leading({"kernels": 25, "parallelism": 30, "sync": 45}).bottleneck == "parallelism"

    def test_parallelism_is_not_the_next_of_kernels(self) -> None:
        assert leading({"kernels": 60, "parallelism": 40}) == Leading("kernels", 1.0, None, 0.0)

    def test_the_unknown_leads_too(self) -> None:
        assert leading({"unknown": 50, "kernels": 30, "sync": 20}) == Leading("unknown", 0.5, Part("kernels", 0.3), 0.5)

    @pytest.mark.parametrize(("sync", "second"), [(100, Part("sync", 0.1)), (99, None)])
    def test_the_next_one_counts_from_a_tenth(self, sync: int, second: Part | None) -> None:
        assert leading({"kernels": 1_000 - sync, "sync": sync}).second == second

    def test_equal_parts_by_name(self) -> None:
        assert leading({"sync": 5, "launch": 5}).bottleneck == "launch"

    @pytest.mark.parametrize("account", [{}, {"sync": 0}])
    def test_nothing_is_unknown(self, account: dict[str, int]) -> None:
        assert leading(account) == Leading("unknown", 0.0, None, 0.0)


VERDICTS: dict[BottleneckId, str] = {
    "kernels": "gpu-bound",
    "parallelism": "parallelism-bound",
    "communication": "comm-bound",
    "copies": "copy-bound",
    "input": "input-bound",
    "sync": "sync-bound",
    "launch": "launch-bound",
    "unknown": "unresolved",
}


def judged(account: dict[str, int], ledger: dict[str, int] | None = None) -> PhaseDevice:
    return PhaseDevice(
        key="gpu0",
        compute_ns=account.get("kernels", 0),
        exposed_comm_ns=0,
        exposed_copy_ns=0,
        idle_ns=sum(account.values()) - account.get("kernels", 0),
        outside_ns=0,
        ledger=ledger or {},
        account=account,
    )


class TestVerdict:
    @pytest.mark.parametrize("name", VERDICTS)
    def test_by_the_bottleneck(self, name: BottleneckId) -> None:
        assert device_verdict(judged({name: 60, "startup": 40}), Missing()).id == VERDICTS[name]

    @pytest.mark.parametrize(
        ("ledger", "verdict"),
        [
            ({"off_cpu": 30, "host_compute": 20, "sync": 90}, "contended"),
            ({"off_cpu": 20, "host_compute": 30, "sync": 90}, "host_compute-bound"),
        ],
    )
    def test_otherwise_by_the_cause_with_most_time(self, ledger: dict[str, int], verdict: str) -> None:
        """Causes of other bottlenecks don't count, however much time they have."""
        assert device_verdict(judged({"host": 60, "kernels": 40}, ledger), Missing()).id == verdict

    def test_the_sentence_holds_share_and_the_next(self) -> None:
        found = device_verdict(judged({"sync": 60, "kernels": 40}), Missing())
        assert (
            found.sentence == "Synchronization keeps the GPU idle for 60.0% of the judged time; second: kernels, 40.0%."
        )

    def test_it_says_for_whom_the_device_waits(self) -> None:
        waited = [Waited("gpu1", "kernels", 30), Waited("gpu2", "kernels", 5), Waited("gpu2", "copies", 10)]
        device = replace(judged({"kernels": 90, "copies": 10}), waited=waited)
        assert device_verdict(device, Missing()) == Verdict(
            id="gpu-bound",
            sentence="Kernels take 90.0% of the judged time; second: copies, 10.0%; for 45.0% of it this GPU waits for "
            "gpu1 and gpu2.",
        )
        little = replace(device, waited=[Waited("gpu1", "kernels", 9)])
        assert "waits for" not in device_verdict(little, Missing()).sentence

    def test_missing_rows_are_said_and_too_many_leave_nothing_to_say(self) -> None:
        """Less than a fifth of the launches without a kernel, and a fifth."""
        account = judged({"kernels": 60, "sync": 40})
        some = device_verdict(account, Missing(unseen=19, launches=100))
        assert some.id == "gpu-bound"
        assert some.sentence.endswith(
            "; but the trace is incomplete: 19 of 100 (19.0%) kernel launches have no kernel in it."
        )
        assert device_verdict(account, Missing(unseen=20, launches=100)).id == "unresolved"
        assert "incomplete" not in device_verdict(account, Missing()).sentence

    def test_no_work(self) -> None:
        assert device_verdict(judged({}), Missing()).id == "no-gpu-work"
        assert nothing_judged().verdict("gpu7").id == "no-gpu-work"


def nothing_judged() -> Judgment:
    job = JobFacts(frameworks=[], limits=FindingThresholds())
    scope = Scope.of(NO_PHASES, NO_FOCUS)
    return judge(NO_PHASES, [], NO_FOCUS, scope, [], job, WithoutWork(unrecorded(None), []))


def test_a_trace_without_devices() -> None:
    found = nothing_judged()
    assert (found.diagnosis.basis, found.diagnosis.bottleneck, found.diagnosis.gpus_used) == ("none", "unknown", 0)
    assert (found.phases, found.findings, found.diagnosis.action, found.diagnosis.phase) == ([], [], None, None)
    assert found.diagnosis.headline == "No GPU activity was recorded, so what the GPU did is unknown."


class TestWithoutSavings:
    """Kernels back to back: no finding promises anything, and the kernel is what to look at."""

    def test_the_kernel_is_what_to_look_at(self, tmp_path: Path) -> None:
        trace = TraceBuilder()
        for step in range(60):
            at = 10_000 + step * 1_000_000
            trace.kernel(at, at + 1_000_000, name="stencil", launch=(at - 8_000, at - 6_000))
        report = report_of(trace, tmp_path)
        assert report.diagnosis is not None
        assert report.diagnosis.action is not None
        assert report.diagnosis.action.startswith("Kernel time: stencil. ")
        assert "ncu " in report.diagnosis.action
        assert report.diagnosis.saves is None
        assert "first" not in report.diagnosis.headline
        text = FORMATS["txt"].render(report, RenderOptions()).decode()
        assert "Look at first: Kernel time: stencil" in text
        assert "Fix first" not in text
