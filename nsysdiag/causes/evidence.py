"""Evidence as layers: named rows on the thread axis that one cause may claim time with."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, union
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.event_waits import HeldCalls, held_calls
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import joint, once
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import NamedRows, picked
from nsysdiag.fields import Sentence
from nsysdiag.gaps import gaps
from nsysdiag.trace.enums import CopyKind, MemoryKind
from nsysdiag.units import format_ns


class EvidenceLayer(Struct, frozen=True):
    """The evidence rows of one cause, as a set. `name` is each row's code in `names`. `label` distinguishes kinds of
    the cause (what a synchronization waited for), None for none. `device` is the number of the device that the calls
    waited for, None if unknown. `are_calls`: the names are those of calls, not descriptions."""

    spans: Intervals
    name: IntArray
    names: list[Sentence]
    label: EvidenceLabel | None = None
    device: int | None = None
    are_calls: bool = True

    def __len__(self) -> int:
        return len(self.spans)


class CallFacts(Struct, frozen=True):
    """Facts about API calls beyond their name: a flag for each row of the table of calls.

    `pageable`: copies to or from pageable memory; `read_back`: device-to-host copies of at most 64 bytes;
    `upload`: copies from pageable memory to a device; `creates_context`: a process's first calls, over 1 ms, before
    anything ran; `first_launch`: the first launch of a kernel name that took far longer than the median of its API;
    `first_use`: a long first launch of an API with too few others for a median. `synchronized` is the number of the
    device that a call waited for, -1 where unknown. `held` are the times in which calls wait for a host function, if
    they synchronize at all.
    """

    pageable: BoolArray
    read_back: BoolArray
    upload: BoolArray
    creates_context: BoolArray
    first_launch: BoolArray
    first_use: BoolArray
    synchronized: IntArray
    held: HeldCalls

    def copied(self, row: IntArray) -> IntArray:
        """What a wait right behind each of these calls is for, as a place in HINTS."""
        return np.where(self.read_back[row], 1, np.where(self.upload[row], 2, 0))


class HostEvidence(Struct, frozen=True):
    """What the rules look at: the launching threads, on one time axis with a stretch for each. Outermost calls (`outer`)
    speak for the time before a launch, nested ones (`inner`) for time inside it. Of other threads there is nothing
    here: who ended a wait is found later, in `nsysdiag/wakeups/`, and the rules are applied to those threads again."""

    host: HostActivity
    facts: CallFacts
    outer: NamedRows
    inner: NamedRows

    @classmethod
    def of(cls, host: HostActivity, facts: CallFacts) -> HostEvidence:
        """Divides the calls once; those that created a context are in neither part: what they are called does not say
        what took the time."""
        api = host.api
        creates = facts.creates_context
        named_well = ~creates[api.row] if creates.any() else np.ones(len(api), dtype=np.bool_)
        inner = ~api.outermost & named_well
        whole = bool(named_well.all()) and not inner.any()
        return cls(host, facts, api if whole else api.take(api.outermost & named_well), api.take(inner))

    def calls(self, pattern: re.Pattern[str] | None = None, *, nested: bool = False) -> NamedRows:
        """API calls whose clean name matches: the outermost, or those inside another call."""
        part = self.inner if nested else self.outer
        return part if pattern is None else named_rows(part, pattern)

    def os_calls(self, pattern: re.Pattern[str]) -> NamedRows:
        """Outermost OS calls whose name matches."""
        return named_rows(self.host.os_calls, pattern)


def named(lane: NamedRows, pattern: re.Pattern[str]) -> BoolArray:
    """True for the rows whose name matches from its beginning to its end."""
    hits = named_like(lane.names, pattern)
    return hits.take(lane.name) if hits.any() else np.zeros(len(lane), dtype=np.bool_)


def named_rows(lane: NamedRows, pattern: re.Pattern[str]) -> NamedRows:
    """The rows whose name matches from its beginning to its end."""
    hits = named_like(lane.names, pattern)
    return lane.take(hits.take(lane.name) if hits.any() else slice(0, 0))


def nested_calls(pattern: re.Pattern[str]) -> Callable[[HostEvidence], list[EvidenceLayer]]:
    """Evidence of calls whose name matches, inside another call."""
    return lambda evidence: [layer_of(evidence.calls(pattern, nested=True))]


def layer_of(lane: NamedRows, label: EvidenceLabel | None = None, device: int | None = None) -> EvidenceLayer:
    """A lane's rows as a layer; rows that overlap become one, named after the first of them."""
    kept = picked(lane.spans.end > lane.spans.start)
    spans, name = lane.spans[kept], lane.shown[kept]
    if np.all(spans.start[1:] >= spans.end[:-1]):
        return EvidenceLayer(spans, name, lane.shown_names, label, device)
    merged = union(spans)
    return EvidenceLayer(merged, name[np.searchsorted(spans.start, merged.start)], lane.shown_names, label, device)


def described(lane: NamedRows, label: EvidenceLabel | None = None) -> EvidenceLayer:
    """A lane's rows as a layer, whose names are not calls."""
    return replace(layer_of(lane, label), are_calls=False)


def plain_layer(spans: Intervals, what: str, label: EvidenceLabel | None = None) -> EvidenceLayer:
    """Time that one sentence describes, without rows of its own to name."""
    time = union(spans)
    return EvidenceLayer(time, np.zeros(len(time), dtype=np.int64), [what], label, are_calls=False)


# The numbers that rules depend on, as `nsysdiag rules` lists them.

READ_BACK_BYTES = 64
"""A copy to the host of at most so many bytes is a read-back: a value that the program looks at."""
LEAD_NS = 5_000
"""A call that emptied the queue began this long before the gap, at least."""
_MEANINGS = {
    "most": "findings of a report, at most",
    "places": "locations of one cause and device with separate findings, at most",
    "rows": "rows of the trace listed by a finding, at most",
    "smallest": "of the window: the smallest share of a finding, and of a separate location",
    "high": "of the window: from here on, a finding is high",
    "medium": "of the window: from here on, a finding is medium",
    "low": "of the window: from here on, a finding is low",
    "empty": "of the iterations must be without work",
    "collector": "of the CPU samples in Python's collector: from here on, host code is garbage collection",
    "interpreter": "of the CPU samples in the interpreter: from here on, host code is Python",
}


class Threshold(Struct, frozen=True):
    """A number that a rule depends on: its name, its value as text, and what it is. Names that begin with `findings.`
    are settings; the others are constants of the rule."""

    name: str
    value: str
    meaning: str


def setting(name: str) -> Threshold:
    """A field of FindingThresholds with its default."""
    value = getattr(FindingThresholds(), name)
    text = f"{100 * value:g}%" if isinstance(value, float) else str(value)
    return Threshold(f"findings.{name}", text, _MEANINGS[name])


LATENCY_LIMIT = Threshold(
    "latency_limit",
    f"{gaps.LATENCY_FACTOR} × latency, {format_ns(gaps.LATENCY_LOWEST_NS)} to {format_ns(gaps.LATENCY_HIGHEST_NS)}",
    "the longest time in which a launch reaches an idle device; longer delays have another cause",
)
DRAINED = Threshold("drained_lead", format_ns(LEAD_NS), "a call that drained the queue began this long before the gap")
READ_BACK = Threshold("read_back", f"{READ_BACK_BYTES} B", "the largest copy to the host that is a read-back")


# What is known of single API calls beyond their names: what they copied, whether they made a context, loaded code.


LONG_NS = 1_000_000
"""A longer first call, or creation of a stream, made the context. A longer first launch loaded code, if its API has no
median to compare with. A larger limit leaves short start-up to the call itself; a smaller one takes slow calls for it.
A launch call takes 2 to 35 µs: see FIRST_NS."""
ASKS = re.compile(
    r"(cuda|cu)(Get|SetDevice|DeviceGet|DeviceCan|DriverGet|RuntimeGet|Init$|ChooseDevice|CtxGet|PointerGet)\w*"
)
"""Calls that only ask, or choose a device. They may load the driver, and choosing creates the context since CUDA 12."""
FIRST_USE = EvidenceLabel("first launch of this kernel")
FEW_LAUNCHES, SLOW_FACTOR = 10, 10
"""From FEW_LAUNCHES launches of an API on their median counts: a first launch that takes over SLOW_FACTOR times as long
loads code. Of fewer launches LONG_NS or FIRST_NS decides. A larger factor misses code that loads fast, a smaller one
takes slow launches for loading."""
FIRST_NS = 100_000
"""A launch call takes 2 to 35 µs, a first one that loads code over 100 µs to many ms (ten real traces)."""


def call_facts(activity: DeviceActivity) -> CallFacts:
    """Flags for each row of the table of calls."""
    calls, operations, launch = activity.api_calls.rows, activity.operations, activity.launch
    copies = np.flatnonzero((operations.category == Category.MEMCPY) & (launch >= 0))
    pageable = copies[
        (operations.src_kind[copies] == MemoryKind.PAGEABLE) | (operations.dst_kind[copies] == MemoryKind.PAGEABLE)
    ]
    small = copies[
        (operations.copy_kind[copies] == CopyKind.DEVICE_TO_HOST) & (operations.size[copies] <= READ_BACK_BYTES)
    ]
    small = small[operations.size[small] > 0]
    uploads = pageable[operations.copy_kind[pageable] == CopyKind.HOST_TO_DEVICE]
    firsts = _FirstLaunches.of(activity)
    loads = _flags(len(calls), firsts.slow(LONG_NS))
    return CallFacts(
        pageable=_flags(len(calls), launch[pageable]),
        read_back=_flags(len(calls), launch[small]),
        upload=_flags(len(calls), launch[uploads]),
        creates_context=_creates_context(activity),
        first_launch=loads,
        first_use=_flags(len(calls), firsts.slow(FIRST_NS)) & ~loads,
        synchronized=activity.synchronized,
        held=held_calls(
            activity.host_functions,
            calls,
            _waited_streams(activity),
            one_device=len(activity.devices) < 2,
        ),
    )


def _waited_streams(activity: DeviceActivity) -> IntArray:
    """The code of the stream that each call waits for if it does, -1 where unknown: for copies that of the copy."""
    stream = activity.synchronized_streams.stream
    if len(activity.host_functions) == 0:
        return stream
    stream = stream.copy()
    for device in activity.devices:
        copies = (device.operations.category == Category.MEMCPY) & (device.launch >= 0)
        stream[device.launch[copies]] = device.stream_code[copies]
    return stream


def _flags(count: int, rows: IntArray) -> BoolArray:
    flags = np.zeros(count, dtype=np.bool_)
    flags[rows] = True
    return flags


def _creates_context(activity: DeviceActivity) -> BoolArray:
    """The API calls over 1 ms of each process, up to and with the first that does more than ask about devices, whatever
    its name. An example is `cudaFree(0)` after `cudaGetDeviceCount`. Left out if the context existed before: an
    operation had begun, or was launched before the capture. A call that launches work creates the context before that
    begins: a copy that is staged or waited for is long by itself."""
    calls, operations = activity.api_calls.rows, activity.operations
    flags = np.zeros(len(calls), dtype=np.bool_)
    if len(calls) == 0:
        return flags
    processes, owner = distinct(calls.process)
    first = _first_of_each(owner, calls.start, calls.end)
    lowest = np.array([activity.first_correlation.get(each, 0) for each in processes.tolist()], dtype=np.int64)
    working, worker = distinct(operations.process)
    begun = least_of_each(worker, operations.start, len(working))
    numbered = picked(operations.correlation > 0)
    number = least_of_each(taken(worker, numbered), operations.correlation[numbered], len(working))
    fresh = lowest > 0
    known, at, its = np.intersect1d(processes, working, assume_unique=True, return_indices=True)
    if len(known):
        fresh[at] &= (begun[its] >= calls.start[first[at]]) & (number[its] >= lowest[at])
    if not fresh.any():
        return flags
    asks = named_like(activity.api_calls.names, ASKS)
    uses = picked(~taken(asks, calls.name))
    until = least_of_each(taken(owner, uses), calls.start[uses], len(processes))
    rows = np.flatnonzero(once(owner, fresh.take) & (calls.start <= once(owner, until.take)))
    flags[rows] = _work_begins(activity, rows) - calls.start[rows] > LONG_NS
    return flags


def _work_begins(activity: DeviceActivity, rows: IntArray) -> IntArray:
    """When the work of each of these API calls begins; its end if it launches none."""
    begins, launch = activity.api_calls.rows.end[rows], activity.launch
    place = np.full(len(activity.api_calls.rows) + 1, -1, dtype=np.int32)
    place[rows] = np.arange(len(rows))
    known = np.flatnonzero(place.take(launch) >= 0)
    np.minimum.at(begins, place[launch[known]], activity.operations.start[known])
    return begins


def _first_of_each(group: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """The row of each group, 0 and up, that starts first; of several the one that ends last."""
    begun = least_of_each(group, start, int(group.max()) + 1)
    rows: IntArray = np.flatnonzero(start == once(group, begun.take))
    rows = rows[np.lexsort((~end[rows], group[rows]))]
    return rows[np.append(True, group[rows[1:]] != group[rows[:-1]])]


class _FirstLaunches(Struct, frozen=True):
    """The calls that launched a kernel name for the first time in their process: their rows, durations, and the number
    of their API there. Nodes of graphs are excluded. The `count` launches of each API have a median of `medians` / 2;
    `mostly_first`: most of them are first launches."""

    row: IntArray
    duration: IntArray
    api: IntArray
    count: IntArray
    medians: IntArray
    mostly_first: BoolArray

    @classmethod
    def of(cls, activity: DeviceActivity) -> _FirstLaunches:
        """Those of all processes."""
        calls, operations, launch = activity.api_calls.rows, activity.operations, activity.launch
        rows = picked((operations.category == Category.KERNEL) & (operations.graph_node <= 0) & (launch >= 0))
        row = launch[rows]
        if len(row) == 0:
            nothing = np.empty(0, dtype=np.int64)
            return cls(nothing, nothing, nothing, nothing, nothing, np.empty(0, dtype=np.bool_))
        process = distinct(taken(operations.process, rows))[1]
        names, name = distinct(operations.name[rows])
        first = _earliest_of_each(joint(process, name, len(names)), taken(calls.start, row))
        duration = taken(calls.end, row) - taken(calls.start, row)
        _, api = distinct(joint(process, taken(calls.name, row), int(calls.name.max()) + 1))
        count = np.bincount(api)
        once_more = count - np.bincount(api[first], minlength=len(count))
        return cls(row[first], duration[first], api[first], count, _both_medians(api, duration), 2 * once_more < count)

    def slow(self, long: int) -> IntArray:
        """The rows of those that took over ten times the median of their API's launches; over `long` ns if the API
        has fewer than ten.

        If most launches of an API are first ones, their median is the very thing to be found: `long` is enough there.
        """
        limit = np.where(self.count < FEW_LAUNCHES, long, SLOW_FACTOR * self.medians // 2)
        limit = np.where(self.mostly_first, np.minimum(limit, long), limit)
        return self.row[self.duration > limit[self.api]]


def _earliest_of_each(group: IntArray, start: IntArray) -> IntArray:
    """The place of each group's smallest `start`, of equal ones the first."""
    if not ascending(start):
        order = np.argsort(start, kind="stable")
        return order[_earliest_of_each(group[order], start[order])]
    place = np.full(int(group.max()) + 1, len(group), dtype=np.int64)
    # Written from the last row to the first: the first of each group is what stays.
    place[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return place[place < len(group)]


def _both_medians(group: IntArray, duration: IntArray) -> IntArray:
    """The sum of the two middle durations of each group, which are the same one if their number is odd."""
    order = np.lexsort((duration, group))
    begin = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    count = np.diff(np.append(begin, len(group)))
    return duration[order[begin + (count - 1) // 2]] + duration[order[begin + count // 2]]
