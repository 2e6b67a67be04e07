"""A trace in which every text is a canary of its own: in every column, in names of tables and columns, in many shapes.

```
token 17          zqaarvk
in a method       acme::Layerzqaarvk<Patientzqaarvk, 4>::forward(const acme::Zqaarvk&)
like a public one cudaInitZqaarvkEngine, libnccl-zqaarvk.so
```
"""

from __future__ import annotations

import sqlite3
import string
from contextlib import closing
from typing import TYPE_CHECKING

from nsysdiag.share.target import ROLES
from nsysdiag.trace.tables import TEXTS, table_spec
from tests.hostile.every_table import write_every_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHAPES = (
    "{x}",
    "acme::Layer{X}<Patient{x}, 4>::forward(const acme::{X}&) const",
    "acme::{X}::step",
    "acme.layers.{X}.forward",
    "_ZN4acme9Layer{x}7forwardERKNS_3BarE",
    "_RNvCs1234_4acme7{x}",
    "Box<{X}<int, Patient 7>, acme::Foo>::run(int, acme::{X} const&)",
    "/home/ann {x}/data/{x}.bin",
    "C:\\Users\\{x}\\train.py",
    "https://user:{x}@host-{x}.example.com/%7E{x}?q={x}#f",
    "gpu7.{x}.example.com:8080",
    "dr.{x}@clinic.example",
    "Größe{x}测试Ω",
    "пациент {x} ｆｕｌｌ",
    "cafe\u0301{x} {x}\u0301",
    "cudaInit{X}Engine",
    "cuMem{X}_v2",
    "MPI_Send_{x}",
    "PyObject_{x}Wrap",
    "ncclGet{X}",
    "libnccl-{x}.so",
    "libcudart-{x}.so.12",
    "ENUM_{X}",
    "CUPTI_ACTIVITY_KIND_{X}",
    "pthread_{x}",
    "cublasGet{X}",
    "cudnnCreate{X}",
    "__GI_{x}",
    "NSYS_OSRT_{x}_1",
    "0x{x}",
    "kernel 7 {x}",
    "symbol-{x}",
    "train step 12 of {x}",
    "copy {x} kernel, in 3 steps × 4",
    "thread 7 '{x}' waited in '{x}",
    "inside NVTX {x}; samples in {x} of {x}.bin",
    "\ue000{x}\ue001",
    "[{x}]",
    "<{x} 3>",
    "f\"{x}\" + '{x}' = {x}|{x}",
    "NVIDIA {X} 80GB",
    "0000:{x}:00.0",
    "12ms{x}",
    "COPY_{X}",
    "lost 3 events of {x}",
    '{{"secret": "{x}"}}',
)
_LETTERS = string.ascii_lowercase
# Where only some rows get a canary: calls are what most causes go by.
_EVERY = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": 4,
    "OSRT_API": 4,
    "CUDA_CALLCHAINS": 2,
    "OSRT_CALLCHAINS": 2,
    "META_DATA_EXPORT": 3,
}
_KEPT = {"NVTX_PAYLOAD_SCHEMA_ENTRIES", "StringIds"}
_MORE = {
    "ENUM_CUDA_MEMCPY_OPER": ("id", "name", "label"),
    "META_DATA_CAPTURE": ("name", "value"),
    "TARGET_INFO_SYSTEM_ENV": ("globalVid", "devStateName", "name", "nameEnum", "value"),
    "OPENMP_EVENT_KIND_FLUSH": ("start", "end", "name"),
    "GENERIC_EVENTS": ("rawTimestamp", "data"),
}


def token(number: int) -> str:
    """`zqaaaavk`, ...: unique, and not made by chance; at most 26^4."""
    digits = [_LETTERS[number // 26**place % 26] for place in (3, 2, 1, 0)]
    return f"zq{''.join(digits)}vk"


class Canaries:
    """Texts with one token each, in turn of all shapes."""

    def __init__(self) -> None:
        self.count = 0

    def text(self) -> str:
        """The next one."""
        name = token(self.count)
        shape = SHAPES[self.count % len(SHAPES)]
        self.count += 1
        return shape.format(x=name, X=name.capitalize())


def write_sweep(folder: Path, first: int = 0) -> tuple[Path, int]:
    """Write the trace into a folder of a canary's name, and say how many canaries there are."""
    canaries = Canaries()
    canaries.count = first
    folder = folder / f"run {token(26**4 - 1)}"
    folder.mkdir()
    path = write_every_table(folder / f"train_{token(26**4 - 2)}.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = OFF")
        named = {
            table: [each for each in columns if table_spec(table).column(each).type in TEXTS]
            for table, columns in ROLES.items()
        }
        for table, columns in ROLES.items():
            for column in columns.keys() - named[table]:
                _name_rows(connection, canaries, table, column)
        for table, texts in named.items():
            if texts and table not in _KEPT:
                _write_texts(connection, canaries, table, texts)
        _add_rows(connection, canaries)
        _add_tables(connection, canaries)
    return path, canaries.count - first


def _name_rows(connection: sqlite3.Connection, canaries: Canaries, table: str, column: str) -> None:
    """A string of its own for some or all rows."""
    every = _EVERY.get(table, 1)
    where = f"rowid % {every} = 0 AND {column} IS NOT NULL"
    rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {table} WHERE {where}")]
    for row in rows:
        number = 1_000 + canaries.count
        connection.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (number, canaries.text()))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (number, row))


def _write_texts(connection: sqlite3.Connection, canaries: Canaries, table: str, columns: list[str]) -> None:
    every = _EVERY.get(table, 1)
    for column in columns:
        where = f"rowid % {every} = 0 AND {column} IS NOT NULL"
        if table == "NVTX_EVENTS":
            where += " AND eventType != 75 AND (domainId = 0 OR rowid % 2)"
        for (row,) in connection.execute(f"SELECT rowid FROM {table} WHERE {where}").fetchall():
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (canaries.text(), row))


def _add_rows(connection: sqlite3.Connection, canaries: Canaries) -> None:
    """What the trace had none of: other metrics, domains and their payloads, versions, text where numbers belong."""
    for number in range(len(SHAPES)):
        metric = (0x112200, 100 + number, canaries.text(), canaries.text())
        connection.execute(
            "INSERT INTO TARGET_INFO_GPU_METRICS (typeId, metricId, metricName, typeName) VALUES (?, ?, ?, ?)", metric
        )
        domain = (1, 75, (1 << 48) | (4242 << 24) | 4242, 100 + number, canaries.text())
        connection.execute(
            "INSERT INTO NVTX_EVENTS (start, eventType, globalTid, domainId, text) VALUES (?, ?, ?, ?, ?)", domain
        )
    connection.execute(
        "UPDATE NVTX_EVENTS SET binaryData = ? WHERE domainId = 0", (f"{canaries.text()} {canaries.text()}".encode(),)
    )
    number = int.from_bytes(token(canaries.count).encode(), "big")
    canaries.count += 1
    connection.execute("UPDATE NVTX_EVENTS SET uint64Value = ?, int64Value = ? WHERE domainId = 0", (number, number))
    for name in ("EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION", "HOST_NAME"):
        connection.execute("DELETE FROM META_DATA_EXPORT WHERE name = ?", (name,))
        connection.execute("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", (name, canaries.text()))
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "TARGET_INFO_GPU", "NVTX_EVENTS", "SCHED_EVENTS"):
        for column in ("flags", f'"{canaries.text().replace(chr(34), "")}"'):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
            connection.execute(f"UPDATE {table} SET {column} = ?", (canaries.text(),))
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphId = ? WHERE rowid % 7 = 0", (canaries.text(),))


def _add_tables(connection: sqlite3.Connection, canaries: Canaries) -> None:
    """Tables that nsys may write and others, under names and with columns of all shapes."""
    for table, columns in (*_MORE.items(), *((name, ("id", "name", "label")) for name in _named_like_tables(canaries))):
        quoted = '"' + table.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {quoted} ({', '.join(columns)})")
        rows = [[canaries.text() for _ in columns] for _ in range(3)]
        rows += [[number, *(canaries.text() for _ in columns[1:])] for number in range(3)]
        connection.executemany(f"INSERT INTO {quoted} VALUES ({', '.join('?' * len(columns))})", rows)
    view = canaries.text().replace('"', "")
    connection.execute(f'CREATE VIEW "{view}" AS SELECT 1 AS "{token(canaries.count)}"')


def _named_like_tables(canaries: Canaries) -> Iterator[str]:
    for _ in SHAPES:
        yield canaries.text()
    for pattern in ("ENUM_{}", "CUPTI_ACTIVITY_KIND_{}", "TARGET_INFO_{}", "META_DATA_{}", "ENUM_NSYS_{}", "{}_EVENTS"):
        yield pattern.format(token(canaries.count).upper())
        canaries.count += 1
