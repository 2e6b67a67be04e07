"""Parts of a capture for a comparison: a phase by its name, and the steps of the whole capture inside a part."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.iterations.chosen import CarriedSteps, whole_of
from nsysdiag.iterations.loop import FEWEST, Loop
from nsysdiag.messages import UsageError, printable
from nsysdiag.phases.facts import Phase
from nsysdiag.pipeline.reading import Reading, read, silent
from nsysdiag.report import Report
from nsysdiag.trace.trace import open_trace

_PHASE = re.compile(r"\s*(start-up|steady|pause|teardown)(?:\s+([1-9]\d{0,5}))?\s*")


def phase_named(report: Report, wanted: str) -> Phase:
    """The phase of this name: `start-up`, or `steady 2` for the second one of several. Raises UsageError."""
    held: dict[str, int] = {}
    for phase in report.phases:
        held[phase.name] = held.get(phase.name, 0) + 1
    match = _PHASE.fullmatch(wanted)
    found = [each for each in report.phases if match is not None and each.name == match.group(1)]
    number = int(match.group(2) or 1) if match is not None else 1
    if number > len(found):
        known = ", ".join(f"{name} (1 to {count})" if count > 1 else name for name, count in held.items())
        raise UsageError(
            f"{report.trace.file} has no phase '{printable(wanted)}'",
            hint=f"its phases: {known}" if known else "it has no phases",
        )
    return found[number - 1]


def steps_inside(path: Path, settings: Settings) -> CarriedSteps | None:
    """The steps of the whole trace that are inside the time from `start_ns` to `end_ns` of the settings; None where
    these are too few."""
    plain = replace(settings, start_ns=None, end_ns=None)
    low = np.iinfo(np.int64).min // 2 if settings.start_ns is None else settings.start_ns
    high = np.iinfo(np.int64).max // 2 if settings.end_ns is None else settings.end_ns
    with open_trace(path, reader=settings.reader, nsys=settings.nsys) as trace, Background() as background:
        reading = read(trace, plain, background, silent)
        part = Intervals.of([(low, high)])
        loops = {each.key: loop for each in reading.devices if (loop := _inside(each, reading, part)) is not None}
        if not loops:
            return None
        first = max(loops.values(), key=lambda loop: loop.total_ns)
        name = first.called.text(reading.strings)
    return CarriedSteps(name, bool(first.name), {key: loop.starts for key, loop in loops.items()})


def _inside(device: DeviceTimeline, reading: Reading, part: Intervals) -> Loop | None:
    """The loop of the device that takes most of the part."""
    inside = [loop.inside(part) for loop in reading.loops(device, whole_of(device)) if loop.closed]
    return max((loop for loop in inside if len(loop) >= FEWEST), key=lambda loop: loop.total_ns, default=None)
