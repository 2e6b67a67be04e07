"""Events of the Chrome trace-event format, which ui.perfetto.dev and chrome://tracing open.

Times are decimals in µs with three places, exact to the nanosecond. Text is made visible and cut to a length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from nsysdiag.document.names import call_site_label, clip, whole
from nsysdiag.document.packed import unpack
from nsysdiag.document.view import Causes, slices_by_time
from nsysdiag.document.words import path_label, thread_label

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import DeviceReport, Gap, Operation, Report

    Packed = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


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
