"""Findings of every simulated program: exact sums, causes that have time, and rows that are in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from tests.selecting import selected
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.shared import Shared


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_findings_of_a_scenario(name: str, shared: Shared) -> None:
    path = shared.trace(name)
    report = shared.report(path)
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
            drained = finding.cause in ("sync", "blocking_copy") and device.sync_drained.get("ns", 0) > 0
            if finding.cause in CAUSES and not drained:
                assert device.root_ledger[finding.cause] > 0
    for finding in report.findings:
        assert 1 <= len(finding.rows) <= 3, finding.id
        assert [selected(path, row) for row in finding.rows] == [1] * len(finding.rows), finding
