"""A trace of the PyTorch profiler (Kineto) becomes the tables of an nsys export, in an SQLite file.

```
"cat": "kernel", "gpu_memcpy", "gpu_memset"     operations of a device, by args.device, args.stream, args.correlation
       "cuda_runtime", "cuda_driver"            CUDA API calls
       "cuda_sync"                              synchronizations, where the profiler was asked for them
       "user_annotation", "cpu_op"              NVTX ranges; operators are in a domain of their own
       "python_function"                        the Python stacks of CUDA calls; with cpu_op, what threads were in
```

Times are in µs, with up to three decimals. They count from the first event of any kind, as in a viewer. Source: the
code of Kineto and published traces of PyTorch 1.8 to 2.9.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from bisect import bisect
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nsysdiag.limits import STACK_FRAMES
from nsysdiag.trace.format import MARK, OF_ROCM, RANK, RECORDER
from nsysdiag.trace.kineto.events import (
    CALLS,
    NO_ARGS,
    OVERHEAD,
    RANGES,
    Args,
    Event,
    KinetoTrace,
    Owners,
    by_category,
    category_of,
    correlation_of,
    devices,
    first_ns,
    notes,
    number,
    process_of,
    rank_of,
    read_trace,
)
from nsysdiag.trace.kineto.functions import FRAME, Recorded, base_name, open_at, stretches

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from pathlib import Path

    Node = tuple[tuple[int, int], int, Hashable, Any]


# The nodes of launched graphs, which the profiler of PyTorch does not number.


def numbered(nodes: Iterable[Node]) -> Iterator[tuple[Any, int]]:
    """A number from 1 for each of the `nodes`: (process and correlation id of the launch, start, what it is, whose
    number).

    Launches of the same nodes are of one graph; others are of other graphs, whose nodes are others, too. Nothing says
    of which graph a launch is: one that lacks a node would be another graph.
    """
    launches: dict[tuple[int, int], list[Node]] = {}
    for node in nodes:
        launches.setdefault(node[0], []).append(node)
    first: dict[tuple[Hashable, ...], int] = {}
    free = 1
    for launch in launches.values():
        # Nodes of several streams overlap as it happens, so their order does not tell graphs apart.
        launch.sort(key=lambda node: (repr(node[2]), node[1]))
        graph = tuple(what for _, _, what, _ in launch)
        if graph not in first:
            first[graph] = free
            free += len(graph)
        for place, (_, _, _, owner) in enumerate(launch, first[graph]):
            yield owner, place


ROUNDING_NS = 2
"""Starts and lengths are rounded to whole ns each: what ends where the next begins may be so far apart."""
LEAD_NS = 1
"""The first event starts so long after 0, as no event of an export starts at 0."""
_COPY = re.compile(r"Memcpy (\w)to(\w)(?: \((\w+) -> (\w+)\))?")
_KINDS = {pair: kind for kind, pair in enumerate(["HD", "DH", "HA", "AH", "AA", "AD", "DA", "DD", "HH", "PP"], 1)}
"""CUPTI's number of a copy by the letters of its two sides."""
_SIDES = {"D": "Device"}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4}
_HIP_KINDS = {0: "HH", 1: "HD", 2: "DH", 3: "DD"}
"""The sides of a copy by the number that a call of HIP has; of the copy itself roctracer often has them wrong."""
_GRID_OF_WORK_ITEMS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
"""Launches whose grid counts work items, not blocks."""
_SYNCHRONIZATIONS = {"event sync": 1, "stream wait event": 2, "stream sync": 3, "context sync": 4}
_PUSH_POP, _DOMAIN_NAME, _MOMENT = 59, 75, 34
_OPERATORS, _STACKS = 1, 2
_PLACE = "start end deviceId contextId streamId correlationId globalPid"
_TABLES = {
    "StringIds": "id value",
    "META_DATA_EXPORT": "name value",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs",
    "TARGET_INFO_GPU": "id name smCount totalMemory computeMajor computeMinor threadsPerWarp maxThreadsPerBlock"
    " maxWarpsPerSm maxRegistersPerSm maxShmemPerSm",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "PROCESSES": "globalPid pid name",
    "ThreadNames": "nameId globalTid",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_PLACE} graphNodeId demangledName shortName gridX gridY gridZ blockX blockY blockZ"
    " registersPerThread staticSharedMemory dynamicSharedMemory",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_PLACE} graphNodeId bytes copyKind srcKind dstKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_PLACE} graphNodeId bytes memKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId eventClass returnValue",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_PLACE} syncType eventId",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start end globalTid nameId overheadType",
    "PROFILER_FUNCTIONS": "start end globalTid nameId",
    "PROFILER_WAITS": "start end globalTid nameId",
    "NVTX_EVENTS": "start end eventType globalTid domainId textId text category binaryData",
}
"""The columns of each table: whole numbers, but for these."""
_TYPES = {"name": "TEXT", "value": "TEXT", "text": "TEXT", "binaryData": "BLOB"}
_CORRELATION, _PROCESS, _NODE = 5, 6, 7
"""Places of columns in a row of an operation."""
_OPERATIONS = tuple(f"CUPTI_ACTIVITY_KIND_{each}" for each in ("KERNEL", "MEMCPY", "MEMSET"))
Row = tuple[Any, ...]


class ExportRows:
    """The rows of all tables, made of the events of one file."""

    def __init__(self, document: KinetoTrace) -> None:
        self._strings: dict[str, int] = {}
        self._threads: dict[tuple[int, Any], int] = {}
        self._taken: set[int] = set()
        self.tables: dict[str, list[Row]] = {name: [] for name in _TABLES}
        self._events = by_category(document.events)
        first = min((start for events in self._events.values() for _, start, _ in events), default=0)
        self._origin = min(first, first_ns(document.events)) - LEAD_NS
        self._owners = Owners(self._events, document.events)
        self._graphs = {
            (process_of(event) << 24, correlation_of(event))
            for name in CALLS
            for event, _, _ in self._events.get(name, ())
            if correlation_of(event) and "GraphLaunch" in str(event.name)
        }
        """The processes and correlation ids of launches of whole graphs, whose operations share one."""
        self._add_all(document)

    def _add_all(self, document: KinetoTrace) -> None:
        for category, (table, others) in self._writers().items():
            for event, start, end in self._events.get(category, ()):
                self._add(table, start - self._origin, end - self._origin, *others(event, event.args or NO_ARGS))
        self._close_roundings()
        self._number_nodes()
        self._overhead()
        self._stacks()
        self._functions()
        self._session(document)

    def _writers(self) -> dict[str, tuple[str, Callable[[Event, Args], Row]]]:
        """The table of each category of events, and the columns of a row behind its start and end."""
        return {
            "kernel": ("CUPTI_ACTIVITY_KIND_KERNEL", self._kernel),
            "gpu_memcpy": ("CUPTI_ACTIVITY_KIND_MEMCPY", self._copy),
            "gpu_memset": ("CUPTI_ACTIVITY_KIND_MEMSET", self._set),
            "cuda_sync": ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", self._sync),
            **dict.fromkeys(CALLS, ("CUPTI_ACTIVITY_KIND_RUNTIME", self._call)),
            **dict.fromkeys(RANGES, ("NVTX_EVENTS", self._range)),
        }

    def _add(self, table: str, *row: Any) -> None:
        self.tables[table].append(row)

    def _text(self, text: Any) -> int:
        return self._strings.setdefault(text if isinstance(text, str) else "", len(self._strings) + 1)

    def _thread(self, event: Event) -> int:
        """The thread of a CPU event as exports write it. Threads without a number of the system get a free one."""
        key = (process_of(event), event.tid if isinstance(event.tid, int | str) else -1)
        if key not in self._threads:
            thread = number(event.tid)
            if not 0 <= thread < 1 << 24 or (key[0] << 24 | thread) in self._taken:
                thread = next(n for n in range(1, 1 << 24) if key[0] << 24 | n not in self._taken)
            self._threads[key] = key[0] << 24 | thread
            self._taken.add(self._threads[key])
        return self._threads[key]

    def _place(self, event: Event, args: Args) -> Row:
        """What every operation has behind its start and end."""
        device, stream = number(args.device, number(event.pid, 0)), number(args.stream, number(event.tid, 0))
        node, process = number(args.node, 0), self._owners.of(event) << 24
        place = (device, number(args.context, 1), stream, correlation_of(event), process)
        return (*place, node if node > 0 else None)

    def _kernel(self, event: Event, args: Args) -> Row:
        name, block = str(event.name or ""), _three(args.block)
        texts = self._text(name), self._text(base_name(name))
        others = (number(args.registers, 0), number(args.shared, 0), 0)
        return (*self._place(event, args), *texts, *self._grid(event, _three(args.grid), block), *block, *others)

    def _grid(self, event: Event, grid: Row, block: Row) -> Row:
        """The blocks of a kernel."""
        launch = self._owners.call(event)
        if launch is None or launch.name not in _GRID_OF_WORK_ITEMS or 0 in block:
            return grid
        return tuple(-(-items // own) for items, own in zip(grid, block, strict=True))

    def _copy(self, event: Event, args: Args) -> Row:
        found, call = _COPY.match(str(event.name)), self._owners.call(event) or event
        sides = found[1] + found[2] if found else "??"
        asked = _HIP_KINDS.get(number((call.args or NO_ARGS).copy), sides)
        names = (found[3], found[4]) if found and asked == sides else (_SIDES.get(each) for each in asked)
        memory = [_MEMORY.get(each or "", -1) for each in names]
        return (*self._place(event, args), number(args.bytes, 0), _KINDS.get(asked, 0), *memory)

    def _set(self, event: Event, args: Args) -> Row:
        memory = re.search(r"\((\w+)\)", str(event.name))
        return (*self._place(event, args), number(args.bytes, 0), _MEMORY.get(memory[1] if memory else "", -1))

    def _call(self, event: Event, _: Args) -> Row:
        driver = int(str(event.cat).lower() == "cuda_driver")
        return (self._thread(event), correlation_of(event), self._text(event.name), driver, 0)

    def _sync(self, event: Event, args: Args) -> Row:
        kind = _SYNCHRONIZATIONS.get(str(args.kind or event.name).lower().replace("cuda ", ""), 0)
        return (*self._place(event, args)[:-1], kind, number(args.event))

    def _range(self, event: Event, _: Args) -> Row:
        domain = _OPERATORS if category_of(event) == "cpu_op" else 0
        return (_PUSH_POP, self._thread(event), domain, self._text(event.name), None, None, None)

    def _operations(self) -> Iterator[tuple[str, int, Row]]:
        """The rows of all operations, with their tables and places in these."""
        return ((name, at, row) for name in _OPERATIONS for at, row in enumerate(self.tables[name]))

    def _close_roundings(self) -> None:
        """What is in order on a stream, and apart by what rounding adds, follows at once."""
        reach: dict[Row, int] = {}
        for name, at, row in sorted(self._operations(), key=lambda each: each[2][0]):
            stream = (row[_PROCESS], row[2], row[4])
            ended = reach.get(stream)
            if ended is not None and 0 < row[0] - ended <= ROUNDING_NS:
                self.tables[name][at] = (ended, *row[1:])
            reach[stream] = max(ended or 0, row[1])

    def _overhead(self) -> None:
        """What the profiler and the driver did besides, on the thread whose call it was in; else on the only one."""
        calls: dict[int, list[tuple[int, int]]] = {}
        for begin, end, thread, *_ in sorted(self.tables["CUPTI_ACTIVITY_KIND_RUNTIME"]):
            own = calls.setdefault(thread, [])
            own.append((begin, max(end, own[-1][1]) if own else end))
        for event, start, end in self._events.get("overhead", ()):
            begun, ended = start - self._origin, end - self._origin
            last = {thread: bisect(own, begun, key=lambda call: call[0]) - 1 for thread, own in calls.items()}
            inside = [thread for thread, at in last.items() if at >= 0 and calls[thread][at][1] >= ended]
            kind = OVERHEAD.get(str(event.name).lower(), 0)
            if len(on := inside or list(calls)) == 1:
                self._add("CUPTI_ACTIVITY_KIND_OVERHEAD", begun, ended, *on, self._text(event.name), kind)

    def _number_nodes(self) -> None:
        """Operations of a graph launch are its nodes, where the profiler does not number them."""
        nodes = (
            ((row[_PROCESS], row[_CORRELATION]), row[0], (_OPERATIONS.index(name), row[_NODE + 1 :]), (name, at))
            for name, at, row in self._operations()
            if (row[_PROCESS], row[_CORRELATION]) in self._graphs and row[_NODE] is None
        )
        for (name, at), node in list(numbered(nodes)):
            row = self.tables[name][at]
            self.tables[name][at] = (*row[:_NODE], node, *row[_NODE + 1 :])

    def _recorded(self, *categories: str) -> dict[int, list[Recorded]]:
        """Operators and Python functions by thread."""
        found: dict[int, list[Recorded]] = {}
        for category in categories:
            for event, start, end in self._events.get(category, ()):
                times = (start - self._origin, end - self._origin)
                found.setdefault(self._thread(event), []).append(
                    Recorded(*times, str(event.name), category == "cpu_op")
                )
        return found

    def _stacks(self) -> None:
        """The Python functions that were running at each CUDA call, as the marks that nsys writes."""
        called: dict[int, list[int]] = {}
        for start, _end, thread, *_ in self.tables["CUPTI_ACTIVITY_KIND_RUNTIME"]:
            called.setdefault(thread, []).append(start)
        functions = self._recorded("python_function")
        for thread, own in functions.items():
            times = sorted(called.get(thread, []))
            for time, stack in zip(times, open_at(own, times, lambda each, _: each), strict=True):
                if stack:
                    packed = self._packed([each.name for each in reversed(stack[-STACK_FRAMES:])])
                    self._add("NVTX_EVENTS", time, None, _MOMENT, thread, _STACKS, None, None, 1, packed)
        for process in sorted({thread >> 24 for thread in functions}.intersection(self._owners.processes)):
            main = process << 24 | process
            self._add("NVTX_EVENTS", 0, None, _DOMAIN_NAME, main, _STACKS, None, "Python Backtrace", None, None)

    def _functions(self) -> None:
        """What the threads that make CUDA calls were in, by operators and Python functions."""
        calling = {row[2] for row in self.tables["CUPTI_ACTIVITY_KIND_RUNTIME"]}
        for thread, functions in self._recorded("cpu_op", "python_function").items():
            for each in stretches(functions) if thread in calling else ():
                table = "PROFILER_WAITS" if each.waits else "PROFILER_FUNCTIONS"
                self._add(table, each.start, each.end, thread, self._text(each.name))

    def _packed(self, stack: Sequence[str]) -> bytes:
        """The functions, innermost first, as nsys packs a Python stack."""
        frames = []
        for name in stack:
            found = FRAME.fullmatch(name)
            function, file, line = (found["function"], found["file"], int(found["line"])) if found else (name, "", 0)
            frames.append(struct.pack("<QQII", self._text(function), self._text(file), line, 0))
        body = struct.pack("<4I", 1, 1, len(frames), 0) + b"".join(frames)
        return struct.pack("<IIIIQQ", 1, 0, 3, 1, len(body), 32 + len(body)) + body

    def _session(self, document: KinetoTrace) -> None:
        """The beginning of the capture, its process, its threads and its GPUs."""
        self._add("TARGET_INFO_SESSION_START_TIME", number(document.base_ns, 0) + self._origin)
        with_rocm = any(
            str(event.name).startswith("hip") for name in CALLS for event, _, _ in self._events.get(name, ())
        )
        self._add("META_DATA_EXPORT", MARK, OF_ROCM if with_rocm else "1")
        self._add("META_DATA_EXPORT", RECORDER, document.recorder)
        if (of_ranks := rank_of(document)) is not None:
            self._add("META_DATA_EXPORT", RANK, "{}/{}".format(*of_ranks))
        for event in document.events:
            if event.ph == "M" and event.args is not None and isinstance(event.args.name, str):
                self._named(event, event.args.name)
        used = sorted({row[2] for _, _, row in self._operations()})
        for properties in devices(document, used, (str(each.name) for each, _, _ in self._events.get("kernel", ()))):
            self._gpu(properties)

    def _named(self, event: Event, name: str) -> None:
        process = process_of(event)
        if event.name == "process_name" and process in self._owners.processes:
            self._add("PROCESSES", process << 24, process, name)
        known = (process_of(event), event.tid if isinstance(event.tid, int | str) else -1)
        if event.name == "thread_name" and known in self._threads:
            self._add("ThreadNames", self._text(name), self._threads[known])

    def _gpu(self, properties: dict[str, Any]) -> None:
        device, warp = number(properties["id"]), max(number(properties.get("warpSize"), 32), 1)
        names = ("numSms", "totalGlobalMem", "computeMajor", "computeMinor", "warpSize", "maxThreadsPerBlock")
        values = [number(properties.get(name), 0) for name in names]
        threads = number(properties.get("maxThreadsPerMultiprocessor"), 0) // warp
        limits = [number(properties.get(f"{each}PerMultiprocessor"), 0) for each in ("regs", "sharedMem")]
        self._add("TARGET_INFO_GPU", device, str(properties.get("name", "")), *values, threads, *limits)
        users = {row[_PROCESS] >> 24 for _, _, row in self._operations() if row[2] == device}
        if len(users) == 1:  # a number that several processes use may be another GPU in each
            self._add("TARGET_INFO_CUDA_DEVICE", device, device, *users)

    def strings(self) -> Iterator[Row]:
        """The rows of StringIds."""
        return ((at, text) for text, at in self._strings.items())


def _three(value: Any) -> Row:
    return tuple(number(each, 0) for each in value) if isinstance(value, list) and len(value) == 3 else (0, 0, 0)


def convert(path: Path, target: Path) -> list[str]:
    """Write the tables of a profiler's trace into a new SQLite file, and return what a reader must know of the capture.
    Raises InputError if the trace is damaged."""
    document = read_trace(path)
    rows = ExportRows(document)
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        for name, columns in _TABLES.items():
            content = list(rows.strings()) if name == "StringIds" else rows.tables[name]
            if content:
                declared = [f"{each} {_TYPES.get(each, 'INTEGER')}" for each in columns.split()]
                connection.execute(f"CREATE TABLE {name} ({', '.join(declared)})")
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(declared))})", content)
        connection.execute("COMMIT")
    return list(notes(document))
