"""Which table of a file stands for a declared one: older names, versions, tables that lack what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.trace.tables import TABLES, ColumnType
from nsysdiag.trace.trace import open_trace
from tests.trace.files import KERNEL, KERNEL_ROW, execute, insert, small_trace

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def test_declarations_are_consistent() -> None:
    for name, spec in TABLES.items():
        names = [column.name.casefold() for column in spec.columns]
        assert spec.name == name
        assert len(set(names)) == len(names), name
        assert all(column.type is not ColumnType.REAL or not column.required for column in spec.columns)
        if spec.identified_by:
            spec.column(spec.identified_by)


@pytest.mark.parametrize(
    ("older", "table", "columns"),
    [
        ("EXPORT_META_DATA", "META_DATA_EXPORT", "name TEXT, value TEXT"),
        ("FECS_EVENTS", "GPU_CONTEXT_SWITCH_EVENTS", "timestamp INTEGER, tag INTEGER"),
        ("CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS", 'start INTEGER, "end" INTEGER, graphNodeId INTEGER'),
        (f"{KERNELS}_V2", KERNELS, 'start INTEGER, "end" INTEGER, deviceId INTEGER'),
        ("OSRT_API_V13", "OSRT_API", 'start INTEGER, "end" INTEGER'),
        ("FECS_EVENTS_V3", "GPU_CONTEXT_SWITCH_EVENTS", "timestamp INTEGER, tag INTEGER"),
    ],
)
def test_older_names_and_suffixes(tmp_path: Path, older: str, table: str, columns: str) -> None:
    path = execute(tmp_path / "t.sqlite", f"CREATE TABLE {older} ({columns})")
    insert(path, older, [tuple(range(1, columns.count(",") + 2))])
    with open_trace(path) as trace:
        assert trace.has(table)
        assert len(trace.read(table, TABLES[table].columns[0].name)) == 1
        assert trace.tables() == {older: 1}
        assert trace.warnings == []


@pytest.mark.parametrize("name", [f"{KERNELS}_VX", f"{KERNELS}_V", f"x{KERNELS}", f"{KERNELS}2"])
def test_similar_names_are_other_tables(tmp_path: Path, name: str) -> None:
    path = execute(small_trace(tmp_path / "t.sqlite"), f"ALTER TABLE {KERNELS} RENAME TO {name}")
    with open_trace(path) as trace:
        assert not trace.has(KERNELS)


def test_of_two_versions_the_one_with_rows_is_read(tmp_path: Path) -> None:
    path = execute(tmp_path / "t.sqlite", KERNEL, *(KERNEL.replace(KERNELS, f"{KERNELS}_V{v}") for v in (2, 10)))
    insert(path, f"{KERNELS}_V2", [KERNEL_ROW])
    with open_trace(path) as trace:
        assert len(trace.read(KERNELS, "start")) == 1
        assert trace.warnings == []
    insert(path, f"{KERNELS}_V10", [KERNEL_ROW] * 3)
    with open_trace(path) as trace:
        assert len(trace.read(KERNELS, "start")) == 3
        said = f"{KERNELS}_V10 and {KERNELS}_V2 all hold rows; only {KERNELS}_V10 is read"
        assert trace.warnings == [said]


def test_graph_events_of_either_age(tmp_path: Path) -> None:
    old = 'CREATE TABLE CUDA_GRAPH_EVENTS (start INTEGER, "end" INTEGER, nameId INTEGER, graphNodeId INTEGER)'
    new = old.replace("graphNodeId", "graphId")
    nodes = old.replace("CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS")
    with open_trace(insert(execute(tmp_path / "old", old), "CUDA_GRAPH_EVENTS", [(1, 2, 3, 4)])) as trace:
        assert trace.read("CUDA_GRAPH_NODE_EVENTS", "graphNodeId")["graphNodeId"].tolist() == [4]
        assert not trace.has("CUDA_GRAPH_EVENTS")
        assert trace.warnings == []
    path = execute(tmp_path / "new", new, nodes)
    insert(path, "CUDA_GRAPH_NODE_EVENTS", [(1, 2, 3, 5)])
    with open_trace(insert(path, "CUDA_GRAPH_EVENTS", [(1, 2, 3, 4)])) as trace:
        assert trace.read("CUDA_GRAPH_NODE_EVENTS", "graphNodeId")["graphNodeId"].tolist() == [5]
        assert trace.read("CUDA_GRAPH_EVENTS", "graphId")["graphId"].tolist() == [4]
        assert trace.warnings == []


def test_older_column_name(tmp_path: Path) -> None:
    path = execute(tmp_path / "t.sqlite", "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, deviceId INTEGER, name TEXT)")
    insert(path, "TARGET_INFO_GPU", [(0, 3, "Quadro")])
    with open_trace(path) as trace:
        gpus = trace.read("TARGET_INFO_GPU", "id", "name", "smCount")
        assert gpus["id"].tolist() == [3]
        assert gpus.present("id")
        assert gpus["name"].texts() == ["Quadro"]
        assert gpus["smCount"].tolist() == [0]
        assert trace.read_chosen("TARGET_INFO_GPU", "id", [3], "name")["name"].texts() == ["Quadro"]


def test_missing_required_column_makes_the_table_unavailable(tmp_path: Path) -> None:
    path = execute(small_trace(tmp_path / "t.sqlite"), f'ALTER TABLE {KERNELS} DROP COLUMN "end"')
    with open_trace(path) as trace:
        assert not trace.has(KERNELS)
        assert len(trace.read(KERNELS, "start")) == 0
        reason = f"table {KERNELS} lacks the required column 'end'"
        assert trace.missing(KERNELS) == reason
        assert trace.warnings == [reason]
        (kernels,) = [capability for capability in trace.capabilities() if capability.id == "kernels"]
        assert (kernels.available, kernels.why, kernels.recapture) == (False, reason, "--trace=cuda")


def test_rows_are_estimated_until_the_table_is_read(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.sqlite")
    insert(path, KERNELS, [KERNEL_ROW] * 9)
    execute(path, f"DELETE FROM {KERNELS} WHERE rowid = 4", "CREATE TABLE ENUM_X (id INTEGER)")
    with open_trace(path) as trace:
        assert trace.tables() == {KERNELS: "~10", "StringIds": "~2", "ENUM_X": 0}
        trace.read(KERNELS, "start")
        assert trace.tables()[KERNELS] == 9


def test_versions(tmp_path: Path) -> None:
    path = execute(small_trace(tmp_path / "t.sqlite"), "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    with open_trace(path) as trace:
        assert (trace.nsys_version, trace.schema_version) == (None, None)
    insert(path, "META_DATA_EXPORT", [("EXPORT_PRODUCT_VERSION", "2026.1\x1b[31m"), ("EXPORT_SCHEMA_VERSION", None)])
    insert(path, "META_DATA_EXPORT", [("OTHER", "stray")])
    with open_trace(path) as trace:
        assert (trace.nsys_version, trace.schema_version) == ("2026.1\\x1b[31m", None)
