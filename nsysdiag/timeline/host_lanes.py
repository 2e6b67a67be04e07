"""The lanes of threads over all devices: each thread once, however many devices it serves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
from msgspec import structs

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.timeline.exact import Room, fitted, rows_of
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.lanes import thread_sources
from nsysdiag.timeline.packing import Packing
from nsysdiag.timeline.source import Source
from nsysdiag.timeline.timeline import DeviceLanes, described
from nsysdiag.wakeups.search import RootSearch

LONGEST_RANGES = 36
"""What part of the rows the longest NVTX ranges of a depth may take."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Where the rows of threads are found, and what threads are called."""

    search: RootSearch
    ranges: NvtxRanges
    names: dict[int, str]


def with_threads(devices: list[DeviceLanes], hosts: Hosts) -> dict[str, TimelineLevels]:
    """The timelines by device, whole. A thread has its lanes in the timeline of the first device that knows it, over
    the time of all that do."""
    home: dict[int, str] = {}
    for device in devices:
        for thread in device.threads.all:
            home.setdefault(thread, device.key)
    return {device.key: _whole(device, devices, home, hosts) for device in devices}


def _whole(device: DeviceLanes, devices: list[DeviceLanes], home: dict[int, str], hosts: Hosts) -> TimelineLevels:
    served = [
        each for each in devices if each is device or any(home[thread] == device.key for thread in each.threads.all)
    ]
    low, high = min(each.levels.start_ns for each in served), max(each.levels.end_ns for each in served)
    room = Room(sum(each.room.rows for each in served), sum(each.room.size for each in served))
    sources = _sources(device, {thread for thread in home if home[thread] == device.key}, hosts, low, high)
    packing = Packing.over(device.names, low, high)
    found = fitted(packing, sources, _in_turn([each.wanted for each in served]), room, _chosen)
    own = (low, high) == (device.levels.start_ns, device.levels.end_ns)
    return structs.replace(
        device.levels,
        names=found.names.packed(),
        threads=described(device.threads, hosts.names, device.key, home),
        threads_left_out=device.threads.left_out,
        lanes=[*device.levels.lanes, *found.lanes],
        exact_host=found.exact,
        host_span=None if own else (low, high),
    )


def _in_turn(wanted: list[Intervals]) -> Intervals:
    """The first gap of each device, then the second one of each, and so on."""
    pairs = [zip(gaps.start.tolist(), gaps.end.tolist(), strict=True) for gaps in wanted]
    found = [pair for pair in chain.from_iterable(zip_longest(*pairs)) if pair is not None]
    return Intervals.of(list(dict.fromkeys(found)))


def _sources(device: DeviceLanes, mine: set[int], hosts: Hosts, low: int, high: int) -> list[Source]:
    """The lanes of those threads of a device that are `mine`; their places are those among all of its threads."""
    threads, search = device.threads, hosts.search
    sources = [
        source
        for place, thread in enumerate(threads.launching)
        if thread in mine
        for source in thread_sources(search.launching.host, hosts.ranges, thread, place, low, high)
    ]
    waking = [(place, thread) for place, thread in enumerate(threads.waking, len(threads.launching)) if thread in mine]
    if not waking:
        return sources
    host = search.host_trace.view(np.array([thread for _place, thread in waking], dtype=np.int64)).host
    for place, thread in waking:
        sources += thread_sources(host, hosts.ranges, thread, place, low, high)
    return sources


def _chosen(source: Source, parts: Intervals, rows: int) -> IntArray:
    """The rows in the parts; of NVTX ranges the longest as well, wherever they are."""
    inside = rows_of(source, parts)
    if source.kind != "nvtx":
        return inside
    longest = np.argsort(source.start - source.end, kind="stable")[: rows // LONGEST_RANGES]
    return np.union1d(inside, longest)
