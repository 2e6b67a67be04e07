"""A timeline read back into plain values, by nothing but what the model says about its encoding."""

from __future__ import annotations

import base64
import json
import zlib

from nsysdiag.timeline.facts import TimelineLane, TimelineLevels

Row = tuple[int, int, str, int]
"""Start and end in ns, name, kind."""


def unpack(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text)) if text else b""


def numbers(text: str, count: int) -> list[int]:
    data = unpack(text)
    planes = [data[at : at + count] for at in range(0, len(data), count)] if count else []
    return [sum(plane[i] << (8 * at) for at, plane in enumerate(planes)) for i in range(count)]


def rows(levels: TimelineLevels, lane: TimelineLane) -> list[Row]:
    names = json.loads(unpack(levels.names))
    starts, now = [], levels.start_ns
    if lane.thread is not None and levels.host_span is not None:
        now = levels.host_span[0]
    for step in numbers(lane.starts, lane.count):
        now += step
        starts.append(now)
    ends = [start + length for start, length in zip(starts, numbers(lane.lengths, lane.count), strict=True)]
    texts = [names[at] for at in numbers(lane.names, lane.count)] if lane.names else [""] * lane.count
    kinds = numbers(lane.kinds, lane.count) if lane.kinds else [0] * lane.count
    return list(zip(starts, ends, texts, kinds, strict=True))


def lanes(levels: TimelineLevels, kind: str, thread: int | None = None) -> list[TimelineLane]:
    return [lane for lane in levels.lanes if lane.kind == kind and (thread is None or lane.thread == thread)]


def launches(lane: TimelineLane) -> list[int | None]:
    """The place of each operation's call among those of the lanes of all threads, None for none."""
    found: list[int | None] = []
    now = 0
    for value in numbers(lane.launches, lane.count):
        now += 0 if value == 0 else -(value // 2) if value % 2 == 0 else value // 2
        found.append(now if value else None)
    return found
