"""Repeats that get a number of the host and attend once may be layers of a pass; a step gets or gives more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000
REPEATS, LENGTH = 16, 1_000 * US
KERNELS = ("flash_fwd_kernel", "sgemm_128x128_nn", "vectorized_layer_norm_kernel", "elementwise_kernel")


def trace_of(*, upload: int, attends: int, copies_back: bool, attention: str) -> TraceBuilder:
    """Repeats that upload so many bytes, attend and compute.

    device  [up][flash][gemm][norm][mul][back]   [up][flash][gemm][norm][mul][back]
    """
    trace = TraceBuilder()
    for number in range(REPEATS):
        at = US * US + number * LENGTH
        trace.memcpy(at, at + 2 * US, host="pageable", size=upload, launch=(at - 20 * US, at + 3 * US))
        at += 5 * US
        for name in (attention,) * attends + KERNELS[1:]:
            trace.kernel(at, at + 150 * US, name=name, launch=(at - 100 * US, at - 95 * US))
            at += 155 * US
        if copies_back:
            trace.memcpy(at, at + 2 * US, kind="DtoH", host="pinned", size=4, launch=(at - 50 * US, at - 45 * US))
    return trace


@pytest.mark.parametrize(
    ("case", "certain"),
    [
        ({}, False),
        ({"upload": 64, "attends": 2}, False),
        ({"upload": 65}, True),
        ({"attends": 3}, True),
        ({"copies_back": True}, True),
        ({"attention": "stencil"}, True),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else "",
)
def test_a_number_for_each_layer_makes_no_step(case: dict[str, object], certain: bool, tmp_path: Path) -> None:
    plain: dict[str, object] = {"upload": 8, "attends": 1, "copies_back": False, "attention": KERNELS[0]}
    report = report_of(trace_of(**{**plain, **case}), tmp_path)  # type: ignore[arg-type]
    found = report.devices[0].iterations
    assert found is not None
    assert (found.kind, found.certain) == ("step", certain)
    (phase,) = (each for each in report.phases if each.judged and each.steps is not None)
    assert phase.steps is not None
    assert ("(or several of them are one: see --step)" in phase.steps.words) is not certain
