"""Budgets on the gaps inside one NVTX range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.report import Capability
from tests.ci.test_budgets import MS, judged, refused, report
from tests.output import samples

if TYPE_CHECKING:
    from nsysdiag.report import Report, SignatureRow


def row(nvtx: list[str], cause: str, total: int, count: int, per_iteration: int | None = None) -> SignatureRow:
    (made, _other) = samples.device().signatures
    return replace(made, nvtx=nvtx, cause=cause, total_ns=total, count=count, per_iteration_ns=per_iteration)


def made(*rows: SignatureRow, rest_ns: int = 0, rest: int = 0) -> Report:
    """All gaps of a device are in these rows, but for the rest."""
    idle, count = sum(each.total_ns for each in rows) + rest_ns, sum(each.count for each in rows) + rest
    return report(samples.device(signatures=list(rows), idle_ns=idle, gap_count=count))


ROWS = (
    row(["train", "step #", "forward"], "sync", 10 * MS, 100, 500_000),
    row(["train", "step #", "forward", "layer #"], "dispatch", 3 * MS, 300, 150_000),
    row(["train", "step #", "backward"], "sync", 20 * MS, 50, 1_000_000),
    row([], "sync", 7 * MS, 5, 0),
)


@pytest.mark.parametrize(
    ("text", "nvtx", "value"),
    [
        ("idle_ns > 0", "forward", 13 * MS),
        ("idle_ns > 0", "train", 33 * MS),
        ("idle_ns > 0", "layer 3", 3 * MS),
        ("idle_ns > 0", "layer #", 3 * MS),
        ("idle_ns > 0", "*ward", 33 * MS),
        ("idle_share > 0", "forward", 0.13),
        ("gap_count > 0", "forward", 400),
        ("ledger.sync > 0", "forward", 10 * MS),
        ("ledger.sync_share > 0", "step 5", 0.3),
        ("ledger.lock_wait > 0", "forward", 0),
        ("idle_ns > 0/iter", "forward", 650_000),
        ("ledger.sync > 0/iter", "train", 1_500_000),
        ("gap_count > 0/iter", "backward", 50 / 18),
    ],
)
def test_only_gaps_inside_count(text: str, nvtx: str, value: float) -> None:
    result = judged(made(*ROWS), text, nvtx=nvtx)
    assert result.value == pytest.approx(value)
    assert (result.nvtx, result.broken) == (nvtx, value > 0)
    assert f" in '{nvtx}' on gpu0 is " in result.sentence


def test_gaps_that_the_report_does_not_list_may_decide() -> None:
    """13 ms in the range, and 2 ms anywhere."""
    partial = made(*ROWS, rest_ns=2 * MS, rest=40)
    assert judged(partial, "idle_ns > 12ms", nvtx="forward").broken
    assert not judged(partial, "idle_ns > 15ms", nvtx="forward").broken
    assert "the rest may decide it" in refused(partial, "idle_ns > 14ms", nvtx="forward")
    assert "the rest may decide it" in refused(partial, "idle_ns == 14ms", nvtx="forward")
    assert "the rest may decide it" in refused(partial, "idle_ns != 14ms", nvtx="forward")
    assert judged(partial, "idle_ns != 16ms", nvtx="forward").broken
    assert "the rest may decide it" in refused(partial, "gap_count > 420", nvtx="forward")
    assert "the rest may decide it" in refused(partial, "idle_share > 14%", nvtx="forward")
    assert "the rest may decide it" in refused(partial, "idle_ns > 700us/iter", nvtx="forward")


def test_a_range_that_no_gap_lies_in_is_a_mistake() -> None:
    said = refused(made(*ROWS), "idle_ns > 0", nvtx="forwrd")
    assert "none of its gap groups is in an NVTX range 'forwrd'; did you mean 'forward'?" in said


def test_a_trace_without_ranges() -> None:
    without = made(ROWS[-1])
    capabilities = [Capability(id="nvtx", available=False, why="")]
    without = replace(without, trace=replace(without.trace, capabilities=capabilities))
    assert "--trace=nvtx brings those of the program" in refused(without, "idle_ns > 0", nvtx="forward")
