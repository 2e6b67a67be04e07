"""The MPI calls behind a finding on idle time inside them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.diagnosis.programs import PROGRAMS
from tests.selecting import selected

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shared import Shared

TABLES = {"waits_in_mpi": "MPI_", "waits_in_mpi_by_ranges": "NVTX_EVENTS"}


def _write(name: str, path: Path) -> Path:
    simulation, _ = PROGRAMS[name].run()
    return simulation.write(path)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", TABLES)
def test_the_rows_are_the_calls_with_most_idle_time(name: str, shared: Shared) -> None:
    trace = shared.file(f"{name}.sqlite", lambda path: _write(name, path))
    report = shared.report(trace)
    found = next(each for each in report.findings if each.cause == "exposed_mpi")
    phase = next(each for each in report.phases if each.judged)
    assert len(found.rows) == 3
    assert {row.name for row in found.rows} == {"MPI_Sendrecv"}  # the longer of two
    assert sum(row.ns for row in found.rows) <= found.lost_ns
    assert [row.ns for row in found.rows] == sorted((row.ns for row in found.rows), reverse=True)
    for row in found.rows:
        assert row.table.startswith(TABLES[name])
        assert phase.start_ns <= row.start_ns < phase.end_ns
        assert selected(trace, row) == 1
        assert 0 < row.ns <= _length(trace, row.table, row.start_ns)


def _length(trace: Path, table: str, start: int) -> int:
    with closing(sqlite3.connect(trace)) as base, base:
        ((length,),) = base.execute(f"SELECT end - start FROM {table} WHERE start = ?", (start,)).fetchall()
    return int(length)
