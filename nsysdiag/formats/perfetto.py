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

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from nsysdiag.document.names import call_site_label, clip, visible, whole
from nsysdiag.document.packed import FULL, LANES, unpack_lanes
from nsysdiag.document.view import Causes, as_read, by_rank, slices_by_time, window_parts
from nsysdiag.document.words import path_label, thread_label, window_sentence
from nsysdiag.findings.show import told
from nsysdiag.formats.format import RenderOptions
from nsysdiag.record import UNREADABLE
from nsysdiag.report import DeviceReport, Gap, Operation, Report
from nsysdiag.saved import unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.findings.facts import Finding

    Packed = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


# Events of the Chrome trace-event format, which ui.perfetto.dev and chrome://tracing open.
#
# Times are decimals in µs with three places, exact to the nanosecond. Text is made visible and cut to a length.

LONGEST_NAME, LONGEST_TEXT = 200, 500
Event = dict[str, object]


class Track(msgspec.Struct, frozen=True):
    """A row of events: a thread of a process, by the numbers that events name it with."""

    process: int
    thread: int


def micros(ns: int) -> msgspec.Raw:
    """Nanoseconds as an exact JSON number in µs: `1234567` is `1234.567`."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{size // 1000}.{size % 1000:03d}".encode())


def span(track: Track, category: str, name: str, start_ns: int, length_ns: int, args: Event) -> Event:
    """A complete event: something that lasts."""
    return {
        "ph": "X",
        "pid": track.process,
        "tid": track.thread,
        "ts": micros(start_ns),
        "dur": micros(length_ns),
        "cat": category,
        "name": clip(name, LONGEST_NAME),
        "args": safe(args),
    }


def instant(track: Track, category: str, name: str, at_ns: int, args: Event) -> Event:
    """Something at a moment, on its track alone."""
    return {
        "ph": "i",
        "pid": track.process,
        "tid": track.thread,
        "ts": micros(at_ns),
        "s": "t",
        "cat": category,
        "name": clip(name, LONGEST_NAME),
        "args": safe(args),
    }


def counter(process: int, name: str, at_ns: int, values: dict[str, float]) -> Event:
    """The values of some series from a moment on."""
    return {"ph": "C", "pid": process, "ts": micros(at_ns), "name": name, "args": values}


def process_names(process: int, name: str, place: int) -> list[Event]:
    """What a process is called, and where it stands among the others."""
    return [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": clip(name, LONGEST_NAME)}},
        {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": place}},
    ]


def track_names(track: Track, name: str, place: int) -> list[Event]:
    """The name of a track, and its position in its process."""
    where: Event = {"ph": "M", "pid": track.process, "tid": track.thread}
    return [
        {**where, "name": "thread_name", "args": {"name": name}},
        {**where, "name": "thread_sort_index", "args": {"sort_index": place}},
    ]


def safe(value: object) -> object:
    """Arguments without what is None or empty, their text fit to be shown."""
    if isinstance(value, str):
        return clip(value, LONGEST_TEXT)
    if isinstance(value, dict):
        return {clip(key, LONGEST_NAME): safe(each) for key, each in value.items() if each not in (None, "", [], {})}
    if isinstance(value, list):
        return [safe(each) for each in value]
    return value


# Gaps as trace events: those that the report describes in full, all others with their cause.


class GapEvents(Struct, frozen=True):
    """The events of each device in order of time, and what of all gaps they leave out."""

    events: list[list[Event]]
    shown: int
    left_out: int
    left_out_ns: int
    left_out_longest_ns: int


def gap_events(report: Report, most: int, tracks: list[Track]) -> GapEvents:
    """A span for each gap; of more than `most` gaps of all devices together the longest."""
    packed = [unpack(device.gaps_packed) for device in report.devices]
    kept = _longest([lengths for _starts, lengths, _causes in packed], most)
    causes = Causes(report.causes)
    events = [
        _of_device(device, causes, track, (starts[chosen], lengths[chosen], codes[chosen]))
        for device, track, (starts, lengths, codes), chosen in zip(report.devices, tracks, packed, kept, strict=True)
    ]
    left = [lengths[~chosen] for (_starts, lengths, _codes), chosen in zip(packed, kept, strict=True)]
    return GapEvents(
        events,
        shown=sum(len(each) for each in events),
        left_out=sum(len(lengths) for lengths in left),
        left_out_ns=sum(int(lengths.sum()) for lengths in left),
        left_out_longest_ns=max((int(lengths.max()) for lengths in left if len(lengths)), default=0),
    )


def _longest(lengths: list[npt.NDArray[np.int64]], most: int) -> list[npt.NDArray[np.bool_]]:
    """Which gaps of each device are among the `most` longest of all; of equal ones those that come first."""
    every = np.concatenate([np.empty(0, dtype=np.int64), *lengths])
    kept = np.zeros(len(every), dtype=np.bool_)
    kept[np.argsort(-every, kind="stable")[:most]] = True
    ends = np.cumsum([len(each) for each in lengths], dtype=np.int64)
    return np.split(kept, ends[:-1]) if lengths else []


def _of_device(device: DeviceReport, causes: Causes, track: Track, packed: Packed) -> list[Event]:
    described = {gap.start_ns: gap for gap in device.gaps}
    ids = device.gaps_packed.cause_ids
    titles = [causes.title(each) for each in ids]
    starts, lengths, codes = packed
    order = np.argsort(starts, kind="stable")
    rows = zip(starts[order].tolist(), lengths[order].tolist(), codes[order].tolist(), strict=True)
    return [
        _in_full(track, described[start], causes, titles[code])
        if start in described
        else span(track, "gap", titles[code], start, length, {"cause": ids[code]})
        for start, length, code in rows
    ]


def _in_full(track: Track, gap: Gap, causes: Causes, title: str) -> Event:
    slices, root = slices_by_time(gap), gap.root
    arguments: Event = {
        "cause": slices[0].cause if slices else None,
        "slices": [{"cause": causes.title(part.cause), "ns": part.ns, "evidence": part.evidence} for part in slices],
        "thread": thread_label(gap.thread) if gap.thread else None,
        "previous_op": _operation(gap.previous_op),
        "next_op": _operation(gap.next_op),
        "nvtx": path_label(gap.nvtx),
        "nvtx_elsewhere": path_label(gap.nvtx_elsewhere),
        "queue_emptied_by": gap.drained_by,
        "call_site": call_site_label(gap.call_site, whole),
        "root_cause": causes.title(root.cause) if root and root.cause else None,
        "root_chain": root.chain if root else None,
        "root_confidence": root.confidence if root else None,
        "confidence": gap.confidence,
    }
    name = causes.title(slices[0].cause) if slices else title
    return span(track, "gap", name, gap.start_ns, gap.end_ns - gap.start_ns, arguments)


def _operation(operation: Operation | None) -> Event | None:
    return {"name": operation.name, "category": operation.category, "stream": operation.stream} if operation else None


# The trace events in addition to gaps: verdict, iterations, findings, and the split of the time as counters.

MOST_BUCKETS = 4096
COUNTER = "time %"


def verdict_events(device: DeviceReport, track: Track) -> list[Event]:
    """The verdict over the window of the device."""
    window = device.window
    args: Event = {
        "verdict": device.verdict.id,
        "window": window_sentence(device),
        "window_ns": device.window_ns,
        **{f"{part.id}_ns": part.ns for part in window_parts(device)},
        "coverage": device.coverage,
        "notes": device.notes,
    }
    return [span(track, "verdict", device.verdict.sentence, window.start_ns, window.end_ns - window.start_ns, args)]


def iteration_events(device: DeviceReport, causes: Causes, track: Track) -> list[Event]:
    """The iterations that the report lists."""
    rows = sorted(device.iterations.rows, key=lambda row: row.start_ns) if device.iterations else []
    events = []
    for row in rows:
        split = {
            "steady": row.steady,
            "compute_ns": row.compute_ns,
            "exposed_communication_ns": row.exposed_comm_ns,
            "exposed_copies_ns": row.exposed_copy_ns,
            "idle_ns": {causes.title(cause): ns for cause, ns in sorted(row.ledger.items())},
        }
        length = row.end_ns - row.start_ns
        events.append(span(track, "iteration", f"iteration {row.index}", row.start_ns, length, split))
    return events


def finding_events(report: Report, device: DeviceReport, causes: Causes, track: Track) -> list[Event]:
    """Each finding over its representative gap; without a gap at its first row of evidence, else at the start of the
    window."""
    gaps = _representatives(device)
    events: list[tuple[int, Event]] = []
    for finding in by_rank([each for each in report.findings if each.device == device.key]):
        arguments = _arguments(finding, causes)
        if finding.signature in gaps:
            start, length = gaps[finding.signature]
            events.append((start, span(track, "finding", finding.title, start, length, arguments)))
        else:
            at = finding.rows[0].start_ns if finding.rows else device.window.start_ns
            events.append((at, instant(track, "finding", finding.title, at, arguments)))
    return [event for _start, event in sorted(events, key=lambda pair: pair[0])]


def _representatives(device: DeviceReport) -> dict[str | None, tuple[int, int]]:
    """Start and length of the gap that stands for a signature, by its id."""
    starts, lengths, _codes = unpack(device.gaps_packed)
    order = np.argsort(starts, kind="stable")
    starts, lengths = starts[order], lengths[order]
    wanted = np.array([row.representative_start_ns for row in device.signatures], dtype=np.int64)
    places = np.searchsorted(starts, wanted).tolist()
    return {
        row.id: (row.representative_start_ns, int(lengths[at]))
        for row, at in zip(device.signatures, places, strict=True)
        if at < len(starts) and starts[at] == row.representative_start_ns
    }


def _arguments(finding: Finding, causes: Causes) -> Event:
    return {
        "severity": finding.severity,
        "cause": causes.title(finding.cause),
        "lost_ns": finding.lost_ns,
        "lost_share": finding.lost_share,
        "ceiling_ns": finding.ceiling_ns,
        "confidence": finding.confidence,
        "gaps": finding.gaps,
        "nvtx": path_label(finding.nvtx),
        "chain": finding.chain,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "id": finding.id,
        **{fact.column.name: fact.column.cell(finding) for fact, _ in told(finding, "event")},
    }


def counters(report: Report, device: DeviceReport, process: int) -> list[Event]:
    """The shares of compute, communication, copies and idle time, in per cent of each bucket: an event at each change,
    and zeros at the end. Nothing in a report without a timeline."""
    timelines = {} if isinstance(report.timeline, msgspec.UnsetType) else report.timeline
    found = unpack_lanes(timelines[device.key], MOST_BUCKETS) if device.key in timelines else None
    if found is None:
        return []
    values = np.stack([found.lanes[name] for name in LANES], axis=1)
    changed = np.flatnonzero(np.any(values[1:] != values[:-1], axis=1)) + 1
    events = []
    for at in [0, *changed.tolist()]:
        percent = {name: round(100 * share / FULL, 1) for name, share in zip(LANES, values[at].tolist(), strict=True)}
        busy = round(100 - percent["idle"], 1)
        events.append(counter(process, COUNTER, found.edges[at], {"busy": busy, **percent}))
    return [*events, counter(process, COUNTER, found.edges[-1], dict.fromkeys(("busy", *LANES), 0.0))]


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


class _PerfettoMark(msgspec.Struct):
    otherData: _About  # noqa: N815 - the format calls it so


def is_ours(data: bytes) -> bool:
    """Does the metadata name us as the generator?"""
    try:
        return msgspec.json.decode(data, type=_PerfettoMark).otherData.generator == GENERATOR
    except UNREADABLE:
        return False
