"""Which operations of two steps are the same one, what differs, and where the difference of their lengths accrues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag import analyze
from nsysdiag.arrays.groups import from_planes, from_text
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import DeviceComparison
from nsysdiag.comparison.step_facts import AlignedSteps, SideSteps, StepDifference
from nsysdiag.comparison.step_matching import in_one_order
from nsysdiag.comparison.step_pairs import OTHER_UNITS
from nsysdiag.messages import InputError
from nsysdiag.report import Report
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.engine import US
from tests.simulator.host import Body

NAMES = st.lists(st.integers(0, 3), max_size=7)
STEPS = 12


def longest(before: Sequence[int], after: Sequence[int]) -> int:
    """By trying all."""
    held = {part for size in range(len(after) + 1) for part in combinations(after, size)}
    return max(size for size in range(len(before) + 1) for part in combinations(before, size) if part in held)


@given(NAMES, NAMES)
def test_the_longest_common_order_is_found(before: list[int], after: list[int]) -> None:
    one, two = in_one_order(before, after)
    assert [before[at] for at in one] == [after[at] for at in two]
    assert (np.diff(one) > 0).all()
    assert (np.diff(two) > 0).all()
    assert len(one) == longest(before, after)


Work = Callable[[Thread], Body]


def kernels(t: Thread, *named: tuple[str, int]) -> Body:
    for name, ns in named:
        yield from t.launch(name, ns)


def written(path: Path, work: Work) -> Report:
    """A program whose steps each end with a wait for the device, so that every step begins on an idle one."""
    sim = Simulation()

    def body(t: Thread) -> Body:
        for step in range(STEPS):
            t.push(f"step {step}")
            yield from work(t)
            yield from t.synchronize()
            t.pop()

    sim.thread(sim.process(), body)
    return analyze(sim.run().write(path))


def compared(folder: Path, before: Work, after: Work) -> DeviceComparison:
    reports = [written(folder / f"{name}.sqlite", work) for name, work in (("one", before), ("two", after))]
    return compare_reports(reports[:1], reports[1:]).devices[0]


def steps_of(device: DeviceComparison) -> AlignedSteps:
    assert device.steps is not None, device.no_steps
    return device.steps


def column(text: str, count: int) -> list[int]:
    return [int(each) for each in from_planes(from_text(text, 8 * count), count)] if text else [0] * count


def of_kind(steps: AlignedSteps, kind: str) -> list[StepDifference]:
    return [each for each in steps.differences if each.kind == kind]


def usual(t: Thread) -> Body:
    yield from kernels(
        t, ("load", 40 * US), ("gemm", 300 * US), ("relu", 50 * US), ("gemm", 300 * US), ("norm", 60 * US)
    )


@pytest.mark.slow
def test_one_slower_kernel_is_longer_and_all_else_is_alike(tmp_path: Path) -> None:
    def slower(t: Thread) -> Body:
        yield from kernels(
            t, ("load", 40 * US), ("gemm", 300 * US), ("relu", 150 * US), ("gemm", 300 * US), ("norm", 60 * US)
        )

    steps = steps_of(compared(tmp_path, usual, slower))
    assert steps.matched[0] == 5
    assert column(steps.before.marks, sum(steps.before.counts))[:5] == [0, 0, 3, 0, 0]
    assert column(steps.after.marks, sum(steps.after.counts))[:5] == [0, 0, 2, 0, 0]
    (found,) = steps.differences
    assert (found.kind, found.count, found.names_before, found.names_after) == ("other_length", 1, ["relu"], ["relu"])
    assert (found.before_ns, found.after_ns) == (50 * US, 150 * US)


@pytest.mark.slow
def test_a_removed_synchronization_is_idle_time_of_one_side(tmp_path: Path) -> None:
    def waiting(t: Thread) -> Body:
        yield from kernels(t, ("load", 40 * US), ("gemm", 300 * US), ("relu", 50 * US))
        yield from t.synchronize(cost=90 * US)
        yield from kernels(t, ("gemm", 300 * US), ("norm", 60 * US))

    steps = steps_of(compared(tmp_path, waiting, usual))
    assert steps.matched[0] == 5
    assert {each.kind for each in steps.differences} == {"idle"}
    first = steps.differences[0]
    assert first.cause_before == "sync"
    assert first.before_ns - first.after_ns > 80 * US
    assert first.from_before_ns is not None
    assert first.from_before_ns >= 390 * US


@pytest.mark.slow
def test_fused_kernels_are_replaced(tmp_path: Path) -> None:
    def fused(t: Thread) -> Body:
        yield from kernels(t, ("load", 40 * US), ("gemm_relu", 310 * US), ("gemm", 300 * US), ("norm", 60 * US))

    steps = steps_of(compared(tmp_path, usual, fused))
    (found,) = of_kind(steps, "replaced")
    assert (found.names_before, found.names_after) == (["gemm", "relu"], ["gemm_relu"])
    assert (found.before_ns, found.after_ns) == (350 * US, 310 * US)
    assert column(steps.before.marks, sum(steps.before.counts))[:5] == [0, 1, 1, 0, 0]
    assert column(steps.after.marks, sum(steps.after.counts))[:4] == [0, 1, 0, 0]


@pytest.mark.slow
def test_an_inserted_copy_does_not_shift_the_others(tmp_path: Path) -> None:
    def copies(t: Thread, *, more: bool) -> Body:
        if more:
            yield from t.copy("HtoD", 1 << 20, 70 * US, t.process.null)
        yield from kernels(t, ("gemm", 300 * US))
        yield from t.copy("HtoD", 1 << 20, 80 * US, t.process.null)
        yield from kernels(t, ("norm", 60 * US))
        yield from t.copy("HtoD", 1 << 20, 90 * US, t.process.null)

    steps = steps_of(compared(tmp_path, lambda t: copies(t, more=False), lambda t: copies(t, more=True)))
    (found,) = of_kind(steps, "only_after")
    assert (found.count, found.from_before_ns, found.after_ns) == (1, None, 70 * US)
    assert column(steps.after.marks, sum(steps.after.counts))[:5] == [1, 0, 0, 0, 0]


@pytest.mark.slow
def test_an_operation_that_moved_is_the_same_one(tmp_path: Path) -> None:
    def early(t: Thread) -> Body:
        yield from kernels(t, ("norm", 60 * US), ("gemm", 300 * US), ("relu", 50 * US))

    def late(t: Thread) -> Body:
        yield from kernels(t, ("gemm", 300 * US), ("relu", 50 * US), ("norm", 60 * US))

    steps = steps_of(compared(tmp_path, early, late))
    assert steps.matched[0] == 3
    assert not any(column(steps.before.marks, sum(steps.before.counts)))


def spans_of(side: SideSteps) -> list[tuple[int, int]]:
    """Start and end of each operation of the typical step."""
    apart, lengths = (column(text, sum(side.counts))[: side.counts[0]] for text in (side.apart, side.lengths))
    found, reach = [], 0
    for step, length in zip(apart, lengths, strict=True):
        start = reach + signed(step)
        reach = start + length
        found.append((start, reach))
    return found


def signed(value: int) -> int:
    return -(value + 1) // 2 if value % 2 else value // 2


def places(text: str, counts: list[int]) -> list[int]:
    return list(np.cumsum([signed(each) for each in column(text, sum(counts))[: counts[0]]]))


@pytest.mark.slow
def test_the_difference_accrues_where_a_kernel_takes_longer(tmp_path: Path) -> None:
    """Both sides are level up to its start; from its end on, the one after is as late as the kernel is longer."""

    def slower(t: Thread) -> Body:
        yield from kernels(
            t, ("load", 40 * US), ("gemm", 300 * US), ("relu", 150 * US), ("gemm", 300 * US), ("norm", 60 * US)
        )

    steps = steps_of(compared(tmp_path, usual, slower))
    assert column(steps.front, sum(steps.matched))[:5] == [1] * 5
    one, two = spans_of(steps.before), spans_of(steps.after)
    pairs = zip(places(steps.places_before, steps.matched), places(steps.places_after, steps.matched), strict=True)
    behind = [two[after][1] - one[before][1] for before, after in pairs]
    assert max(map(abs, behind[:2])) < 5 * US
    assert max(abs(each - 100 * US) for each in behind[2:]) < 5 * US
    assert abs(steps.after.length_ns[0] - steps.before.length_ns[0] - behind[-1]) < 5 * US


@pytest.mark.slow
def test_the_typical_step_is_nearest_the_median(tmp_path: Path) -> None:
    """Step 4 alone takes longer: it is in the list of steps, and is not the typical one."""
    count = iter(range(2 * STEPS))

    def uneven(t: Thread) -> Body:
        yield from kernels(t, ("gemm", (900 if next(count) % STEPS == 4 else 300) * US), ("relu", 50 * US))

    steps = steps_of(compared(tmp_path, uneven, uneven))
    for side in (steps.before, steps.after):
        assert side.length_ns[0] < 600 * US
        assert 4 in side.numbers[1:]
    assert steps.before.numbers[1:] == steps.after.numbers[1:]
    assert steps.differences == []


@pytest.mark.slow
def test_without_steps_on_a_side_nothing_is_drawn_and_the_reason_is_said(tmp_path: Path) -> None:
    report = written(tmp_path / "one.sqlite", usual)
    bare = msgspec.structs.replace(report, devices=[msgspec.structs.replace(report.devices[0], iterations=None)])
    (found,) = compare_reports([bare], [report]).devices
    assert (found.steps, found.no_steps) == (None, OTHER_UNITS)


@pytest.mark.slow
def test_a_saved_report_without_the_time_of_its_steps_says_so(tmp_path: Path) -> None:
    report = written(tmp_path / "one.sqlite", usual)
    (device,) = report.devices
    assert device.iterations is not None
    assert device.iterations.packed is not None
    packed = msgspec.structs.replace(device.iterations.packed, first_ns=None, apart="")
    iterations = msgspec.structs.replace(device.iterations, packed=packed)
    older = msgspec.structs.replace(report, devices=[msgspec.structs.replace(device, iterations=iterations)])
    (found,) = compare_reports([older], [report]).devices
    assert found.steps is None
    assert "does not hold" in found.no_steps


@pytest.mark.slow
def test_a_damaged_report_is_refused(tmp_path: Path) -> None:
    report = written(tmp_path / "one.sqlite", usual)
    assert isinstance(report.timeline, dict)
    ((key, levels),) = report.timeline.items()
    lanes = [msgspec.structs.replace(each, count=each.count + 1) for each in levels.lanes]
    damaged = msgspec.structs.replace(report, timeline={key: msgspec.structs.replace(levels, lanes=lanes)})
    with pytest.raises(InputError, match="damaged"):
        compare_reports([damaged], [report])
