"""Events of the Chrome trace-event format, which ui.perfetto.dev and chrome://tracing open.

Times are decimals in µs with three places, exact to the nanosecond. Text is made visible and cut to a length.
"""

from __future__ import annotations

import msgspec

from nsysdiag.document.names import clip

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
