"""CUDA API calls of all threads, with clean names; and the call that launched each operation."""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import constant, is_constant, taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, ascending, places_among
from nsysdiag.events.identity import once, process_of
from nsysdiag.events.rows import Rows, RowsOf, ThreadAxis

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.trace.trace import Trace

_SUFFIX = re.compile(r"(_v\d+|_ptsz|_ptds|_spt|(?<=Properties)R0\d00)+$")
_HIP = re.compile(r"hip(?=[A-Z])")
_OF_DRIVER = re.compile(
    r"hip(Ctx|DevicePrimaryCtx|Init$|Link|Module(?!.*Launch)|(Array|Array3D)(Create|Destroy)$|Memset[DU]"
    r"|Memcpy(HtoD|DtoH|DtoD|HtoA|AtoH|AtoD|DtoA|AtoA)|Mem(Create|Release|Map|Unmap|Address|SetAccess|Alloc(Host|Pitch)))"
)
_COUNTERPARTS = {
    "hipModuleLaunchKernel": "cuLaunchKernel",
    "hipExtModuleLaunchKernel": "cuLaunchKernel",
    "hipHccModuleLaunchKernel": "cuLaunchKernel",
    "hipModuleLaunchCooperativeKernel": "cuLaunchCooperativeKernel",
    "hipDrvLaunchKernelEx": "cuLaunchKernelEx",
    "hipExtLaunchKernel": "cudaLaunchKernel",
    "hipLaunchByPtr": "cudaLaunchKernel",
    "hipExtMallocWithFlags": "cudaMalloc",
    "hipHostMalloc": "cudaHostAlloc",
    "hipExtHostAlloc": "cudaHostAlloc",
    "hipHostFree": "cudaFreeHost",
    "hipExtStreamCreateWithCUMask": "cudaStreamCreate",
    "hipMemcpyWithStream": "cudaMemcpy",
}
"""Calls of HIP that no rule of prefixes translates. The last one copies and waits for its stream."""
_CORRELATION_BITS = 32
"""CUPTI numbers correlations with 32 bits: larger ids are damage, and a process has room above them in 64 bits."""
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"


def clean_api_name(name: str) -> str:
    """An API name without its version and default-stream suffixes: `cudaLaunchKernel_v7000` is `cudaLaunchKernel`."""
    return _SUFFIX.sub("", name)


@cache
def cuda_name(name: str) -> str:
    """What CUDA calls a call of HIP: rules know only CUDA's names. Others keep theirs.

    The report shows what the trace says.
    """
    if not _HIP.match(name):
        return f"nvrtc{name[len('hiprtc') :]}" if name.startswith("hiprtc") else name
    return _COUNTERPARTS.get(name) or _HIP.sub("cu" if _OF_DRIVER.match(name) else "cuda", name)


def named_like(names: Iterable[str], pattern: re.Pattern[str]) -> BoolArray:
    """True for the names that match from beginning to end, by CUDA's name of a call."""
    return np.array([pattern.fullmatch(cuda_name(name)) is not None for name in names], dtype=np.bool_)


class CallRows(Rows, frozen=True, dict=True):
    """Calls in the order of the export: start and end in ns, `name` an index into the names stored with it."""

    start: IntArray
    end: IntArray
    thread: IntArray
    correlation: IntArray
    name: IntArray
    returned: IntArray

    @cached_property
    def _by_thread(self) -> tuple[IntArray, IntArray]:
        """The threads, sorted, and which of them made each call, in as few bytes as hold it."""
        threads, place = distinct(self.thread)
        return threads, once(place, lambda each: each.astype(np.min_scalar_type(len(threads))))

    @property
    def threads(self) -> IntArray:
        """The threads that called, sorted."""
        return self._by_thread[0]

    @property
    def thread_place(self) -> IntArray:
        """The place among the threads of that of each call."""
        return self._by_thread[1]

    @property
    def process(self) -> IntArray:
        """The process of each call."""
        found = distinct_values(process_of(self.threads))
        return constant(found, len(self)) if len(found) == 1 else process_of(self.thread)

    @cached_property
    def share_ids(self) -> bool:
        """Whether several calls may have one correlation id; known where these rise from row to row."""
        return not np.all(self.correlation[1:] > self.correlation[:-1])

    def of_threads(self, values: IntArray, rows: IntArray) -> IntArray:
        """For each call at these rows what `values`, one for each of the threads, hold for its thread."""
        return once(taken(self.thread_place, rows), values.take)

    def lanes_at(self, axis: ThreadAxis, rows: IntArray) -> IntArray:
        """The lane of the thread of the call at each row, -1 for none: also where a row is -1."""
        lanes, known = axis.lane(self.threads), rows >= 0
        if known.all():
            return self.of_threads(lanes, rows)
        lane = np.full(len(rows), -1, dtype=np.int64)
        lane[known] = self.of_threads(lanes, rows[known])
        return lane

    def threads_at(self, rows: IntArray) -> IntArray:
        """The threads that made the calls at these rows, sorted."""
        return self.threads[distinct_values(taken(self.thread_place, rows))]

    @cached_property
    def _rows_of_threads(self) -> RowsOf:
        return RowsOf(self.thread_place)

    def rows_of(self, thread: int) -> IntArray:
        """The rows of the calls of a thread, in their order."""
        return self._rows_of_threads[int(places_among(self.threads, np.array([thread]))[0])]

    def busiest_thread(self, rows: IntArray) -> int:
        """The thread that made most of the calls at these rows, at least one; the first of several."""
        return int(self.threads[np.bincount(taken(self.thread_place, rows)).argmax()])

    def made_by(self, threads: IntArray) -> BoolArray:
        """Which calls are of these threads."""
        chosen = np.isin(self.threads, threads)
        at = np.flatnonzero(chosen)
        return once(self.thread_place, lambda each: each == int(at[0]) if len(at) == 1 else chosen[each])


class ApiCalls(Struct, frozen=True):
    """Runtime and driver API calls (CUPTI_ACTIVITY_KIND_RUNTIME), names without suffixes. `malformed` counts the rows
    left out; `chain` is the id of each row's call chain, empty if the trace holds no call chains of CUDA calls."""

    rows: CallRows
    names: list[str]
    malformed: int
    chain: IntArray

    def called(self, pattern: re.Pattern[str]) -> IntArray:
        """The rows of the calls whose name matches from beginning to end, by CUDA's name."""
        hits = named_like(self.names, pattern)
        return np.flatnonzero(hits[self.rows.name]) if hits.any() else np.empty(0, dtype=np.int64)


def call_columns(trace: Trace) -> tuple[str, ...]:
    """What is read of the table of API calls."""
    read = ("start", "end", "globalTid", "correlationId", "nameId", "returnValue")
    return (*read, "callchainId") if trace.has("CUDA_CALLCHAINS") else read


def read_api_calls(trace: Trace, latest: int) -> ApiCalls:
    """All API calls with 0 <= start <= end <= `latest`; names without suffixes."""
    columns = trace.read(CALLS, *call_columns(trace))
    chained = "callchainId" in columns
    start, end = columns["start"], columns["end"]
    code, raw_names = coded_names(trace, columns["nameId"])
    clean = [clean_api_name(name) for name in raw_names]
    names = sorted(set(clean))
    position = {name: index for index, name in enumerate(names)}
    recode = np.array([position[name] for name in clean], dtype=np.int32)
    name = recode[code] if len(code) else code
    rows = CallRows(start, end, columns["globalTid"], columns["correlationId"], name, columns["returnValue"])
    valid = (start >= 0) & (start <= end) & (end <= latest)
    malformed = len(rows) - int(np.count_nonzero(valid))
    chain = columns["callchainId"] if chained else np.empty(0, dtype=np.int64)
    if malformed:
        rows, chain = rows.take(valid), chain[valid] if chained else chain
    return ApiCalls(rows, names, malformed, chain)


def coded_names(trace: Trace, ids: IntArray) -> tuple[IntArray, list[str]]:
    """String ids as (code of each row, text of each code): every distinct id is looked up once."""
    if len(ids) == 0:
        return np.empty(0, dtype=np.int32), []
    unique, codes = distinct(ids)
    return codes.astype(np.int32), trace.strings.texts(unique)


def match_launches(process: IntArray, correlation: IntArray, calls: CallRows) -> IntArray:
    """For each operation, the row of the outermost call with its correlation id in its process; -1 if none.

    Runtime and driver rows may share the id of one launch: the outermost is the one that starts first and, of those,
    ends last. Ids repeat across processes, so the process is part of the key.
    """
    if not len(process) or not len(calls):
        return np.full(len(process), -1, dtype=np.int32)
    processes = distinct_values(process)
    wanted = _launch_key(processes, process, correlation)
    keys = _launch_key(processes, calls.process, calls.correlation)
    rows = _outermost_of_each(keys, _in_order(keys), calls)
    if len(rows) == 0:
        return np.full(len(wanted), -1, dtype=np.int32)
    return np.where(wanted >= 0, _looked_up(keys[rows], rows, wanted), np.int32(-1))


def issue_times(launch: IntArray, calls: CallRows, otherwise: IntArray | int) -> IntArray:
    """When the call at each of the rows `launch` began, in ns; the value of `otherwise` where that is -1."""
    return times_of(launch, calls.start, otherwise)


def times_of(launch: IntArray, times: IntArray, otherwise: IntArray | int) -> IntArray:
    """The time of the call at each of the rows `launch`, of the `times` of all; the value of `otherwise` where that is
    -1."""
    if not len(times):
        return np.full(len(launch), otherwise, dtype=np.int64)
    return np.where(launch >= 0, times.take(launch), otherwise)


def _launch_key(processes: IntArray, process: IntArray, correlation: IntArray) -> IntArray:
    """One integer for (process, correlation id); -1 for what cannot match: id 0 or below, an unknown process."""
    rank: IntArray = once(process, lambda each: places_among(processes, each))
    if is_constant(rank) and rank[0] >= 0 and correlation.min() > 0 and correlation.max() < 1 << _CORRELATION_BITS:
        return np.add(correlation, int(rank[0]) << _CORRELATION_BITS, dtype=np.int64)
    valid = (correlation > 0) & (correlation < 1 << _CORRELATION_BITS) & (rank >= 0)
    return np.where(valid, (rank << _CORRELATION_BITS) | correlation, -1)


def _in_order(keys: IntArray) -> IntArray:
    """The rows that have a key, by key; of one key in their order. No sort where they are in order."""
    rows = np.flatnonzero(keys >= 0).astype(np.int32)
    keys = keys if len(rows) == len(keys) else keys[rows]
    return rows if ascending(keys) else rows[np.argsort(keys, kind="stable")]


def _looked_up(known: IntArray, rows: IntArray, wanted: IntArray) -> IntArray:
    """The row of each key, -1 if it is not among the `known`, which are sorted; no search where they are dense."""
    low, high = int(known[0]), int(known[-1])
    if high - low > 4 * len(known):
        at = places_among(known, wanted)
        return np.where(at >= 0, rows[at], np.int32(-1))
    table = np.full(high - low + 2, -1, dtype=np.int32)
    table[known - low] = rows
    place = wanted - low
    if len(place) and not (int(place.min()) >= 0 and int(place.max()) <= high - low):
        place[(wanted < low) | (wanted > high)] = -1
    return table.take(place)


def _outermost_of_each(keys: IntArray, rows: IntArray, calls: CallRows) -> IntArray:
    """One of the `rows` for each key; they are sorted by key."""
    ordered = keys[rows]
    repeats = ordered[1:] == ordered[:-1]
    if not repeats.any():
        return rows
    shared = np.concatenate((repeats, [False])) | np.concatenate(([False], repeats))
    group = rows[shared]
    # By name and thread last: which of two calls at the very same time it is must not depend on the order of rows.
    group = group[
        np.lexsort((calls.thread[group], calls.name[group], -calls.end[group], calls.start[group], keys[group]))
    ]
    first = np.concatenate(([True], keys[group][1:] != keys[group][:-1]))
    merged = np.concatenate((rows[~shared], group[first]))
    return merged[np.argsort(keys[merged], kind="stable")]
