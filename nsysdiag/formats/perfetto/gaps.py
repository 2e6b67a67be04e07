"""Gaps as trace events: those that the report describes in full, all others with their cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.document.code import call_site_label, whole
from nsysdiag.document.packed import unpack
from nsysdiag.document.view import Causes, slices_by_time
from nsysdiag.document.words import path_label, thread_label
from nsysdiag.formats.perfetto.trace_events import Event, Track, span

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import DeviceReport, Gap, Operation, Report

    Packed = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


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
