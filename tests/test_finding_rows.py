"""Findings of every simulated program: exact sums, and rows that are in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.causes import CAUSES
from tests.selecting import selected
from tests.simulator.scenarios import SCENARIOS, scenario

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_findings_of_a_scenario(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    scenario(name).write(path, SCENARIOS[name].capture)
    report = analyze(path, Settings(timeline=False))
    lost = [finding.lost_ns for finding in report.findings]
    assert lost == sorted(lost, reverse=True)
    assert len(lost) <= 12
    for device in report.devices:
        mine = [finding for finding in report.findings if finding.device == device.key]
        assert sum(finding.lost_ns for finding in mine if finding.cause in CAUSES) <= device.idle_ns
        assert sum(finding.lost_ns for finding in mine) <= device.window_ns - device.compute_ns
        for finding in mine:
            assert finding.lost_ns <= device.root_ledger.get(finding.cause, device.window_ns)
            assert finding.lost_ns <= finding.ceiling_ns <= device.window_ns
    for finding in report.findings:
        assert 1 <= len(finding.rows) <= 3, finding.id
        assert [selected(path, row) for row in finding.rows] == [1] * len(finding.rows), finding


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_finding_about_a_cause_without_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    scenario(name).write(path, SCENARIOS[name].capture)
    for device in (report := analyze(path, Settings(timeline=False))).devices:
        for finding in report.findings:
            drained = finding.cause in ("sync", "blocking_copy") and device.sync_drained.get("ns", 0) > 0
            if finding.device == device.key and finding.cause in CAUSES and not drained:
                assert device.root_ledger[finding.cause] > 0
