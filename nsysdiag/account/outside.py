"""What a program did from its first CUDA call to the first work of a device: the account of a start-up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.account.bottlenecks import compiling
from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import Name, longest, summed
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, intersect, subtract, union
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.causes import CAUSES, FALLBACK, HOST_CODE, bottleneck_of, other_calls, variant_of
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import CallFacts, EvidenceLayer, HostEvidence, named
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity, HostTables, host_activity, place_api_calls, place_os_calls
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.events.samples import Samples
from nsysdiag.fields import Sentence
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.phases.facts import PhaseDevice, Waited
from nsysdiag.phases.phases import JobPhases
from nsysdiag.time.facts import WORK
from nsysdiag.time.table import TimeBefore, TimeTable
from nsysdiag.units import uncapitalized

MPI_INIT, COMPILING = "mpi_init", "compiling"
PART_OF_A_START = ("launch", "sync", "copies")
"""Calls of CUDA before anything ran on the device wait for nothing but the start of CUDA itself."""
DRIVER = re.compile(r"libcuda\.so|libcuda-|nvcuda(64)?\.dll", re.IGNORECASE)
"""File names of the library that is CUDA's driver."""
USES_THE_DEVICE = re.compile(r"(cuda|cu)\w*(Malloc|Alloc|Launch|Memcpy|Memset|StreamCreate|HostRegister)\w*")
"""The first of these calls creates the context, if nothing did before."""
OF_CUDA = ("memory",)
"""The time of a first allocation is mostly context creation."""


_CALL = re.compile(r"\w+")
HOST, UNEXPLAINED, INITIALIZATION = "host code", "unexplained time", "CUDA initialization"


def activity_of(cause: str, call: str) -> str:
    """What a host did: the call, if its evidence names one, else the cause in words."""
    if call:
        return call
    return UNEXPLAINED if cause == FALLBACK else HOST if cause == HOST_CODE else uncapitalized(CAUSES[cause].title)


class Outside(Struct, frozen=True):
    """The time [begin, end) from the first CUDA call of `thread`, a globalTid, to the device's first work. `since` is
    the time of the first CUDA call of the job, if that is earlier, or where the chosen time begins."""

    thread: int
    begin: int
    end: int
    since: int | None = None

    @property
    def first(self) -> int:
        """Where the job begins."""
        return self.begin if self.since is None else min(self.since, self.begin)


def outside_of(window: Intervals, device: DeviceTimeline, calls: CallRows) -> Outside | None:
    """The time before the work of a device, by the thread that launched most of it. None if nothing ran, or if
    that thread called CUDA no earlier."""
    launch = device.launch[device.launch >= 0]
    if not len(window) or not len(launch):
        return None
    thread, end = calls.busiest_thread(launch), int(window.start[0])
    begin = int(calls.start[calls.rows_of(thread)].min())
    return Outside(thread, begin, end) if begin < end else None


def evidence_of_start(
    outside: Outside, tables: HostTables, activity: DeviceActivity, facts: CallFacts
) -> LayeredEvidence:
    """The causes of the calls of this thread in that time."""
    axis = ThreadAxis.over(np.array([outside.thread], dtype=np.int64), outside.first, outside.end)
    calls, latest = activity.api_calls, activity.latest_ns
    mine = calls.rows.rows_of(outside.thread)
    start = calls.rows.start[mine]
    # Up to the first one behind it: whether a thread goes on to ask tells what a query was for.
    until = start[start >= outside.end].min(initial=np.iinfo(np.int64).max)
    api, os_calls = place_api_calls(axis, calls, latest, mine[start <= until]), place_os_calls(axis, tables, latest)
    host = host_activity(tables, calls, axis, api, os_calls, latest)
    return layer_evidence(HostEvidence.of(host, facts))


class Start(Struct, frozen=True):
    """That time by bottleneck, as sets on the axis of `host`, which share nothing and make it up. `parts` are those of
    start-up that are not the start of CUDA: MPI_INIT and COMPILING. `did` is the same time by what the host did."""

    host: HostActivity
    spans: dict[str, Intervals]
    parts: dict[str, Intervals]
    did: dict[str, Intervals]

    def own(self, bottleneck: str, part: str = "") -> Intervals:
        """Those of a bottleneck without its parts, or of one of these."""
        if part:
            return self.parts.get(part, Intervals.empty())
        spans = self.spans.get(bottleneck, Intervals.empty())
        return subtract(spans, union(*self.parts.values())) if self.parts and bottleneck == "startup" else spans

    @property
    def account(self) -> dict[str, int]:
        """In ns."""
        return {name: spans.total() for name, spans in self.spans.items()}

    def rows(self, most: int) -> list[tuple[Sentence, int, int]]:
        """What the host did, when it began and when it ended in ns, in order of time: the `most` longest."""
        axis, words, spans = self.host.axis, list(self.did), Intervals.concatenate(self.did.values())
        word = np.repeat(np.arange(len(words)), [len(each) for each in self.did.values()])
        length = spans.end - spans.start
        rows = longest(length, np.arange(len(spans)), most)
        rows = rows[np.argsort(spans.start[rows], kind="stable")]
        calls = [_CALL.fullmatch(each) and not typed.has_names(each) for each in words]
        names = [typed.api(typed.plain(each)) if call else each for each, call in zip(words, calls, strict=True)]
        start = axis.time(spans.start[rows])
        found = zip(word[rows].tolist(), start.tolist(), (start + length[rows]).tolist(), strict=True)
        return [(names[at], begin, end) for at, begin, end in found]

    def between(self, begin: int, end: int) -> Start:
        """The part of it in [begin, end)."""
        axis = self.host.axis
        low, high = (min(max(time - axis.origin, 0), axis.span) for time in (begin, end))
        part = Intervals.of([(low, max(low, high))])
        sets = ({name: intersect(each, part) for name, each in of.items()} for of in (self.spans, self.parts, self.did))
        return Start(self.host, *({name: each for name, each in of.items() if len(each)} for of in sets))


def start_of(layered: LayeredEvidence, outside: Outside, ranges: NvtxRanges, chains: CallChains | None = None) -> Start:
    """What the thread did in that time. Until CUDA is initialized, its calls and unexplained time count as
    initialization. So does host code in the driver, by the `chains` of CPU samples. What is inside MPI_Init, or a range
    that compiles, and is not CUDA's own start, is charged to that."""
    axis = layered.host.axis
    lane = int(axis.lane(np.array([outside.thread], dtype=np.int64))[0])
    ready, mpi = _initialized(layered, lane, outside), layered.host.mpi
    others = {MPI_INIT: union(mpi.spans[named(mpi, other_calls.START_UP)]), COMPILING: compiling(ranges, axis)}
    driver = Intervals.empty() if chains is None else _in_driver(layered.host.samples, chains, axis, lane, ready)
    rows: list[tuple[tuple[str, str, str], Intervals]] = []  # by bottleneck, its part, and what the host did
    own = (outside.begin, ready, (*OF_CUDA, "unknown"))
    for begin, end, starting in ((outside.first, outside.begin, ()), own, (ready, outside.end, ())):
        for bottleneck, word, spans in _divided(layered, _placed(axis, lane, begin, end)):
            initializing = intersect(spans, driver) if word == HOST and starting else Intervals.empty()
            left, said = subtract(spans, initializing), INITIALIZATION if bottleneck in starting else UNEXPLAINED
            rows.append((("startup", "", INITIALIZATION), initializing))
            for part, time in others.items() if bottleneck != "startup" else ():
                rows.append((("startup", part, word or said), intersect(left, time)))
                left = subtract(left, time)
            name = "startup" if bottleneck in (*starting, *PART_OF_A_START) else bottleneck
            rows.append(((name, "", word or said), left))
    accounted, parts, did = (_sets((names[at], spans) for names, spans in rows if names[at]) for at in range(3))
    return Start(layered.host, dict(sorted(accounted.items(), key=lambda each: BOTTLENECK_NUMBER[each[0]])), parts, did)


def _sets(pieces: Iterable[tuple[str, Intervals]]) -> dict[str, Intervals]:
    """All time of each name as a set; none of names without any."""
    found: dict[str, list[Intervals]] = {}
    for name, spans in pieces:
        found.setdefault(name, []).append(spans)
    return {name: union(*spans) for name, spans in found.items() if any(map(len, spans))}


def done_by(layered: LayeredEvidence, thread: int, begin: int, end: int) -> dict[str, Intervals]:
    """What a thread did in [begin, end), by call or cause, as sets on the axis of the evidence. All that MPI does as it
    starts or ends is that."""
    axis = layered.host.axis
    lane = int(axis.lane(np.array([thread], dtype=np.int64))[0])
    left, mpi = _placed(axis, lane, begin, end), layered.host.mpi
    found = list[tuple[str, Intervals]]()
    for name in distinct_values(mpi.name[named(mpi, other_calls.START_UP)]).tolist():
        inside, left, _ = claim(left, union(mpi.spans[mpi.name == name]))
        found.append((mpi.names[name], inside.spans))
    return _sets([*found, *((word or UNEXPLAINED, spans) for _, word, spans in _divided(layered, left))])


def _in_driver(samples: Samples, chains: CallChains, axis: ThreadAxis, lane: int, until: int) -> Intervals:
    """The time of a thread up to `until`, in ns, whose nearest CPU sample with a known call chain is in CUDA's driver:
    calls that create a context without a row, as cudaSetDevice may. A set on the axis.

    ```
    samples    d . d d .  p  p .        d driver, p program, . in the kernel of the operating system alone
               [=======)
    ```
    """
    time = _placed(axis, lane, axis.origin, until).spans
    if not len(time):
        return Intervals.empty()
    begin, end = int(time.start[0]), int(time.end[0])
    low, high = np.searchsorted(samples.position, (begin, end)).tolist()
    known = chains.through("sampling", samples.id[low:high], DRIVER) if high > low else {}
    rows = low + np.flatnonzero(np.isin(samples.id[low:high], list(known)))
    if not len(rows):
        return Intervals.empty()
    at = samples.position[rows]
    borders = np.concatenate(([begin], (at[1:] + at[:-1]) // 2, [end]))
    inside = np.array([known[each] for each in samples.id[rows].tolist()], dtype=np.bool_)
    return union(Intervals(borders[:-1], borders[1:])[inside])


def _divided(layered: LayeredEvidence, left: Owned) -> Iterator[tuple[str, str, Intervals]]:
    """Time by the first cause that has evidence of it, in the order of their precedence, and what is left. The text is
    what the host did, empty for what is left."""
    for cause in CAUSES.values():
        for layer in layered.before.get(cause.id, []):
            taken, left, source = claim(left, layer.spans)
            for code in distinct_values(layer.name[source]).tolist():
                word = activity_of(cause.id, layer.names[code] if layer.are_calls else "")
                spans = taken.spans[layer.name[source] == code]
                yield _bottleneck(cause, layer, layer.names[code]), word, spans
    if len(left):
        yield "unknown", "", left.spans


def _initialized(layered: LayeredEvidence, lane: int, outside: Outside) -> int:
    """When the thread's first call returned that uses the device, at the latest when the device had work."""
    calls, axis = layered.host.api, layered.host.axis
    mine = np.flatnonzero(named(calls, USES_THE_DEVICE) & (calls.spans.start // axis.stride == lane))
    return min(int(axis.time(calls.spans.end[mine[:1]])[0]), outside.end) if len(mine) else outside.end


def _placed(axis: ThreadAxis, lane: int, begin: int, until: int) -> Owned:
    lanes = np.array([lane], dtype=np.int64)
    return Owned.of(axis.place(lanes, Intervals.of([(begin, until)])), np.zeros(1, dtype=np.int64))


def _bottleneck(cause: Cause, layer: EvidenceLayer, text: str) -> str:
    return bottleneck_of(cause.id, variant_of(cause.id, layer.label, typed.called(text)))


# What a device did in each phase of the job: its four parts, its ledger and its account.


def device_phases(
    found: JobPhases, key: str, time: TimeTable, start: Start | None, keys: list[str], graphs: Intervals
) -> list[PhaseDevice]:
    """One record a phase, in their order. `graphs` is the set of time with nothing but whole graphs.

    The account of a start-up begins with what the program did before the work of the device, `start`, where that is
    given; if that is judged, all of it is charged to the first phase. `keys` are those of all devices, by number."""
    charged = charged_before(found, start)
    before = None if charged is None else charged.account
    spans = Intervals.of([(phase.start, phase.end) for phase in found.phases])
    parts, accounts, waited = (
        _by_span(of(spans), len(spans)) for of in (time.work_and_causes, time.bottlenecks, time.waited)
    )
    unseen = coverage(graphs, spans).tolist()
    made = []
    for at, length in enumerate((spans.end - spans.start).tolist()):
        ledger, first = parts[at], (before if before is not None and at == 0 else {})
        work = {name: ledger.pop(name, 0) for name in WORK}
        made.append(
            PhaseDevice(
                key=key,
                compute_ns=work["compute"],
                exposed_comm_ns=work["exposed_comm"],
                exposed_copy_ns=work["exposed_copy"],
                idle_ns=sum(ledger.values()),
                outside_ns=sum(first.values()) or length - sum(work.values()) - sum(ledger.values()),
                ledger=ledger,
                account=summed([accounts[at], first]),
                account_base="start" if first else "window",
                waited=[Waited(keys[number], name, ns) for (number, name), ns in waited[at].items()],
                graphs_ns=unseen[at],
            )
        )
    return made


def _by_span(ns: Mapping[Name, IntArray], count: int) -> list[dict[Name, int]]:
    """For each of so many spans the ns of each name that has any."""
    return [{name: int(each[at]) for name, each in ns.items() if each[at]} for at in range(count)]


def charged_before(found: JobPhases, start: Start | None) -> Start | None:
    """The time before the work of a device that is part of the account of the first phase."""
    if start is None or found.judges_before:
        return start
    first = found.phases[0]
    return start.between(first.start, first.end) if first.name == "start-up" else None


def rows_before(start: Start | None) -> TimeBefore:
    """Its rows for the table of time."""
    parts = [
        (BOTTLENECK_NUMBER[name], at, intersect(spans, did))
        for name, spans in ({} if start is None else start.spans).items()
        for at, did in enumerate({} if start is None else start.did.values())
    ]
    spans = Intervals.concatenate([each for _, _, each in parts]) if parts else Intervals.empty()
    order = np.argsort(spans.start)
    length = [len(each) for _, _, each in parts]
    code, call = (np.repeat(np.array([each[at] for each in parts], dtype=np.int64), length)[order] for at in (0, 1))
    begun = spans.start[order] if start is None else start.host.axis.time(spans.start[order])
    placed = Intervals(begun, begun + (spans.end - spans.start)[order])
    return TimeBefore(placed, code, call, [] if start is None else list(start.did))
