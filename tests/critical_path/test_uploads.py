"""Uploads from pageable memory on the critical path: what is between them is the driver, which stages each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag import analyze
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000
STEPS, STEP, UPLOADS = 30, 2_000 * US, 10


def test_staging_is_a_blocking_copy_and_no_dispatch(tmp_path: Path) -> None:
    """Each step uploads ten arrays, each staged for 38 µs while the one before it is copied, and computes for a ms.

    thread  [staged 38 ..][staged 38 ..]....[launch]
    device              [copy]        [copy]...[= solve =]
    """
    trace = TraceBuilder()
    for number in range(STEPS):
        at = 1_000 * US + number * STEP
        for _ in range(UPLOADS):
            copy = at + 38 * US
            trace.memcpy(
                copy, copy + 8 * US, host="pageable", size=1 << 16, launch=(at, at + 40 * US), api="cudaMemcpy"
            )
            at += 42 * US
        trace.kernel(at + 10 * US, at + 1_010 * US, name="solve", launch=(at, at + 5 * US))
    path = analyze(trace.write(tmp_path / "trace.sqlite")).critical_path
    assert path is not None
    ns = {each.cause or each.bottleneck: each.ns for each in path.parts}
    assert ns["blocking_copy"] > 0.9 * (UPLOADS - 1) * 34 * US
    assert ns.get("dispatch", 0) < 0.01 * path.total_ns
