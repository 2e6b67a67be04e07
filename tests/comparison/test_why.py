"""Why a step is slower or faster: what became of the kernels of each family, and the largest changes in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as replaced

from nsysdiag.bottlenecks import noun_of
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import AccountChange, Comparison, KernelChange, Unit, WorkChange
from nsysdiag.comparison.job import of_this_work, reasons
from nsysdiag.comparison.show.job import why
from nsysdiag.comparison.work import family_changes
from nsysdiag.document.blocks import Heading, Lines, written_out
from nsysdiag.document.view import Causes
from tests.comparison.programs import GEMM
from tests.comparison.samples import report_of
from tests.comparison.test_headline import PLAIN, SLOW, compared, job_of
from tests.output.compare_samples import change, comparison, device
from tests.simulator.capture import Capture
from tests.simulator.engine import US

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import DeviceComparison, FamilyChange

pytestmark = pytest.mark.slow

STEPS = Unit(kind="iterations", name_before="", name_after="", count_before=30, count_after=30, scale=1.0)


def kernel(name: str, before: tuple[float, int], after: tuple[float, int], verdict: str = "improved") -> KernelChange:
    """A kernel that runs so often in a step, for so many us in all."""
    (one, was), (two, now) = before, after
    return KernelChange(
        name=name,
        short_name=name,
        communication=False,
        status="both" if one and two else "added" if two else "gone",
        count_before=one,
        count_after=two,
        mean_before_ns=0,
        mean_after_ns=0,
        change=change(was, now, verdict),
    )


def only(*rows: KernelChange) -> FamilyChange:
    (found,) = family_changes(rows, STEPS)
    return found


NONE = (0.0, 0)
COPY, NORM = "elementwise_kernel", "vectorized_layer_norm_kernel"
FUSED = "triton_poi_fused_add_0"


class TestFamilies:
    def test_elementwise_kernels_in_fewer_runs_are_fused(self) -> None:
        found = only(kernel(COPY, (8, 100), NONE), kernel(NORM, (4, 50), NONE), kernel(FUSED, NONE, (4, 40)))
        assert found.how == "fused"
        assert (found.names_before, found.names_after) == (2, 1)
        assert (found.name_before, found.name_after) == (COPY, FUSED)
        assert (found.count_before, found.count_after) == (12, 4)
        assert (found.before_ns, found.after_ns, found.change_ns) == (150 * US, 40 * US, -110 * US)

    def test_kernels_under_names_of_another_family_are_not_fused(self) -> None:
        rows = [kernel("my_softmax", (8, 100), (0, 0)), kernel("my_layer_norm", (8, 100), (0, 0))]
        rows += [kernel("my_softmax_v2", (0, 0), (8, 100)), kernel("my_ln_v2", (0, 0), (8, 100))]
        assert "fused" not in {each.how for each in family_changes(rows, STEPS)}

    def test_fewer_runs_of_products_are_not_called_fused(self) -> None:
        """They may be less work."""
        found = only(kernel(GEMM, (8, 100), NONE), kernel("nvjet_tst_128x64", NONE, (4, 40)))
        assert found.how == "replaced"

    @pytest.mark.parametrize(("after", "how"), [((8, 102), "renamed"), ((8, 60), "replaced"), ((9, 102), "replaced")])
    def test_a_rename_runs_as_often_and_as_long(self, after: tuple[float, int], how: str) -> None:
        assert only(kernel("my_kernel", (8, 100), NONE), kernel("my_other_kernel", NONE, after)).how == how

    @pytest.mark.parametrize(
        ("before", "after", "how"),
        [
            ((8, 100), NONE, "gone"),
            (NONE, (8, 100), "added"),
            ((8, 100), (8, 120), "slower"),
            ((8, 100), (8, 80), "faster"),
            ((8, 100), (16, 200), "more"),
            ((8, 100), (4, 50), "fewer"),
            ((8, 100), (10, 80), "faster"),  # more runs are not why it takes less
        ],
    )
    def test_what_happened(self, before: tuple[float, int], after: tuple[float, int], how: str) -> None:
        assert only(kernel("my_kernel", before, after)).how == how

    def test_chance_changes_no_family(self) -> None:
        assert family_changes([kernel("my_kernel", (8, 100), (8, 101), "same")], STEPS) == []

    def test_without_an_interval_only_large_changes_count(self) -> None:
        rows = [
            replaced(kernel("my_kernel", (8, 100), (8, now)), change=change(100, now, told=False)) for now in (110, 130)
        ]
        assert [len(family_changes([row], STEPS)) for row in rows] == [0, 1]

    def test_kernels_of_the_start_are_not_of_the_step(self) -> None:
        start = kernel("cutlass_tile_0_gemm", (0.1, 30), NONE)
        assert family_changes([start], STEPS) == []
        assert len(family_changes([start], replaced(STEPS, kind="kernels"))) == 1

    def test_families_do_not_mix(self) -> None:
        rows = [kernel(COPY, (8, 100), NONE), kernel(GEMM, NONE, (4, 40))]
        assert {(each.family, each.how) for each in family_changes(rows, STEPS)} == {
            ("elementwise", "gone"),
            ("products", "added"),
        }


def said(made: Comparison) -> list[str]:
    """The heading, and a line for each change."""
    blocks = why(made, Causes(made.causes))
    if not blocks:
        return []
    heading, lines = blocks
    assert isinstance(heading, Heading)
    assert isinstance(lines, Lines)
    return [heading.text, *map(written_out, lines.lines)]


class TestSaid:
    def test_the_headline_and_the_lines_have_one_taxonomy(self) -> None:
        for made in (compared(SLOW, PLAIN), compared(PLAIN, replace(PLAIN, gemm=1.5))):
            job = job_of(made)
            assert job.top == []
            most = max(job.account, key=lambda row: abs(row.change_ns))
            assert f"; {noun_of(most.bottleneck)} " in made.headline
            sign = made.headline.rpartition("; ")[2].removeprefix(f"{noun_of(most.bottleneck)} ").partition(",")[0]
            assert said(made)[1].lower().startswith(f"{noun_of(most.bottleneck)} {sign}".lower())

    def test_a_wait_that_is_less(self) -> None:
        heading, first, *_more = said(compared(SLOW, PLAIN))
        assert heading == "Why it is faster"
        assert first.startswith("Synchronization -291 µs: less waiting, ")

    def test_slower_kernels_are_named(self) -> None:
        heading, first, *_more = said(compared(PLAIN, replace(PLAIN, gemm=1.5)))
        assert heading == "Why it is slower"
        assert first.startswith("Kernels +")
        assert f"slower: 1 matrix product kernel ({GEMM}), " in first

    def test_what_took_the_work_of_kernels_that_are_gone_is_named(self) -> None:
        _heading, first, *_more = said(compared(PLAIN, replace(PLAIN, form="fused")))
        assert first.startswith("Kernels -")
        assert "2 elementwise kernels gone" in first
        assert "1 kernel new (fused_relu_norm)" in first

    def test_nothing_is_said_of_chance(self) -> None:
        assert said(compared(PLAIN, PLAIN)) == []

    def test_graphs_recorded_as_wholes_have_no_kernels_to_compare(self) -> None:
        whole = Capture(graphs="graph")
        graphs = replace(PLAIN, graph=True)
        made = compare_reports([report_of(graphs, whole)], [report_of(replace(graphs, gemm=2.0, seed=1), whole)])
        assert made.devices[0].families == []
        assert any("recorded as wholes" in line for line in said(made))

    def test_more_launches_are_counted(self) -> None:
        account = [AccountChange(bottleneck="launch", before_ns=0, after_ns=100 * US, change_ns=100 * US)]
        found = device()
        rows = [replaced(row, after=24.0) if row.id == "launches" else row for row in made_work()]
        made = charged(replaced(found, work=rows), account, "regressed")
        assert said(made) == ["Why it is slower", "Launch overhead +100 µs: more launches, 19 → 24 a step"]

    def test_causes_that_came_and_went_are_named(self) -> None:
        account = [
            AccountChange(bottleneck="sync", before_ns=400 * US, after_ns=0, change_ns=-400 * US),
            AccountChange(bottleneck="host", before_ns=0, after_ns=60 * US, change_ns=60 * US),
        ]
        found = device()
        gone = replaced(found.ledger[0], change=change(400, 0, "improved"))
        lines = said(charged(replaced(found, root_ledger=[gone, *found.ledger[1:]]), account, "improved"))
        assert lines[1].startswith("Synchronization -400 µs: less waiting, 400 µs → none")
        assert "; host code is new" in lines[2]


def charged(found: DeviceComparison, account: list[AccountChange], verdict: str) -> Comparison:
    """A comparison of this device, whose step is charged so."""
    made = comparison([found])
    assert made.job is not None
    why = reasons(account, [], found, found.length)
    return replaced(made, job=replaced(made.job, account=account, verdict=verdict, why=why))


def made_work() -> list[WorkChange]:
    made = comparison()
    assert made.job is not None
    return list(made.job.work)


def test_an_account_of_other_work_is_not_shown() -> None:
    """Two loops are judged, and one is compared."""
    found = device()
    account = [AccountChange(bottleneck="kernels", before_ns=600 * US, after_ns=605 * US, change_ns=5 * US)]
    assert of_this_work(account, found)
    assert not of_this_work([replaced(account[0], after_ns=500 * US)], found)
