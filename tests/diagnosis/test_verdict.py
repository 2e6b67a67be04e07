"""The verdict: every rule at its threshold, and that the rules are asked in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes.off_cpu import UNTRACED
from nsysdiag.config.settings import Settings, Thresholds
from nsysdiag.diagnosis.verdict import VerdictInput, verdict
from nsysdiag.ledger.busy import WindowSplit
from tests.builder import TraceBuilder
from tests.causes.example import late
from tests.ledger.traces import only_device, report_of

if TYPE_CHECKING:
    from pathlib import Path

WINDOW = 900_000


def given(
    ledger: dict[str, int],
    *,
    copy: int = 0,
    comm: int = 0,
    drained: int | None = None,
    coverage: float | None = 1.0,
    interval: int | None = 10_000,
    kernel: int | None = 5_000,
    window: int = WINDOW,
) -> VerdictInput:
    """A device with that ledger; `drained` is the sync time unless it is given."""
    idle = sum(ledger.values())
    split = WindowSplit(
        window_ns=window,
        compute_ns=window - idle - copy - comm,
        exposed_comm_ns=comm,
        exposed_copy_ns=copy,
        overlapped_comm_ns=0,
        kernel_ns=window - idle - copy,
        kernels=Intervals.empty(),
        busy=Intervals.empty(),
        parts=(Intervals.empty(), Intervals.empty(), Intervals.empty()),
    )
    return VerdictInput(
        split=split,
        ledger=ledger,
        drained_ns=ledger.get("sync", 0) if drained is None else drained,
        coverage=coverage,
        median_interval_ns=interval,
        median_work_ns=kernel,
    )


# 45_000 is 5 % of the window, 90_000 are 10 %, 300_000 a third.
CASES = {
    "no work": ("no-gpu-work", given({}, window=0)),
    "half unresolved": ("unresolved", given({"uncovered": 45_000, "io_wait": 45_000})),
    "not half": ("input-bound", given({"uncovered": 44_999, "io_wait": 45_001})),
    "half of all unresolved kinds": (
        "unresolved",
        given(
            {"uncovered": 10_000, "blocked": 10_000, "launch_unknown": 10_000, "graph_untraced": 15_000, "sync": 45_000}
        ),
    ),
    "unresolved but 5 % idle": ("unresolved", given({"uncovered": 45_000})),
    "unresolved but under 5 % idle": ("gpu-bound", given({"uncovered": 44_999})),
    "unresolved before copies": ("unresolved", given({"uncovered": 90_000}, copy=400_000)),
    "copies as much as idle": ("copy-bound", given({"io_wait": 90_000}, copy=90_000)),
    "copies less than idle": ("input-bound", given({"io_wait": 90_001}, copy=90_000)),
    "copies of 10 %": ("copy-bound", given({}, copy=90_000)),
    "copies under 10 %": ("gpu-bound", given({}, copy=89_999)),
    "copies before communication": ("copy-bound", given({}, copy=400_000, comm=400_000)),
    "a third of communication": ("comm-bound", given({"io_wait": 90_000}, comm=300_000)),
    "less communication": ("input-bound", given({"io_wait": 90_000}, comm=299_999)),
    "communication of a busy device": ("comm-bound", given({}, comm=300_000)),
    "idle 5 %": ("input-bound", given({"io_wait": 45_000})),
    "idle under 5 %": ("gpu-bound", given({"io_wait": 44_999})),
    "never idle": ("gpu-bound", given({})),
    "a third of I/O": ("input-bound", given({"io_wait": 100_000, "sync": 200_000})),
    "a third of data loading and I/O": (
        "input-bound",
        given({"io_wait": 60_000, "data_loading": 40_000, "sync": 200_000}),
    ),
    "less than a third of I/O": ("sync-bound", given({"io_wait": 99_999, "sync": 200_001})),
    "input before contention": ("input-bound", given({"io_wait": 100_000, "off_cpu": 200_000})),
    "a third off the CPU": ("contended", given({"off_cpu": 100_000, "sync": 200_000})),
    "less off the CPU": ("sync-bound", given({"off_cpu": 99_999, "sync": 200_001})),
    "half of sync": ("sync-bound", given({"sync": 100_000, "cuda_api": 100_000})),
    "half drained by sync": ("sync-bound", given({"launch_call": 200_000}, drained=100_000)),
    "less than half of sync": ("launch-bound", given({"sync": 99_999, "cuda_api": 100_001})),
    "half of launching": (
        "launch-bound",
        given(
            {"launch_call": 40_000, "launch_latency": 30_000, "cuda_api": 20_000, "dispatch": 10_000, "sleep": 100_000}
        ),
    ),
    "less than half of launching": ("sleep-bound", given({"launch_call": 99_999, "sleep": 100_001})),
    "launches as frequent as kernels are long": (
        "launch_call-bound",
        given({"launch_call": 200_000}, interval=5_000, kernel=5_000),
    ),
    "no launches known": ("launch_call-bound", given({"launch_call": 200_000}, interval=None)),
    "30 % of one cause": (
        "memory_allocation-bound",
        given({"memory_allocation": 60_000, "sleep": 50_000, "module_load": 50_000, "host_compute": 40_000}),
    ),
    "less of any": (
        "mixed",
        given({"memory_allocation": 59_999, "sleep": 50_001, "module_load": 50_000, "host_compute": 40_000}),
    ),
}


@pytest.mark.parametrize(("expected", "facts"), CASES.values(), ids=CASES)
def test_the_first_rule_that_holds(expected: str, facts: VerdictInput) -> None:
    assert verdict(facts).id == expected


@pytest.mark.parametrize("drained", [None, 0])
def test_a_device_that_is_never_idle_with_no_threshold_for_it(drained: int | None) -> None:
    for rule in ("busy", "input", "contended", "sync", "leading"):
        facts = replace(given({}, drained=drained), thresholds=Thresholds(**{"busy": 0, rule: 0}))
        assert verdict(facts).id


@pytest.mark.parametrize(
    ("coverage", "likely"), [(1.0, False), (0.5, False), (0.499, True), (0.2, True), (None, False)]
)
def test_a_claim_with_little_behind_it_says_likely(coverage: float | None, likely: bool) -> None:
    assert ("likely" in verdict(given({"io_wait": 90_000}, coverage=coverage)).sentence) == likely


def test_a_claim_with_next_to_nothing_behind_it_says_unresolved() -> None:
    facts = given({"device_stall": 60_000, "uncovered": 50_000, "io_wait": 1_000}, coverage=0.199)
    assert "unresolved" in verdict(facts).sentence


def test_the_sentence_holds_the_share() -> None:
    assert "idle 10.0% of the time" in verdict(given({"io_wait": 90_000})).sentence


def test_a_device_without_evidence_is_unresolved(tmp_path: Path) -> None:
    assert only_device(late(), tmp_path).verdict.id == "unresolved"


def test_drained_gaps_count_whole_and_sync_in_them_not_twice(tmp_path: Path) -> None:
    """
    device  [==A==)10_000|  160_000 of host code | 20_000 [==B==)..60_000 of 160_000 in a sync..[==C==)
    thread     [sync     ]                                           [sync]
    """
    trace = late().sched(500, True).api("cudaStreamSynchronize", 50_000, 120_000)
    trace.kernel(560_000, 700_000, launch=(540_000, 550_000)).api("cudaDeviceSynchronize", 450_000, 460_000)
    device = only_device(trace, tmp_path)
    assert device.ledger["sync"] == 20_000
    assert device.sync_drained == {"gaps": 1, "ns": 190_000}
    assert device.verdict.id == "sync-bound"  # 190_000 + 10_000 of 350_000


def test_an_empty_file_with_only_zero_length_work(tmp_path: Path) -> None:
    device = only_device(TraceBuilder().kernel(1_000, 1_000, launch=(1, 2)), tmp_path)
    assert (device.verdict.id, device.window_ns, device.coverage) == ("no-gpu-work", 0, None)


def test_thresholds_are_settings(tmp_path: Path) -> None:
    trace = late().osrt("read", 110_000, 280_000)
    assert only_device(trace, tmp_path).verdict.id == "input-bound"
    strict = Settings(thresholds=Thresholds(input=2.0))
    report = report_of(trace, tmp_path, strict)
    assert report.devices[0].verdict.id == "io_wait-bound"
    assert report.settings == {"thresholds": {"input": 2.0}}


@pytest.mark.parametrize(("untraced", "told"), [(60_000, True), (40_000, False)])
def test_off_the_cpu_for_no_known_reason_is_not_simply_contended(untraced: int, told: bool) -> None:
    """Most of it in no captured call: preempted, or in a wait that leaves no row, and the sentence says so."""
    labels = {"off_cpu": {UNTRACED: untraced, "another thread held its CPU": 100_000 - untraced}}
    found = verdict(replace(given({"off_cpu": 100_000, "sync": 200_000}), labels=labels))
    assert found.id == "contended"
    assert ("leaves no row" in found.sentence) is told


def test_what_leads_elsewhere_is_no_contention_of_the_launching_thread() -> None:
    """A worker without a CPU is at the root; the launching thread itself only waited."""
    found = verdict(replace(given({"off_cpu": 200_000, "io_wait": 90_000}), off_cpu_ns=0))
    assert found.id == "off_cpu-bound"
