"""Findings about the same problem: joined if their times add up. Otherwise the lesser names the finding that it is a
part of, and has no saving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.causes import BLOCKING_COPY, CAUSES, IN_MPI, LAUNCH_LATENCY, SYNCHRONIZATION, UNIFIED_MEMORY
from nsysdiag.causes.cause import Hint
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import COUNTED_BEFORE, KERNELS
from nsysdiag.diagnosis.focus import window_ns
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding, Joined, Named
from nsysdiag.findings.rules import (
    EMPTY_ITERATIONS,
    EXPOSED_COMM,
    EXPOSED_COPY,
    LATE_RANK,
    OTHER_GPU,
    PAGING,
    SINGLE_PRECISION,
    SLOW_ITERATIONS,
    UNFUSED,
    severity,
    wait_id,
)
from nsysdiag.findings.rules import KERNELS as KERNEL_TIME
from nsysdiag.kernels.limits import InOrder
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_ns, format_share

# How much of the judged time a finding may save, and why that differs from its share of the time.

OTHER_WORK = (LATE_RANK.id, SLOW_ITERATIONS.id, EMPTY_ITERATIONS.id)
"""Causes whose fix may change how much each GPU computes."""
HIDDEN = (EXPOSED_COPY.id, EXPOSED_COMM.id, *(each.id for each in CAUSES.values() if each.overlapped))
"""Causes whose fix is to run kernels at the same time."""
WAITS = (SYNCHRONIZATION, BLOCKING_COPY)
OF_ONE_THREAD = (
    EXPOSED_COPY.id,
    PAGING.id,
    *(each.id for each in CAUSES.values() if "CUPTI_ACTIVITY_KIND_RUNTIME" in each.tables and each.id not in WAITS),
)
"""Causes of which nothing happens but in the threads that call CUDA, and on devices; but no waits, which may be for
kernels that have no rows."""
OF_DEVICES = (LAUNCH_LATENCY, *(each.id for each in CAUSES.values() if each.side in ("gap", "device")))
"""Causes of idle time for which threads may wait in calls of CUDA, too, as for kernels that have no rows."""
BEFORE_EACH = tuple(each.id for each in CAUSES.values() if each.before_each)
"""Causes that take time before each operation of a stream. With one stream of kernels and one thread, an operation is
sooner by no more than such time before it. Copies may hide more. A kernel waits for the one before it, and the thread
for no more than kernels."""
STARTUP = "startup"
ABOUT = 0.01
"""Shares closer than that are the same here: a prediction is not exact."""
EXPLAINED = 0.0025
"""A difference of shares that a reader sees."""
TOO_SHORT = "kernels hide {} or more"
"""If bounds of a replay reach above the time of kernels: peers may be sooner, too."""
LEFT = "at most all that kernels leave"
OWN = "at most its time and that of copies"
BESIDE = "at most its time and that of the GPU's work: both may run at once"
IN_CALLS = "at most all time of copies, and of calls that copy and wait for kernels"
IN_KERNELS = "at most all time in which kernels may wait for pages"
MORE_BY_REPLAY = "what waits for it gets shorter, too"


class Judged(Struct, frozen=True):
    """The judged time of one device: `window_ns` of its window, `account_ns` in its account, which may begin before
    that, `compute_ns` of it in its kernels. `in_order_ns` of that can only run one after the other, None for all.
    `busy_ns` is all that it works, or is idle for a reason of its own. For `blocked_ns` it is idle while calls that
    copy hold a thread, for `met_ns` while threads may wait in MPI. `alone`: one thread calls CUDA. For `beside_ns` it
    copies or communicates and computes nothing. `touched` is what a fix can take away, by the cause of the finding. Of
    copies: they run, or calls that copy hold a thread. Of pages: they move, kernels wait for them, or the device idles
    between them."""

    window_ns: int
    account_ns: int
    compute_ns: int = 0
    in_order_ns: int | None = None
    busy_ns: int = 0
    blocked_ns: int = 0
    met_ns: int = 0
    alone: bool = False
    beside_ns: int = 0
    touched: dict[str, int] = {}

    @classmethod
    def of(cls, device: PhaseDevice, in_order: InOrder) -> Judged:
        """That of what a device did; paging inside kernels is not compute."""
        compute = min(device.compute_ns, sum(device.account.get(name, 0) for name in KERNELS))
        busy = device.compute_ns + device.exposed_comm_ns + device.exposed_copy_ns
        busy += sum(ns for cause, ns in device.ledger.items() if cause in OF_DEVICES)
        paged = None if in_order.paging_ns is None else in_order.paging_ns + device.ledger.get(UNIFIED_MEMORY, 0)
        touched = {EXPOSED_COPY.id: in_order.copying_ns, PAGING.id: paged}
        return cls(
            window_ns(device),
            sum(device.account.values()),
            compute,
            in_order.ns,
            busy,
            device.ledger.get(BLOCKING_COPY, 0),
            max(device.ledger.get(IN_MPI, 0) - in_order.sending_ns, 0),
            in_order.one_thread,
            device.exposed_comm_ns + device.exposed_copy_ns,
            {cause: ns for cause, ns in touched.items() if ns is not None},
        )

    @property
    def one_stream(self) -> bool:
        """Whether all of its kernels can only run one after the other."""
        return self.in_order_ns is None or self.in_order_ns >= self.compute_ns

    @property
    def kept_share(self) -> float:
        """The share of kernels that no fix of something else makes shorter."""
        kept = self.compute_ns if self.in_order_ns is None else min(self.in_order_ns, self.compute_ns)
        return kept / self.account_ns


class Bound(Struct, frozen=True):
    """The largest share of the judged time that can be saved: what the device that computes most, `busiest`, does not
    compute. None if there is no such bound."""

    share: float = 1.0
    busiest: str | None = None


def bound_of(finding: Finding, judged: dict[str, Judged]) -> Bound:
    """The job is no shorter than the kernels of any one of its GPUs, unless a fix changes these."""
    if finding.bottleneck in KERNELS or finding.cause in OTHER_WORK:
        return Bound()
    compute = {key: each.compute_ns / each.account_ns for key, each in judged.items() if each.account_ns}
    busiest = max(sorted(compute), key=lambda key: compute[key])
    return Bound(1 - compute[busiest], busiest)


def most_saved(finding: Finding, judged: dict[str, Judged]) -> tuple[float, str]:
    """The share that a finding saves at most without a replay, and why it is no less: all that kernels of one stream
    leave. Calls of CUDA in one thread save no more than the idle time of the finding and the time of the device's work.
    What ends last waited at any moment for one thing; while the device was idle that was what the idle time is charged
    to. Calls of MPI may end sooner, too.

    ```
    thread  [launch][cudaMemcpy .......][host code ..][launch]      without the copy all is sooner by the time of its
    gpu             [==kernel==)[copy ==)                           call at most: for the rest of it the GPU works
    ```
    """
    bounds = [(1 - max(each.kept_share for each in judged.values() if each.account_ns), LEFT)]
    copies, (device, *others) = finding.cause == EXPOSED_COPY.id, judged.values()
    if not others and device.alone and device.one_stream and finding.cause in BEFORE_EACH:
        most = finding.lost_ns + device.beside_ns + device.met_ns
        bounds.append((most / device.account_ns, OWN))
    if not others and device.alone and (finding.cause in OF_ONE_THREAD or finding.bottleneck == STARTUP):
        idle = device.blocked_ns if copies else finding.lost_ns
        bounds.append(((idle + device.busy_ns + device.met_ns) / device.account_ns, BESIDE))
    return min(bounds)


def touched_share(finding: Finding, judged: dict[str, Judged]) -> tuple[float, str]:
    """The share of the judged time that a fix of copies, or of migrations, can take away on all devices. Waits in MPI
    are part of it, as for ranks that do the same; 1 for other findings."""
    known = [each.touched[finding.cause] for each in judged.values() if finding.cause in each.touched]
    if not known:
        return 1.0, LEFT
    met = max(each.met_ns for each in judged.values())
    share = (sum(known) + met) / min(each.account_ns for each in judged.values() if each.account_ns)
    why = IN_KERNELS if finding.cause == PAGING.id else IN_CALLS
    return min(share, 1.0), f"{why}; ranks behind them may be sooner, too" if met else why


class Note(NamedTuple):
    """Why a finding saves more or less than it takes; `counted_before` is as in Finding."""

    text: Sentence
    counted_before: bool = False


def note_of(finding: Finding, own: float, share: float, saved: float, bound: Bound) -> Note:
    """Why the share `saved` differs from the `share` of the job's time that a finding takes: `finding` is that of the
    device that saves most, and takes the share `own` of its time. Empty if both are about the same, or nothing is
    saved."""
    parts: list[Sentence] = []
    late, more = finding.cause == LATE_RANK.id, saved - share > EXPLAINED and saved - own > EXPLAINED / 2
    if more:
        elsewhere = "to what made others late" if late else COUNTED_BEFORE
        parts.append(f"saving includes {format_share(saved - own, 1)} counted {elsewhere}")
    if saved - share > EXPLAINED and own - share > EXPLAINED / 2:
        parts.append(say("saving of {}, share of all GPUs", typed.rank(finding.device)))
    if saved and own - saved > EXPLAINED and bound.busiest and saved > bound.share - EXPLAINED:
        parts.append(
            say("{} computes for {} of the time anyway", typed.rank(bound.busiest), format_share(1 - bound.share, 1))
        )
    return Note(joined("; ", parts), more and not late)


def replayed_note(finding: Finding, saved: float) -> Note:
    """Why a finding saves the share `saved` by replay, if that is more than its own: time is charged to waits before
    it, or others wait for it."""
    if saved - finding.share <= EXPLAINED:
        return Note("")
    counted = 0.0 if finding.cause == LATE_RANK.id else min(saved, finding.lost_share) - finding.share
    if counted <= EXPLAINED:
        return Note(MORE_BY_REPLAY)
    also = f"; {MORE_BY_REPLAY}" if saved - finding.lost_share > EXPLAINED else ""
    return Note(f"saving includes {format_share(counted, 1)} counted {COUNTED_BEFORE}{also}", counted_before=True)


def limited(finding: Finding, judged: Mapping[str, Judged]) -> Finding:
    """With a note if it saves less than its share because kernels do not take long enough to hide it."""
    if finding.cause not in HIDDEN or finding.saves is None or finding.note or finding.saves.of_ns == 0:
        return finding
    its = [judged[key] for key in finding.devices if key in judged and judged[key].account_ns]
    kernels = [each.compute_ns / each.account_ns for each in its]
    limit = next((share for share in kernels if abs(finding.saves.share - share) < ABOUT), None)
    if limit is None or finding.share - finding.saves.most <= ABOUT:
        return finding
    hidden = finding.saves.most - limit <= EXPLAINED
    return replace(
        finding,
        note=f"kernels can hide only {format_share(limit, 1)}" if hidden else TOO_SHORT.format(format_share(limit, 1)),
    )


OF_KIND = {UNFUSED.id: "Elementwise kernels", SINGLE_PRECISION.id: "Matrix products"}
OPERATORS_TITLES = {
    cause.id: f"{cause.title}: {kind.title}"
    for cause in CAUSES.values()
    for kind in cause.variants
    if kind.hint == Hint.IN_OPERATORS
}
"""By cause the title of a host that issues operators one by one, wherever that is."""
TAKE_TURNS = "GPUs wait for each other's kernels"
REST = "-rest"
"""How ids of findings end that are on all places of a cause but the large ones."""
Together = Callable[[Iterable[int]], int]
"""Two figures combined: their sum, or the larger one."""


def each_problem_once(found: list[Finding], limits: FindingThresholds) -> list[Finding]:
    """The findings of a job. A `part_of` points to the finding that may be about the same problem; it stays if that
    one promises the saving of both."""
    for are_one, together in ((_are_operators, sum), (_are_one_fix, sum), (_take_turns, max), (_is_late_by, max)):
        found = _joined(found, are_one, together, limits)
    return _marked(found, limits)


def each_advice_once(found: list[Finding]) -> list[Finding]:
    """The findings in the same order. Advice for kernels of a kind is on their own finding if there is one; the finding
    on kernel time refers to it."""
    see = {
        text: say("{}: see “{}”.", OF_KIND[each.cause], each.title)
        for each in found
        if each.cause in OF_KIND
        for text in each.advice
    }
    return [
        replace(each, advice=list(dict.fromkeys(see.get(text, text) for text in each.advice)))
        if each.cause == KERNEL_TIME.id
        else each
        for each in found
    ]


def _are_one_fix(one: Finding, other: Finding) -> bool:
    """A synchronization and a neighbouring blocking copy, for example: their times are disjoint, and one advice is for
    both."""
    return bool(one.nvtx and one.advice and LATE_RANK.id not in (one.cause, other.cause)) and all(
        getattr(one, field) == getattr(other, field) for field in ("nvtx", "advice", "bottleneck", "devices")
    )


def _are_operators(one: Finding, other: Finding) -> bool:
    """A host that issues operators one by one, at several places: what makes them fewer does so for the program."""
    return one.kind == "operators" and all(
        getattr(one, field) == getattr(other, field) for field in ("kind", "cause", "bottleneck", "devices", "advice")
    )


def _is_late_by(late: Finding, root: Finding) -> bool:
    """Waits for a device, and what this device does meanwhile: one saving, times of different devices."""
    ours = late.cause == LATE_RANK.id and late.part_of == root.id and late.bottleneck == root.bottleneck
    return ours and set(late.devices).isdisjoint(root.devices)


def waits_for_kernels(finding: Finding) -> bool:
    """Whether it is about a GPU that waits for kernels of another one."""
    return finding.cause == OTHER_GPU.id and finding.bottleneck in KERNELS


def _take_turns(one: Finding, other: Finding) -> bool:
    """Two GPUs of which each waits for the kernels of the other: working at the same time saves both waits."""
    waits = waits_for_kernels(one) and waits_for_kernels(other)
    return waits and all(a.id == wait_id(a.bottleneck, b.device) for a, b in ((one, other), (other, one)))


def _joined(
    found: list[Finding], are_one: Callable[[Finding, Finding], bool], together: Together, limits: FindingThresholds
) -> list[Finding]:
    left, done = sorted(found, key=lambda each: (each.cause != LATE_RANK.id, -each.share, each.id)), []
    while left:
        first = left.pop(0)
        for other in [each for each in left if are_one(first, each)]:
            left.remove(other)
            first = _of_both(first, other, together, limits)
        done.append(first)
    return done


def _of_both(first: Finding, other: Finding, together: Together, limits: FindingThresholds) -> Finding:
    share = min(first.share + other.share, 1.0)
    promised = [each.saves for each in (first, other) if each.saves]
    ns = min(together(each.ns for each in promised), promised[0].of_ns) if promised else 0
    saves = replace(promised[0], ns=ns, high_ns=ns) if promised else None
    saved = saves.share if saves else 0.0
    operators = _are_operators(first, other)
    return replace(
        first,
        title=_title_of_both(first, other),
        nvtx=_around(first.nvtx, other.nvtx) if operators else first.nvtx,
        named=_named_in_both(first, other) if operators else first.named,
        devices=sorted({*first.devices, *other.devices}),
        lost_ns=first.lost_ns + other.lost_ns,
        lost_share=min(first.lost_share + other.lost_share, 1.0),
        ceiling_ns=together([first.ceiling_ns, other.ceiling_ns]),
        gaps=first.gaps + other.gaps,
        evidence=_of_largest(first) if operators and not first.joined else first.evidence,
        chain=_chain_of_both(first, other, all_gaps=operators),
        confidence=min(first.confidence, other.confidence),
        share=round(share, 6),
        saves=saves,
        severity=severity(saved or share, limits),
        note=first.note if saved - share > EXPLAINED else "",
        counted_before=first.counted_before and saved - share > EXPLAINED,
        part_of=None if first.part_of == other.id else first.part_of,
        summary=TAKE_TURNS if waits_for_kernels(first) else first.summary,
        joined=[*first.joined, Joined(cause=other.cause, variant=other.variant, nvtx=other.nvtx), *other.joined],
    )


def _title_of_both(first: Finding, other: Finding) -> Sentence:
    if waits_for_kernels(first):
        return TAKE_TURNS
    if _are_operators(first, other):
        return OPERATORS_TITLES[first.cause]
    rest = next((each for each in (first, other) if each.id.endswith(REST)), None)
    if rest is not None and first.cause == other.cause:  # all but the places that have findings
        return rest.title
    return say("{} ({})", first.title, other.title)


def _of_largest(first: Finding) -> list[Sentence]:
    """Its evidence as that of one place of several."""
    return [say("at the place with most time, {}", each) if not at else each for at, each in enumerate(first.evidence)]


def _chain_of_both(first: Finding, other: Finding, *, all_gaps: bool) -> list[Sentence]:
    """That of the first one, which has most time, with `all_gaps` of both, and the fix."""
    chain = [*first.chain[:-1], *other.chain[-1:]]
    if all_gaps and len(chain) > 2:
        lost, gaps = first.lost_ns + other.lost_ns, first.gaps + other.gaps
        chain[1] = f"the queue is empty for {format_ns(lost)} in {format_count(gaps)} gaps at all places"
    return chain


def _named_in_both(first: Finding, other: Finding) -> list[Named]:
    """The functions and places of both, each with its time in both. What all of it is in says less than what parts of
    it are in.

    ```
    step 74%   moe 22%   linear 19%   the rest 23%, in step          moe 22%, linear 19%
    ```
    """
    around = _around(first.nvtx, other.nvtx)
    common = say("in {}", typed.nvtx(around[-1])) if around else ""
    every = [*first.named, *other.named]
    shares = {text: sum(each.share for each in every if each.text == text) for text in {each.text for each in every}}
    parts = {each.text: replace(each, share=round(min(shares[each.text], 1.0), 6)) for each in every}
    inner = [each for text, each in parts.items() if text != common]
    return inner or list(parts.values())


def _around(one: list[str], other: list[str]) -> list[str]:
    """The ranges that two places have in common."""
    return [name for name, same in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))]


def _marked(found: list[Finding], limits: FindingThresholds) -> list[Finding]:
    """Those that point to one that promises a saving become a part of it. The late device for which others wait longer
    than all of them do what made it late is the problem itself."""
    whole = {each.id: each for each in found}
    greater: dict[str, Finding] = {}
    for each in found:
        other = whole.get(each.part_of or "")
        if other is None or not (each.saves and other.saves):
            continue
        leads = each.cause == LATE_RANK.id and each.share > other.share
        greater |= {other.id: each} if leads else {each.id: other}
    return [_part(each, greater, limits) for each in found]


def _part(finding: Finding, greater: dict[str, Finding], limits: FindingThresholds) -> Finding:
    if finding.id not in greater:
        return replace(finding, part_of=None)
    of = greater[finding.id]
    of = greater.get(of.id, of)
    return replace(
        finding,
        part_of=of.id,
        note=say("part of: {}", of.title),
        counted_before=False,
        saves=None,
        severity=severity(finding.share, limits, unresolved=finding.bottleneck == UNKNOWN),
    )
