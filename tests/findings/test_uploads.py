"""Synchronizations behind uploads, and what is advised for them; few calls that take long to issue a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding

US = 1_000
STEP, STEPS = 3_000 * US, 30


def steps(host: str) -> TraceBuilder:
    """Times in µs. A value is uploaded behind a kernel, and the host waits for that:

    gpu     [== kernel, 2000 ==)[copy)...............[== kernel
    thread  [launch][memcpyAsync][sync])[host code   ][launch]
    """
    trace = TraceBuilder()
    for step in range(STEPS):
        at = step * STEP
        trace.kernel(at + 10 * US, at + 2_010 * US, launch=(at, at + 5 * US))
        copy = (at + 6 * US, at + 9 * US)
        trace.memcpy(at + 2_011 * US, at + 2_013 * US, host=host, size=8, launch=copy, api="cudaMemcpyAsync")
        trace.api("cudaStreamSynchronize", at + 10 * US, at + 2_015 * US)
    return trace


def waits(host: str, folder: Path) -> list[Finding]:
    return [each for each in report_of(steps(host), folder).findings if each.cause == "sync"]


@pytest.mark.parametrize(("host", "uploads"), [("pageable", True), ("pinned", False)])
def test_the_wait_for_an_upload_is_not_one_for_a_value(host: str, uploads: bool, tmp_path: Path) -> None:
    """No value is read back: nothing is copied to the host."""
    (found,) = waits(host, tmp_path)
    assert ("pageable memory is uploaded" in found.title) == uploads
    assert found.advice[0].startswith("Build the value once") == uploads


def test_few_long_launches_need_no_graph(tmp_path: Path) -> None:
    """One copy takes 2 ms to issue; there is nothing to launch in a graph."""
    trace = TraceBuilder()
    trace.kernel(10 * US, 1_000 * US, launch=(0, 5 * US))
    trace.memcpy(3_010 * US, 4_000 * US, kind="DtoH", launch=(900 * US, 3_000 * US), api="cudaMemcpyAsync")
    (found,) = [each for each in report_of(trace, tmp_path).findings if each.cause == "launch_call"]
    assert "a copy or a set is issued" in found.title
    assert not any("graph" in each for each in found.advice)
