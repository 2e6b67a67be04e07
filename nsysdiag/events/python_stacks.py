"""Python's own call stacks, which nsys writes as marks of an NVTX domain (--python-sampling, --python-backtrace).

A mark has the stack in a binary payload (exports with --include-blobs=true, from schema 3.16 on). Numbers are little
endian; functions and files are ids of StringIds.

```
 0        32     40           48         56       64     68   72
 [ header | .... | .. count   | function | file   | line | .. | next frame, innermost first ...
```

The count is one of the two 32-bit numbers before the first frame. A payload whose length does not fit its count, or
with ids that are no strings, is something else and not read.

A back trace of a CUDA call is a mark on the thread that made the call. Samples are marks on a thread of the profiler; a
category distinguishes the threads of a process, and nothing says which is which. The main thread alone is known by its
stacks: those of all others begin in `threading.py`.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.callchains import MOST_FRAMES, CallChain, Origin, StackFrame, Stacks, file_name, origin_of_python
from nsysdiag.events.identity import pid_of, process_of
from nsysdiag.events.nvtx import PythonMarks
from nsysdiag.events.rows import distinct
from nsysdiag.limits import MOST_DEEP

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings
    from nsysdiag.trace.trace import Trace

HEADER_BYTES, LEAD_BYTES, FRAME_BYTES = 32, 16, 24
LOOKED_AT = 5
"""Samples of a thread that are looked at to tell whether it is the main thread."""
THREAD_ENTRY = "_bootstrap"
_FRAME = np.dtype([("function", "<i8"), ("file", "<i8"), ("line", "<i4"), ("padding", "<i4")])


class PythonStacks(Struct):
    """The Python stacks of a trace; payloads are read only for the requested marks."""

    trace: Trace
    marks: PythonMarks
    _main: dict[int, int] | None = None

    def on_axis(self, axis: ThreadAxis) -> tuple[IntArray, IntArray]:
        """The marks of the axis's threads: their positions, sorted, and which mark each is."""
        marks = self.marks
        thread = marks.thread
        lane = axis.lane(thread)
        sampled = np.flatnonzero(lane < 0)
        if len(sampled):
            process = process_of(thread[sampled])
            main = self._main_threads()
            category = np.array([main.get(each, -1) for each in process.tolist()], dtype=np.int64)
            mine = (category >= 0) & (marks.category[sampled] == category)
            lane[sampled[mine]] = axis.lane(process[mine] | pid_of(process[mine]))
        known = np.flatnonzero(lane >= 0)
        position = axis.position(lane[known], marks.start[known])
        order = np.argsort(position, kind="stable")
        return position[order], known[order]

    def stacks(self, chosen: IntArray) -> Stacks:
        """The stacks of these marks."""
        found = {}
        for mark, frames in self._frames(chosen).items():
            own = tuple(frame for frame in frames if frame.origin is Origin.PROGRAM)[:MOST_FRAMES]
            found[mark] = CallChain(own or frames[:1], bool(own), frames[0])
        return found

    def _main_threads(self) -> dict[int, int]:
        """The category of the main thread of each process, where one thread alone can be it."""
        if self._main is None:
            candidates: dict[int, list[int]] = {}
            members = self._members()
            frames = self._frames(np.concatenate([np.empty(0, dtype=np.int64), *members.values()]))
            for (process, category), marks in members.items():
                stacks = [frames[mark] for mark in marks.tolist() if mark in frames]
                if not any(stack[-1].symbol == THREAD_ENTRY for stack in stacks):
                    candidates.setdefault(process, []).append(category)
            self._main = {process: found[0] for process, found in candidates.items() if len(found) == 1}
        return self._main

    def _members(self) -> dict[tuple[int, int], IntArray]:
        """A few marks of every category of every process, by globalPid and category."""
        processes, process = distinct(process_of(self.marks.thread))
        categories, category = distinct(self.marks.category)
        keys, code = distinct(process * max(len(categories), 1) + category)
        found = {}
        for at, key in enumerate(keys.tolist()):
            marks = np.flatnonzero(code == at)
            owner = (int(processes[key // len(categories)]), int(categories[key % len(categories)]))
            found[owner] = marks[:: max(1, len(marks) // LOOKED_AT)]
        return found

    def _frames(self, chosen: IntArray) -> dict[int, tuple[StackFrame, ...]]:
        """All frames of these marks, innermost first."""
        marks = self.marks
        of_marks = (column[chosen].tolist() for column in (marks.start, marks.thread, marks.category))
        place = dict(zip(zip(*of_marks, strict=True), chosen.tolist(), strict=True))
        columns = ("start", "globalTid", "category", "binaryData")
        rows = self.trace.read_chosen("NVTX_EVENTS", "start", marks.start[chosen], *columns)
        found = {}
        keys = zip(*(rows[name].tolist() for name in columns[:3]), strict=True)
        for key, payload in zip(keys, rows["binaryData"].texts(), strict=True):
            if key in place and payload and (frames := decoded(payload, self.trace.strings)):
                found[place[key]] = frames
        return found


def decoded(payload: str, strings: Strings) -> tuple[StackFrame, ...]:
    """The frames in a payload of hexadecimal digits, innermost first; none if it is not a Python stack."""
    try:
        data = bytes.fromhex(payload)
    except ValueError:
        return ()
    rows = _frame_rows(data)
    if not len(rows) or not all(map(strings.known, np.unique((rows["function"], rows["file"])).tolist())):
        return ()
    names, files = strings.texts(rows["function"]), strings.texts(rows["file"])
    # nsys writes <module> and <frozen importlib> with their brackets escaped.
    shown = zip(map(html.unescape, names), map(html.unescape, files), rows["line"].tolist(), strict=True)
    return tuple(
        StackFrame(name, file_name(path), origin_of_python(path), python=True, line=line if line > 0 else None)
        for name, path, line in shown
    )


def named_in(payload: bytes) -> list[int]:
    """The ids of strings in a payload; none if it is not a Python stack."""
    rows = _frame_rows(payload)
    return [*rows["function"].tolist(), *rows["file"].tolist()]


def renumbered(payload: bytes, function: Callable[[int], int], file: Callable[[int], int]) -> bytes | None:
    """A payload with other ids, and only its frames; None if it is not a Python stack."""
    rows = _frame_rows(payload)
    if not len(rows):
        return None
    made = np.zeros(len(rows), dtype=_FRAME)
    made["function"] = [function(number) for number in rows["function"].tolist()]
    made["file"] = [file(number) for number in rows["file"].tolist()]
    made["line"] = rows["line"]
    lead = bytes(HEADER_BYTES + LEAD_BYTES - 8)
    return lead + np.array([len(rows), 0], "<u4").tobytes() + made.tobytes()


def _frame_rows(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """The frames as they are stored; none where the length does not fit the count."""
    lead = HEADER_BYTES + LEAD_BYTES
    count, rest = divmod(len(data) - lead, FRAME_BYTES)
    if rest or not 0 < count <= MOST_DEEP or count not in np.frombuffer(data, "<u4", 2, lead - 8).tolist():
        return np.empty(0, dtype=_FRAME)
    return np.frombuffer(data, _FRAME, count, lead)
