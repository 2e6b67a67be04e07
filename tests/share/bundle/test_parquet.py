"""A bundle made of a folder of Parquet files holds what one made of the SQLite file of the same capture holds."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsysdiag import analyze
from nsysdiag.report import Report
from tests.builder import TraceBuilder
from tests.share.bundle.bundling import sliced
from tests.trace.files import execute, insert
from tests.trace.parquet_folders import to_folder

KINDS, SAMPLES = "ENUM_CUDA_MEM_KIND", "COMPOSITE_EVENTS"
US = 1_000


def trace_of(folder: Path) -> Path:
    """Three steps, with strings, kinds and samples by ids that are no row numbers, as nsys writes them."""
    trace = TraceBuilder()
    for at in range(3):
        start = (at + 1) * 1_000 * US
        trace.kernel(start, start + 100 * US, name="gemm", launch=(start - 20 * US, start - 10 * US))
        trace.nvtx(f"step {at}", start - 30 * US, start + 200 * US)
    path = trace.write(folder / "train.sqlite")
    execute(
        path,
        f'DROP TABLE IF EXISTS "{KINDS}"',
        f'DROP TABLE IF EXISTS "{SAMPLES}"',
        "ALTER TABLE StringIds RENAME TO Unkeyed",
        "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
        "INSERT INTO StringIds SELECT id, value FROM Unkeyed",
        "DROP TABLE Unkeyed",
        f'CREATE TABLE "{KINDS}" (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)',
        f'CREATE TABLE "{SAMPLES}" (id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER,'
        " threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER NOT NULL)",
    )
    insert(path, KINDS, [(0, "PAGEABLE", "Pageable"), (1, "PINNED", "Pinned"), (700, "OTHER", "Other")])
    return insert(path, SAMPLES, [(40 + at, at * 900 * US, 0, 1, 1 << 24, 5) for at in range(3)])


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that is in an SQLite file, and how its tables are declared."""
    with closing(sqlite3.connect(path)) as connection:
        declared = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return {
            f"{name}: {sql}": connection.execute(f'SELECT rowid, * FROM "{name}" ORDER BY rowid').fetchall()
            for name, sql in declared.fetchall()
        }


def counts(report: Report) -> dict[str, int | str]:
    return report.trace.tables


@pytest.mark.thorough
def test_the_slice_is_the_same(tmp_path: Path) -> None:
    trace = trace_of(tmp_path)
    folder = to_folder(trace, tmp_path / "train_pqtdir")
    assert counts(analyze(trace)) == counts(analyze(folder))
    assert counts(analyze(trace))[KINDS] == "~700"
    one, other = sliced(trace, tmp_path / "one").path, sliced(folder, tmp_path / "other").path
    assert rows_of(one) == rows_of(other)
    assert counts(analyze(one)) == counts(analyze(other))
    assert counts(analyze(other))[KINDS] == "~700"


@pytest.mark.sampled
@pytest.mark.parametrize("ids", [[0, 1, 1], [None, 0, 1]])
def test_ids_that_number_nothing_are_kept_as_they_are(ids: list[int | None], tmp_path: Path) -> None:
    folder = to_folder(trace_of(tmp_path), tmp_path / "train_pqtdir")
    kinds = pq.read_table(folder / f"{KINDS}.parquet")
    pq.write_table(kinds.set_column(0, "id", pa.array(ids, pa.int64())), folder / f"{KINDS}.parquet")
    found = rows_of(sliced(folder, tmp_path / "slices").path)
    (held,) = (rows for table, rows in found.items() if table.startswith(KINDS))
    assert [row[1] for row in held] == ids


@pytest.mark.thorough
@pytest.mark.real
def test_real_pairs(tmp_path: Path) -> None:
    traces = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
    folders = sorted(traces.glob("*_pqtdir"))
    if not folders:
        pytest.skip("no folders of Parquet files")
    for folder in folders:
        trace = traces / f"{folder.name.removesuffix('_pqtdir')}.sqlite"
        one, other = sliced(trace, tmp_path / "one").path, sliced(folder, tmp_path / "other").path
        assert rows_of(one) == rows_of(other)
