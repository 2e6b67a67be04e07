"""What a finding on exposed copies or communication counts is of the judged time, as its share and its saving are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
STEPS, STEP, FIRST = 200, 2 * MS, 100 * MS


def loop_behind_a_start() -> TraceBuilder:
    """Uploads and an exchange for 100 ms, then steps of 2 ms: 1 ms of a kernel, 0.6 ms of a download or a collective.

    uploads [= 40 ms =][= 40 ms =] exchange [== 10 ms ==]  | kernel [= 1 =] download [0.6] | kernel ...
    """
    trace = TraceBuilder()
    for at in (1 * MS, 41 * MS):
        trace.memcpy(at, at + 40 * MS, host="pageable", size=1 << 28, launch=(at - 1000, at + 40 * MS))
    trace.kernel(81 * MS, 91 * MS, name="ncclDevKernel_Broadcast", launch=(81 * MS - 9000, 81 * MS - 5000))
    for number in range(STEPS):
        at = FIRST + number * STEP
        trace.kernel(at, at + MS, name="solve", launch=(at - 9000, at - 5000))
        end = at + MS + 600_000
        if number % 2:
            trace.kernel(at + MS, end, name="ncclDevKernel_AllReduce", launch=(at + MS - 9000, at + MS - 5000))
        else:
            trace.memcpy(at + MS, end, kind="DtoH", host="pageable", size=1 << 20, launch=(at + MS - 9000, end))
        trace.kernel(end, end + 100_000, name="reduce", launch=(end + 1000 - 9000, end + 1000 - 5000))
    return trace


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("exposed_copy", "memcpy DtoH to pageable: 99, 59.4 ms in all"),
        ("exposed_comm", "ncclDevKernel_AllReduce: 100 kernels, 60.0 ms in all"),
    ],
)
def test_evidence_is_of_the_judged_time(cause: str, said: str, tmp_path: Path) -> None:
    report = report_of(loop_behind_a_start(), tmp_path)
    judged = [each for each in report.phases if each.judged]
    assert [each.start_ns >= 91 * MS for each in judged] == [True]
    found = next(each for each in report.findings if each.cause == cause)
    assert found.evidence[0] == said
    assert not any("HtoD" in text or "Broadcast" in text for text in found.evidence)
    first = found.measured[0]
    assert first.ns == 600_000 * (first.count or 0)
