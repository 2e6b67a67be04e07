"""Cut an nsys SQLite export down to what may be published: usage trim.py EXPORT.sqlite OUT.sqlite.gz

The capture's scope must be process-tree. Kept are the event tables with the rows of the captured program's processes,
the names that those rows refer to, and the export's version. The environment, command lines, host and user names, the
program's output, other processes and folder names are left out. Same input, same bytes out.
"""

from __future__ import annotations

import gzip
import sqlite3
import sys
import tempfile
from pathlib import Path

KEPT_PREFIXES = (
    "CUPTI_ACTIVITY_KIND_", "CUDA_", "CUBLAS_", "CUDNN_", "NVTX_", "OSRT_", "MPI_", "GPU_",
    "TARGET_INFO_CUDA_",
)  # fmt: skip
KEPT_TABLES = {
    "SCHED_EVENTS", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "PROFILER_OVERHEAD", "DIAGNOSTIC_EVENT",
    "TARGET_INFO_GPU", "TARGET_INFO_GPU_METRICS", "TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS",
    "StringIds", "ThreadNames", "PROCESSES", "META_DATA_EXPORT", "EXPORT_META_DATA",
    "ENUM_NSYS_EVENT_TYPE", "ENUM_CUDA_MEMCPY_OPER", "ENUM_CUDA_MEM_KIND", "ENUM_CUPTI_SYNC_TYPE",
    "ENUM_SAMPLING_THREAD_STATE",
}  # fmt: skip
STRING_COLUMNS = {
    "nameId", "shortName", "demangledName", "mangledName", "textId", "jsonTextId", "symbol", "module",
    "domainNameId",
}  # fmt: skip
OWN_ACTIVITY = ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS")
"""With the scope process-tree, scheduling and samples are the captured program's and its children's alone."""
VERSION_TABLES = {"META_DATA_EXPORT", "EXPORT_META_DATA"}
EXPORT_VERSION = ("EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION")
PROCESS_BITS = 24


def main() -> None:
    """Trim the export named on the command line."""
    source, target = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "trimmed.sqlite"
        work.write_bytes(source.read_bytes())
        trim(work)
        with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write(work.read_bytes())
    print(f"{target.name}: {target.stat().st_size:,} bytes")


def trim(path: Path) -> None:
    """Cut the file down in place."""
    connection = sqlite3.connect(path)
    tables = columns_by_table(connection)
    for table in [table for table in tables if not is_kept(table)]:
        connection.execute(f'DROP TABLE "{table}"')
        del tables[table]
    keep_own_rows(connection, tables)
    shorten_names(connection, tables)
    connection.commit()
    connection.execute("VACUUM")
    connection.close()


def columns_by_table(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """The columns of every table."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')} for name in names}


def is_kept(table: str) -> bool:
    """Is this a table of events, or one that they refer to?"""
    return table in KEPT_TABLES or table.startswith(KEPT_PREFIXES)


def keep_own_rows(connection: sqlite3.Connection, tables: dict[str, set[str]]) -> None:
    """Drop the rows of processes of which nothing was recorded, and the call chains of dropped rows."""
    own = " UNION ".join(
        f"SELECT globalTid >> {PROCESS_BITS} FROM {table}" for table in OWN_ACTIVITY if table in tables
    )
    connection.execute(f"CREATE TEMP TABLE own AS {own}")
    for table, columns in tables.items():
        owner = next((column for column in ("globalTid", "globalPid") if column in columns), None)
        if owner:
            connection.execute(f'DELETE FROM "{table}" WHERE {owner} >> {PROCESS_BITS} NOT IN (SELECT * FROM own)')
    if "SAMPLING_CALLCHAINS" in tables:
        connection.execute("DELETE FROM SAMPLING_CALLCHAINS WHERE id NOT IN (SELECT id FROM COMPOSITE_EVENTS)")


def shorten_names(connection: sqlite3.Connection, tables: dict[str, set[str]]) -> None:
    """Keep the names that are referred to, of a path its last part, and of the export its version."""
    used = " UNION ".join(
        f'SELECT "{column}" FROM "{table}"'
        for table, columns in tables.items()
        for column in sorted(columns & STRING_COLUMNS)
    )
    connection.execute(
        f"DELETE FROM StringIds WHERE id NOT IN (SELECT id FROM StringIds INTERSECT SELECT * FROM ({used}))"
    )
    connection.create_function("base_name", 1, base_name, deterministic=True)
    connection.execute("UPDATE StringIds SET value = base_name(value)")
    connection.execute("UPDATE PROCESSES SET name = base_name(name)")
    marks = ", ".join("?" * len(EXPORT_VERSION))
    for table in tables.keys() & VERSION_TABLES:
        connection.execute(f'DELETE FROM "{table}" WHERE name NOT IN ({marks})', EXPORT_VERSION)
    connection.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcTime = NULL, localTime = NULL")


def base_name(text: str | None) -> str | None:
    """The last part of an absolute path; anything else as it is."""
    return text.rsplit("/", 1)[-1] if text and text.startswith("/") else text


if __name__ == "__main__":
    main()
