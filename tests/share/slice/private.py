"""A trace with a word in every place that is nobody's business."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from tests.builder import MAIN, TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
CANARY = "kanarienvogel"
"""Nothing that is made of the trace may hold it."""
MUCH_LATER = f"{CANARY}_much_later"
"""The one exception: a kernel of the program, at 900 ms."""
STRANGER = (9000, 9000)


def private_trace(path: Path, *, stranger: bool = True) -> Path:
    """Twelve steps of a kernel and a read, and the word wherever an export may hold what is private; with `stranger`
    another program is scheduled and sampled on the same machine."""
    trace = _program()
    _beside_the_program(trace)
    if stranger:
        _stranger(trace)
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"):
        trace.add_column(table, f"{CANARY}_note")
    trace.write(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")
        _host_tables(connection)
        _user_tables(connection)
        _leftovers(connection)
    return path


def _program() -> TraceBuilder:
    trace = TraceBuilder(schema="3.24.8").gpu().cuda_device().thread_name("trainer")
    trace.process(MAIN[0], f"/home/{CANARY}/env/bin/python3")
    for step in range(12):
        start = (10 + 10 * step) * MS
        trace.kernel(start, start + 4 * MS, launch=(start - 20_000, start - 10_000))
        trace.nvtx(f"step {step}", start - 30_000, start + 9 * MS).sched(start - 40_000, True).sched(start + MS, False)
        trace.osrt("read", start + MS, start + 9 * MS, chain=(("load", f"/home/{CANARY}/libload.so"),))
        trace.sample(start - 15_000, symbols=("loop",), module=f"/srv/{CANARY}/bin/app")
    return trace


def _beside_the_program(trace: TraceBuilder) -> None:
    """Other programs, names without use, and what rows of the program itself hold beyond what is read."""
    trace.process(STRANGER[0], f"/usr/bin/{CANARY}").thread_name(f"{CANARY} thread", thread=STRANGER)
    trace.thread_name(f"{CANARY} unused", thread=(MAIN[0], 77))
    trace.string(f"HOME=/home/{CANARY}")
    trace.string(f"{CANARY} was printed by the program")
    trace.kernel(900 * MS, 901 * MS, name=MUCH_LATER, launch=(899 * MS, 900 * MS), thread=(8, 8))
    trace.diagnostic(f"failed to read /home/{CANARY}/x with TOKEN={CANARY}").diagnostic(CANARY, severity=1)
    payload = {"start": 60 * MS, "eventType": 34, "text": "payload", "globalTid": None, "domainId": 9}
    trace.row("NVTX_EVENTS", {**payload, "binaryData": CANARY.encode() * 5, "jsonText": f'{{"user": "{CANARY}"}}'})
    access = {"fileAccessId": 3, "threadId": MAIN[1], "startedAt": 61 * MS, "endedAt": 69 * MS}
    trace.row("OSRT_FILE_ACCESS_EVENTS", dict(access))
    trace.row("OSRT_FILE_ACCESS_DESCRIPTORS", {"fileAccessId": 3, "filePath": f"/data/{CANARY}/batch.bin"})
    trace.row("OSRT_FILE_ACCESS_DESCRIPTORS", {"fileAccessId": 4, "filePath": f"{CANARY}.key"})
    session = {"utcEpochNs": 10**18, "utcTime": CANARY, "localTime": CANARY}
    trace.row("TARGET_INFO_SESSION_START_TIME", dict(session))


def _stranger(trace: TraceBuilder) -> None:
    """Scheduling and samples of the whole machine."""
    for start in range(10, 130, 10):
        trace.sched(start * MS + 10, True, cpu=5, thread=STRANGER)
        trace.sample(start * MS + 20, thread=STRANGER, symbols=(f"{CANARY}_function",))


def _host_tables(connection: sqlite3.Connection) -> None:
    """The environment, the command line, the host, the program's output."""
    for table in ("META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "ProcessStreams", "TARGET_INFO_NIC_INFO"):
        connection.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
        connection.execute(f"INSERT INTO {table} VALUES ('COMMAND_LINE', 'python train.py --user {CANARY}')")
    connection.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_FILE', ?)", (f"/home/{CANARY}/x.nsys-rep",))
    connection.execute("UPDATE TARGET_INFO_GPU SET uuid = ?", (CANARY,))


def _user_tables(connection: sqlite3.Connection) -> None:
    """Tables, views, triggers and columns that users add, and text where numbers belong."""
    connection.execute(f"CREATE TABLE notes (text TEXT /* {CANARY} */)")
    connection.execute("INSERT INTO notes VALUES (?)", (CANARY,))
    connection.execute(f"CREATE VIEW kernels AS SELECT '{CANARY}' AS why, * FROM CUPTI_ACTIVITY_KIND_KERNEL")
    connection.execute(
        f"CREATE TRIGGER t AFTER INSERT ON notes BEGIN INSERT INTO notes VALUES ('{CANARY}'); END",
    )
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridId = ? WHERE start = ?", (CANARY, 60 * MS))
    connection.execute(f'UPDATE NVTX_EVENTS SET "{CANARY}_note" = ?', (CANARY,))


def _leftovers(connection: sqlite3.Connection) -> None:
    """Rows that were deleted: their pages and cells are still there."""
    rows = [(10_000 + number, f"{CANARY} deleted {number}" * 20) for number in range(200)]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", rows)
    connection.execute("DELETE FROM StringIds WHERE id >= 10000")
