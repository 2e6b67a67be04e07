"""Findings of every simulated program: exact sums, causes that have time, and rows that are in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.findings.rules import BEFORE_WORK
from tests.selecting import selected
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.shared import Shared

WITHOUT_ROWS = (BEFORE_WORK.id,)
"""A bottleneck before the first work may have neither calls nor CPU samples."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_findings_of_a_scenario(name: str, shared: Shared) -> None:
    path = shared.trace(name)
    report = shared.report(path)
    assert len(report.findings) <= 12
    for device in report.devices:
        mine = [finding for finding in report.findings if finding.devices == [device.key]]
        assert sum(finding.lost_ns for finding in mine if finding.cause in CAUSES) <= device.idle_ns
        for finding in mine:
            assert finding.lost_ns <= device.root_ledger.get(finding.cause, device.window_ns)
            assert finding.saves is None or finding.saves.low_ns <= finding.saves.ns <= finding.saves.high_ns
    for finding in report.findings:
        assert (
            finding.ceiling_ns <= max(device.window_ns for device in report.devices) or finding.cause == BEFORE_WORK.id
        )
        assert len(finding.rows) <= 3, finding.id
        assert finding.rows or finding.cause in WITHOUT_ROWS, finding.id
        assert [selected(path, row) for row in finding.rows] == [1] * len(finding.rows), finding
