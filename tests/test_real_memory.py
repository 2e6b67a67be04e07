"""Copies and unified memory of real traces against sums that the database makes itself."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from nsysdiag.report import DeviceReport
from tests.shared import Shared

pytestmark = pytest.mark.real

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = sorted(FOLDER.glob("*.sqlite"))
DIRECTIONS = {"HtoD": 11, "DtoH": 12}
CAUSES = {"user prefetch": 1, "page fault": 2, "speculative prefetch": 3}


def sums(trace: Path, *, where: str, group: str) -> dict[int, tuple[int, int, int]]:
    """Count, bytes and time of copies by a column."""
    query = f"SELECT {group}, count(*), sum(bytes), sum(end - start) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE {where}"
    with closing(sqlite3.connect(f"{trace.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return {row[0]: row[1:] for row in connection.execute(f"{query} GROUP BY {group}")}


def only(trace: Path) -> DeviceReport:
    (device,) = analyze(trace, Settings(timeline=False)).devices
    return device


def test_migrations_are_those_of_the_database() -> None:
    trace = FOLDER / "awsgpu-um_t4_nsys2025.1.sqlite"
    found = only(trace).unified_memory
    assert found is not None
    assert found.count == 2_370
    for column, names in (("copyKind", DIRECTIONS), ("migrationCause", CAUSES)):
        expected = sums(trace, where="copyKind IN (11, 12, 13)", group=column)
        for name, number in names.items():
            rows = [row for row in found.rows if name in (row.direction, row.cause)]
            told = tuple(sum(getattr(row, field) for row in rows) for field in ("count", "bytes", "total_ns"))
            assert told == expected.pop(number)
        assert expected == {}
    assert found.thrashing is not None
    assert found.thrashing.blocks == 64


def test_copies_are_those_of_the_database() -> None:
    trace = FOLDER / "nways_jacobi-memcoherent_gh200_nsys2023.4.1.sqlite"
    device = only(trace)
    expected = sums(trace, where="1", group="copyKind")
    rates = {row.direction: row for row in device.copies.rates}
    assert sum(row.count for row in rates.values()) == 3_001
    for direction, kind in (("DtoH", 2), ("DtoD", 8)):
        row = rates.pop(direction)
        assert (row.count, row.bytes, row.total_ns) == expected.pop(kind)
    assert (rates, expected) == ({}, {})
    assert device.copies.tiny is not None
    small = sums(trace, where="bytes < 4096 AND bytes > 0", group="1")[1]
    assert (device.copies.tiny.count, device.copies.tiny.bytes, device.copies.tiny.total_ns) == small
    assert device.copies.tiny.per_iteration == 1.0


@pytest.mark.parametrize("trace", FILES or [Path("none")], ids=lambda path: path.stem)
def test_every_trace_adds_up(trace: Path, shared: Shared) -> None:
    for device in shared.report(trace).devices:
        copies = device.copies
        assert sum(row.exposed_ns for row in copies.exposed) == device.exposed_copy_ns == copies.exposed_ns
        for row in copies.rates:
            assert row.slow_ns is None or 0 <= row.slow_ns <= row.total_ns
            assert (row.best_bytes_per_second is None) == (row.large_count == 0)
        if copies.pinning is not None and copies.pinning.saving_ns is not None:
            assert 0 <= copies.pinning.saving_ns <= copies.pinning.compared_ns <= copies.pinning.pageable_ns
