"""The timelines of all devices as one value for the scripts of the page: a directory, and one block of columns.

Times count from `origin`, which is text: it may be too large for a script's numbers to be exact.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, Struct

from nsysdiag.arrays.groups import column_from, names_from, nth_largest, running_sums, to_planes
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, union
from nsysdiag.document import words
from nsysdiag.document.drawings import safe_color
from nsysdiag.document.names import clip
from nsysdiag.document.packed import LANES
from nsysdiag.formats.html.assets import Blob, Place
from nsysdiag.limits import MOST_BUCKETS, MOST_NAMES_BYTES
from nsysdiag.messages import InputError
from nsysdiag.report import DeviceReport, Report, Thread
from nsysdiag.saved import unpack

if TYPE_CHECKING:
    from nsysdiag.document.view import Causes
    from nsysdiag.timeline.facts import TimelineLane, TimelineLevel, TimelineLevels, TimelineThread


# The gaps that are exact at every level.

MOST_GAPS, FEWEST_GAPS = 20_000, 500


class DrawnGaps(Struct, frozen=True):
    """Start and length in ns and place of the cause in `cause_ids` of `count` gaps in order of time, out of `total`.
    All that last `threshold` ns or longer are among them, `longest` of them, and all that touch exact windows."""

    start: IntArray
    length: IntArray
    cause: IntArray
    cause_ids: list[str]
    total: int
    threshold: int
    longest: int

    @property
    def count(self) -> int:
        """How many are drawn."""
        return len(self.start)

    @property
    def all(self) -> bool:
        """Are these all gaps of the device?"""
        return self.count == self.total


def drawn_gaps(device: DeviceReport, exact: list[tuple[int, int]], devices: int) -> DrawnGaps:
    """The gaps to draw of one of so many devices; `exact` are the windows that hold all operations, in order. Gaps of
    equal length are among the longest together or not at all. Raises InputError if the report is damaged."""
    start, length, cause = unpack(device.gaps_packed)
    if not ascending(start):
        order = np.argsort(start, kind="stable")
        start, length, cause = start[order], length[order], cause[order]
    most = max(MOST_GAPS // max(devices, 1), FEWEST_GAPS)
    threshold, longest = 0, len(start)
    if len(start) > most:
        threshold = nth_largest(length, most + 1) + 1
        long = length >= threshold
        kept = long | _touches(start, start + length, exact)
        longest = int(np.count_nonzero(long))
        start, length, cause = start[kept], length[kept], cause[kept]
    return DrawnGaps(start, length, cause, device.gaps_packed.cause_ids, device.gaps_packed.count, threshold, longest)


def _touches(start: IntArray, end: IntArray, parts: list[tuple[int, int]]) -> BoolArray:
    """True if a gap shares time with any of the parts, which are disjoint and in order."""
    if not parts:
        return np.zeros(len(start), dtype=np.bool_)
    begins, ends = np.array(parts, dtype=np.int64).T
    at = np.minimum(np.searchsorted(ends, start, side="right"), len(parts) - 1)
    return (begins[at] < end) & (ends[at] > start)


# The names of all timelines as one directory: each once, and those that differ by counters alone as one form.
#
# ```
# step 7, step 8, gemm<float>, step 9   ->   forms    "step #", "gemm<float>"
#                                            used     0, 0, 1, 0
#                                            column   7, +1, +1
# ```

LONGEST_NAME = 200
HOLE = "\n"
"""Stands in a form where a number was: no name that can be shown holds it."""
_NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d{0,14})(?!\d)")
_BEFORE = re.compile(r"\w*\W*$")

NameValue = dict[str, object]


class Directory:
    """Names by number; it grows as devices are read."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def places(self, packed: str) -> IntArray:
        """The number of each name of a packed list. Raises InputError if the report is damaged."""
        try:
            names = names_from(packed, MOST_NAMES_BYTES)
        except ValueError as error:
            raise InputError("the timeline of this report cannot be read: the file is damaged") from error
        return np.array([self._known.setdefault(name, len(self._known)) for name in names], dtype=np.int64)

    def written(self, blob: Blob) -> NameValue:
        """The directory for the scripts: forms, which of them each name is, and the numbers in their holes."""
        shown = [clip(name, LONGEST_NAME) for name in self._known]
        often = Counter(map(_form, shown))
        forms: dict[object, int] = {}
        columns: dict[str, tuple[int, list[int]]] = {}
        used = [_counted(each, forms, columns) if often[_form(each)] > 1 else _place(forms, each) for each in shown]
        return {
            "count": len(used),
            "used": blob.add(to_planes(np.array(used, dtype=np.int64))),
            "forms": blob.add(json.dumps(list(forms), ensure_ascii=True, separators=(",", ":")).encode()),
            "columns": [(_differences(blob, column), len(column)) for _at, column in columns.values()],
        }


def _place(forms: dict[object, int], form: object) -> int:
    return forms.setdefault(form, len(forms))


def _counted(name: str, forms: dict[object, int], columns: dict[str, tuple[int, list[int]]]) -> int:
    """The place of a name's form, with the columns that its numbers go to: those after the same word share one."""
    pieces = _form(name).split(HOLE)
    if len(pieces) == 1:
        return _place(forms, name)
    before = (found.group() if (found := _BEFORE.search(piece)) else "" for piece in pieces[:-1])
    own = [columns.setdefault(word, (len(columns), [])) for word in before]
    for (_at, column), number in zip(own, _NUMBER.findall(name), strict=True):
        column.append(int(number))
    return _place(forms, (HOLE.join(pieces), *(at for at, _column in own)))


def _form(name: str) -> str:
    return _NUMBER.sub(HOLE, name)


def _differences(blob: Blob, column: list[int]) -> Place:
    """Each number less the one before it; even numbers stand for differences from 0 up, odd ones for those below."""
    steps = np.diff(np.array(column, dtype=np.int64), prepend=np.int64(0))
    return blob.add(to_planes(np.where(steps < 0, -2 * steps - 1, 2 * steps)))


# The exact slices of a lane as numbers again, checked, and what follows from them.


class LaneSlices(Struct, frozen=True):
    """Slices by start: start and length in ns, number of the name and kind, empty if a lane has none. Starts count
    from `base`. `more` are amounts, threads per block and launches, as in TimelineLane."""

    base: int
    start: IntArray
    length: IntArray
    name: IntArray
    kind: IntArray
    more: tuple[IntArray, ...] = ()

    def steps(self) -> tuple[IntArray, bool]:
        """Each start as its distance from the end of the slice before, and True, if no slice begins before that; else
        from the start of the slice before, and False."""
        behind = np.concatenate([[self.base], (self.start + self.length)[:-1]]) if len(self.start) else self.start
        apart = self.start - behind
        if bool(np.all(apart >= 0)):
            return apart, True
        return np.diff(self.start, prepend=np.int64(self.base)), False


def rows_of(lane: TimelineLane, base: int, places: IntArray) -> LaneSlices:
    """The slices of a lane; `places` is the number on the page for each name of its timeline. Raises InputError if
    the report is damaged."""
    try:
        steps, length, name, kind, *more = (
            column_from(column, lane.count) if column else np.empty(0, dtype=np.int64) for column in lane.slice_columns
        )
        start = running_sums(steps, base)
        running_sums(length, int(start[-1]) if len(start) else base)
    except ValueError as error:
        raise InputError("the timeline of this report contradicts itself: the file is damaged") from error
    if len(steps) != lane.count or len(length) != lane.count or (len(name) and int(name.max()) >= len(places)):
        raise InputError("the timeline of this report contradicts itself: the file is damaged")
    return LaneSlices(base, start, length, places[name] if len(name) else name, kind, tuple(more))


def between(streams: list[LaneSlices], start: IntArray, length: IntArray) -> bool:
    """Are these gaps exactly the time between the slices of all `streams`?"""
    busy = union(*(Intervals(rows.start, rows.start + rows.length) for rows in streams))
    return np.array_equal(busy.end[:-1], start) and np.array_equal(busy.start[1:] - busy.end[:-1], length)


LONGEST_LABEL = 60
MOST_PARTS, COARSE_LEVELS = 500, 2
MOST_CURVES, LONGEST_TITLE = 4, 40
Value = dict[str, object]


def timelines(report: Report) -> list[tuple[DeviceReport, TimelineLevels]]:
    """The devices that have a timeline, each with its own, in the report's order."""
    levels = report.timeline
    if levels is UNSET:
        return []
    return [(device, levels[device.key]) for device in report.devices if device.key in levels]


def gap_key(report: Report, device: str, start_ns: int) -> str:
    """How the page names a gap: number of its device, and when it begins. Empty if the device has no timeline."""
    keys = [each.key for each in report.devices]
    drawn = report.timeline is not UNSET and device in report.timeline
    return f"{keys.index(device)}.{start_ns}" if drawn and device in keys else ""


def all_drawn_gaps(report: Report) -> list[DrawnGaps]:
    """The gaps to draw of each of `timelines`. Raises InputError if the report is damaged."""
    drawn = timelines(report)
    # From the last: meanwhile another thread writes sections, which unpack those of the first devices.
    found = [drawn_gaps(device, levels.exact_operations, len(drawn)) for device, levels in reversed(drawn)]
    return found[::-1]


def timeline_data(report: Report, causes: Causes, gaps: list[DrawnGaps]) -> Value:
    """Everything that the scripts draw. Raises InputError if the report is damaged."""
    drawn = timelines(report)
    starts = [levels.start_ns for _device, levels in drawn]
    spans = [levels.host_span[0] for _device, levels in drawn if levels.host_span]
    origin = min([*starts, *spans, *(int(each.start[0]) for each in gaps if each.count)])
    ids = ([*levels.cause_ids, *device.gaps_packed.cause_ids] for device, levels in drawn)
    blob, cause_ids = Blob(), list(dict.fromkeys(each for some in ids for each in some))
    keys = [device.key for device in report.devices]
    writer = _LaneWriter(blob, origin, cause_ids, _numbered(drawn))
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
        "threads": writer.threads,
        "names": writer.names.written(blob),
        "bytes": blob.text(),
    }


def _numbered(drawn: list[tuple[DeviceReport, TimelineLevels]]) -> dict[tuple[str, int, int], int]:
    """All threads by number: one that serves several devices is one."""
    found = (_identity(device.key, thread) for device, levels in drawn for thread in levels.threads)
    return {thread: number for number, thread in enumerate(dict.fromkeys(found))}


def _identity(device: str, thread: TimelineThread) -> tuple[str, int, int]:
    """A thread is known by the device that holds its lanes, and there by its own numbers."""
    return (thread.lanes_of or device, thread.pid, thread.tid)


class _LaneWriter:
    """Writes one device after another into the block."""

    def __init__(self, blob: Blob, origin: int, cause_ids: list[str], numbers: dict[tuple[str, int, int], int]) -> None:
        self._blob, self._origin = blob, origin
        self._number = {cause: at for at, cause in enumerate(cause_ids)}
        self._numbers = numbers
        self.names = Directory()
        self.threads: list[Value | None] = [None] * len(numbers)
        """By number; None for one whose lanes are nowhere."""

    def device(self, device: DeviceReport, levels: TimelineLevels, gaps: DrawnGaps) -> Value:
        parts = device.window.parts if len(device.window.parts) <= MOST_PARTS else []
        whole = levels.exact_operations == [(levels.start_ns, levels.end_ns)]
        coarse = levels.levels[-COARSE_LEVELS:] if gaps.all and whole else levels.levels
        places = self.names.places(levels.names)
        own = [(lane, rows_of(lane, levels.start_ns, places)) for lane in levels.lanes if lane.thread is None]
        self._write_threads(device.key, levels, places)
        return {
            "key": clip(device.key, 24),
            "name": clip(device.name, LONGEST_LABEL),
            "start": levels.start_ns - self._origin,
            "end": levels.end_ns - self._origin,
            "parts": self._pairs(parts),
            "levels": [self._level(level) for level in coarse],
            "causes": [self._number[cause] for cause in levels.cause_ids],
            "gaps": self._gaps(gaps, [rows for lane, rows in own if lane.kind == "stream"]),
            "threads": [
                {"number": self._numbers[_identity(device.key, thread)], "launches": thread.launches}
                for thread in levels.threads
            ],
            "lanes": [self._lane(lane, rows, exact=whole) for lane, rows in own],
            "exact": self._pairs(levels.exact_operations),
            "wakes": self._wakes(device, levels.threads),
            "metrics": metric_curves(device, self._blob, self._origin),
        }

    def _write_threads(self, device: str, levels: TimelineLevels, places: IntArray) -> None:
        """The threads whose lanes this device holds."""
        low, high = levels.host_span or (levels.start_ns, levels.end_ns)
        whole = levels.exact_host == [(low, high)]
        for at, thread in enumerate(levels.threads):
            if thread.lanes_of is not None:
                continue
            known = Thread(pid=thread.pid, tid=thread.tid, name=thread.name)
            self.threads[self._numbers[_identity(device, thread)]] = {
                "label": clip(words.short_thread_label(known), LONGEST_LABEL),
                "start": low - self._origin,
                "end": high - self._origin,
                "exact": self._pairs(levels.exact_host),
                "lanes": [
                    self._lane(lane, rows_of(lane, low, places), exact=whole)
                    for lane in levels.lanes
                    if lane.thread == at
                ],
            }

    def _pairs(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(start - self._origin, end - self._origin) for start, end in pairs]

    def _level(self, level: TimelineLevel) -> Value:
        columns = {name: self._blob.add_packed(getattr(level, name), level.buckets) for name in (*LANES, "cause")}
        return {"buckets": level.buckets, **columns}

    def _gaps(self, gaps: DrawnGaps, streams: list[LaneSlices]) -> Value:
        """Where the gaps are just what is between the operations, the scripts find them there."""
        known = np.array([self._number[cause] for cause in gaps.cause_ids], dtype=np.int64)
        written: Value = {}
        if not between(streams, gaps.start, gaps.length):
            starts = np.diff(gaps.start, prepend=np.int64(self._origin))
            written = {"starts": self._blob.add(to_planes(starts)), "lengths": self._blob.add(to_planes(gaps.length))}
        return {
            "count": gaps.count,
            "total": gaps.total,
            "threshold": gaps.threshold,
            "causes": self._blob.add(to_planes(known[gaps.cause] if gaps.count else gaps.cause)),
            **written,
        }

    def _lane(self, lane: TimelineLane, rows: LaneSlices, *, exact: bool) -> Value:
        """Shares are of no use if all slices are there."""
        steps, apart = rows.steps()
        return {
            "kind": lane.kind,
            "label": clip(lane.label, LONGEST_LABEL),
            "depth": lane.depth,
            "count": lane.count,
            "levels": [self._blob.add_packed(level, MOST_BUCKETS) for level in ([] if exact else lane.levels)],
            "apart": apart,
            "starts": self._blob.add(to_planes(steps)),
            "lengths": self._blob.add(to_planes(rows.length)),
            "names": self._blob.add(to_planes(rows.name)),
            "kinds": self._blob.add(to_planes(rows.kind)),
            "more": [self._blob.add(to_planes(column)) for column in rows.more if any(map(len, rows.more))],
        }

    def _wakes(self, device: DeviceReport, threads: list[TimelineThread]) -> list[tuple[int, int, int, int]]:
        """The wake-ups of the described gaps: start of the gap, numbers of the waker and of the waiting thread, time of
        the wake-up."""
        place = {(thread.pid, thread.tid): self._numbers[_identity(device.key, thread)] for thread in threads}
        found = []
        for gap in device.gaps:
            waiting = place.get((gap.thread.pid, gap.thread.tid)) if gap.thread else None
            for hop in gap.root.hops if gap.root else ():
                waker = place.get((hop.thread.pid, hop.thread.tid))
                if hop.at_ns is not None and waker is not None and waiting is not None:
                    found.append((gap.start_ns - self._origin, waker, waiting, hop.at_ns - self._origin))
                waiting = waker
        return found


def metric_curves(device: DeviceReport, blob: Blob, origin: int) -> list[Value]:
    """Each curve's title, unit, time and number of buckets, and the place of its values in the block: little-endian
    int16, -1 if nothing was sampled."""
    found = device.gpu_metrics
    drawn = [metric for metric in found.metrics if metric.series and metric.samples] if found else []
    return [
        {
            "title": clip(metric.title, LONGEST_TITLE),
            "share": metric.unit == "share",
            "start": found.start_ns - origin,
            "end": found.end_ns - origin,
            "buckets": found.buckets,
            "series": blob.add_packed(metric.series, 2 * found.buckets),
        }
        for metric in drawn[:MOST_CURVES]
        if found
    ]
