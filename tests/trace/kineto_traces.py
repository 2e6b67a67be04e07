"""Writes an nsys-shaped trace as the PyTorch profiler would have written it: what it records, in microseconds."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

RECORDED = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
)
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}
_VERSION = re.compile(r"_v\d+$")
PUSH_POP = 59
MIGRATIONS = (11, 12, 13)
"""Copies that unified memory makes; the profiler does not record them."""


def _rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
    except sqlite3.OperationalError:
        return []


def _complete(category: str, name: str, pid: int, tid: int, row: dict[str, Any], **args: Any) -> dict[str, Any]:
    start, end = row["start"], row["end"]
    times = {"ts": start / 1000, "dur": (end - start) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args}


def _operations(connection: sqlite3.Connection, strings: dict[int, str]) -> list[dict[str, Any]]:
    found = []
    for table, category in zip(RECORDED, ("kernel", "gpu_memcpy", "gpu_memset"), strict=False):
        for row in _rows(connection, table):
            if row.get("copyKind") in MIGRATIONS:
                continue
            place = {"device": row["deviceId"], "context": row["contextId"], "stream": row["streamId"]}
            args = {**place, "correlation": row["correlationId"]}
            if category == "kernel":
                args["grid"], args["block"] = ([row[f"{what}{axis}"] for axis in "XYZ"] for what in ("grid", "block"))
                args["registers per thread"] = row["registersPerThread"]
                name = strings[row["demangledName"]]
            elif category == "gpu_memcpy":
                sides = f"({_MEMORY.get(row['srcKind'], 'Unknown')} -> {_MEMORY.get(row['dstKind'], 'Unknown')})"
                name, args["bytes"] = f"Memcpy {_COPIES[row['copyKind']]} {sides}", row["bytes"]
            else:
                name, args["bytes"] = f"Memset ({_MEMORY.get(row['memKind'], 'Unknown')})", row["bytes"]
            found.append(_complete(category, name, row["deviceId"], row["streamId"], row, **args))
    return found


def _host(connection: sqlite3.Connection, strings: dict[int, str]) -> list[dict[str, Any]]:
    found = []
    for row in _rows(connection, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        pid, tid = row["globalTid"] >> 24 & 0xFFFFFF, row["globalTid"] & 0xFFFFFF
        category = "cuda_driver" if row["eventClass"] == 1 else "cuda_runtime"
        name = _VERSION.sub("", strings[row["nameId"]])
        found.append(_complete(category, name, pid, tid, row, correlation=row["correlationId"]))
    for row in _rows(connection, "NVTX_EVENTS"):
        if row["eventType"] == PUSH_POP and row["end"] is not None:
            pid, tid = row["globalTid"] >> 24 & 0xFFFFFF, row["globalTid"] & 0xFFFFFF
            name = row["text"] if row["text"] is not None else strings[row["textId"]]
            found.append(_complete("user_annotation", name, pid, tid, row))
    return found


def document(trace: Path) -> dict[str, Any]:
    """What the profiler would have written of a trace."""
    with closing(sqlite3.connect(trace)) as connection:
        strings = {row["id"]: row["value"] for row in _rows(connection, "StringIds")}
        gpus = [
            {"id": row["id"], "name": row["name"], "numSms": row["smCount"], "warpSize": 32}
            for row in _rows(connection, "TARGET_INFO_GPU")
        ]
        events = [*_host(connection, strings), *_operations(connection, strings)]
    return {"schemaVersion": 1, "deviceProperties": gpus, "baseTimeNanoseconds": 10**18, "traceEvents": events}


def write(content: dict[str, Any], path: Path) -> Path:
    """As JSON, packed where the name says so."""
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def only_recorded(trace: Path) -> None:
    """Drops from a trace the tables of events that the profiler does not write."""
    with closing(sqlite3.connect(trace)) as connection, connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            if name not in RECORDED and name not in {"StringIds", "TARGET_INFO_GPU", "META_DATA_EXPORT", "PROCESSES"}:
                connection.execute(f"DROP TABLE {name}")
