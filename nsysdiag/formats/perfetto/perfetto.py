"""The report as a separate trace for ui.perfetto.dev: gaps with their causes, and other results.

```
  gpu0   verdict     |The GPU is idle 51.6% of the time ...        |
         iterations  |iteration 0  |iteration 1  |iteration 2 ...  |
         findings         |Waiting for input data ...|
         gaps        |sync|  |io_wait                |  ||  |sync  |
         time % idle ▁▁█▁▁▁▁█████████████████████████▁▁▁▁▁▁
```

It can be shown with the capture itself: the times are those of the trace.
"""

from __future__ import annotations

import msgspec

from nsysdiag.document.counted_names import as_read
from nsysdiag.document.names import visible
from nsysdiag.document.view import Causes
from nsysdiag.formats.format import RenderOptions
from nsysdiag.formats.perfetto.gaps import GapEvents, gap_events
from nsysdiag.formats.perfetto.trace_events import Event, Track, process_names, track_names
from nsysdiag.formats.perfetto.tracks import counters, finding_events, iteration_events, verdict_events
from nsysdiag.record import UNREADABLE
from nsysdiag.report import Report

GENERATOR = "nsysdiag"
MOST_GAPS = 200_000
"""Of more gaps the longest are kept: what a browser can still draw."""
TRACKS = ("verdict", "iterations", "findings", "gaps")
NUMBERS = 10
"""Numbers for each device: that of its process, then those of its tracks, all different."""


def render(report: Report, _options: RenderOptions) -> bytes:
    """The events of each device, one a line: names first, then each track in order of time."""
    report = as_read(report)
    gaps = gap_events(report, MOST_GAPS, [_track(place, "gaps") for place in range(len(report.devices))])
    events = [event for place in range(len(report.devices)) for event in _device(report, place, gaps)]
    about = {
        "generator": GENERATOR,
        "version": visible(report.tool.version),
        "trace": visible(report.trace.file),
        "fingerprint": visible(report.trace.fingerprint),
        "gaps": gaps.shown,
        "gaps_left_out": gaps.left_out,
        "gaps_left_out_ns": gaps.left_out_ns,
        "gaps_left_out_longest_ns": gaps.left_out_longest_ns,
    }
    encoder = msgspec.json.Encoder()
    lines = b",\n".join(encoder.encode(event) for event in events)
    head = encoder.encode({"displayTimeUnit": "ns", "otherData": about})
    return head.removesuffix(b"}") + b',"traceEvents":[\n' + lines + b"\n]}\n"


def _track(place: int, name: str) -> Track:
    process = NUMBERS * (place + 1)
    return Track(process, process + 1 + TRACKS.index(name))


def _device(report: Report, place: int, gaps: GapEvents) -> list[Event]:
    device, causes = report.devices[place], Causes(report.causes)
    tracks = {name: _track(place, name) for name in TRACKS}
    process = tracks["gaps"].process
    events = process_names(process, f"{device.key} {device.name}", place)
    for at, (name, track) in enumerate(tracks.items()):
        events += track_names(track, name, at)
    events += verdict_events(device, tracks["verdict"])
    events += iteration_events(device, causes, tracks["iterations"])
    events += finding_events(report, device, causes, tracks["findings"])
    events += gaps.events[place]
    return events + counters(report, device, process)


class _About(msgspec.Struct):
    generator: str


class _Marked(msgspec.Struct):
    otherData: _About  # noqa: N815 - the format calls it so


def is_ours(data: bytes) -> bool:
    """Does the metadata name us as the generator?"""
    try:
        return msgspec.json.decode(data, type=_Marked).otherData.generator == GENERATOR
    except UNREADABLE:
        return False
