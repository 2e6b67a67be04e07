"""Tables of an export that are not declared: work of devices counts as busy, other events are named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from nsysdiag.share.redaction import redacted
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

DECOMPRESSION = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"
WORK = "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT"
GAPS = [(600_000 + at * 1_000_000, 1_000_000 + at * 1_000_000) for at in range(1, 9)]
"""Between kernels of 0.6 ms that begin each millisecond."""


def program(path: Path, table: str | None = None, columns: str = WORK, values: str = "?, ?, 0, 1, 7, 0, 0") -> Path:
    """Kernels, and rows of another table in the second half of each gap between them."""
    trace = TraceBuilder()
    for at in range(1, 11):
        start = at * 1_000_000
        trace.kernel(start, start + 600_000, name="gemm", launch=(start - 20_000, start - 10_000))
    trace.write(path)
    if table:
        with closing(sqlite3.connect(path)) as connection, connection:
            process = connection.execute("SELECT max(globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
            connection.execute(f"CREATE TABLE {table} ({columns})")
            rows = [(start + 200_000, end) for start, end in GAPS]
            connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)
            if "globalPid" in columns:
                connection.execute(f"UPDATE {table} SET globalPid = {process}")
    return path


def idle_ns(report: Report) -> int:
    return report.devices[0].idle_ns


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> int:
    idle = idle_ns(analyze(program(tmp_path_factory.mktemp("plain") / "a.sqlite")))
    assert idle == 9 * 400_000
    return idle


@pytest.mark.parametrize(
    ("table", "category"),
    [
        (DECOMPRESSION, "memory decompression"),
        (f"{DECOMPRESSION}_V2", "memory decompression"),
        ("CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE", "graph"),
        ("CUPTI_ACTIVITY_KIND_ONE_OF_TOMORROW", "kernel"),
    ],
)
def test_work_of_a_device_is_busy_time(tmp_path: Path, without: int, table: str, category: str) -> None:
    report = analyze(program(tmp_path / "a.sqlite", table))
    assert idle_ns(report) == without - len(GAPS) * 200_000
    assert [text for text in report.trace.warnings if table in text and "work of a device" in text]
    assert category in {gap.next_op.name for gap in report.devices[0].gaps if gap.next_op}


@pytest.mark.slow
def test_bytes_of_decompression(tmp_path: Path) -> None:
    columns, values = f"{WORK}, sourceBytes INT", "?, ?, 0, 1, 7, 0, 0, 4096"
    report = analyze(program(tmp_path / "a.sqlite", DECOMPRESSION, columns, values))
    (row,) = report.devices[0].copies.rows
    assert (row.operation, row.count, row.bytes) == ("memory decompression", len(GAPS), len(GAPS) * 4096)


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("CUPTI_ACTIVITY_KIND_WARP_TRACE", "start INT, end INT, deviceId INT, correlationId INT"),
        ("VULKAN_API", "start INT, end INT"),
        ("NET_NIC_METRIC", "start INT, end INT"),
    ],
)
def test_other_events_are_not_read_and_named(tmp_path: Path, without: int, table: str, columns: str) -> None:
    values = "?, ?" + ", 0" * (columns.count(",") - 1)
    report = analyze(program(tmp_path / "a.sqlite", table, columns, values))
    assert idle_ns(report) == without
    assert f"1 table of events is not read: {table}" in report.trace.warnings


def test_what_a_user_made_is_not_missed(tmp_path: Path) -> None:
    report = analyze(program(tmp_path / "a.sqlite", "cudaAPIStats", "start INT, end INT", "?, ?"))
    assert not [text for text in report.trace.warnings if "not read" in text]


def test_the_name_of_an_unknown_table_is_redacted(tmp_path: Path) -> None:
    report = analyze(program(tmp_path / "a.sqlite", "OUR_SECRET_EVENTS", "start INT, end INT", "?, ?"))
    assert "OUR_SECRET" in str(report.trace.warnings)
    assert "OUR_SECRET" not in str(redacted(report).trace.warnings)
