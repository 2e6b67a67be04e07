"""What an analysis reads of a trace, found out by watching one, and those reads alone: the yardstick of its speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze, open_trace
from nsysdiag.trace.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.pipeline.reading import Progress
    from nsysdiag.trace.columns import Columns

Requests = dict[str, list[str]]
"""The columns of each table, in the order in which they were first asked for."""


def watched_analysis(path: Path, progress: Progress | None = None) -> Requests:
    """Analyze a trace and say which columns it read whole; rows chosen by their ids are not among them."""
    requests: Requests = {}
    read = Trace.read

    def watched(trace: Trace, table: str, *columns: str) -> Columns:
        asked = requests.setdefault(table, [])
        asked += [column for column in columns if column not in asked]
        return read(trace, table, *columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trace, "read", watched)
        analyze(path, progress=progress)
    return requests


def read_columns(path: Path, requests: Requests) -> int:
    """Read every table once, with all its columns, and keep nothing; returns the number of rows."""
    with open_trace(path) as trace:
        return sum(len(trace.read(table, *columns)) for table, columns in requests.items())
