"""Where waits lead: each nanosecond of a wait goes to what the thread that ended it, in the end, was doing then.

    main    [== waits for A ==========================][launch]
    A       ...[== waits for B ============][computes][signal]
    B       ..........[reads a file........][signal]
    root       |-- B --|------ io_wait -----|-- A ----|latency: the wait itself

The simulation logs who ended each wait, and when. What remains of a wait after that moment is the scheduler's latency
and stays with the wait. A wait that no thread ended (a timer, the disk, the device) is its own root.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.simulator.evidence import cause_of, records_os_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulator.capture import Capture
    from tests.simulator.host import HostThread, Span, Waited

WAITS = frozenset({"lock_wait", "io_wait", "sleep"})
"""What a wait for another thread is in the ledger: locks and semaphores, pipes, joining a thread or a process."""
DATA_LOADING = "data_loading"
MOST_HOPS = 4


@dataclass(frozen=True, slots=True)
class Rooted:
    """[start, end) and its root. `label`: what a data-loading worker did, or GIL. `along`: all causes on the way there,
    which a tool that does not go all the way may name instead."""

    start: int
    end: int
    cause: str
    label: str = ""
    along: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        object.__setattr__(self, "along", self.along | {self.cause})


def followed(thread: HostThread, start: int, end: int, cause: str, capture: Capture, hops: int = 0) -> Iterator[Rooted]:
    """The roots of [start, end), in which the thread is in a wait that the ledger calls `cause`."""
    for span in spans_of(thread, start, end):
        first, last = max(start, span.start), min(end, span.end)
        if any(call.label == "GIL" for call in span.stack):
            yield Rooted(first, last, cause, "GIL")
            continue
        for waited in waits_of(thread, first, last):
            begin, until = max(first, waited.start), min(last, waited.until)
            yield from _own(first, begin, cause)
            yield from _led(waited, begin, until, cause, capture, hops)
            first = until
        yield from _own(first, last, cause)


def _led(waited: Waited, start: int, end: int, cause: str, capture: Capture, hops: int) -> Iterator[Rooted]:
    """What the thread that ended the wait did meanwhile; before that thread began, the wait is its own root."""
    other = waited.by
    if other is None or hops == MOST_HOPS:
        yield Rooted(start, end, cause)
        return
    for span in spans_of(other, start, end):
        first, last = max(start, span.start), min(end, span.end)
        yield from _own(start, first, cause)
        found = cause_of(span, None, capture)
        if found in WAITS:
            roots = list(followed(other, first, last, found, capture, hops + 1))
        else:
            roots = [Rooted(first, last, found)]
        yield from (_passed_on(root, waited, cause, capture) for root in roots)
        start = last
    yield from _own(start, end, cause)


def _passed_on(root: Rooted, waited: Waited, cause: str, capture: Capture) -> Rooted:
    """The root of a wait that one more wait leads to."""
    assert waited.by is not None
    along = root.along | {cause}
    if loads_data(waited.by, capture) and root.cause != DATA_LOADING:
        root = replace(root, cause=DATA_LOADING, label=root.cause)
        along |= {DATA_LOADING}
    if not shown(waited, capture):
        return Rooted(root.start, root.end, cause, along=along)
    return replace(root, along=along)


def _own(start: int, end: int, cause: str) -> Iterator[Rooted]:
    if start < end:
        yield Rooted(start, end, cause)


def shown(waited: Waited, capture: Capture) -> bool:
    """Whether a trace tells who ended a wait: by the row of the call that did, else by scheduling."""
    if not capture.osrt:
        return False
    return capture.sched or (waited.wake is not None and records_os_call(waited.wake, capture))


def loads_data(thread: HostThread, capture: Capture) -> bool:
    """Whether a thread loads data, and the trace tells so."""
    return {"": False, "name": True, "nvtx": capture.nvtx, "frames": capture.samples}[thread.loads]


def spans_of(thread: HostThread, start: int, end: int) -> Sequence[Span]:
    """What a thread did in [start, end), in order; nothing where it did not exist."""
    first = bisect_right(thread.spans, start, key=lambda span: span.end)
    last = bisect_left(thread.spans, end, key=lambda span: span.start)
    return thread.spans[first:last]


def waits_of(thread: HostThread, start: int, end: int) -> Sequence[Waited]:
    """The times that a thread was blocked in [start, end), in order."""
    first = bisect_right(thread.waits, start, key=lambda waited: waited.until)
    last = bisect_left(thread.waits, end, key=lambda waited: waited.start)
    return thread.waits[first:last]
