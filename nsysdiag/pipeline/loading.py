"""A path in, a report out: of a trace by analysis, or as it was saved."""

from __future__ import annotations

import os
from pathlib import Path

from nsysdiag.pipeline import analyze
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.saved_files import is_saved_report, read_report, read_side


def load(path: str | os.PathLike[str]) -> Report:
    """The report of a trace or of a saved report, distinguished by their content.

    A report written by `save` or `-o x.json` is read. A trace (an SQLite file, a folder of Parquet files or a
    .nsys-rep) is analysed with default settings: use `analyze` for others. Raises InputError for other files, for saved
    documents other than a report of one trace, and for a damaged report. Raises MemoryShortError if memory runs out.
    """
    found = Path(os.fsdecode(path))
    return read_report(found) if is_saved_report(found) else analyze(found)


def load_side(path: str | os.PathLike[str]) -> Report | WhatIf:
    """What `load` gives, or a saved prediction: a side of a comparison. Raises what `load` raises."""
    found = Path(os.fsdecode(path))
    return read_side(found) if is_saved_report(found) else analyze(found)
