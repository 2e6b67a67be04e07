"""What a device and its host did in a phase, by name: kernels, copies, calls and host code.

Also how much of a finding's time is inside the NVTX ranges of its place. A gap is at the place that is open in the
middle of its host's part; parts of it may be outside of that range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.account.outside import HOST, UNEXPLAINED, Start, activity_of, done_by
from nsysdiag.arrays.claim import Owned, within
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import group_totals, summed
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, common_ns, intersect, stretches, union
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.causes import CAUSES, HOST_CODE, input_output
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.nvtx import PlacedRanges
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.findings.hotspots import code_in
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.kernels.names import normal_kernel, normal_operation_names
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.names import readable
from nsysdiag.phases.facts import Did, PhaseDevice
from nsysdiag.stacks.samples import SampledCode, sampled_code
from nsysdiag.time.facts import WORK
from nsysdiag.time.table import TimeTable
from nsysdiag.typed import say
from nsysdiag.units import NOTABLE

MOST, LONGEST = 2, 40
"""Parts of a phase that its sentence names, each of at least NOTABLE of the phase; LONGEST: characters of a name of a
kernel or function. They change how long the sentence is, nothing else."""


def work_of_phase(
    context: GapContext,
    found: TimeTable,
    span: tuple[int, int],
    device: PhaseDevice,
    before: Start | None,
    chains: CallChains,
) -> list[Did]:
    """What took most of the phase `span`, in ns, of a device: at most MOST parts, longest first, none under NOTABLE of
    the phase, and one if it is more than half. `before` is the time before the work of the device, if
    the phase has some of it."""
    phase = Intervals.of([span])
    in_calls, code = _idle(context, span)
    if before is not None:
        did = before.between(*span).did
        in_calls = summed([in_calls, {word: spans.total() for word, spans in did.items()}])
        samples = before.host.samples.inside(did.get(HOST, Intervals.empty()))
        code = summed([code, _functions(sampled_code(samples, chains))])
    parts: dict[Sentence, int] = summed([dict(_operations(context, found, phase)), in_calls])
    return _most(parts, code, sum(device.account.values()))


def work_outside(layered: LayeredEvidence, thread: int, span: tuple[int, int], chains: CallChains) -> list[Did]:
    """The same of a time in which no device works, by what a thread did; nothing if that is not known."""
    did = done_by(layered, thread, *span)
    samples = layered.host.samples.inside(did.get(HOST, Intervals.empty()))
    parts: dict[Sentence, int] = {word: spans.total() for word, spans in did.items() if word != UNEXPLAINED}
    return _most(parts, _functions(sampled_code(samples, chains)), span[1] - span[0])


def _most(parts: dict[Sentence, int], code: dict[str, int], whole: int) -> list[Did]:
    """Of `parts` of a time by name, in ns, those that took most of it. `code` are the CPU samples of host code."""
    named = [
        Did(text=_in_function(code) if word == HOST else word, ns=ns, writes=input_output.is_write(typed.called(word)))
        for word, ns in sorted(parts.items(), key=lambda part: (-part[1], part[0]))[:MOST]
        if ns >= NOTABLE * whole
    ]
    return named[:1] if named and 2 * named[0].ns > whole else named


def _functions(code: SampledCode) -> dict[str, int]:
    """Samples by function: of a library's, the program's own function that called it, if that is known."""
    return summed({code.callers.get(name, name): count} for name, count in code.functions.items())


def _in_function(code: dict[str, int]) -> Sentence:
    """Host code, with the function of more than half of its CPU samples."""
    function, count = max(code.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
    if 2 * count <= sum(code.values()) or function.startswith("["):  # the operating system's kernel is not a function
        return HOST
    name = normal_kernel(function)
    template = name.find("<", 1)
    return say("{} in {}", HOST, typed.name(TextKind.SYMBOL, name, template if template > 0 else LONGEST))


def _idle(context: GapContext, span: tuple[int, int]) -> tuple[dict[Sentence, int], dict[str, int]]:
    """Idle time of the device by what the host did, and the functions in the CPU samples of host code. They are left
    out if they stand for less than half of it: those of a short part say nothing of a thread without samples."""
    rows = context.slices.rows
    inside = np.flatnonzero((rows.start < span[1]) & (rows.end > span[0]))
    ns = np.minimum(rows.end[inside], span[1]) - np.maximum(rows.start[inside], span[0])
    values, kind = distinct(
        rows.cause[inside].astype(np.int64) * (len(context.slices.texts) + 1) + rows.text[inside] + 1
    )
    total = np.bincount(kind, ns, len(values)).astype(np.int64)
    calls: list[Sentence] = ["", *context.slices.calls]
    causes = list(CAUSES)
    pairs = zip(*(each.tolist() for each in (*np.divmod(values, len(calls)), total)), strict=True)
    words: dict[Sentence, int] = summed({activity_of(causes[cause], calls[text]): time} for cause, text, time in pairs)
    host = inside[rows.cause[inside] == causes.index(HOST_CODE)]
    if not len(host):
        return words, {}
    code, known = code_in(context, host)
    return words, _functions(code) if 2 * known > 1 else {}


def _operations(context: GapContext, found: TimeTable, phase: Intervals) -> Iterator[tuple[Sentence, int]]:
    """How long operations of a name run; communication and copies as far as nothing else does."""
    device, rows = context.device, context.device.operations
    copies: BoolArray = (rows.category == Category.MEMCPY) | (rows.category == Category.MEMSET)
    inside = device.running & ~rows.migration & (rows.start < phase.end[0]) & (rows.end > phase.start[0])
    for mine, alone in (
        (~copies & ~device.communication, phase),
        (copies & ~device.communication, found.work_of("copies")),
        (device.communication, found.work_of("communication")),
    ):
        chosen = np.flatnonzero(inside & mine)
        code, names = normal_operation_names(device, chosen, context.strings)
        groups = group_totals(code, rows.end[chosen] - rows.start[chosen])
        for each in groups.code[:MOST].tolist():
            same = chosen[code == each]
            ran = union(Intervals(rows.start[same], rows.end[same]))
            yield typed.kernel(readable(names[each]), LONGEST), common_ns(intersect(ran, phase), alone)


# The time of one device that findings are about.


class JudgedTime(Struct, frozen=True):
    """The set `parts` of a device's window, and how many ns of it the device computed, communicated and copied with
    nothing else running; the rest of `ns` it was idle. `account_ns` is the length of its account, which in a cold start
    begins before the window: shares that a reader compares are shares of it."""

    parts: Intervals
    ns: int
    compute_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    account_ns: int

    @classmethod
    def of(cls, time: TimeTable, window: Intervals, focus: Intervals, before_ns: int = 0) -> JudgedTime:
        """What of a device's window is inside the set `focus`; `before_ns` of its account come before the window."""
        parts = intersect(window, focus)
        states, ns = time.states(parts), parts.total()
        compute, communication, copies = (int(states[name].sum()) for name in WORK)
        return cls(parts, ns, compute, communication, copies, ns + before_ns)

    def inside(self, time: Intervals) -> int:
        """How much of a set of time is in it."""
        return common_ns(self.parts, time)

    def share(self, ns: int) -> float:
        """Part of the judged time, 0 if there is none."""
        return ns / self.ns if self.ns else 0.0


class RangeSets(Struct, frozen=True):
    """The ranges of a trace by their names without counters: `place` are those with a thread on the axis, name by name.
    `names` has the place of each name, whose ranges begin at `first`; `known` is the time inside paths that was asked
    for before."""

    placed: PlacedRanges
    place: IntArray
    first: IntArray
    names: dict[str, int]
    known: dict[tuple[str, ...], Intervals]

    @classmethod
    def of(cls, placed: PlacedRanges) -> RangeSets:
        """Each name is read once."""
        names: dict[str, int] = {}
        known = [names.setdefault(normal_range(name), len(names)) for name in placed.ranges.names]
        code = np.array(known, dtype=np.int32 if len(names) > np.iinfo(np.int16).max else np.int16)[placed.name]
        first = np.append(0, np.cumsum(np.bincount(code, minlength=len(names))))
        return cls(placed, np.argsort(code, kind="stable").astype(np.int32), first, names, {})

    def inside(self, path: list[str]) -> Intervals:
        """The time inside ranges of all names of `path`, a set on the axis. Names that were cut are left out."""
        wanted = tuple(path)
        if wanted not in self.known:
            self.known[wanted] = self._inside([self.names[name] for name in path if name in self.names])
        return self.known[wanted]

    def _inside(self, codes: list[int]) -> Intervals:
        found: Intervals | None = None
        for code in dict.fromkeys(codes):
            spans = union(self.placed.spans[self.place[self.first[code] : self.first[code + 1]]])
            found = spans if found is None else intersect(found, spans)
        return Intervals.empty() if found is None else found


def host_time(
    gaps: GapContext, time: TimeTable, judged: JudgedTime, slices: IntArray, bottleneck: str | None
) -> list[Intervals]:
    """The judged time of these slices that is charged to `bottleneck`, or to any: sets on the axis that share no time,
    each piece on the thread that launched next."""
    mine = np.zeros(len(gaps.slices.rows) + 1, dtype=np.bool_)  # the last one is of work
    mine[slices] = True
    found = []
    for part in stretches(len(time)):
        code, of = time.bottleneck[part], time.slice[part]
        at = np.flatnonzero((code == BOTTLENECK_NUMBER[bottleneck] if bottleneck else code >= 0) & taken(mine, of))
        lane = taken(gaps.lane, taken(gaps.slices.rows.gap, of[at]))
        inside, _ = within(Owned.of(time.spans[part][at[lane >= 0]], lane[lane >= 0]), judged.parts)
        found.append(union(gaps.axis.place(inside.owner, inside.spans)))
    return found
