"""Folders of Parquet files, as `nsys export --type parquetdir` writes them, made from SQLite traces.

    to_folder(TraceBuilder().kernel(100, 200).write(tmp_path / "t.sqlite"), tmp_path / "t_pqtdir")

One `TABLE.parquet` for every table with rows; tables and columns are those of the SQLite file, types finer.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_NAMES: dict[pa.DataType, str] = {
    pa.uint64(): "globalTid globalPid globalVid endGlobalTid pid contextId greenContextId streamId nameId demangledName"
    " shortName mangledName graphNodeId bytes copyKind virtualAddress originalIP threadState rangeId category domainId"
    " uint64Value duration startTime stopTime totalMemory memoryBandwidth luid",
    pa.int32(): "gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread"
    " localMemoryTotal int32Value unwindMethod stackDepth cuDevice",
    pa.bool_(): "isSchedIn kernelMode thumbCode unresolved specialEntry isDiscrete isGreenContext",
    pa.float32(): "floatValue",
    pa.float64(): "doubleValue",
    pa.string(): "name label text jsonText busLocation uuid chipName ctxswDevPath ctrlDevPath",
}
COLUMNS: dict[str, pa.DataType] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""The types of columns as nsys 2023.4 writes them; integer columns that are not named are int64."""
EXCEPTIONS: dict[tuple[str, str], pa.DataType] = {
    ("StringIds", "id"): pa.int32(),
    ("ThreadNames", "priority"): pa.uint64(),
    ("TARGET_INFO_CUDA_CONTEXT_INFO", "contextId"): pa.int64(),
    ("TARGET_INFO_CUDA_STREAM", "contextId"): pa.int64(),
    ("TARGET_INFO_CUDA_STREAM", "streamId"): pa.int64(),
}
"""The types of columns of one table, where they differ from those in `COLUMNS`."""

_TABLES = """SELECT name FROM sqlite_master
    WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"""


def to_folder(trace: Path, folder: Path, *, row_group: int = 2_048, compression: str = "none") -> Path:
    """Write the tables of a SQLite trace as Parquet files into a folder, which must not exist yet."""
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(f"{trace.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")  # broken UTF-8 is kept as it is
        for (name,) in connection.execute(_TABLES).fetchall():
            table = _table(connection, name)
            if table.num_rows:
                pq.write_table(table, _file(folder, name), row_group_size=row_group, compression=compression)
    return folder


def with_column(folder: Path, table: str, column: str, values: pa.Array | pa.ChunkedArray) -> Path:
    """Replace one column of a table in the folder by other values, as many, of any type; the folder is returned."""
    path = _file(folder, table)
    with pq.ParquetFile(path) as file:
        whole, group = file.read(), file.metadata.row_group(0)
        row_group, compression = group.num_rows, group.column(0).compression.lower().replace("uncompressed", "none")
    changed = whole.set_column(whole.column_names.index(column), column, values)
    pq.write_table(changed, path, row_group_size=row_group, compression=compression)
    return folder


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def _table(connection: sqlite3.Connection, name: str) -> pa.Table:
    """A table in the order of its row ids; columns that are NOT NULL in SQLite are so here."""
    quoted = '"' + name.replace('"', '""') + '"'
    required = {column[1] for column in connection.execute(f"PRAGMA table_info({quoted})") if column[3]}
    cursor = connection.execute(f"SELECT * FROM {quoted} ORDER BY rowid")
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    arrays = [_column(name, column, [row[at] for row in rows]) for at, column in enumerate(names)]
    fields = [
        pa.field(column, array.type, nullable=column not in required)
        for column, array in zip(names, arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _column(table: str, column: str, values: list[Any]) -> pa.Array:
    """The values in the first type that holds them all: the known one, int64, double, string, binary; else as text."""
    known = EXCEPTIONS.get((table, column), COLUMNS.get(column, pa.int64()))
    for kind in (known, pa.int64(), pa.float64(), pa.string(), pa.binary()):
        array = _array(values, kind)
        if array is not None:
            return array
    return _texts([value if value is None or isinstance(value, bytes) else str(value) for value in values])


def _array(values: list[Any], kind: pa.DataType) -> pa.Array | None:
    """The values in that type, or None where it cannot hold one of them exactly."""
    if not {type(value) for value in values if value is not None} <= _held(kind):
        return None
    try:
        if kind == pa.string():
            return _texts(values)
        if kind == pa.uint64():
            return pa.array(values, pa.int64()).view(kind)  # negative values are those above 2^63
        array = pa.array(values, pa.int64()).cast(kind) if kind == pa.bool_() else pa.array(values, kind)
    except pa.ArrowInvalid:
        return None
    return array if array.to_pylist() == values else None


def _held(kind: pa.DataType) -> set[type]:
    """The types of SQLite values that become such a column."""
    if kind == pa.string():
        return {str}
    if kind == pa.binary():
        return {bytes}
    return {int, float} if pa.types.is_floating(kind) else {int}


def _texts(values: list[str | bytes | None]) -> pa.Array:
    """Text as it lies in the SQLite file, byte for byte: pyarrow itself refuses broken UTF-8."""
    raw = [value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value for value in values]
    return pa.array(raw, pa.binary()).view(pa.string())
