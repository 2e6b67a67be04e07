"""The timelines of all devices as one value for the scripts of the page: a directory, and one block of columns.

Times count from `origin`, which is text: it may be too large for a script's numbers to be exact.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from nsysdiag.errors import InputError
from nsysdiag.model import Thread
from nsysdiag.output import words
from nsysdiag.output.figures import safe_color
from nsysdiag.output.names import brief, clip
from nsysdiag.output.timeline.blob import Blob, unpacked
from nsysdiag.output.timeline.gaps import DrawnGaps, drawn_gaps
from nsysdiag.output.timeline.metrics import metric_curves
from nsysdiag.timeline.planes import to_planes

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport, Report
    from nsysdiag.model_timeline import TimelineLane, TimelineLevel, TimelineLevels, TimelineThread
    from nsysdiag.output.view import Causes

LONGEST_NAME, LONGEST_LABEL = 200, 60
MOST_PARTS, COARSE_LEVELS = 500, 2
Value = dict[str, object]


def timelines(report: Report) -> list[tuple[DeviceReport, TimelineLevels]]:
    """The devices that have a timeline, each with its own, in the report's order."""
    levels = report.timeline
    if levels is UNSET:
        return []
    return [(device, levels[device.key]) for device in report.devices if device.key in levels]


def gap_key(report: Report, device: str, start_ns: int) -> str:
    """How the page names a gap: number of its device, and when it begins. Empty where the device has no timeline."""
    keys = [each.key for each in report.devices]
    drawn = report.timeline is not UNSET and device in report.timeline
    return f"{keys.index(device)}.{start_ns}" if drawn and device in keys else ""


def timeline_data(report: Report, causes: Causes) -> Value:
    """Everything that the scripts draw. Raises InputError where the report is damaged."""
    drawn = timelines(report)
    gaps = [drawn_gaps(device, levels.exact_operations, len(drawn)) for device, levels in drawn]
    starts = [levels.start_ns for _device, levels in drawn]
    origin = min([*starts, *(int(each.start[0]) for each in gaps if each.count)])
    blob, cause_ids = Blob(), _cause_ids(drawn)
    keys = [device.key for device in report.devices]
    writer = _Writer(blob, origin, cause_ids)
    devices = [
        {"number": keys.index(device.key), **writer.device(device, levels, its)}
        for (device, levels), its in zip(drawn, gaps, strict=True)
    ]
    return {
        "origin": str(origin),
        "end": max(levels.end_ns for _device, levels in drawn) - origin,
        "causes": [
            {"title": clip(causes.title(each), LONGEST_LABEL), "color": safe_color(causes[each].color)}
            for each in cause_ids
        ],
        "command": shlex.join(["nsysdiag", "analyze", clip(report.trace.file, LONGEST_NAME)]),
        "devices": devices,
        "bytes": blob.text(),
    }


def _cause_ids(drawn: list[tuple[DeviceReport, TimelineLevels]]) -> list[str]:
    ids = [[*levels.cause_ids, *device.gaps_packed.cause_ids] for device, levels in drawn]
    return list(dict.fromkeys(each for some in ids for each in some))


class _Writer:
    """Writes one device into the block."""

    def __init__(self, blob: Blob, origin: int, cause_ids: list[str]) -> None:
        self._blob = blob
        self._origin = origin
        self._number = {cause: at for at, cause in enumerate(cause_ids)}

    def device(self, device: DeviceReport, levels: TimelineLevels, gaps: DrawnGaps) -> Value:
        parts = device.window.parts if len(device.window.parts) <= MOST_PARTS else []
        whole = [(levels.start_ns, levels.end_ns)]
        all_exact = gaps.all and levels.exact_operations == whole
        coarse = levels.levels[-COARSE_LEVELS:] if all_exact else levels.levels
        return {
            "key": clip(device.key, 24),
            "name": clip(device.name, LONGEST_LABEL),
            "start": levels.start_ns - self._origin,
            "end": levels.end_ns - self._origin,
            "parts": self._pairs(parts),
            "levels": [self._level(level) for level in coarse],
            "causes": [self._number[cause] for cause in levels.cause_ids],
            "gaps": self._gaps(gaps),
            "names": self._names(levels.names),
            "threads": [_thread(thread) for thread in levels.threads],
            "lanes": [
                self._lane(lane, exact=(levels.exact_operations if lane.thread is None else levels.exact_host) == whole)
                for lane in levels.lanes
            ],
            "exactOperations": self._pairs(levels.exact_operations),
            "exactHost": self._pairs(levels.exact_host),
            "wakes": self._wakes(device, levels.threads),
            "metrics": [
                {**curve, "start": curve["start"] - self._origin, "end": curve["end"] - self._origin, "series": series}
                for curve, series in metric_curves(device, self._blob)
            ],
        }

    def _pairs(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(start - self._origin, end - self._origin) for start, end in pairs]

    def _level(self, level: TimelineLevel) -> Value:
        columns = ("compute", "communication", "copies", "idle", "cause")
        return {
            "buckets": level.buckets,
            **{name: self._blob.add_packed(getattr(level, name)) for name in columns},
        }

    def _gaps(self, gaps: DrawnGaps) -> Value:
        known = np.array([self._number[cause] for cause in gaps.cause_ids], dtype=np.int64)
        starts = np.diff(gaps.start, prepend=np.int64(self._origin))
        return {
            "count": gaps.count,
            "total": gaps.total,
            "threshold": gaps.threshold,
            "starts": self._blob.add(to_planes(starts)),
            "lengths": self._blob.add(to_planes(gaps.length)),
            "causes": self._blob.add(to_planes(known[gaps.cause] if gaps.count else gaps.cause)),
        }

    def _names(self, packed: str) -> tuple[int, int]:
        """Names fit to be shown, each with a short form where there is one."""
        names = _json_list(unpacked(packed))
        shown = [(clip(name, LONGEST_NAME), clip(_short(name), LONGEST_LABEL)) for name in names]
        plain = [whole if whole == short else [short, whole] for whole, short in shown]
        return self._blob.add(json.dumps(plain, ensure_ascii=True, separators=(",", ":")).encode())

    def _lane(self, lane: TimelineLane, *, exact: bool) -> Value:
        """Shares are of no use where all slices are there."""
        columns = {name: unpacked(getattr(lane, name)) for name in ("starts", "lengths", "names", "kinds")}
        if lane.count < 0 or any(len(column) % max(lane.count, 1) for column in columns.values()):
            raise InputError("the timeline of this report contradicts itself: the file is damaged")
        return {
            "kind": lane.kind,
            "label": clip(lane.label, LONGEST_LABEL),
            "thread": lane.thread,
            "depth": lane.depth,
            "count": lane.count,
            "levels": [self._blob.add_packed(level) for level in ([] if exact else lane.levels)],
            **{name: self._blob.add(column) for name, column in columns.items()},
        }

    def _wakes(self, device: DeviceReport, threads: list[TimelineThread]) -> list[tuple[int, int, int, int]]:
        """Who woke whom when, of the gaps that are described: start of the gap, waker, waiting thread, moment."""
        place = {(thread.pid, thread.tid): at for at, thread in enumerate(threads)}
        found = []
        for gap in device.gaps:
            waiting = place.get((gap.thread.pid, gap.thread.tid)) if gap.thread else None
            for hop in gap.root.hops if gap.root else ():
                waker = place.get((hop.thread.pid, hop.thread.tid))
                if hop.at_ns is not None and waker is not None and waiting is not None:
                    found.append((gap.start_ns - self._origin, waker, waiting, hop.at_ns - self._origin))
                waiting = waker
        return found


def _json_list(data: bytes) -> list[str]:
    try:
        names = json.loads(data or b"[]")
    except ValueError as error:
        raise InputError("the timeline of this report cannot be read: the file is damaged") from error
    return [str(name) for name in names] if isinstance(names, list) else []


def _short(name: str) -> str:
    """The short form of what is spelt like a C++ function; NVTX ranges may end in brackets too."""
    return brief(name) if "::" in name or "<" in name or name.startswith("void ") else name


def _thread(thread: TimelineThread) -> Value:
    label = words.short_thread_label(Thread(pid=thread.pid, tid=thread.tid, name=thread.name))
    return {"label": clip(label, LONGEST_LABEL), "launches": thread.launches}
