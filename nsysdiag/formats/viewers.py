"""The report for other viewers: trace events for ui.perfetto.dev, and flame graphs.

```
  gpu0   verdict     |The GPU is idle 51.6% of the time ...        |
         iterations  |iteration 0  |iteration 1  |iteration 2 ...  |
         findings         |Waiting for input data ...|
         gaps        |sync|  |io_wait                |  ||  |sync  |
         time % idle ▁▁█▁▁▁▁█████████████████████████▁▁▁▁▁▁
```

The events can be shown with the capture itself: the times are those of the trace.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from nsysdiag.arrays.intervals import IntArray, equal_edges
from nsysdiag.document.drawings import FULL
from nsysdiag.document.names import call_site_label, clip, visible, whole
from nsysdiag.document.packed import LANES, unpack_lanes
from nsysdiag.document.view import Causes, as_read, by_rank, slices_by_time, window_parts
from nsysdiag.document.words import path_label, thread_label, window_sentence
from nsysdiag.findings.show import told
from nsysdiag.formats import RenderOptions
from nsysdiag.ranges.show import IDLE, SAMPLES, WAITS, rows_of
from nsysdiag.record import value_in
from nsysdiag.report import DeviceReport, Gap, Operation, Report
from nsysdiag.saved import unpack
from nsysdiag.units import decimal
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from nsysdiag.findings.facts import Finding


# Events of the Chrome trace-event format, which ui.perfetto.dev and chrome://tracing open.
#
# Times are decimals in µs with three places, exact to the nanosecond. Text is made visible and cut to a length.

LONGEST_NAME, LONGEST_TEXT = 200, 500
Event = dict[str, object]
Track = dict[str, int]
"""A row of events: a thread of a process, by the numbers that events name it with."""


def micros(ns: int) -> msgspec.Raw:
    """Nanoseconds as an exact JSON number in µs: `1234567` is `1234.567`."""
    return msgspec.Raw(decimal(ns, 3).encode())


def span(track: Track, category: str, name: str, start_ns: int, length_ns: int, args: Event) -> Event:
    """A complete event: something that lasts."""
    return _event("X", track, start_ns, {"dur": micros(length_ns)}, category, name, args)


def _event(phase: str, track: Track, at_ns: int, own: Event, category: str, name: str, args: Event) -> Event:
    named: Event = {"cat": category, "name": clip(name, LONGEST_NAME), "args": safe(args)}
    return {"ph": phase, **track, "ts": micros(at_ns), **own, **named}


def _described(track: Track, what: str, **args: object) -> Event:
    """What a process or a track is called, or where it stands among the others."""
    return {"ph": "M", **track, "name": what, "args": args}


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


def gap_events(report: Report, most: int, tracks: list[Track]) -> tuple[list[list[Event]], Event]:
    """A span for each gap of each device in order of time, and what of all gaps that leaves out; of more than `most`
    gaps of all devices together the longest are kept."""
    packed = [unpack(device.gaps_packed) for device in report.devices]
    kept = _longest([lengths for _starts, lengths, _causes in packed], most)
    causes = Causes(report.causes)
    events = [
        _of_device(device, causes, track, starts[chosen], lengths[chosen], codes[chosen])
        for device, track, (starts, lengths, codes), chosen in zip(report.devices, tracks, packed, kept, strict=True)
    ]
    parts = [lengths[~chosen] for (_starts, lengths, _codes), chosen in zip(packed, kept, strict=True)]
    left = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    return events, {
        "gaps": sum(map(len, events)),
        "gaps_left_out": len(left),
        "gaps_left_out_ns": int(left.sum()),
        "gaps_left_out_longest_ns": int(left.max(initial=0)),
    }


def _longest(lengths: list[IntArray], most: int) -> list[IntArray]:
    """True for the gaps of each device that are among the `most` longest of all; of equal ones the first."""
    every = np.concatenate([np.empty(0, dtype=np.int64), *lengths])
    kept = np.zeros(len(every), dtype=np.bool_)
    kept[np.argsort(-every, kind="stable")[:most]] = True
    ends = np.cumsum([len(each) for each in lengths], dtype=np.int64)
    return np.split(kept, ends[:-1]) if lengths else []


def _of_device(
    device: DeviceReport, causes: Causes, track: Track, starts: IntArray, lengths: IntArray, codes: IntArray
) -> list[Event]:
    described = {gap.start_ns: gap for gap in device.gaps}
    ids = device.gaps_packed.cause_ids
    titles = [causes.title(each) for each in ids]
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
_OF_FINDING = (
    *("severity", "cause", "lost_ns", "lost_share", "ceiling_ns", "confidence", "gaps", "nvtx"),
    *("chain", "evidence", "advice", "id"),
)
"""The fields of a finding that its event has, in their order."""


def _verdict(device: DeviceReport, track: Track) -> Event:
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
    return span(track, "verdict", device.verdict.sentence, window.start_ns, window.end_ns - window.start_ns, args)


def _iterations(device: DeviceReport, causes: Causes, track: Track) -> list[Event]:
    """The iterations that the report lists."""
    rows = sorted(device.iterations.rows, key=lambda row: row.start_ns) if device.iterations else []
    events = []
    for row in rows:
        idle = {causes.title(cause): ns for cause, ns in sorted(row.ledger.items())}
        work = {"exposed_communication_ns": row.exposed_comm_ns, "exposed_copies_ns": row.exposed_copy_ns}
        split: Event = {"steady": row.steady, "compute_ns": row.compute_ns, **work, "idle_ns": idle}
        length = row.end_ns - row.start_ns
        events.append(span(track, "iteration", f"iteration {row.index}", row.start_ns, length, split))
    return events


def _findings(report: Report, device: DeviceReport, causes: Causes, track: Track) -> list[Event]:
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
            events.append((at, _event("i", track, at, {"s": "t"}, "finding", finding.title, arguments)))
    return [event for _start, event in sorted(events, key=lambda pair: pair[0])]


def _representatives(device: DeviceReport) -> dict[str | None, tuple[int, int]]:
    """Start and length of the gap that stands for a signature, by its id."""
    starts, lengths, _codes = unpack(device.gaps_packed)
    length_of = dict(zip(starts.tolist(), lengths.tolist(), strict=True))
    moments = {row.id: row.representative_start_ns for row in device.signatures}
    return {id: (start, length_of[start]) for id, start in moments.items() if start in length_of}


def _arguments(finding: Finding, causes: Causes) -> Event:
    fields: Event = {name: getattr(finding, name) for name in _OF_FINDING}
    said = {"cause": causes.title(finding.cause), "nvtx": path_label(finding.nvtx)}
    return fields | said | {fact.column.name: fact.column.cell(finding) for fact, _ in told(finding, "event")}


def _counters(report: Report, device: DeviceReport, process: int) -> list[Event]:
    """The shares of compute, communication, copies and idle time, in per cent of each bucket: an event at each change,
    and zeros at the end. Nothing in a report without a timeline."""
    timeline = None if report.timeline is msgspec.UNSET else report.timeline.get(device.key)
    fitting = [each for each in timeline.levels if 0 < each.buckets <= MOST_BUCKETS] if timeline else []
    if timeline is None or not fitting:
        return []
    level = max(fitting, key=lambda each: each.buckets)
    columns = unpack_lanes(level, LANES)
    values = np.stack([columns[name] for name in LANES], axis=1)
    changed = [0, *(np.flatnonzero(np.any(values[1:] != values[:-1], axis=1)) + 1).tolist()]
    shown = []
    for shares in values[changed].tolist():
        percent = {name: round(100 * share / FULL, 1) for name, share in zip(LANES, shares, strict=True)}
        shown.append({"busy": round(100 - percent["idle"], 1), **percent})
    edges = equal_edges(timeline.start_ns, timeline.end_ns, level.buckets)[[*changed, -1]].tolist()
    return [
        {"ph": "C", "pid": process, "ts": micros(at), "name": "time %", "args": args}
        for at, args in zip(edges, [*shown, dict.fromkeys(("busy", *LANES), 0.0)], strict=True)
    ]


GENERATOR = "nsysdiag"
MOST_GAPS = 200_000
"""Of more gaps the longest are kept: what a browser can still draw."""
TRACKS = ("verdict", "iterations", "findings", "gaps")
NUMBERS = 10
"""Numbers for each device: that of its process, then those of its tracks, all different."""


def perfetto(report: Report, _options: RenderOptions) -> bytes:
    """The events of each device, one a line: names first, then each track in order of time."""
    report = as_read(report)
    places = range(len(report.devices))
    gaps, left_out = gap_events(report, MOST_GAPS, [_track(place, "gaps") for place in places])
    events = [event for place in places for event in _events(report, place, gaps[place])]
    about = {
        "generator": GENERATOR,
        "version": visible(report.tool.version),
        "trace": visible(report.trace.file),
        "fingerprint": visible(report.trace.fingerprint),
        **left_out,
    }
    encoder = msgspec.json.Encoder()
    lines = b",\n".join(encoder.encode(event) for event in events)
    head = encoder.encode({"displayTimeUnit": "ns", "otherData": about})
    return head.removesuffix(b"}") + b',"traceEvents":[\n' + lines + b"\n]}\n"


def _track(place: int, name: str) -> Track:
    process = NUMBERS * (place + 1)
    return {"pid": process, "tid": process + 1 + TRACKS.index(name)}


def _events(report: Report, place: int, gaps: list[Event]) -> list[Event]:
    device, causes = report.devices[place], Causes(report.causes)
    tracks = {name: _track(place, name) for name in TRACKS}
    process = NUMBERS * (place + 1)
    title = clip(f"{device.key} {device.name}", LONGEST_NAME)
    events = [
        _described({"pid": process}, "process_name", name=title),
        _described({"pid": process}, "process_sort_index", sort_index=place),
    ]
    for at, (name, track) in enumerate(tracks.items()):
        events += [_described(track, "thread_name", name=name), _described(track, "thread_sort_index", sort_index=at)]
    return [
        *events,
        _verdict(device, tracks["verdict"]),
        *_iterations(device, causes, tracks["iterations"]),
        *_findings(report, device, causes, tracks["findings"]),
        *gaps,
        *_counters(report, device, process),
    ]


# Flame graphs: collapsed stacks, and the JSON of speedscope.
#
# ```
# gpu0 idle;Host code;step #;on a CPU;main;load 5300000      a line a stack, ns behind it
# ```
#
# flamegraph.pl, inferno and speedscope read the lines. Speedscope's own file has a graph for each device and kind:
#
# ```
# {"shared": {"frames": [{"name": "Host code"}, ...]},
#  "profiles": [{"type": "sampled", "name": "gpu0 idle", "unit": "nanoseconds", "samples": [[0, 3]], "weights": [53]}]}
# ```

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_FIRST_LINE = re.compile(rb"[^;\n]*\b(%s|%s|%s)(;[^\n]*)? [0-9]+\n" % (IDLE.encode(), WAITS.encode(), SAMPLES.encode()))


def folded(report: Report, _options: RenderOptions) -> bytes:
    """A line for each stack, the longest of each graph first. In a name, `;` would begin another frame. Without any,
    one of no time."""
    lines = [
        f"{';'.join(_frame(each) for each in (name, *frames))} {ns}\n"
        for name, stacks in _graphs(report).items()
        for frames, ns in stacks
    ]
    return "".join(lines or [f"{IDLE} 0\n"]).encode()


def _frame(name: str) -> str:
    return " ".join(visible(name).replace(";", ":").split()) or "?"


def speedscope(report: Report, _options: RenderOptions) -> bytes:
    """All graphs as sampled profiles with weights in ns."""
    number: dict[str, int] = {}
    profiles = []
    for name, stacks in _graphs(report).items():
        samples = [[number.setdefault(visible(each), len(number)) for each in frames] for frames, _ in stacks]
        weights = [ns for _, ns in stacks]
        fixed = {"type": "sampled", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": sum(weights)}
        profiles.append(fixed | {"samples": samples, "weights": weights})
    made = {
        "$schema": SCHEMA,
        "shared": {"frames": [{"name": each} for each in number]},
        "profiles": profiles,
        "name": visible(report.trace.file),
        "activeProfileIndex": 0,
        "exporter": f"{GENERATOR}@{__version__}",
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def _graphs(report: Report) -> dict[str, list[tuple[list[str], int]]]:
    """The stacks with their ns, by device and kind."""
    found: dict[str, list[tuple[list[str], int]]] = {}
    for device, kind, each in rows_of(as_read(report)):
        found.setdefault(f"{device} {kind}".strip(), []).append((each.frames, each.ns))
    return found


def is_ours(data: bytes) -> bool:
    """Whether we wrote this file: trace events by their metadata, flame graphs by their first line or their ends."""
    if value_in(data, "otherData", "generator") == GENERATOR or _FIRST_LINE.match(data):
        return True
    return SCHEMA.encode() in data[:200] and f'"exporter": "{GENERATOR}@'.encode() in data[-200:]
