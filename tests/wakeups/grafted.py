"""Real captures of waits with a made-up GPU: it is idle exactly while the main thread waits, so each gap is one wait.

```
main thread   [wait 1    ][launch][wait 2        ][launch]
device     ==)............[========)..............[========
```
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.schemas import tables

if TYPE_CHECKING:
    from tests.shared import Shared

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURES = sorted(path.name.removesuffix(".sqlite.gz") for path in FIXTURES.glob("real_wait_*.sqlite.gz"))
LAUNCH_NS = 1_000
_LAUNCH, _KERNEL = "cudaLaunchKernel_v7000", "step"


def log_of(name: str) -> dict[str, Any]:
    """What the program of a capture logged of itself."""
    log: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return log


def waits_of_main(log: dict[str, Any]) -> list[dict[str, Any]]:
    """The main thread's waits in the order of time."""
    (main,) = [thread for thread in log["threads"] if thread["role"] == "main"]
    mine = [wait for wait in log["waits"] if (wait["pid"], wait["tid"]) == (main["pid"], main["tid"])]
    return sorted(mine, key=lambda wait: wait["start"])


def graft(name: str, path: Path, *, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Write the capture with its made-up GPU to `path`, without some tables; returns the waits, a gap each."""
    with gzip.open(FIXTURES / f"{name}.sqlite.gz") as packed, path.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    waits = waits_of_main(log_of(name))
    with closing(sqlite3.connect(path)) as connection:
        _add_gpu(connection, waits)
        for table in without:
            connection.execute(f'DROP TABLE "{table}"')
        connection.commit()
    return waits


def grafted(shared: Shared, name: str, without: tuple[str, ...] = ()) -> Path:
    """The same, made once a run."""
    return shared.file("-".join((name, *without)) + ".sqlite", lambda path: graft(name, path, without=without))


def _add_gpu(connection: sqlite3.Connection, waits: list[dict[str, Any]]) -> None:
    thread = _global_tid(connection, waits[0]["pid"], waits[0]["tid"])
    first = connection.execute("SELECT max(id) + 1 FROM StringIds").fetchone()[0]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(first, _LAUNCH), (first + 1, _KERNEL)])
    borders = [waits[0]["start"] - 100_000, *(wait["end"] for wait in waits)]
    until = [*(wait["start"] for wait in waits), waits[-1]["end"] + 100_000]
    calls, kernels = [], []
    for number, (launched, end) in enumerate(zip(borders, until, strict=True)):
        start = launched + LAUNCH_NS
        calls.append(
            {"start": launched, "end": start, "globalTid": thread, "correlationId": number + 1, "nameId": first}
        )
        kernels.append(
            {
                "start": start,
                "end": max(end, start + 1),
                "globalPid": thread & ~0xFFFFFF,
                "correlationId": number + 1,
                "streamId": 7,
                "contextId": 1,
                "deviceId": 0,
                "shortName": first + 1,
                "demangledName": first + 1,
            }
        )
    _insert(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", calls)
    _insert(connection, "CUPTI_ACTIVITY_KIND_KERNEL", kernels)


def _global_tid(connection: sqlite3.Connection, pid: int, tid: int) -> int:
    rows = connection.execute(
        "SELECT DISTINCT globalTid FROM OSRT_API UNION SELECT DISTINCT globalTid FROM SCHED_EVENTS"
    )
    (found,) = [row for (row,) in rows if (row >> 24 & 0xFFFFFF, row & 0xFFFFFF) == (pid, tid)]
    return int(found)


def _insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, int]]) -> None:
    columns = [column.name if hasattr(column, "name") else column for column in tables("3.13.2")[table]]
    connection.execute(f"CREATE TABLE {table} ({', '.join(f'{column} INTEGER' for column in columns)})")
    marks = ", ".join(f":{column}" for column in columns)
    connection.executemany(
        f"INSERT INTO {table} VALUES ({marks})", [{**dict.fromkeys(columns, 0), **row} for row in rows]
    )
