"""The lanes of threads over all devices: each thread once, however many devices it serves."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
from msgspec import structs

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.events.host import HostActivity
from nsysdiag.timeline.exact import Room, fitted
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.lanes import thread_sources
from nsysdiag.timeline.packing import NameTable, Packing
from nsysdiag.timeline.source import Source, rows_in
from nsysdiag.timeline.timeline import DeviceLanes, Threads, described
from nsysdiag.wakeups.host_trace import HostTrace

LONGEST_RANGES = 36
"""What part of the rows the longest NVTX ranges of a depth may take."""


class Timelines(NamedTuple):
    """The timelines by device, and the sentences in them that hold names."""

    levels: dict[str, TimelineLevels]
    sentences: list[str]


def with_threads(devices: list[DeviceLanes], host: HostActivity, host_trace: HostTrace) -> Timelines:
    """The complete timelines by device. A thread has its lanes in the timeline of its first device, over the time of
    all its devices. `host` is what the launching threads did."""
    home: dict[int, str] = {}
    for device in devices:
        for thread in device.threads.all:
            home.setdefault(thread, device.key)
    whole = {device.key: _whole(device, devices, home, host, host_trace) for device in devices}
    levels = {key: each for key, (each, _) in whole.items()}
    return Timelines(levels, [text for _, names in whole.values() for text in names.sentences.values()])


def _whole(
    device: DeviceLanes, devices: list[DeviceLanes], home: dict[int, str], host: HostActivity, host_trace: HostTrace
) -> tuple[TimelineLevels, NameTable]:
    """The timeline of one device, and its names."""
    served = [
        each for each in devices if each is device or any(home[thread] == device.key for thread in each.threads.all)
    ]
    low, high = min(each.levels.start_ns for each in served), max(each.levels.end_ns for each in served)
    room = Room(sum(each.room.rows for each in served), sum(each.room.size for each in served))
    mine = {thread for thread in home if home[thread] == device.key}
    sources = _sources(device.threads, mine, host, host_trace, low, high)
    packing = Packing.over(device.names, low, high)
    found = fitted(packing, sources, _in_turn([each.wanted for each in served]), room, _chosen)
    own = (low, high) == (device.levels.start_ns, device.levels.end_ns)
    levels = structs.replace(
        device.levels,
        names=found.names.packed(),
        threads=described(device.threads, host_trace.thread_names, device.key, home),
        threads_left_out=device.threads.left_out,
        lanes=[*device.levels.lanes, *found.lanes],
        exact_host=found.exact,
        host_span=None if own else (low, high),
    )
    return levels, found.names


def _in_turn(wanted: list[Intervals]) -> Intervals:
    """The first gap of each device, then the second one of each, and so on."""
    pairs = [zip(gaps.start.tolist(), gaps.end.tolist(), strict=True) for gaps in wanted]
    found = [pair for pair in chain.from_iterable(zip_longest(*pairs)) if pair is not None]
    return Intervals.of(list(dict.fromkeys(found)))


def _sources(
    threads: Threads, mine: set[int], host: HostActivity, host_trace: HostTrace, low: int, high: int
) -> list[Source]:
    """The lanes of those `threads` of a device that are `mine`; their places are those among all of its threads."""
    launching = [(place, each) for place, each in enumerate(threads.launching) if each in mine]
    waking = [(place, each) for place, each in enumerate(threads.waking, len(threads.launching)) if each in mine]
    found = [(host, place, each) for place, each in launching]
    if waking:
        others = host_trace.waiting(np.array([each for _, each in waking], dtype=np.int64)).host
        found += [(others, place, each) for place, each in waking]
    return [
        source
        for activity, place, each in found
        for source in thread_sources(activity, host_trace.ranges, each, place, low, high)
    ]


def _chosen(source: Source, parts: Intervals, rows: int) -> IntArray:
    """The rows in the parts; of NVTX ranges the longest as well, wherever they are."""
    inside = rows_in(source, parts)
    if source.kind != "nvtx":
        return inside
    longest = np.argsort(source.start - source.end, kind="stable")[: rows // LONGEST_RANGES]
    return np.union1d(inside, longest)
