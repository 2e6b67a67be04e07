"""CPU samples as proof that a thread was on a CPU (COMPOSITE_EVENTS)."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import sorted_pairs
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before, places_among, rows_from, union
from nsysdiag.events.callchains import (
    MOST_FRAMES,
    CallChain,
    Origin,
    StackFrame,
    Stacks,
    file_name,
    name_of,
    origin_of_python,
)
from nsysdiag.events.identity import pid_of, process_of
from nsysdiag.events.nvtx import PythonMarks
from nsysdiag.events.rows import Rows, ThreadAxis, coded_tuples, narrowed, picked
from nsysdiag.limits import MOST_DEEP

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings
    from nsysdiag.trace.trace import Trace


SAMPLES = "COMPOSITE_EVENTS"
SAMPLE_COLUMNS = ("start", "globalTid", "id")
SHORTEST_PERIOD_NS = 100_000
"""The shortest sampling period of a thread, in ns. Samples that are closer stand for so much all the same."""
LONGEST_PERIOD_NS = 10_000_000
"""The longest sampling period of a thread with even steps, in ns. If larger, few samples stand for much time."""
LONE_PERIOD_NS = 1_000_000
"""The sampling period, in ns, of a thread with one sample, and the longest one with uneven steps. Samples are usually
about 1 ms apart; if larger, waits count as computing."""
STEADY_STEPS = 20
"""Steps between samples from which on the period of a thread limits those of all others: a profiler samples all alike.
If smaller, a thread with few samples in a burst shortens the time of the others."""
UNEVEN_PART = 10
"""A step is even if it is within this part of the median."""


class SampleRows(Rows, frozen=True):
    """CPU samples in the order of the export: time in ns, globalTid, and the id of the call chain."""

    time: IntArray
    thread: IntArray
    id: IntArray


def read_samples(trace: Trace) -> SampleRows:
    """All samples of the trace."""
    columns = trace.read(SAMPLES, *SAMPLE_COLUMNS)
    return SampleRows(columns["start"], columns["globalTid"], columns["id"])


class SampleSteps(Struct, frozen=True):
    """The samples of each thread in order of time: their rows, the sampling period of the thread in ns, and whether the
    thread may have run on to its next sample: they are about a period apart, or there is none."""

    row: IntArray
    period: IntArray
    runs_on: BoolArray

    @classmethod
    def of(cls, rows: SampleRows) -> SampleSteps:
        """Those of all threads."""
        threads, thread = distinct(rows.thread)
        order = np.lexsort((rows.time, narrowed(thread)))
        time, thread = rows.time[order], thread[order]
        period = sampling_periods(time, thread, len(threads))[thread]
        runs_on = np.ones(len(time), dtype=np.bool_)
        runs_on[:-1] = (thread[1:] != thread[:-1]) | (2 * np.diff(time) <= 3 * period[1:])
        return cls(order.astype(np.int32), period.astype(np.int32), runs_on)


class Samples(Struct, frozen=True):
    """Samples of the axis's threads, sorted by position, with the ids of their call chains. `time` is the set of time
    that they count as computing, `period_ns` the median of their sampling periods: no sample stands for more."""

    position: IntArray
    id: IntArray
    time: Intervals
    period_ns: int = LONE_PERIOD_NS

    def inside(self, spans: Intervals) -> IntArray:
        """The ids of the samples at the positions of intervals, in the order of these."""
        first, behind = (np.searchsorted(self.position, side) for side in (spans.start, spans.end))
        return self.id[rows_from(first, np.maximum(behind - first, 0))]

    def standing_for(self, count: int, ns: int) -> int:
        """How much of a stretch of `ns` as many samples in it stand for."""
        return min(count * self.period_ns, ns)


def samples_of(axis: ThreadAxis, rows: SampleRows, steps: SampleSteps, calls: Sequence[Intervals]) -> Samples:
    """The CPU samples of the axis's threads.

    Each counts for half its thread's sampling period on either side. `calls` are the calls of the threads, by kind:
    positions, sorted, not nested. A sample inside a call shows the thread in that call. It counts for the time before
    and after the call only if the next sample is about a period away.

    ```
    call               [--------------)
    samples                  .     .                    vouch for nothing outside: the thread may wait on
    samples              .   .   .   .   .   .   .      vouch for all of it
    ```
    """
    lane = axis.lane(rows.thread)[steps.row]
    mine = picked(lane >= 0)
    row, lane, half, runs_on = steps.row[mine], lane[mine], steps.period[mine] // 2, steps.runs_on[mine]
    time, ran_before = rows.time[row], np.append(True, runs_on[:-1])[: len(row)]
    position = axis.position(lane, time)
    spans = axis.place(lane, Intervals(time - half, time + half))
    for kind in calls:
        spans = _within_calls(position, spans, kind, ran_before, runs_on)
    by_position = np.argsort(position, kind="stable")
    usual = int(np.median(2 * half)) if len(half) else LONE_PERIOD_NS
    return Samples(position[by_position], rows.id[row][by_position], union(spans), usual)


def _within_calls(
    position: IntArray, spans: Intervals, calls: Intervals, ran_before: BoolArray, ran_on: BoolArray
) -> Intervals:
    """Spans of samples inside calls cut to the call, but for the sides to which the thread ran."""
    if len(calls) == 0:
        return spans
    at = nearest_before(calls.start, position)
    inside = (at >= 0) & (calls.end[at] > position)
    start = np.where(inside & ~ran_before, np.maximum(spans.start, calls.start[at]), spans.start)
    end = np.where(inside & ~ran_on, np.minimum(spans.end, calls.end[at]), spans.end)
    return Intervals(start, end)


def leaf_symbols(trace: Trace, ids: IntArray) -> tuple[IntArray, list[str]]:
    """The code of each sample's innermost function, -1 without a call chain in the trace, and the functions; one
    without a name has the name of its module."""
    columns = trace.read_chosen("SAMPLING_CALLCHAINS", "id", ids, "id", "symbol", "module", "stackDepth")
    leaves = columns.where(columns["stackDepth"] == 0)
    order = np.argsort(leaves["id"], kind="stable")
    known = leaves["id"][order]
    symbols, modules = (trace.strings.texts(leaves[column][order]) for column in ("symbol", "module"))
    words: dict[str, int] = {}
    code = [
        words.setdefault(name_of(symbol) or file_name(module) or symbol, len(words))
        for symbol, module in zip(symbols, modules, strict=True)
    ]
    return np.array([*code, -1], dtype=np.int64)[places_among(known, ids)], list(words)


def chain_symbols(trace: Trace, ids: IntArray) -> list[str]:
    """The functions in the call chains of the samples `ids`, and the modules that they are in, each once."""
    columns = trace.read_chosen("SAMPLING_CALLCHAINS", "id", ids, "symbol", "module")
    return sorted(
        {text for column in ("symbol", "module") for text in trace.strings.texts(distinct_values(columns[column]))}
    )


def sampling_periods(time: IntArray, thread: IntArray, threads: int) -> IntArray:
    """The sampling period of each thread in ns; rows sorted by thread, then time.

    It is the median step between its samples within 0.1-10 ms, and 1 ms for a thread with a single one. A profiler
    samples a computing thread evenly, and all threads alike. A mostly waiting thread has steps as long as its waits,
    which would count as computing. So uneven steps (at most half of them within a tenth of their median) never make a
    period over 1 ms. No thread's period is longer than that of the steadiest thread.

    ```
    busy thread     . . . . . . . . . . . .      period 1 ms
    waiting thread  .  .     .       .    .      steps of 3 to 9 ms, period 1 ms all the same
    ```
    """
    periods = np.full(threads, LONE_PERIOD_NS, dtype=np.int64)
    within = thread[1:] == thread[:-1]
    step, owner = np.diff(time)[within], thread[1:][within]
    if len(step) == 0:
        return periods
    owner, step = sorted_pairs(owner, step)
    present, first, count = np.unique(owner, return_index=True, return_counts=True)
    median = (step[first + (count - 1) // 2] + step[first + count // 2]) // 2
    middle = np.repeat(median, count)
    even = np.add.reduceat(np.abs(step - middle) * UNEVEN_PART <= middle, first, dtype=np.int64)
    own = np.clip(median, SHORTEST_PERIOD_NS, np.where(2 * even > count, LONGEST_PERIOD_NS, LONE_PERIOD_NS))
    steady = own[count >= STEADY_STEPS]
    periods[present] = np.minimum(own, steady.min()) if len(steady) else own
    return periods


# Python's own call stacks, which nsys writes as marks of an NVTX domain (--python-sampling, --python-backtrace).
#
# A mark has the stack in a binary payload (exports with --include-blobs=true, from schema 3.16 on). Numbers are little
# endian; functions and files are ids of StringIds.
#
# ```
#  0        32     40           48         56       64     68   72
#  [ header | .... | .. count   | function | file   | line | .. | next frame, innermost first ...
# ```
#
# The count is one of the two 32-bit numbers before the first frame. A payload whose length does not fit its count, or
# with ids that are not strings, is something else and not read.
#
# A back trace of a CUDA call is a mark on the thread that made the call. Samples are marks on a thread of the profiler;
# a category distinguishes the threads of a process, and nothing says which is which. The main thread alone is known by
# its stacks: those of all others begin in `threading.py`.

HEADER_BYTES, LEAD_BYTES, FRAME_BYTES = 32, 16, 24
"""Bytes of a payload's header, of what is between it and the first frame, and of a frame: nsys's format, as above."""
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
        known = np.flatnonzero((lane >= 0) & (marks.start >= axis.origin) & (marks.start < axis.origin + axis.span))
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
        code, owners = coded_tuples(process_of(self.marks.thread), self.marks.category)
        found = {}
        for at, owner in enumerate(owners):
            marks = np.flatnonzero(code == at)
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
        for *key, payload in rows.tuples():
            mark = place.get(tuple(key))
            if mark is not None and payload and (frames := decoded(payload, self.trace.strings)):
                found[mark] = frames
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
