"""What the threads of a program did in a trace without GPU activity: CPU time, samples, calls and NVTX ranges."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, union
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.host import HostActivity, host_activity, place_api_calls, place_os_calls
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import CallTable, NamedRows, ThreadAxis, place_calls
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.iterations.named import Kinds
from nsysdiag.messages import InputError
from nsysdiag.ranges.facts import FlameStack
from nsysdiag.stacks.samples import folded, sampled_code, sampled_code_of
from nsysdiag.typed import capitalized, joined, say
from nsysdiag.units import format_count, format_ns, format_share
from nsysdiag.wakeups.loaders import HostTrace

MOST_THREADS, MOST_NAMES, RANGE_LENGTH = 4, 3, 60
"""Threads with a line of their own, names of calls or ranges for each kind, and characters of a range's name. They
change only the length of the text."""
NOTABLE, LEAST, ALL = 0.1, 0.005, 0.95
"""Shares of the time: from the first on, a thread that runs, or is in its ranges, goes before the main thread; below
the second, calls are not named."""
NOT_READY = 600
"""What a query returns whose work is not done: no error."""
ERRORS = {3: "not initialized", 35: "the driver is too old", 100: "no CUDA device", 803: "driver mismatch"}
"""What CUDA says when a program cannot use a GPU."""


class Alone(Struct, frozen=True):
    """Sentences on the CUDA calls of all threads, and on the thread that did most; the thread with the loop; a line for
    each of the threads that did most; and the functions of the CPU samples of each thread."""

    cuda: Sentence = ""
    busiest: Sentence = ""
    looping: Sentence = ""
    lines: list[Sentence] = []
    stacks: list[FlameStack] = []


class _HostKind(Struct, frozen=True):
    """Calls or ranges of one kind, only the outermost ones: the words before their share, and the kind of their names.
    `total` is the time in ns of each lane."""

    label: str
    rows: NamedRows
    text: TextKind
    total: IntArray

    def share(self, axis: ThreadAxis, at: int) -> Sentence:
        """`in OS calls 5.0% (poll 4.1%)` of one lane; empty if it is too little to name."""
        if self.total[at] < LEAST * axis.span or not self.total[at]:
            return ""
        mine = self.rows.take(self.rows.spans.start // axis.stride == at)
        summed = np.bincount(mine.name, weights=(mine.spans.end - mine.spans.start).astype(np.float64))
        most = [each for each in np.argsort(-summed, kind="stable")[:MOST_NAMES].tolist() if summed[each]]
        length = RANGE_LENGTH if self.text is TextKind.RANGE else None
        named = [
            say("{} {}", typed.name(self.text, mine.names[each], length), _of(mine.spans[mine.name == each], axis.span))
            for each in most
        ]
        return say("in {} {} ({})", self.label, format_share(int(self.total[at]), axis.span), joined(", ", named))


def _of(spans: Intervals, whole: int) -> str:
    together = union(spans)
    return format_share(int((together.end - together.start).sum()), whole)


class _Scene(Struct, frozen=True):
    """All threads of the program over the recorded time. `on_cpu` is the time in ns of each lane on a CPU, by context
    switches if `switched`, else what its samples stand for."""

    trace: HostTrace
    chains: CallChains
    host: HostActivity
    kinds: list[_HostKind]
    on_cpu: IntArray
    switched: BoolArray

    def order(self) -> list[int]:
        """The lanes that did most: those that run, those in ranges, the main thread, then by time on a CPU. The main
        thread of the first one's process is among the first two."""
        threads, ranges = self.host.axis.threads, self.kinds[0].total
        least, main = NOTABLE * self.host.axis.span, pid_of(threads) == tid_of(threads)
        did = sum((kind.total for kind in self.kinds), self.on_cpu)
        keys = (np.where(each >= least, each, 0) for each in (ranges, self.on_cpu))
        order = np.lexsort((threads, -did, -self.on_cpu, ~main, *(-key for key in keys)))
        order = order[did[order] > 0]
        if len(order):
            first = process_of(threads[order]) == process_of(threads[order[:1]])
            place = np.where(first & main[order], 1, 2)
            place[0] = 0
            order = order[np.argsort(place, kind="stable")]
        return list(map(int, order))

    def did(self, at: int, *, ranges: bool = True) -> Sentence:
        """`on a CPU 92.1% of the time, in OS calls 5.0% (poll 4.1%)`; without its NVTX ranges if not `ranges`."""
        axis, known = self.host.axis, self.switched[at] or self.on_cpu[at] > 0
        about = "" if self.switched[at] else "about "
        parts = [f"on a CPU {about}{format_share(int(self.on_cpu[at]), axis.span)} of the time"] if known else []
        kinds = self.kinds if ranges else self.kinds[1:]
        return joined(", ", filter(None, [*parts, *(kind.share(axis, at) for kind in kinds)]))

    def sampled(self, at: int) -> Sentence:
        """`34,000 CPU samples: __random 92.2% (called by fill)`; empty without call chains."""
        samples, axis = self.host.samples, self.host.axis
        return sampled_code(samples.id[samples.position // axis.stride == at], self.chains).words()

    def stacks(self) -> list[FlameStack]:
        """The CPU samples of each thread by their functions, a sampling period each."""
        samples, axis = self.host.samples, self.host.axis
        lanes = np.arange(len(axis.threads), dtype=np.int64)
        whole = Intervals(lanes * axis.stride, lanes * axis.stride + axis.span)
        found = sampled_code_of(Owned.of(whole, lanes), len(lanes), samples, self.chains)
        stacks = [FlameStack([self.who(at), *code], ns) for at, each in enumerate(found) for code, ns in each.items()]
        return folded(stacks)

    def who(self, at: int) -> Sentence:
        """A thread with its process."""
        thread = int(self.host.axis.threads[at])
        name, program = self.trace.thread_names.get(thread), self.trace.program(process_of(thread))
        of = say(" of '{}'", typed.process(program)) if program else ""
        if pid_of(thread) == tid_of(thread):
            return say("main thread {}{}", tid_of(thread), of)
        named = say(" '{}'", typed.thread(name)) if name else ""
        return say("thread {}{}{} ({})", tid_of(thread), named, of or " of process", pid_of(thread))


def host_alone(trace: HostTrace, chains: CallChains, low: int, high: int, *, looping: int | None) -> Alone:
    """What threads did during [low, high); the ranges of a thread that is `looping` are said elsewhere."""
    try:
        scene = _scene(trace, chains, low, high)
    except InputError:  # times too far apart for one axis of all threads
        return Alone()
    order = scene.order()
    lines = [
        say("{}: {}.", capitalized(scene.who(at)), joined("; ", filter(None, (scene.did(at), scene.sampled(at)))))
        for at in order[:MOST_THREADS]
        if scene.did(at)
    ]
    more = len(order) - MOST_THREADS
    rest = [f"{format_count(more)} more thread{'s' if more > 1 else ''}."] if more > 0 else []
    busiest = _busiest(scene, order[0], ranges=looping is None) if order else ""
    on = [] if looping is None else np.flatnonzero(scene.host.axis.threads == looping).tolist()
    looping_one = joined("", (scene.who(at) for at in on))
    return Alone(_cuda_calls(scene.host), busiest, looping_one, [*lines, *rest], scene.stacks())


def _busiest(scene: _Scene, at: int, *, ranges: bool) -> Sentence:
    did, sampled = scene.did(at, ranges=ranges), scene.sampled(at)
    sentence = say("In the {} recorded, {} was {}.", format_ns(scene.host.axis.span), scene.who(at), did)
    return joined(" ", filter(None, (did and sentence, did and sampled and say("Its {}.", sampled))))


def _scene(trace: HostTrace, chains: CallChains, low: int, high: int) -> _Scene:
    tables, calls, latest = trace.tables, trace.activity.api_calls, trace.activity.latest_ns
    axis = ThreadAxis.over(_threads(trace), low, high)
    api, os_calls = place_api_calls(axis, calls, latest), place_os_calls(axis, tables, latest)
    host = host_activity(tables, calls, axis, api, os_calls, latest)
    lanes = np.arange(len(axis.threads), dtype=np.int64)
    whole = Intervals(lanes * axis.stride, lanes * axis.stride + axis.span)
    ranges, _ = place_calls(axis, _range_table(trace.ranges, high - low), latest)
    found = (
        ("NVTX ranges", ranges, TextKind.RANGE),
        ("CUDA calls", host.api, TextKind.API),
        ("MPI calls", host.mpi, TextKind.API),
        ("OS calls", host.os_calls, TextKind.API),
    )
    outer = [(label, rows.take(rows.outermost), text) for label, rows, text in found]
    kinds = [_HostKind(label, rows, text, coverage(union(rows.spans), whole)) for label, rows, text in outer]
    switched = np.isin(axis.threads, distinct_values(tables.switches.thread))
    on_cpu = [coverage(union(each), whole) for each in (host.scheduling.on_cpu, host.samples.time)]
    return _Scene(trace, chains, host, kinds, np.where(switched, *on_cpu), switched)


def _threads(trace: HostTrace) -> IntArray:
    """Every thread with events, of the processes of the program if the trace tells these."""
    tables = trace.tables
    columns = [tables.switches.thread, tables.samples.thread, tables.os_calls.thread, tables.mpi.thread]
    columns += [trace.activity.api_calls.rows.thread, trace.ranges.rows.thread]
    found = distinct_values(np.concatenate([distinct_values(column) for column in columns]))
    found = found[(tid_of(found) != 0) & ~np.isin(found, trace.nsys_threads)]
    own = trace.traced_processes
    return found[np.isin(process_of(found), own)] if len(own) else found


def _range_table(ranges: NvtxRanges, span: int) -> CallTable:
    """The ranges of the program by their names, counters as # if names differ in nothing else. One around all that a
    thread does says less than those in it, if these take most of the time."""
    rows = ranges.rows.take(~ranges.rows.mpi)
    length = rows.end - rows.start
    around = length >= ALL * span
    threads, place = np.unique(rows.thread, return_inverse=True)
    inside = np.bincount(place, weights=np.where(around, 0, length), minlength=len(threads))
    kinds, rows = Kinds.of(ranges), rows.take(~around | (2 * inside[place] < span))
    alike = np.bincount(kinds.code, minlength=len(kinds.words))
    words = [*kinds.words]
    for code, name in zip(kinds.code.tolist(), ranges.names, strict=True):
        words[code] = name if alike[code] == 1 else words[code]
    return CallTable(rows.thread, rows.start, rows.end, kinds.code[rows.name], words, np.zeros(len(rows), np.int64))


def _cuda_calls(host: HostActivity) -> Sentence:
    """How many CUDA calls were made, not counting those inside others, and the first that failed; empty without
    any."""
    calls = host.api.take(host.api.outermost)
    if not len(calls):
        return ""
    count = np.bincount(calls.name)
    most = [each for each in np.argsort(-count, kind="stable")[:MOST_NAMES].tolist() if count[each]]
    named = joined(
        ", ", (say("{} × {}", typed.api(calls.names[each]), format_count(int(count[each]))) for each in most)
    )
    made = say("{} CUDA call{} ({})", format_count(len(calls)), "s" if len(calls) > 1 else "", named)
    failed = np.flatnonzero((calls.kind != 0) & (calls.kind != NOT_READY))
    if not len(failed):
        return say("{}.", made)
    first = int(failed[np.argmin(host.axis.time(calls.spans.start[failed]))])
    error = int(calls.kind[first])
    means = f" ({ERRORS[error]})" if error in ERRORS else ""
    return say("{}. {} returned error {}{}.", made, typed.api(calls.names[int(calls.name[first])]), error, means)
