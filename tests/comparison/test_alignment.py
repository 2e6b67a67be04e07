"""Steps that one side alone shows are found in the other by the order of its operations, or it is said why not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nsysdiag
from nsysdiag.comparison.alignment import LaunchOrder, align, carried
from nsysdiag.pipeline.aligning import _steady
from tests.comparison.programs import Program
from tests.comparison.samples import only, report_of
from tests.simulator import Simulation
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.comparison.facts import Comparison
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

pytestmark = pytest.mark.usefixtures("analyzed_once")
BARE = Program(named=False, inputs=False)
SYNC = replace(BARE, sync=True, tail=500 * US)
NAMED = replace(BARE, named=True)
STEPS = 30


def operations(text: str) -> LaunchOrder:
    """A kernel of 10 ns for each letter, a copy for each dash."""
    letters = sorted(set(text))
    code = np.array([letters.index(each) for each in text], dtype=np.int64)
    start = 10 * np.arange(len(text), dtype=np.int64)
    kernel = np.array([each != "-" for each in text], dtype=np.bool_)
    return LaunchOrder(start, np.full(len(text), 10), code, kernel, letters, 10 * len(text))


def starts(one: str, two: str, each: int) -> list[int]:
    """The places of the units of the second text, whose first one has units of so many letters."""
    left, right = operations(one), operations(two)
    return (carried(align(left, right), right, np.arange(0, len(one), each)) // 10).tolist()


class TestSequences:
    @pytest.mark.parametrize("times", [5, 200])
    def test_the_same(self, times: int) -> None:
        assert starts("abcd" * times, "abcd" * times, 4) == list(range(0, 4 * times, 4))

    def test_more_before_them(self) -> None:
        found = align(operations("abcd" * 20), operations("xyz" + "abcd" * 20))
        assert found.match.tolist() == list(range(3, 83))
        assert (found.alike, found.left) == (pytest.approx(80 / 83), 0.0)

    @pytest.mark.parametrize(("unit", "length"), [("abe", 3), ("axcd", 4), ("abcxd", 5), ("ad", 2)])
    def test_renamed_fused_and_split(self, unit: str, length: int) -> None:
        assert starts("abcd" * 50, unit * 50, 4) == list(range(0, length * 50, length))

    def test_an_operation_that_comes_once_in_each_keeps_them_apart(self) -> None:
        found = starts("-" + "abc" * 6 + ("-" + "abc" * 6) * 19, ("-" + "abc" * 9) * 20, 19)
        assert found == list(range(0, 28 * 20, 28))

    def test_long_ones(self) -> None:
        assert len(starts("abcdefgh" * 2_000, "abxdefgh" * 2_000, 8)) == 2_000

    @pytest.mark.parametrize(
        ("one", "two"), [("abcd" * 20, "wxyz" * 20), ("abcd" * 20, "abcd" * 30), ("abcd" * 30, "abcd" * 20)]
    )
    def test_what_is_not_trusted(self, one: str, two: str) -> None:
        assert not align(operations(one), operations(two)).trusted

    def test_nothing(self) -> None:
        found = align(operations(""), operations("ab"))
        assert not found.trusted
        assert len(carried(found, operations("ab"), [])) == 0


@cache
def truth(before: Program, after: Program) -> float:
    """How many times as long a step takes, with ranges around each."""
    found = [report_of(replace(each, named=True)).devices[0].iterations for each in (before, after)]
    assert found[0] is not None
    assert found[1] is not None
    return found[1].p50_ns / found[0].p50_ns


def compared(before: Program, after: Program, folder: Path) -> Comparison:
    sides = [each.write(folder / f"{name}.sqlite") for name, each in (("before", before), ("after", after))]
    return nsysdiag.compare(*sides)


@pytest.mark.sampled(normal=6)
@pytest.mark.parametrize("form", ["", "renamed", "all renamed", "fused", "split"])
@pytest.mark.parametrize(
    ("before", "after"),
    [(SYNC, BARE), (BARE, SYNC), (NAMED, BARE), (SYNC, SYNC), (BARE, BARE)],
    ids=["sync removed", "sync added", "named", "sync", "neither"],
)
def test_the_same_work_is_compared_step_by_step(before: Program, after: Program, form: str, tmp_path: Path) -> None:
    after = replace(after, form=form, seed=1)
    made = compared(before, after, tmp_path)
    device = only(made)
    assert device.unit.kind == "iterations"
    assert device.length.after_ns / device.length.before_ns == pytest.approx(truth(before, after), rel=0.02)
    assert not any(row.differs for row in device.work)
    expected = (
        "same" if abs(truth(before, after) - 1) < 0.02 else "improved" if truth(before, after) < 1 else "regressed"
    )
    assert made.verdict == expected


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("before", [Program(named=False), SYNC])
def test_kernels_fused_into_one(before: Program, tmp_path: Path) -> None:
    after = replace(before, form="fused into one", seed=1)
    made = compared(before, after, tmp_path)
    assert only(made).length.after_ns / only(made).length.before_ns == pytest.approx(truth(before, after), rel=0.02)
    assert "kernels 18 → 6" in made.headline


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("after", [replace(BARE, layers=9), replace(BARE, steps=50)])
@pytest.mark.parametrize("before", [SYNC, NAMED])
def test_more_of_the_same_is_left_over(before: Program, after: Program, tmp_path: Path) -> None:
    """More layers, or more steps: nothing tells which."""
    made = compared(before, replace(after, seed=1), tmp_path)
    assert made.verdict == "unknown"
    assert "cannot be aligned" in made.notes[0]


@pytest.mark.slow
def test_other_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nsysdiag.NotComparableError, match="no unit of work in common"):
        compared(SYNC, replace(SYNC, form="other"), tmp_path)


@pytest.mark.slow
def test_saved_reports_have_no_operations_to_align(tmp_path: Path) -> None:
    saved = tmp_path / "before.json"
    report_of(SYNC).save(saved)
    after = replace(BARE, seed=1).write(tmp_path / "after.sqlite")
    assert "which a saved report does not hold" in nsysdiag.compare(saved, after).notes[0]


@pytest.mark.slow
def test_steps_of_several_captures_are_found_by_those_of_one(tmp_path: Path) -> None:
    paths = [
        replace(each, seed=seed).write(tmp_path / f"{seed}.sqlite") for seed, each in enumerate((BARE, SYNC, BARE))
    ]
    made = nsysdiag.compare(paths[:1], paths[1:])
    device = only(made)
    assert made.notes[0].startswith("The steps of a capture after are found in the others")
    assert (device.unit.kind, device.unit.count_after) == ("iterations", 59)
    mean = (1 + truth(BARE, SYNC)) / 2
    assert device.length.after_ns / device.length.before_ns == pytest.approx(mean, rel=0.02)


def once(path: Path, seed: int, *, slower: float = 1.0, jitter: float = 0.02, blocks: int = 108, more: int = 0) -> Path:
    """Kernels in an order that nowhere repeats; the longest ones may be `slower`."""
    order, chance = np.random.default_rng(5), np.random.default_rng(seed)
    simulation = Simulation()

    def about(ns: float) -> int:
        return int(ns * np.exp(chance.normal(0.0, jitter)))

    def main(t: Thread) -> Body:
        for _kernel in range(80 + more):
            size = int(order.integers(1, 12))
            yield from t.compute(about(20 * US))
            ns = about(20 * US * size * (slower if size > 6 else 1.0))
            yield from t.launch(f"kernel_{size}", ns, shape={"gridX": blocks, "blockX": 256})
        yield from t.synchronize(t.process.null)

    simulation.thread(simulation.process(), main)
    return simulation.run().write(path)


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({}, "same", ": no difference that one run a side would show"),
        ({"slower": 1.2}, "regressed", "× slower; one run a side: no interval)"),
        ({"slower": 0.8}, "improved", "× faster; one run a side: no interval)"),
        ({"slower": 1.2, "blocks": 216}, "mixed", "Not the same work: threads of the same kernels"),
    ],
)
def test_the_total_time_of_the_same_work_that_is_done_once(
    changes: dict[str, Any], verdict: str, said: str, tmp_path: Path
) -> None:
    made = nsysdiag.compare(once(tmp_path / "before.sqlite", 0), once(tmp_path / "after.sqlite", 1, **changes))
    device = only(made)
    assert (made.verdict, device.unit.same_work) == (verdict, True)
    assert said in made.headline
    assert device.length.low_ns is None
    assert "no interval" in device.notes[0]


FEW = Program(steps=3, layers=166, inputs=False, sync=True)
LONGER = {"gemm": 1.2}


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({}, "same", ": no difference that 3 steps a side would show"),
        (LONGER, "regressed", "× slower; 3 steps a side: no interval)"),
        ({"gemm": 0.8}, "improved", "× faster; 3 steps a side: no interval)"),
        (LONGER | {"steps": 4}, "regressed", "× slower; 3 steps a side: no interval)"),
        ({"tail": 20_000 * US, "steps": 2}, "same", "which may be chance (2 steps a side)"),
    ],
)
def test_few_steps_that_do_the_same_operations(
    changes: dict[str, Any], verdict: str, said: str, tmp_path: Path
) -> None:
    """Those of the side that has fewer are compared with as many of the other; a single longer wait may be chance."""
    made = compared(FEW, replace(FEW, seed=1, **changes), tmp_path)
    assert (made.verdict, only(made).unit.kind, only(made).unit.same_work) == (verdict, "iterations", True)
    assert said in made.headline
    assert only(made).length.low_ns is None


@pytest.mark.slow
def test_the_first_steps_are_those_of_all_steps() -> None:
    """Not of the 200 longest, which the report lists with their ledgers."""
    (device,) = report_of(replace(BARE, steps=230, layers=2)).devices
    assert device.iterations is not None
    assert len(device.iterations.rows) == 200 < device.iterations.steady
    assert len(_steady(device)) == device.iterations.steady


@pytest.mark.slow
def test_few_steps_that_do_other_operations_have_no_verdict(tmp_path: Path) -> None:
    made = compared(FEW, replace(FEW, seed=1, layers=190, gemm=1.2), tmp_path)
    assert (made.verdict, only(made).unit.same_work) == ("unknown", False)


@pytest.mark.slow
def test_saved_reports_do_not_tell_what_ran_in_few_steps(tmp_path: Path) -> None:
    paths = [tmp_path / f"{seed}.json" for seed in range(2)]
    for seed, path in enumerate(paths):
        report_of(replace(FEW, seed=seed)).save(path)
    made = nsysdiag.compare(*paths)
    assert made.verdict == "unknown"
    assert made.notes[0].startswith("The sides have too few steps for an interval.")


@pytest.mark.slow
def test_what_pieces_differ_by_chance_is_no_change_of_the_total(tmp_path: Path) -> None:
    before, after = (once(tmp_path / f"{seed}.sqlite", seed, jitter=0.5) for seed in (4, 5))
    length = only(nsysdiag.compare(before, after)).length
    assert length.verdict == "same"
    assert 0.1 * length.before_ns < -length.change_ns < length.least_ns


@pytest.mark.slow
def test_more_operations_are_not_the_same_work(tmp_path: Path) -> None:
    made = nsysdiag.compare(once(tmp_path / "before.sqlite", 0), once(tmp_path / "after.sqlite", 1, more=8))
    assert (made.verdict, only(made).unit.same_work) == ("unknown", False)
