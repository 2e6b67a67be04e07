"""Put the log of a program on the clock of its trace.

The log is one of scripts/workloads/waitlog.py. Every wait gets the chain of those who ended it: who, what it did in the
meantime, and when it made the call that woke the next one. Waits too short to say anything are left out.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

SHORTEST_NS = 200_000
WORST_NS = 100_000
"""By how much two anchors may contradict each other."""
OWN_SHARE = 0.5
"""Of a wait for a CPU, the part that the program's own processes must have held it: others are not in the trace."""

Record = dict[str, Any]


def mapped(export: Path, log: Path, facts: Record) -> str:
    """The log as JSON, beside facts of the capture."""
    by_kind: dict[str, list[Record]] = defaultdict(list)
    for line in log.read_text().splitlines():
        record = json.loads(line)
        by_kind[record["record"]].append(record)
    with closing(sqlite3.connect(export)) as connection:
        versions, starts = versions_of(connection), anchor_starts(connection)
    offset, error = clock_offset(by_kind["anchor"], starts)
    for record in [record for records in by_kind.values() for record in records]:
        record.update({name: record[name] - offset for name in ("start", "end", "time") if name in record})
    long_ones = [wait for wait in by_kind["wait"] if wait["end"] - wait["start"] >= SHORTEST_NS]
    known = [wait for wait in (described(wait, by_kind) for wait in long_ones) if wait is not None]
    rows = {
        "threads": [{name: role[name] for name in ("role", "pid", "tid")} for role in by_kind["role"]],
        "waits": sorted(known, key=lambda wait: int(wait["start"])),
        "steps": without_record(by_kind["step"]),
        "injected": without_record(by_kind["injected"]),
        "calls": without_record(by_kind["call"]),
        "operations": without_record(by_kind["operation"]),
    }
    return text(facts | versions | {"clock_error_ns": error}, rows)


def anchor_starts(connection: sqlite3.Connection) -> list[int]:
    """When the anchors' NVTX ranges began, by the trace's clock; none where no NVTX was captured."""
    if "NVTX_EVENTS" not in tables_of(connection):
        return []
    chosen = "text = 'anchor' OR textId IN (SELECT id FROM StringIds WHERE value = 'anchor')"
    return [row[0] for row in connection.execute(f"SELECT start FROM NVTX_EVENTS WHERE {chosen} ORDER BY start")]


def versions_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Which nsys wrote the export, and its schema; the table's name changed with schema 3.4."""
    table = "META_DATA_EXPORT" if "META_DATA_EXPORT" in tables_of(connection) else "EXPORT_META_DATA"
    found = dict(connection.execute(f"SELECT name, value FROM {table}"))
    return {"nsys": str(found["EXPORT_PRODUCT_VERSION"]), "schema": str(found["EXPORT_SCHEMA_VERSION"])}


def tables_of(connection: sqlite3.Connection) -> set[str]:
    """The names of all tables."""
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}


def clock_offset(anchors: list[Record], starts: list[int]) -> tuple[int, int]:
    """What to subtract from the log's clock to get the trace's, and how far off that may be, in ns.

    Every anchor began between two readings of the log's clock, so that each bounds the offset from both sides.
    """
    if len(anchors) != len(starts) or not starts:
        raise ValueError(f"{len(anchors)} anchors are in the log and {len(starts)} in the trace")
    anchors = sorted(anchors, key=lambda anchor: int(anchor["before"]))
    low = max(anchor["before"] - start for anchor, start in zip(anchors, starts, strict=True))
    high = min(anchor["after"] - start for anchor, start in zip(anchors, starts, strict=True))
    if low - high > WORST_NS:
        raise ValueError(f"the log's clock and the trace's are {low - high:,} ns apart: they are of different runs")
    return (low + high) // 2, (abs(high - low) + 1) // 2


def described(wait: Record, by_kind: dict[str, list[Record]]) -> Record | None:
    """The wait with the chain of its wakers; None where somebody outside the program held the CPU."""
    wakers, until = [], wait["end"]
    for role in wait["wakers"]:
        people = [person for person in by_kind["role"] if person["role"] == role]
        if not people:  # that one cannot log itself
            break
        did = [done_during(wait, person, by_kind["does"]) for person in people]
        if wait["kind"] == "preempted" and held(did) < OWN_SHARE * (wait["end"] - wait["start"]):
            return None
        # Of several in a role it is the one that was busy last.
        person = max(people, key=lambda person: last_busy(wait, person, by_kind["does"]))
        wakes = [wake for wake in mine(by_kind["wake"], person) if wait["start"] <= wake["time"] <= until]
        wake = max(wakes, key=lambda wake: wake["time"], default=None)
        until = wake["time"] if wake else until
        wakers.append(described_waker(person, did[people.index(person)], wake))
    return {name: wait[name] for name in ("pid", "tid", "kind", "start", "end")} | {"wakers": wakers}


def described_waker(person: Record, did: dict[str, int], wake: Record | None) -> Record:
    """A waker: who, what it mostly did during the wait, how long it did what, and its last wake call in it."""
    return {
        "role": person["role"], "pid": person["pid"], "tid": person["tid"],
        "did": max(did, key=lambda what: did[what], default=None), "did_ns": did,
        "wake": wake and {"how": wake["how"], "time": wake["time"]},
    }  # fmt: skip


def done_during(wait: Record, person: Record, doings: list[Record]) -> dict[str, int]:
    """How long, in ns, a thread did what during a wait."""
    did: dict[str, int] = defaultdict(int)
    for doing in mine(doings, person):
        overlap = min(doing["end"], wait["end"]) - max(doing["start"], wait["start"])
        if overlap > 0:
            did[doing["what"]] += overlap
    rest = wait["end"] - wait["start"] - sum(did.values())
    if person["does"] and rest > 0:
        did[person["does"]] += rest
    return dict(did)


def last_busy(wait: Record, person: Record, doings: list[Record]) -> int:
    """When a thread last did something before a wait ended."""
    return max(
        (min(doing["end"], wait["end"]) for doing in mine(doings, person) if doing["start"] < wait["end"]), default=0
    )


def held(did: list[dict[str, int]]) -> int:
    """How long several threads were busy, all together, in ns."""
    return sum(sum(spent.values()) for spent in did)


def mine(records: list[Record], person: Record) -> list[Record]:
    """The records of one thread."""
    return [record for record in records if (record["pid"], record["tid"]) == (person["pid"], person["tid"])]


def without_record(records: list[Record]) -> list[Record]:
    """The records of a kind, in the order of time, without the word for it."""
    found = [{name: value for name, value in record.items() if name != "record"} for record in records]
    return sorted(found, key=lambda record: int(record["start"]))


def text(facts: Record, lists: dict[str, list[Record]]) -> str:
    """JSON with a line for each row."""
    lines = [f'"{name}": {json.dumps(value)}' for name, value in facts.items()]
    for name, rows in lists.items():
        if rows:
            lines.append(f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"
