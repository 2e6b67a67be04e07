"""Findings: which there are, how severe, in what order, and what they claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.findings import ranked, severity
from nsysdiag.model import Finding
from tests.analysis.causes.example import late
from tests.analysis.traces import report_of
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path


def finding(number: int, lost_ns: int) -> Finding:
    return Finding(
        id=f"f-{number:02}",
        cause="sync",
        device="gpu0",
        severity="low",
        title="",
        lost_ns=lost_ns,
        lost_share=0.1,
        ceiling_ns=lost_ns,
        confidence=1.0,
        nvtx=[],
        evidence=[],
        advice=[],
    )


@pytest.mark.parametrize(
    ("share", "word"),
    [(0.2, "high"), (0.1999, "medium"), (0.05, "medium"), (0.0499, "low"), (0.01, "low"), (0.0099, "info")],
)
def test_severity_by_share_of_the_window(share: float, word: str) -> None:
    assert severity(share, unresolved=False) == word
    assert severity(share, unresolved=True) == "info"


def test_a_dozen_at_most_and_the_largest() -> None:
    found = ranked([finding(number, 1_000 * number) for number in range(20)])
    assert [each.lost_ns for each in found] == [1_000 * number for number in range(19, 7, -1)]


def test_equal_ones_by_id() -> None:
    assert [each.id for each in ranked([finding(3, 10), finding(1, 10), finding(2, 20)])] == ["f-02", "f-01", "f-03"]


def test_of_one_device(tmp_path: Path) -> None:
    """
    device  [==A==)  read 60_000, sync 30_000, unknown 80_000, launching 20_000  [==B==)     window 390_000
    """
    trace = late().osrt("read", 110_000, 170_000).api("cudaDeviceSynchronize", 200_000, 230_000)
    findings = report_of(trace, tmp_path).findings
    assert [(each.cause, each.lost_ns, each.severity) for each in findings] == [
        ("uncovered", 80_000, "info"),
        ("io_wait", 60_000, "medium"),
        ("sync", 30_000, "medium"),
        ("launch_call", 10_000, "low"),
        ("launch_latency", 10_000, "low"),
    ]
    by_cause = {each.cause: each for each in findings}
    assert by_cause["io_wait"].id == "f-gpu0-io_wait"
    assert by_cause["io_wait"].lost_share == round(60_000 / 390_000, 6)
    assert by_cause["io_wait"].ceiling_ns == 60_000
    assert by_cause["io_wait"].confidence == round(1 - 80_000 / 190_000, 4)
    assert by_cause["uncovered"].confidence == 0
    assert any(line.startswith("read: 60.0 us in 1 ") for line in by_cause["io_wait"].evidence)
    assert all(list(CAUSES[each.cause].advice) == each.advice for each in findings)


@pytest.mark.parametrize(("duration", "found"), [(3_900, True), (3_899, False)])
def test_a_cause_below_1_per_cent_of_the_window_is_none(duration: int, found: bool, tmp_path: Path) -> None:
    findings = report_of(late().osrt("read", 150_000, 150_000 + duration), tmp_path).findings
    assert ("io_wait" in {each.cause for each in findings}) == found


def test_no_saving_exceeds_the_window(tmp_path: Path) -> None:
    """A sync that drained the queue may claim the gap that follows, and no more."""
    trace = late().api("cudaStreamSynchronize", 50_000, 120_000)
    report = report_of(trace, tmp_path)
    (sync,) = [each for each in report.findings if each.cause == "sync"]
    assert (sync.lost_ns, sync.ceiling_ns) == (10_000, 190_000)
    assert all(each.ceiling_ns <= report.devices[0].window_ns for each in report.findings)


def test_work_that_nothing_hides_is_a_finding(tmp_path: Path) -> None:
    """
    device  [nccl: 60_000)[copy: 30_000)[K: 10_000)
    """
    trace = TraceBuilder().kernel(1_000, 61_000, name="ncclDevKernel_AllGather", launch=(1, 2))
    trace.memcpy(61_000, 91_000, launch=(3, 4)).kernel(91_000, 101_000, launch=(5, 6))
    findings = report_of(trace, tmp_path).findings
    assert [(each.cause, each.lost_ns, each.severity, each.confidence) for each in findings] == [
        ("exposed_comm", 60_000, "high", 1.0),
        ("exposed_copy", 30_000, "high", 1.0),
    ]


def test_devices_are_ranked_together(tmp_path: Path) -> None:
    """
    device 0  [K)...read 50_000....[K)
    device 1  [K)...read 80_000........[K)
    """
    trace = TraceBuilder().osrt("read", 2_000, 100_000)
    for device, start in ((0, 52_000), (1, 82_000)):
        trace.kernel(1_000, 2_000, device=device, launch=(1, 2))
        trace.kernel(start, start + 1_000, device=device, launch=(start - 1, start))
    findings = report_of(trace, tmp_path).findings
    assert [(each.device, each.cause) for each in findings][:2] == [("gpu1", "io_wait"), ("gpu0", "io_wait")]
