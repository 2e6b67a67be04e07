"""What holds for any rows whatever: exact sums, gaps as painted, neighbours as defined, and order of no matter."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nsysdiag.config.settings import Settings
from nsysdiag.iterations.chosen import SINCE_KNOWN
from nsysdiag.messages import UsageError
from nsysdiag.pipeline import analyze
from tests.gaps.test_gaps import unpacked
from tests.launches.launch_checks import check_launches
from tests.ledger.arbitrary import SCHEMAS, THREADS, TICKS, UNITS, Call, Op, Rows, rows
from tests.ledger.slow import (
    launching_threads,
    next_ops,
    ops_by_device,
    paint,
    paint_from,
    previous_ops,
    running,
    well_formed,
)
from tests.levels import examples

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Gap, Operation, Report
    from tests.ledger.slow import Painted

pytestmark = pytest.mark.slow

EXAMPLES = examples(60)
CATEGORIES = {"nccl": "kernel", "node": "kernel", "copy": "memcpy", "pageable": "memcpy", "set": "memset"} | {
    "migration": "memcpy"
}


@contextmanager
def written(drawn: Rows, shuffle_seed: int | None = None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield drawn.trace().write(Path(folder) / "trace.sqlite", shuffle_seed=shuffle_seed)


def report_of(drawn: Rows, shuffle_seed: int | None = None) -> Report:
    with written(drawn, shuffle_seed) as path:
        return analyze(path, drawn.settings)


def by_device(report: Report, drawn: Rows) -> list[tuple[DeviceReport, list[Op]]]:
    """Each device with its operations; every operation is of exactly one."""
    groups = ops_by_device(drawn)
    assert {frozenset((one.pid, one.device_id) for one in device.ids) for device in report.devices} == set(groups)
    return [(device, groups[frozenset((one.pid, one.device_id) for one in device.ids)]) for device in report.devices]


def agrees(found: Operation | None, candidates: list[Op], drawn: Rows) -> bool:
    old = drawn.schema == "2.9.1"
    return found is not None and any(
        (found.start_ns, found.end_ns) == (op.start, op.end)
        and found.category in (CATEGORIES.get(op.kind, op.kind), "kernel" if old and op.kind == "graph" else op.kind)
        for op in candidates
    )


def check_sums(device: DeviceReport) -> None:
    split = device.compute_ns + device.exposed_comm_ns + device.exposed_copy_ns
    assert split == device.busy_ns
    assert split + device.idle_ns == device.window_ns
    assert all(ns > 0 for ns in device.ledger.values())
    assert sum(device.ledger.values()) == sum(device.root_ledger.values()) == device.idle_ns
    assert all(sum(kinds.values()) <= device.ledger[cause] for cause, kinds in device.labels.items())
    assert device.coverage is None or 0 <= device.coverage <= 1
    assert sum(row.total_ns for row in device.signatures) == device.idle_ns
    assert len(device.gaps) == device.gap_count == device.gaps_packed.count
    assert device.sync_drained["ns"] <= device.idle_ns
    check_launches(device)
    kinds = device.communication.kinds
    assert sum(row.exposed_ns for row in kinds) == device.exposed_comm_ns
    assert sum(row.overlapped_ns for row in kinds) == device.overlapped_comm_ns
    assert sum(row.total_ns for row in kinds) == device.communication.total_ns


def check_slices(device: DeviceReport) -> None:
    """Every gap is split whole, no cause twice, and the ledger is what the gaps add up to."""
    total: dict[str, int] = {}
    for gap in device.gaps:
        assert sum(part.ns for part in gap.slices) == gap.end_ns - gap.start_ns
        assert all(0 < part.ns <= gap.end_ns - gap.start_ns for part in gap.slices)
        assert len({part.cause for part in gap.slices}) == len(gap.slices)
        for part in gap.slices:
            total[part.cause] = total.get(part.cause, 0) + part.ns
    assert total == device.ledger
    most = {gap.start_ns: max(part.ns for part in gap.slices) for gap in device.gaps}
    for start, _, cause in unpacked(device.gaps_packed):
        (gap,) = [gap for gap in device.gaps if gap.start_ns == start]
        assert most[start] == next(part.ns for part in gap.slices if part.cause == cause)


def check_picture(device: DeviceReport, painted: Painted | None) -> list[Gap]:
    """The window, its split and its gaps are those of the painter; returns the gaps by time."""
    gaps = sorted(device.gaps, key=lambda gap: gap.start_ns)
    if painted is None:
        assert (device.window_ns, gaps) == (0, [])
        return gaps
    split = (device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns, device.idle_ns)
    assert split == (painted.compute, painted.exposed_comm, painted.exposed_copy, painted.idle)
    assert [(gap.start_ns, gap.end_ns) for gap in gaps] == painted.gaps
    assert [(start, start + length) for start, length, _ in unpacked(device.gaps_packed)] == painted.gaps
    return gaps


def shown_from(device: DeviceReport) -> int | None:
    """Where a window begins behind waits for work that is not in the trace; None if it is not such a window."""
    return device.window.start_ns if device.window.reason.endswith(SINCE_KNOWN) else None


def held(*spans: tuple[int, int, int]) -> Rows:
    """Kernels on these streams from start to end, all of which were launched at once at the beginning."""
    ops = [Op("kernel", THREADS[0][0], 0, *span, 20 + number) for number, span in enumerate(spans)]
    calls = [Call("cudaLaunchKernel", THREADS[0], number, number, 20 + number, 0) for number in range(len(spans))]
    return Rows(ops, calls, [], SCHEMAS[0], "apart", (TICKS + 20) * UNITS[-1])


TWO_AT_ONCE = held((7, 150_000, 180_000), (8, 150_001, 180_000), (7, 180_000, 210_000))
BEHIND_A_WAIT = held((8, 30_000, 30_001), (7, 150_000, 180_000))
SOME_BEFORE = held((7, 30_000, 60_000), (8, 300_000, 900_001), (7, 500_000, 1_200_000))


@given(rows())
@example(TWO_AT_ONCE)
@example(SOME_BEFORE)
@settings(max_examples=EXAMPLES)
def test_sums_pictures_and_neighbours(drawn: Rows) -> None:
    for device, ops in by_device(report_of(drawn), drawn):
        ran = running(ops, drawn)
        painted = paint_from(ran, shown_from(device))
        check_sums(device)
        check_slices(device)
        for gap in check_picture(device, painted):
            assert agrees(gap.previous_op, previous_ops(ran, gap.start_ns), drawn)
            assert agrees(gap.next_op, next_ops(ran, gap.end_ns, drawn.calls), drawn)
            thread = None if gap.thread is None else (gap.thread.pid, gap.thread.tid)
            assert thread in launching_threads(ran, gap.end_ns, drawn.calls)
        if painted is not None:
            assert device.window.parts == [painted.window]
        assert device.ops.malformed == sum(not well_formed(op, drawn) for op in ops)
        assert device.ops.zero_length == sum(well_formed(op, drawn) and op.start == op.end for op in ops)


@given(rows(), st.integers(0, 3))
@settings(max_examples=EXAMPLES)
def test_the_order_of_rows_means_nothing(drawn: Rows, seed: int) -> None:
    plain, shuffled = report_of(drawn), report_of(drawn, shuffle_seed=seed)
    assert [device.ledger for device in shuffled.devices] == [device.ledger for device in plain.devices]
    for one, other in zip(plain.devices, shuffled.devices, strict=True):
        assert [(gap.start_ns, gap.end_ns) for gap in one.gaps] == [(gap.start_ns, gap.end_ns) for gap in other.gaps]
        assert (one.verdict, one.coverage, one.sync_drained) == (other.verdict, other.coverage, other.sync_drained)


@given(rows(), st.integers(-5, TICKS), st.integers(0, TICKS))
@example(SOME_BEFORE, 0, 12)
@settings(max_examples=EXAMPLES)
def test_any_part_of_the_time(drawn: Rows, first: int, length: int) -> None:
    """Narrowed windows: the painter's gaps cut at the borders; the ledger of a part never exceeds that of the whole."""
    unit = drawn.duration // (TICKS + 20)
    low, high = first * unit, (first + length) * unit + 1
    with written(drawn) as path:
        whole = analyze(path, drawn.settings)
        narrowed = Settings(same_gpu=drawn.settings.same_gpu, gaps=0, timeline=False, start_ns=low, end_ns=high)
        painted = [paint_from(running(ops, drawn), shown_from(device)) for device, ops in by_device(whole, drawn)]
        lengths = [max(0, min(high, each.window[1]) - max(low, each.window[0])) for each in painted if each]
        try:
            part = analyze(path, narrowed)
        except UsageError:
            assert not any(lengths)
            return
    assert any(lengths)
    for device, ops in by_device(part, drawn):
        check_sums(device)
        check_slices(device)
        (all_of_it,) = [other for other in whole.devices if other.key == device.key]
        begin = max(low, shown_from(all_of_it) or low)
        check_picture(device, paint(running(ops, drawn), [(begin, max(begin, high))]))
        assert all(ns <= all_of_it.ledger.get(cause, 0) for cause, ns in device.ledger.items())
        assert device.floor_ns == all_of_it.floor_ns


@given(rows(), st.data())
@settings(max_examples=examples(20))
def test_a_cut_window_splits_the_ledger_in_two(drawn: Rows, data: st.DataObject) -> None:
    """Both sides of any border together have the ledger of the whole."""
    with written(drawn) as path:
        whole = [device for device in analyze(path, drawn.settings).devices if device.window_ns > 1]
        if not whole:
            return
        device = data.draw(st.sampled_from(whole))
        border = data.draw(st.integers(device.window.start_ns + 1, device.window.end_ns - 1))
        total: dict[str, int] = {}
        for bounds in ({"end_ns": border}, {"start_ns": border}):
            side = Settings(same_gpu=drawn.settings.same_gpu, device=device.key, timeline=False, **bounds)  # type: ignore[arg-type]
            (part,) = analyze(path, side).devices
            for cause, ns in part.ledger.items():
                total[cause] = total.get(cause, 0) + ns
    assert total == device.ledger
    assert np.int64(sum(total.values())) == device.idle_ns
