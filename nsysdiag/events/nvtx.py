"""NVTX ranges: what the program called its own time, on its own thread and on others (NVTX_EVENTS)."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from nsysdiag.arrays.constant import constant, taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, places_among
from nsysdiag.arrays.nesting import Nesting, enclosing
from nsysdiag.events.calls import coded_names
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import Rows, ThreadAxis, combinations, picked
from nsysdiag.limits import short_path
from nsysdiag.trace.enums import NvtxEvent

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


# What an NCCL call says in its NVTX payload: its communicator, the same number on every rank of it, the size of its
# message, and where a communicator is made, of how many ranks.
#
# nsys keeps a payload as bytes (binaryData, with --include-blobs=true): a header of 32 bytes, then the fields at the
# offsets that the schema gives. All numbers are little-endian.
#
# ```
# 0        4         8         12        16             24           32
# | domain |         | schema  |         | payload size | total size | fields ...
# ```

FIELD, MESSAGE, RANKS = "NCCL communicator ID", "Message size [bytes]", "No. of ranks"
FORMATS = {FIELD: "<q", MESSAGE: "<q", RANKS: "<i"}
"""The fields that are read, and what their bytes are."""
HEADER_BYTES, DOMAIN_AT, SCHEMA_AT = 32, 0, 8
"""The bytes of the header that nsys writes before a payload, and the places of the domain and the schema in it."""
Offsets = dict[tuple[int, int], dict[str, int]]


def read_payloads(trace: Trace, rows: int) -> dict[str, IntArray]:
    """Each of these fields for the `rows` rows of NVTX_EVENTS, 0 if a row does not have it."""
    offsets = payload_fields(trace)
    tables = _of_tables(trace)
    if tables is not None or not offsets:
        none = constant(np.zeros(1, dtype=np.int64), rows)
        return tables or dict.fromkeys(FORMATS, none)
    payload = trace.read("NVTX_EVENTS", "binaryData").text("binaryData")
    found = [payload_numbers(bytes.fromhex(text), offsets) for text in payload.values]
    # One place more than there are payloads: code -1, none, picks the last.
    found.append({})
    return {name: np.array([each.get(name, 0) for each in found], np.int64)[payload.codes] for name in FORMATS}


def _of_tables(trace: Trace) -> dict[str, IntArray] | None:
    """The same by tables that an export with --dynamic-tables has for each schema, None without such. Their columns are
    named after the fields, with other characters for those that a column cannot have.

    ```
    DYNAMIC_NVTXPAYLOAD_DATATYPE_71468255805440_3_9    eventId, NCCL_communicator_ID, Message_size_bytes
    NVTX_EVENTS                                        eventId, start, end ...
    ```
    """
    names = dict(trace.read("NVTX_EXPORT_TRANSLATION", "originalName", "sanitizedName").tuples())
    columns = {name: names.get(name) or re.sub(r"\W+", "_", name).strip("_") for name in FORMATS}
    tables = trace.payload_tables(list(columns.values()))
    if not tables:
        return None
    events = trace.read(RANGES, "eventId")["eventId"]
    order = np.argsort(events, kind="stable")
    found = {name: np.zeros(len(events), dtype=np.int64) for name in FORMATS}
    for spec in tables:
        there = [name for name, column in columns.items() if any(each.name == column for each in spec.columns)]
        rows = trace.read(spec.name, "eventId", *(columns[name] for name in there))
        at = places_among(events[order], rows["eventId"])
        known = at >= 0
        for name in there:
            found[name][order[at[known]]] = rows[columns[name]][known]
    return found


def payload_fields(trace: Trace) -> Offsets:
    """Where the fields are behind the header of a payload, by domain and schema."""
    entries = trace.read("NVTX_PAYLOAD_SCHEMA_ENTRIES", "domainId", "schemaId", "offset", "name")
    found: Offsets = {}
    for domain, schema, offset, name in entries.tuples():
        if name in FORMATS and offset >= 0:
            found.setdefault((domain, schema), {})[name] = offset
    return found


def bare_payload(data: bytes, offsets: Offsets) -> bytes | None:
    """The payload with zeros for all but its schema and these fields; None if it has none of them."""
    places = _places(data, offsets)
    if not places:
        return None
    kept = [(DOMAIN_AT, 4), (SCHEMA_AT, 4), *((at, struct.calcsize(FORMATS[name])) for name, at in places.items())]
    bare = bytearray(max(start + length for start, length in kept))
    for start, length in kept:
        bare[start : start + length] = data[start : start + length]
    return bytes(bare)


def payload_numbers(data: bytes, offsets: Offsets) -> dict[str, int]:
    """The fields that one payload has."""
    places = _places(data, offsets)
    return {name: int(struct.unpack_from(FORMATS[name], data, at)[0]) for name, at in places.items()}


def _places(data: bytes, offsets: Offsets) -> dict[str, int]:
    """The positions of the fields in a payload, without those that are cut off."""
    if len(data) < HEADER_BYTES:
        return {}
    (domain,), (schema,) = struct.unpack_from("<I", data, DOMAIN_AT), struct.unpack_from("<I", data, SCHEMA_AT)
    found = {name: HEADER_BYTES + at for name, at in offsets.get((domain, schema), {}).items()}
    return {name: at for name, at in found.items() if at + struct.calcsize(FORMATS[name]) <= len(data)}


RANGES = "NVTX_EVENTS"
RANGE_COLUMNS = ("start", "end", "eventType", "text", "textId", "globalTid", "domainId")
RANGE_TYPES = (
    NvtxEvent.PUSH_POP_RANGE,
    NvtxEvent.START_END_RANGE,
    NvtxEvent.PAYLOAD_PUSH_POP_RANGE,
    NvtxEvent.PAYLOAD_START_END_RANGE,
)
START_END_TYPES = (NvtxEvent.START_END_RANGE, NvtxEvent.PAYLOAD_START_END_RANGE)
COMMUNICATION_DOMAIN = "NCCL"
MPI_DOMAIN = "MPI"
MPI_FUNCTION = re.compile(r"P?MPI_[A-Z][A-Za-z0-9_]*")
"""What ranges around MPI calls are called, by nsys and by wrappers of MPI in domains of their own."""
GIL_DOMAIN, PYTHON_DOMAIN = "GIL Trace", "Python Backtrace"
"""What nsys itself writes as NVTX: ranges (--trace=python-gil) and marks (--python-sampling), none of the program."""
UNNAMED = "(unnamed range)"


class RangeRows(Rows, frozen=True):
    """Push/pop and start/end ranges; times in ns, `name` an index into the names stored with it. A range that was never
    closed ends with the trace. `thread` is where a range began; a start/end range may end on any thread. `communicator`
    is the number of the communicator of an NCCL call, else 0; `message` the bytes of its message, 0 if unknown."""

    start: IntArray
    end: IntArray
    thread: IntArray
    name: IntArray
    communication: BoolArray
    mpi: BoolArray
    start_end: BoolArray
    communicator: IntArray
    message: IntArray


class PythonMarks(Rows, frozen=True):
    """The marks that hold Python stacks: when, on which thread they were written, and their category."""

    start: IntArray
    thread: IntArray
    category: IntArray


class NvtxRanges(Struct, frozen=True):
    """All ranges of the trace in the order of the export; `domains` are the names of all domains that were made,
    `ranks` the number of ranks of communicators that are made in the trace."""

    rows: RangeRows
    names: list[str]
    python: PythonMarks
    domains: list[str] = field(default_factory=list)
    ranks: dict[int, int] = field(default_factory=dict)


def read_ranges(trace: Trace) -> NvtxRanges:
    """Every range of the program that has a start; `communication` marks those of the domain named NCCL, `mpi` those of
    the domain MPI or with the name of an MPI function."""
    columns = trace.read(RANGES, *RANGE_COLUMNS)
    kinds, start, end = columns["eventType"], columns["start"], columns["end"]
    chosen = picked(np.isin(kinds, RANGE_TYPES) & ((end >= start) | (end < 0)))
    name, names = _names(trace, columns["text"].codes[chosen], columns["text"].values, columns["textId"][chosen])
    created = np.flatnonzero(kinds == NvtxEvent.DOMAIN_CREATE)
    domains = columns["text"][created].texts()
    thread, domain = columns["globalTid"], columns["domainId"]

    def in_domain(wanted: str, rows: npt.NDArray[Any] | slice) -> BoolArray:
        """Which of the rows are in the domain of this name. Domain ids are a process's own."""
        made = created[np.array([text == wanted for text in domains], dtype=np.bool_)]
        if len(made) == 0:
            return np.zeros(len(thread[rows]), dtype=np.bool_)
        threads, domain_ids = (np.concatenate((column[made], column[rows])) for column in (thread, domain))
        key, _ = combinations(process_of(threads), domain_ids)
        return np.isin(key[len(made) :], key[: len(made)])

    closed = np.where(end < 0, np.iinfo(np.int64).max, end)[chosen]
    start_end = np.isin(kinds[chosen], START_END_TYPES)
    communicator, message, ranks = (taken(each, chosen) for each in read_payloads(trace, len(kinds)).values())
    nccl, mpi = in_domain(COMMUNICATION_DOMAIN, chosen), in_domain(MPI_DOMAIN, chosen)
    if len(name):
        mpi |= np.array([MPI_FUNCTION.fullmatch(each) is not None for each in names], dtype=np.bool_)[name]
    rows = RangeRows(start[chosen], closed, thread[chosen], name, nccl, mpi, start_end, communicator, message)
    if GIL_DOMAIN in domains:
        rows = rows.take(~in_domain(GIL_DOMAIN, chosen))
    python = PythonMarks.empty()
    if PYTHON_DOMAIN in domains:
        marks = np.flatnonzero(kinds == NvtxEvent.MARK)
        marks = marks[in_domain(PYTHON_DOMAIN, marks)]
        category = trace.read(RANGES, "category").integers("category")
        python = PythonMarks(start[marks], thread[marks], category[marks])
    made = np.flatnonzero(ranks > 0)
    sizes = dict(zip(communicator[made].tolist(), ranks[made].tolist(), strict=True))
    return NvtxRanges(rows, names, python, sorted({text for text in domains if text}), sizes)


def _names(trace: Trace, text: IntArray, values: list[str], ids: IntArray) -> tuple[IntArray, list[str]]:
    """The text itself where a row has one, else the string that its textId names."""
    if not values:
        coded, known = coded_names(trace, ids)
        return np.where(ids < 0, len(known), coded), [*known, UNNAMED]
    coded, known = coded_names(trace, np.where(text >= 0, -1, ids))
    names = [*values, *known, UNNAMED]
    code = np.where(text >= 0, text, coded + len(values))
    return np.where((text < 0) & (ids < 0), len(names) - 1, code), names


MOST_NAMES = 8
"""Open ranges of other threads that are named for one moment, the last to begin. It changes only the length of the
list."""


def ranges_elsewhere(ranges: NvtxRanges, thread: IntArray, time: IntArray) -> list[list[str]]:
    """For each thread (a globalTid, -1 for none) and time: the open start/end ranges of other threads of its process.
    These are the last eight to begin, earliest first. If more than 64 are open at once, the first 64 to begin count.

    ```
    thread 1            [==== epoch ============)         push/pop: a range of this thread alone
    thread 1          [----- prefetch -------]            start/end, may end on any thread
    thread 2   [========= step =========)
                              ^ time, thread 2            -> prefetch
    ```
    """
    rows = ranges.rows.take(np.flatnonzero(ranges.rows.start_end))
    moments = np.sort(time)
    rows = rows.take(np.flatnonzero(np.searchsorted(moments, rows.start) < np.searchsorted(moments, rows.end)))
    found: list[list[str]] = [[] for _ in time]
    if len(rows) == 0:
        return found
    rows = rows.take(np.lexsort((rows.name, -rows.end, rows.start)))
    # A lane a process here, so that no process sees the ranges of another.
    axis = ThreadAxis.over(process_of(rows.thread), int(moments[0]), int(moments[-1]) + 1)
    lane = axis.lane(process_of(thread))
    spans = axis.place(axis.lane(process_of(rows.thread)), Intervals(rows.start, rows.end))
    position = np.where(lane >= 0, axis.position(np.maximum(lane, 0), time), -1)
    for level in enclosing(spans, position):
        inside = np.flatnonzero(level >= 0)
        inside = inside[rows.thread[level[inside]] != thread[inside]]
        for at, name in zip(inside.tolist(), rows.name[level[inside]].tolist(), strict=True):
            found[at].append(ranges.names[name])
    return [names[-MOST_NAMES:] for names in found]


# Ranges on an axis of threads, placed and nested once for all that asks where the program was.


class RangePaths(Struct, frozen=True):
    """The paths of ranges that nest: `code` is that of each range, `above` that of each path without its last name, and
    `name` the last one. Code 0 is the empty path. `levels` are slices of paths of one length, shortest first."""

    code: IntArray
    above: IntArray
    name: IntArray
    levels: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, nesting: Nesting, name: IntArray, width: int) -> RangePaths | None:
        """`name` is an index into `width` names; None where ranges do not nest."""
        if nesting.above is None:
            return None
        code = np.zeros(len(name), dtype=np.int32)
        above, names, levels, count = [np.zeros(1, dtype=np.int64)], [np.zeros(1, dtype=np.int64)], [], 1
        for at, rows in enumerate(nesting.members):
            outer = code[nesting.above[rows]] if at else code[rows]
            keys, place = distinct(joint(outer, name[rows], width))
            code[rows] = count + place
            above.append(keys // width)
            names.append(keys % width)
            levels.append((count, count + len(keys)))
            count += len(keys)
        return cls(code, np.concatenate(above), np.concatenate(names), tuple(levels))

    def used(self, code: IntArray) -> IntArray:
        """The paths of these codes and their beginnings, sorted."""
        found = np.zeros(len(self.above), dtype=np.bool_)
        found[code] = True
        found[0] = True
        for first, behind in reversed(self.levels):
            found[self.above[first:behind][found[first:behind]]] = True
        return np.flatnonzero(found)


class PlacedRanges(Struct, frozen=True):
    """The ranges of the threads of an axis: `row` is the row of each, `name` an index into the names of `ranges`.
    `nesting` has their spans on the axis, `paths` the path of each, None if they do not nest."""

    ranges: NvtxRanges
    axis: ThreadAxis
    row: IntArray
    name: IntArray
    nesting: Nesting
    paths: RangePaths | None

    @classmethod
    def of(cls, ranges: NvtxRanges, axis: ThreadAxis) -> PlacedRanges:
        """All ranges of these threads."""
        lane = axis.lane(ranges.rows.thread)
        row = np.flatnonzero(lane >= 0).astype(np.int32)
        rows = ranges.rows.take(row)
        nesting = Nesting.of(axis.place(lane[row], Intervals(rows.start, rows.end)))
        return cls(ranges, axis, row, rows.name, nesting, RangePaths.of(nesting, rows.name, len(ranges.names)))

    @property
    def spans(self) -> Intervals:
        """The spans of the ranges on the axis."""
        return self.nesting.intervals

    def path_codes(self, rank: IntArray, time: IntArray) -> tuple[IntArray, list[list[str]]]:
        """The ranges open on lane `rank` at each `time`: the code of each time's path, and the path of each code. A
        path has the names of its ranges, outermost first, cut if long together (limits.short_path). Code 0 is the
        empty path; lane -1 always has it."""
        position = np.where(rank >= 0, self.axis.position(np.maximum(rank, 0), time), -1)
        code, paths = self._by_level(position) if self.paths is None else self._of_innermost(self.paths, position)
        return code, [short_path(path) for path in paths]

    def _of_innermost(self, known: RangePaths, position: IntArray) -> tuple[IntArray, list[list[str]]]:
        found = np.append(known.code, 0)[self.nesting.innermost(position)]
        used = known.used(found)
        number = np.zeros(len(known.above), dtype=np.int32)
        number[used] = np.arange(len(used))
        paths: list[list[str]] = [[]]
        above, name = number[known.above[used]], known.name[used]
        for outer, inner in zip(above[1:].tolist(), name[1:].tolist(), strict=True):
            paths.append([*paths[outer], self.ranges.names[inner]])
        return number[found], paths

    def _by_level(self, position: IntArray) -> tuple[IntArray, list[list[str]]]:
        code = np.zeros(len(position), dtype=np.int32)
        paths: list[list[str]] = [[]]
        width = len(self.ranges.names) + 1
        for level in self.nesting.open_at(position):
            inside = np.flatnonzero(level >= 0)
            unique, inverse = distinct(joint(code[inside], self.name[level[inside]], width))
            code[inside] = len(paths) + inverse
            paths += [[*paths[int(key) // width], self.ranges.names[int(key) % width]] for key in unique]
        return code, paths
