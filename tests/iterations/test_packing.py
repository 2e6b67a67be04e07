"""What the report keeps of every steady iteration: the same as its rows, and it adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.arrays.groups import from_planes, from_text
from nsysdiag.iterations import report as packing
from nsysdiag.pipeline import analyze
from tests.comparison.programs import Program
from tests.iterations.test_iterations import training
from tests.ledger.traces import only_device
from tests.simulator.scenarios import SCENARIOS, scenario

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from nsysdiag.iterations.facts import IterationsPacked
    from nsysdiag.report import DeviceReport

    Numbers = npt.NDArray[np.int64]

MS = 1_000_000


def numbers(packed: IterationsPacked, column: str) -> Numbers:
    return from_planes(from_text(column, 8 * packed.count), packed.count)


def packed_of(device: DeviceReport) -> IterationsPacked:
    assert device.iterations is not None
    assert device.iterations.packed is not None
    return device.iterations.packed


def total(packed: IterationsPacked, columns: dict[str, str]) -> Numbers:
    zero = np.zeros(packed.count, dtype=np.int64)
    return sum((numbers(packed, column) for column in columns.values()), start=zero)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["starved_training", "loss_read_each_step", "starved_data_parallel"])
def test_work_and_both_ledgers_add_up_and_are_those_of_the_rows(name: str, tmp_path: Path) -> None:
    scenario(name).write(tmp_path / "t.sqlite", SCENARIOS[name].capture)
    for device in analyze(tmp_path / "t.sqlite").devices:
        packed = packed_of(device)
        lengths = numbers(packed, packed.lengths)
        idle = total(packed, packed.ledger)
        assert lengths.tolist() == (total(packed, packed.work) + idle).tolist()
        assert idle.tolist() == total(packed, packed.root_ledger).tolist()
        assert device.iterations is not None
        rows = [row for row in device.iterations.rows if row.steady]
        assert len(rows) == packed.count
        for cause in packed.ledger:
            assert numbers(packed, packed.ledger[cause]).tolist() == [row.ledger.get(cause, 0) for row in rows]
        assert lengths.tolist() == [row.end_ns - row.start_ns for row in rows]


def test_operations_and_kernels_of_each(tmp_path: Path) -> None:
    device = only_device(training(), tmp_path)
    packed = packed_of(device)
    assert packed.count == 9  # the last one ends with the trace
    assert packed.each == 1
    assert {name: numbers(packed, column).tolist() for name, column in packed.ops.items()} == {"kernel": [4] * 9}
    assert [row.short_name for row in device.kernels] == ["gemm", "relu"]
    assert [numbers(packed, column).tolist() for column in packed.kernels] == [[400_000] * 9, [60_000] * 9]


@pytest.mark.slow
def test_bytes_that_copies_move_in_each(tmp_path: Path) -> None:
    """Of copies that begin in an iteration; nothing where no copy says how many. The copy of a step begins before its
    first kernel, in the step before: the last one has none."""
    path = Program(sync=True, steps=12, batch=3 << 20).write(tmp_path / "t.sqlite")
    packed = packed_of(analyze(path).devices[0])
    assert numbers(packed, packed.copied).tolist() == [3 << 20] * (packed.count - 1) + [0]
    assert packed_of(only_device(training(), tmp_path)).copied == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["starved_training", "loss_read_each_step", "starved_data_parallel"])
def test_kinds_of_gaps_are_all_the_idle_time(name: str, tmp_path: Path) -> None:
    scenario(name).write(tmp_path / "t.sqlite", SCENARIOS[name].capture)
    for device in analyze(tmp_path / "t.sqlite").devices:
        packed = packed_of(device)
        kinds = [numbers(packed, column) for column in packed.signatures]
        assert len(kinds) == len(device.signatures) < 50
        assert sum(kinds).tolist() == total(packed, packed.ledger).tolist()
        cost = [row.per_iteration_ns for row in device.signatures]
        assert [int(ns.sum()) // packed.count for ns in kinds] == cost


def test_the_warm_up_is_left_out(tmp_path: Path) -> None:
    packed = packed_of(only_device(training((5 * MS, *(MS,) * 10)), tmp_path))
    assert packed.count == 9
    assert numbers(packed, packed.lengths).max() < 2 * MS


@pytest.mark.slow
def test_very_many_are_added_up_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = packed_of(only_device(training(), tmp_path))
    monkeypatch.setattr(packing, "MOST_ENTRIES", 4)
    few = packed_of(only_device(training(), tmp_path))
    assert (few.each, few.count) == (3, 3)
    expected = numbers(whole, whole.lengths)[:9].reshape(3, 3).sum(axis=1)
    assert numbers(few, few.lengths).tolist() == expected.tolist()
    assert numbers(few, few.ops["kernel"]).tolist() == [12] * 3
    assert numbers(few, few.kernels[0]).tolist() == [1_200_000] * 3
    assert sum(numbers(few, each) for each in few.signatures).tolist() == total(few, few.ledger).tolist()


def test_fewer_kernels_where_there_are_many_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_KERNEL_VALUES", 17)
    packed = packed_of(only_device(training(), tmp_path))
    assert len(packed.kernels) == len(packed.signatures) == 1
