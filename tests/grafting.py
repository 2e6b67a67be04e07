"""A capture of a program that had no GPU, with the device put in that the program reckoned with.

Such a program logs its calls to a device, and when the operations would have run that they launched. The calls took
real time on a real thread: OS calls, scheduling, samples and NVTX ranges of the capture are as they were, and only the
rows of CUDA are made.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.builder import VM, TraceBuilder, Value

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = ("shortName", "demangledName", "mangledName", "nameId")
_OWNERS = ("globalPid", "globalTid")
_MACHINE = 48
NAME = "Stand-in for a GPU"
NO_SHAPE: dict[str, Value] = dict.fromkeys(
    ("registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 0
)
"""Nobody reckoned with blocks and threads."""


def graft(capture: Path, log: dict[str, Any]) -> None:
    """Put the calls and operations of a log into an export, in place."""
    device = capture.with_suffix(".device")
    device_rows(log).write(device)
    with closing(sqlite3.connect(capture)) as connection, connection:
        connection.execute("ATTACH ? AS device", (str(device),))
        machine = connection.execute("SELECT globalTid >> ? FROM OSRT_API", (_MACHINE,)).fetchone()[0]
        names = connection.execute("SELECT max(id) + 1 FROM main.StringIds").fetchone()[0]
        connection.execute(
            "INSERT INTO main.StringIds (id, value) SELECT id + ?, value FROM device.StringIds", (names,)
        )
        tables = "SELECT name, sql FROM device.sqlite_master WHERE name LIKE 'CUPTI%' OR name LIKE 'TARGET_INFO%'"
        for table, made in connection.execute(tables).fetchall():
            connection.execute(made)
            columns = [row[1] for row in connection.execute(f'PRAGMA device.table_info("{table}")')]
            chosen = ", ".join(_moved(column, machine - VM, names) for column in columns)
            connection.execute(f'INSERT INTO main."{table}" SELECT {chosen} FROM device."{table}"')
    device.unlink()


def device_rows(log: dict[str, Any]) -> TraceBuilder:
    """The calls and operations of a log as rows; calls of a process are numbered from 1, which is their correlation."""
    trace = TraceBuilder()
    for device in sorted({operation.get("device", 0) for operation in log["operations"]}):
        trace.gpu(device, NAME, sm_count=0, memory=None)
    for call in log["calls"]:
        thread = (call["pid"], call["tid"])
        trace.api(call["api"], call["start"], call["end"], thread=thread, correlation=call["call"])
    for operation in log["operations"]:
        place = {"device": operation.get("device", 0), "stream": operation.get("stream", 7)}
        thread, start, end = (operation["pid"], operation["tid"]), operation["start"], operation["end"]
        if operation["kind"] == "kernel":
            issued = {"thread": thread, "correlation": operation["call"], "shape": NO_SHAPE} | place
            for node, begin, over in nodes_of(operation):
                name = operation["name"]
                trace.kernel(begin, over, name=name, demangled=name, graph_node=node, **issued)
        else:
            trace.memcpy(
                start,
                end,
                kind=operation["kind"],
                host=operation["host"],
                size=operation["bytes"],
                thread=thread,
                correlation=operation["call"],
                **place,
            )
    return trace


def nodes_of(operation: dict[str, Any]) -> list[tuple[int | None, int, int]]:
    """The kernels of an operation: itself, or the nodes of a graph, all as long and as far apart."""
    start, end, nodes = operation["start"], operation["end"], operation.get("nodes")
    if not nodes:
        return [(None, start, end)]
    between = operation["between"]
    every = (end - start + between) // nodes
    return [(node + 1, start + node * every, start + (node + 1) * every - between) for node in range(nodes)]


def _moved(column: str, machines: int, names: int) -> str:
    if column in _NAMES:
        return f'"{column}" + {names}'
    return f'"{column}" + ({machines} << {_MACHINE})' if column in _OWNERS else f'"{column}"'
