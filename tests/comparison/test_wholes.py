"""A side with CUDA graphs recorded as wholes: what it lacks by name may run in them. And steps that a trace cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.rows import finding_changes, kernel_changes, kernels_of, workload
from nsysdiag.comparison.show import tables
from nsysdiag.comparison.show.views import changed_gap_groups, changed_kernels, lone_findings
from nsysdiag.comparison.sides import Capture
from nsysdiag.document.blocks import Table
from nsysdiag.document.view import Causes
from tests.comparison.samples import only
from tests.comparison.test_counts import in_graphs, report, steps
from tests.output.compare_samples import CAUSES, change, device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.comparison.facts import DeviceComparison

UNSEEN = ("unrecorded_before", "unrecorded_after")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[DeviceComparison, DeviceComparison]:
    """Kernels, then graphs; and graphs, then kernels."""
    folder = tmp_path_factory.mktemp("wholes")
    one, two = report(steps("step {}", 1), folder, "kernels"), report(in_graphs("step {}"), folder, "graphs")
    return only(compare_reports([one], [two])), only(compare_reports([two], [one]))


def test_kernels_that_graphs_may_run_are_not_gone(sides: tuple[DeviceComparison, DeviceComparison]) -> None:
    for found, status in zip(sides, reversed(UNSEEN), strict=True):
        assert found.kernels
        assert {row.status for row in found.kernels} == {status}
        assert {row.change.verdict for row in found.kernels} == {"unknown"}
        assert changed_kernels(found) == []


def test_gap_groups_between_them_are_not_gone_either(sides: tuple[DeviceComparison, DeviceComparison]) -> None:
    for found, status in zip(sides, reversed(UNSEEN), strict=True):
        assert status in {row.status for row in found.signatures}
        assert not {"added" if status == UNSEEN[0] else "gone"} & {row.status for row in found.signatures}
        assert not [row for row in changed_gap_groups(found) if row.status == status]


def test_what_is_not_recorded_has_no_verdict_and_no_change() -> None:
    found = device()
    row = replace(found.kernels[0], status=UNSEEN[1], change=change(740, 0, "unknown", told=False))
    made = tables.kernels(replace(found, kernels=[row]), several=False)
    assert made is not None
    table = next(each for each in made.blocks if isinstance(each, Table))
    cells = dict(zip((column.title for column in table.columns), table.rows[0], strict=True))
    assert cells["Side"] == "not recorded after"
    assert [cells[name] for name in ("Change", "Of before", "Verdict")] == [None, None, None]


@pytest.mark.slow
def test_findings_of_kernels_alone_are_not_recorded(tmp_path: Path) -> None:
    """Idle time is measured with graphs, too: its findings may be gone."""
    one, two = report(steps("step {}", 1), tmp_path, "kernels"), report(in_graphs("step {}"), tmp_path, "graphs")
    shown = one.findings[0]
    both = [
        replace(shown, id="f-fp32", bottleneck="kernels", device="gpu0"),
        replace(shown, id="f-wait", bottleneck="sync", device="gpu0"),
    ]
    before = [Capture(replace(one, findings=both), one.devices[0], {}, 10.0, 10)]
    after = [Capture(replace(two, findings=[]), two.devices[0], {}, 10.0, 10)]
    found = {row.id: row.status for row in finding_changes(before, after)}
    assert found == {"f-fp32": "unrecorded_after", "f-wait": "gone"}
    back = {row.id: row.status for row in finding_changes(after, before)}
    assert back == {"f-fp32": "unrecorded_before", "f-wait": "added"}
    rows = replace(device(), findings=finding_changes(before, after))
    assert [row.id for row in lone_findings(rows)] == ["f-wait"]
    section = tables.findings(rows, Causes(CAUSES), several=False)
    assert section is not None


@pytest.mark.slow
def test_a_kernel_that_runs_as_often_outside_of_graphs_is_judged(tmp_path: Path) -> None:
    one = report(in_graphs("step {}"), tmp_path, "graphs")
    base = report(steps("step {}", 1), tmp_path, "kernels").devices[0].kernels[0]

    def side(count: int) -> list[Capture]:
        kernels = [replace(base, count=count, total_ns=count * 1_000)]
        return [Capture(one, replace(one.devices[0], kernels=kernels), {}, 10.0, 10)]

    for after, expected in ((100, "improved"), (50, "unknown")):
        (row,) = kernel_changes(kernels_of(side(100), side(after)), {}, lambda was, now: change(was, now, "improved"))
        assert (row.status, row.change.verdict) == ("both", expected)


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        ([3.0] * 9 + [0.0], 3.0),
        ([1.0] + [3.0] * 9, 3.0),
        ([3.0] * 9 + [9.0], 3.6),  # a last step that does more is not cut
        ([3.0, 0.0, *[3.0] * 8], 2.7),  # nor is one between others
        ([1.0, 5.0, 3.0, 4.0], 3.25),  # steps of several kinds
        ([3.0, 0.0], 1.5),
    ],
)
def test_a_step_that_the_trace_cut_does_not_count(kernels: list[float], expected: float) -> None:
    table = {"length": np.ones(len(kernels)), "ops.kernel": np.array(kernels), "ops.graph": np.ones(len(kernels))}
    side = [Capture(None, None, table, 1.0, len(kernels))]  # type: ignore[arg-type]
    rows = {row.id: row.after for row in workload(side, side)}
    assert rows == {"kernel": pytest.approx(expected), "graph": 1.0}
