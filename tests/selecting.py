"""Looks up in a trace the rows that findings name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import EvidenceRow


def selected(path: Path, row: EvidenceRow) -> int:
    """How many rows of the trace an evidence row names."""
    query = f'SELECT count(*) FROM "{row.table}" WHERE start = ?'
    values = [row.start_ns]
    told = (("globalTid", row.thread), ("globalPid", row.process), ("correlationId", row.correlation))
    for column, value in told:
        if value is not None:
            query += f" AND {column} = ?"
            values.append(value)
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return int(connection.execute(query, values).fetchone()[0])
