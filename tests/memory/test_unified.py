"""Unified memory: what moved, why, to and fro, and the faults behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import MemoryThresholds, Settings
from nsysdiag.memory.facts import UnifiedMemory
from tests.builder import TraceBuilder
from tests.ledger.traces import devices, only_device

if TYPE_CHECKING:
    from pathlib import Path

US, MS = 1_000, 1_000_000
A, B = 0x7F0000000000, 0x7F0000200000


def program(schema: str = "3.13.2") -> TraceBuilder:
    return TraceBuilder(schema=schema).kernel(10 * MS, 20 * MS, launch=(9 * MS, 9 * MS + 5_000))


def found_in(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> UnifiedMemory:
    found = only_device(trace, folder, settings).unified_memory
    assert found is not None
    return found


def test_nothing_moved(tmp_path: Path) -> None:
    assert only_device(program(), tmp_path).unified_memory is None


def test_migrations_by_direction_and_cause(tmp_path: Path) -> None:
    trace = program().memcpy(1 * MS, 1 * MS + 100, kind="UM HtoD", size=4_096, cause="fault")
    trace.memcpy(2 * MS, 2 * MS + 300, kind="UM HtoD", size=8_192, cause="fault")
    trace.memcpy(3 * MS, 3 * MS + 50, kind="UM DtoH", size=65_536, cause="eviction")
    trace.memcpy(4 * MS, 4 * MS, kind="UM HtoD", size=100, cause="prefetch").memcpy(5 * MS, 6 * MS, launch=(1, 2))
    found = found_in(trace, tmp_path)
    assert (found.count, found.bytes, found.total_ns) == (4, 77_924, 450)
    assert [(row.direction, row.cause, row.count, row.bytes, row.total_ns) for row in found.rows] == [
        ("DtoH", "eviction", 1, 65_536, 50),
        ("HtoD", "page fault", 2, 12_288, 400),
        ("HtoD", "user prefetch", 1, 100, 0),
    ]
    assert [row.bytes_per_second for row in found.rows] == [pytest.approx(65_536 / 50e-9), pytest.approx(30.72e9), None]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("cause", "told"), [(None, "unknown"), (0, "unknown"), (3, "speculative prefetch")])
def test_names_of_causes(cause: int | None, told: str, tmp_path: Path) -> None:
    trace = program().memcpy(MS, 2 * MS, kind="UM HtoD")
    trace._rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]["migrationCause"] = cause
    assert [row.cause for row in found_in(trace, tmp_path).rows] == [told]


def test_causes_of_later_versions_are_unknown(tmp_path: Path) -> None:
    trace = program().memcpy(MS, 2 * MS, kind="UM HtoD")
    trace._rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]["migrationCause"] = 9_999
    assert [row.cause for row in found_in(trace, tmp_path).rows] == ["unknown"]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("seed", [None, 3])
def test_blocks_that_go_to_and_fro(seed: int | None, tmp_path: Path) -> None:
    """
    A   HtoD  DtoH  HtoD  HtoD     three moves
    B   HtoD  HtoD  DtoH  DtoH     two: it went and came back once
    """
    trace = program()
    for at, (first, second) in enumerate(
        [("UM HtoD", "UM HtoD"), ("UM DtoH", "UM HtoD"), ("UM HtoD", "UM DtoH"), ("UM HtoD", "UM DtoH")]
    ):
        trace.memcpy((at + 1) * MS, (at + 1) * MS + 10, kind=first, size=1_000, address=A)
        trace.memcpy((at + 1) * MS + 20, (at + 1) * MS + 30, kind=second, size=7, address=B)
    trace.write(tmp_path / "trace.sqlite", shuffle_seed=seed)
    thrashing = found_in(trace, tmp_path).thrashing
    assert thrashing is not None
    assert (thrashing.moves, thrashing.blocks, thrashing.migrations, thrashing.bytes) == (3, 1, 4, 4_000)
    twice = found_in(trace, tmp_path, Settings(memory=MemoryThresholds(thrash_moves=2))).thrashing
    assert twice is not None
    assert (twice.blocks, twice.migrations, twice.bytes) == (2, 8, 4_028)


def test_without_addresses_nothing_is_said_of_thrashing(tmp_path: Path) -> None:
    trace = program().memcpy(MS, 2 * MS, kind="UM HtoD")
    trace._rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]["virtualAddress"] = None
    assert found_in(trace, tmp_path).thrashing is None
    old = program("2020").memcpy(MS, 2 * MS, kind="UM HtoD")
    (tmp_path / "old").mkdir()
    assert found_in(old, tmp_path / "old").thrashing is None


def test_faults(tmp_path: Path) -> None:
    """
    groups  [1.0 ms ==== 1.5 ms)                [3.0 .. 3.1 ms)
                 [1.2 ms ========= 2.0 ms)
    """
    trace = program().gpu_fault(1_000_000, 1_500_000, 10).gpu_fault(1_200_000, 2_000_000, 5, access=2)
    trace.gpu_fault(3_000_000, 3_100_000, 1).cpu_fault(4 * MS).cpu_fault(5 * MS)
    trace.cpu_fault(6 * MS, pid=77).gpu_fault(MS, 2 * MS, 99, pid=77)
    found = found_in(trace, tmp_path)
    assert (found.count, found.rows, found.thrashing) == (0, [], None)
    assert (found.cpu_faults, found.gpu_fault_groups, found.gpu_faults) == (2, 3, 16)
    assert found.gpu_fault_ns == 1_100_000
    assert found.gpu_fault_access == {"read": 2, "write": 1}


def test_faults_that_were_not_captured_are_none(tmp_path: Path) -> None:
    found = found_in(program().memcpy(MS, 2 * MS, kind="UM HtoD"), tmp_path)
    assert (found.cpu_faults, found.gpu_fault_groups, found.gpu_faults, found.gpu_fault_ns) == (None,) * 4


def test_a_narrowed_window(tmp_path: Path) -> None:
    trace = program().memcpy(11 * MS, 12 * MS, kind="UM HtoD", size=5).memcpy(15 * MS, 16 * MS, kind="UM HtoD", size=70)
    trace.gpu_fault(11 * MS, 15 * MS, 3).gpu_fault(14 * MS, 17 * MS, 4).cpu_fault(13 * MS).cpu_fault(19 * MS)
    found = found_in(trace, tmp_path, Settings(start_ns=13 * MS, end_ns=16 * MS))
    assert (found.count, found.bytes, found.cpu_faults) == (1, 70, 1)
    assert (found.gpu_fault_groups, found.gpu_faults, found.gpu_fault_ns) == (1, 4, 2 * MS)


def test_rows_of_each_device(tmp_path: Path) -> None:
    trace = program().kernel(10 * MS, 20 * MS, device=1, launch=(9 * MS + 6_000, 9 * MS + 7_000))
    trace.memcpy(11 * MS, 12 * MS, kind="UM HtoD", size=5).memcpy(11 * MS, 12 * MS, kind="UM DtoH", size=7, device=1)
    trace.memcpy(13 * MS, 12 * MS, kind="UM DtoH", size=900)  # it cannot be
    found = {key: device.unified_memory for key, device in devices(trace, tmp_path).items()}
    assert {key: each and each.bytes for key, each in found.items()} == {"gpu0": 5, "gpu1": 7}
