"""Makes bundles and looks into them."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from nsysdiag import Settings, open_trace
from nsysdiag.pipeline.analysis import analyze_trace
from nsysdiag.saved import unpack
from nsysdiag.share.slicing import SlicePair, TraceSlice, slice_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport


def sliced(path: Path, folder: Path, settings: Settings | None = None) -> TraceSlice:
    """The slice of a trace."""
    folder.mkdir(exist_ok=True)
    chosen = settings or Settings()
    with open_trace(path) as trace:
        return slice_of(trace, analyze_trace(trace, chosen), chosen, folder)


def contents_of(path: Path) -> dict[str, bytes]:
    """The files in a zip."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def gaps_of(device: DeviceReport, start: int, end: int) -> list[tuple[int, int]]:
    """Start and length of each gap that touches a span."""
    starts, lengths, _ = unpack(device.gaps_packed)
    inside = (starts < end) & (starts + lengths > start)
    return list(zip(starts[inside].tolist(), lengths[inside].tolist(), strict=True))


def assert_gaps_are_those_of_the_trace(pair: SlicePair) -> None:
    """Between its first and last operation a slice is idle when the trace is, to the nanosecond."""
    assert pair.part is not None
    window = pair.part.window
    assert gaps_of(pair.part, window.start_ns, window.end_ns) == gaps_of(pair.full, window.start_ns, window.end_ns)
