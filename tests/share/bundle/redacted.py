"""Slices with stand-ins for names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag import Settings, open_trace
from nsysdiag.pipeline.analysis import analyze_trace
from nsysdiag.share.names import Names
from nsysdiag.share.redaction import redacted_by
from nsysdiag.share.slice_names import SliceNames
from nsysdiag.share.slicing import TraceSlice, slice_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report


def redacted_slice(path: Path, folder: Path) -> tuple[Report, TraceSlice]:
    """The redacted report of a trace and the slice that goes with it."""
    folder.mkdir(exist_ok=True)
    names = Names()
    with open_trace(path) as trace:
        report = analyze_trace(trace, Settings())
        shown = redacted_by(report, names)
        return shown, slice_of(trace, report, Settings(), folder, SliceNames(names).of)
