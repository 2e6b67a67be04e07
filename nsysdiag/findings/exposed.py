"""Findings on busy time that is not compute: copies and communication that nothing hides.

If copies run all the time, the link to the host is the limit, and there is nothing left to overlap:

```
HtoD      [= copy 1 =][= copy 2 =][= copy 3 =]     always busy
kernels               [ k 1 ]     [ k 2 ]          wait for it, below
```"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import group_totals, longest
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, common_ns, contains, intersect, union
from nsysdiag.causes.cause import Advice
from nsysdiag.diagnosis.facts import FULL_LINK
from nsysdiag.events.collectives import KINDS, kind_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Evidence, EvidenceRow, Finding, Named
from nsysdiag.findings.rules import EXPOSED_COMM, EXPOSED_COPY, PAGING, FindingRule
from nsysdiag.findings.spot_facts import FindingContext
from nsysdiag.kernels.kernels import runs_in
from nsysdiag.kernels.kinds import SHOWN, NamedTime, collective_of, kinds_of
from nsysdiag.kernels.names import operation_names
from nsysdiag.memory.copies import (
    DIRECTIONS,
    HOST_DIRECTIONS,
    copy_rows,
    is_pageable,
    longest_kind,
    top_copies,
)
from nsysdiag.memory.facts import CopyRow, TopCopy
from nsysdiag.peaks import PCIE_BYTES_PER_SECOND
from nsysdiag.report import DeviceReport
from nsysdiag.time.table import TimeTable
from nsysdiag.typed import say
from nsysdiag.units import format_bytes, format_count, format_ns, format_rate, format_share, format_transfer

FULL = 0.9
"""Of the judged time: a direction that copies for longer has next to no time left in which more could be copied."""
SMALL = 1 << 20
"""Bytes: copies of less on average do not reach the rate of the link."""
PACKED = "Send compressed data and decode it on the GPU."
OLDEST = 3
"""The oldest PCIe generation of GPUs that are profiled."""
LARGER = "Join small copies into larger ones."
NAMES = {"HtoD": "Copies to the GPU", "DtoH": "Copies to the host"}


class FullLink(Struct, frozen=True):
    """One direction between host and GPU that is busy for `share` of the judged time. `rate` is that of its copies in
    bytes a second, `size` their mean size in bytes. `pageable`: most of that time is pageable memory."""

    direction: str
    share: float
    rate: float
    size: float
    pageable: bool

    @classmethod
    def of(cls, device: DeviceTimeline, judged: Intervals) -> FullLink | None:
        """The busiest direction inside a set of time, None if it has time left."""
        found = [each for name in HOST_DIRECTIONS if (each := _of(device, judged, name)) is not None]
        return max(found, key=lambda each: each.share, default=None)

    @property
    def sentence(self) -> str:
        """`Copies to the GPU run for 99.8% of the time, at 26.2 GB/s (16 lanes of PCIe 4 carry up to 31.5 GB/s)`."""
        return f"{NAMES[self.direction]} run for {format_share(self.share, 1)} of the time, at {self._rate}"

    def advice(self, faster: Sequence[str], fewer: Sequence[str]) -> str:
        """What to do about the rate and the bytes, with sentences on both; more overlap saves nothing."""
        packed = [PACKED] if self.direction == HOST_DIRECTIONS[0] else []
        larger = [LARGER] if self.size < SMALL else []
        return " ".join([f"{self.sentence}: more overlap saves nothing.", *faster, *fewer, *packed, *larger])

    @property
    def _rate(self) -> str:
        rate = format_rate(self.rate)
        if self.pageable:
            return f"{rate} with pageable memory"
        for number, most in sorted(PCIE_BYTES_PER_SECOND.items()):
            if number >= OLDEST and most >= self.rate:
                return f"{rate} (16 lanes of PCIe {number} carry up to {format_rate(most)})"
        return rate


def _of(device: DeviceTimeline, judged: Intervals, name: str) -> FullLink | None:
    operations = device.operations
    mine = np.flatnonzero(np.isin(operations.copy_kind, DIRECTIONS[name]) & device.running)
    spans = Intervals(operations.start[mine], operations.end[mine])
    busy, judged_ns = common_ns(union(spans), judged), judged.total()
    inside = (spans.end > judged.start[0]) & (spans.start < judged.end[-1]) if len(judged) else spans.start < 0
    if not judged_ns or busy < FULL * judged_ns or not inside.any():
        return None
    length, size = (spans.end - spans.start)[inside], operations.size[mine][inside]
    pageable = 2 * int(length[is_pageable(device)[mine][inside]].sum()) > int(length.sum())
    return FullLink(name, busy / judged_ns, float(size.sum()) / int(length.sum()) * 1e9, float(size.mean()), pageable)


MOST_EVIDENCE = 4
"""Kinds of kernels, copies or migrations that a finding names, those with most time. A round number: nothing depends on
it closely."""
DEVICE, PINNED = "device", "pinned_memory"
REDUCE = ("AllReduce", "ReduceScatter")
"""How gradients are exchanged, among others."""
DWARFS = 2
"""Copies that take more than this many times the compute are too many, not too early."""
SETS, PINNING, ON_DEVICE, BETWEEN_GPUS = "sets", "pinning", "on_device", "between_gpus"
"""Kinds of copies with advice of their own."""
SHORT = {
    SETS: "set less memory",
    ON_DEVICE: "copy less on the device",
    BETWEEN_GPUS: "copy less between the GPUs",
    PINNING: "pin the host memory and copy on a separate stream",
}
"""The short forms of this advice, which end a causal chain."""
BY_DIRECTION = {
    "HtoD": "Decode, expand or augment it on the GPU.",
    "DtoH": "Reduce or filter on the GPU before copying back.",
}
"""Of the copies between host and device that take most time."""


def exposed_findings(device: DeviceReport, context: FindingContext, work: TimeTable) -> list[Finding]:
    """Findings on exposed copies, exposed communication and paging. Each takes at least the smallest share of the
    judged time. Overlap hides at most the compute time."""
    judged, timeline = context.judged, context.gaps.device
    operations = timeline.operations
    copies = (operations.category == Category.MEMCPY) | (operations.category == Category.MEMSET)
    parts = (
        (EXPOSED_COPY, intersect(judged.parts, work.work_of("copies")), copies),
        (EXPOSED_COMM, intersect(judged.parts, work.work_of("communication")), timeline.communication),
        (PAGING, intersect(judged.parts, work.work_of("memory")), operations.migration),
    )
    least = max(context.thresholds.smallest * judged.ns, 1)
    return [
        _finding(device, context, rule, _Exposed.of(context, rule, time, mine))
        for rule, time, mine in parts
        if time.total() >= least
    ]


class _Exposed(Struct, frozen=True):
    """Time of one kind, `ns` of it, with the part that has a `name`: that of the operation with most of it.
    `largest` are the copies of one kind with most of it. `special` is the variant of the rule's advice for more than
    half of it: `gradients`, or one of SHORT."""

    ns: int
    name: Sentence | None
    name_ns: int
    rows: list[EvidenceRow]
    largest: TopCopy | None = None
    special: str = ""

    @classmethod
    def of(cls, context: FindingContext, rule: FindingRule, time: Intervals, mine: BoolArray) -> _Exposed:
        """The set `time`, in which operations `mine` run alone."""
        device, ns = context.gaps.device, time.total()
        inside = np.flatnonzero(mine & device.running & runs_in(device, context.judged.parts))
        rows = longest_operations(context, mine)
        if rule is EXPOSED_COPY and len(inside):
            chosen = longest_kind(device, inside, time)
            (largest,) = top_copies(device, _flags(device, chosen), 1)
            return cls(ns, None, _ran(device, chosen, time), rows, largest, _special(device, inside, time))
        code, names = operation_names(device, inside, context.gaps.strings)
        ran = {names[each]: _ran(device, inside[code == each], time) for each in distinct_values(code).tolist()}
        kinds = kinds_of(
            NamedTime(collective_of(each) if rule is EXPOSED_COMM else "", each, ran[each]) for each in sorted(ran)
        )
        if not kinds:
            return cls(ns, None, 0, rows)
        name = typed.kernel(kinds[0].longest, SHOWN)
        special = "gradients" if KINDS[kind_of(kinds[0].longest)] in REDUCE else ""
        said = say("{} ({})", kinds[0].kind, name) if kinds[0].kind else name
        return cls(ns, said, min(kinds[0].ns, ns), rows, special=special)

    @property
    def direction(self) -> str:
        """That of the copies with most of it, as `DtoH`; empty for anything else."""
        return self.largest.operation.split()[-1] if self.largest is not None else ""

    @property
    def mostly(self) -> bool:
        """Whether the part with a name is more than half of it."""
        return 2 * self.name_ns > self.ns


def _ran(device: DeviceTimeline, rows: IntArray, time: Intervals) -> int:
    operations = device.operations
    return common_ns(union(Intervals(operations.start[rows], operations.end[rows])), time)


def _flags(device: DeviceTimeline, rows: IntArray) -> BoolArray:
    flags = np.zeros(len(device.operations), dtype=np.bool_)
    flags[rows] = True
    return flags


def _finding(device: DeviceReport, context: FindingContext, rule: FindingRule, exposed: _Exposed) -> Finding:
    judged, ns, largest = context.judged, exposed.ns, exposed.largest
    link = FullLink.of(context.gaps.device, judged.parts) if rule is EXPOSED_COPY else None
    too_many = link is not None or (rule is EXPOSED_COPY and ns > DWARFS * judged.compute_ns)
    advice, fix = _advice(rule, exposed, context.frameworks, too_many=too_many)
    if link is not None and exposed.special != SETS:
        advice = _of_link(link, exposed.special, context.frameworks)
    what = typed.kernel(exposed.rows[0].name) if exposed.rows else None
    kind = _which(largest) if largest is not None else exposed.name if rule is EXPOSED_COMM else None
    doing = "move pages" if rule is PAGING else "run alone"
    running = say("{} and similar ones {} on {}", what, doing, device.key) if what else rule.meaning
    effect = "kernels wait" if rule is PAGING else "no kernel runs"
    name = _copied(largest) if largest is not None else exposed.name
    short = _which(largest) if largest is not None else ""
    named = [Named(text=name, share=round(judged.share(exposed.name_ns), 6), short=short)] if name else []
    said = _evidence(device, context, rule)
    return replace(
        rule.finding(device.key, judged.share(ns), context.thresholds),
        title=say("{}, mostly {}", rule.title, kind) if kind and exposed.mostly else rule.title,
        lost_ns=ns,
        lost_share=round(judged.share(ns), 6),
        # Overlap hides as much as there is compute; fewer bytes, of paging or of copies that dwarf it, save all of it.
        ceiling_ns=ns if too_many or rule is PAGING else min(ns, judged.compute_ns),
        evidence=[text for text, _ in said],
        measured=[fact for _, fact in said],
        advice=advice,
        call=what,
        chain=[running, f"{effect} for {format_ns(ns)}", fix],
        rows=exposed.rows,
        named=named,
        variant=FULL_LINK if link is not None else "",
        summary=link.sentence if link is not None else "",
    )


def _of_link(link: FullLink, special: str, frameworks: tuple[str, ...]) -> list[Sentence]:
    """Pinned memory first, if it is faster; then fewer bytes."""
    pinning = EXPOSED_COPY.words.advice_for(PINNING)
    faster = pinning.sentences(frameworks) if special == PINNING and link.pageable else ()
    return [link.advice(faster, _fewer_bytes(link.direction, frameworks))]


def _fewer_bytes(direction: str, frameworks: tuple[str, ...]) -> tuple[str, ...]:
    """How to copy fewer bytes in a direction."""
    fewer = EXPOSED_COPY.words.advice_for("fewer_bytes")
    return (*fewer.sentences(frameworks), *_by_direction(fewer, direction, frameworks))


def _by_direction(general: Advice, direction: str, frameworks: tuple[str, ...]) -> list[str]:
    """What more to do for copies in a direction; nothing if words of one framework for its own copies say it."""
    words = general.words(frameworks)
    known = direction in BY_DIRECTION and (words is None or words.source == PINNED)
    return [BY_DIRECTION[direction]] if known else []


def _copied(kind: TopCopy) -> str:
    """`8 × memcpy DtoH to pageable memory, 246 MB in the judged time, at 4.53 GB/s`."""
    rate = f", at {format_rate(kind.bytes_per_second)}" if kind.bytes_per_second else ""
    return f"{format_count(kind.count)} × {_which(kind)}, {format_transfer(kind.bytes)} in the judged time{rate}"


def _which(copies: CopyRow | TopCopy) -> str:
    """`memcpy HtoD from pageable`, as far as it is known; that an end is the device, the operation says."""
    ends = (("from", copies.src), ("to", copies.dst))
    return " ".join([copies.operation, *(f"{word} {kind}" for word, kind in ends if kind and kind != DEVICE)])


def mostly_pageable(context: FindingContext, work: TimeTable) -> bool:
    """Whether copies from or to pageable memory run for more than half of the time in which copies run alone."""
    device, time = context.gaps.device, intersect(context.judged.parts, work.work_of("copies"))
    return 2 * _ran(device, np.flatnonzero(is_pageable(device)), time) > time.total()


def longest_operations(context: FindingContext, mine: BoolArray) -> list[EvidenceRow]:
    """The longest operations of the kind inside the judged time; how much of each is exposed is not known."""
    device = context.gaps.device
    operations = device.operations
    length = operations.end - operations.start
    length[~(mine & device.running & contains(context.judged.parts, operations.start))] = -1
    rows = longest(length, operations.start, context.thresholds.rows).tolist()
    return [context.sightings.operation(row, int(length[row])) for row in rows if length[row] >= 0]


def _evidence(device: DeviceReport, context: FindingContext, rule: FindingRule) -> list[tuple[Sentence, Evidence]]:
    """The first few kinds of operations, as text and as data: most time first. Copies and kernels are those of the
    judged time, as all that is said of them is. Pages that move outside of it are what moves them again inside."""
    if rule is EXPOSED_COMM:
        return _collectives(context)
    if rule is PAGING:
        moved = device.unified_memory.rows if device.unified_memory else []
        return [
            (
                f"{row.direction}, {row.cause}: {format_count(row.count)} migrations, {format_bytes(row.bytes)}",
                Evidence("migration", f"{row.direction}, {row.cause}", row.count, row.total_ns),
            )
            for row in moved[:MOST_EVIDENCE]
        ]
    timeline = context.gaps.device
    return [
        (
            f"{_which(row)}: {format_count(row.count)}, {format_ns(row.total_ns)} in all",
            Evidence("copy", _which(row), row.count, row.total_ns),
        )
        for row in copy_rows(timeline, timeline.running & runs_in(timeline, context.judged.parts))[:MOST_EVIDENCE]
    ]


def _collectives(context: FindingContext) -> list[tuple[Sentence, Evidence]]:
    """The same of kernels of communication, by the names of their functions."""
    device, strings = context.gaps.device, context.gaps.strings
    operations = device.operations
    rows = np.flatnonzero(device.communication & device.running & runs_in(device, context.judged.parts))
    called, name = distinct(operations.short_name[rows])
    of_each = group_totals(name, operations.end[rows] - operations.start[rows])
    names = [typed.kernel(each) for each in strings.texts(called[of_each.code[:MOST_EVIDENCE]])]
    kinds = zip(names, of_each.count.tolist(), of_each.total.tolist(), strict=False)
    return [
        (
            say("{}: {} kernels, {} in all", name, format_count(count), format_ns(total)),
            Evidence("kernel", name, count, total),
        )
        for name, count, total in kinds
    ]


def _advice(
    rule: FindingRule, exposed: _Exposed, frameworks: tuple[str, ...], *, too_many: bool
) -> tuple[list[Sentence], str]:
    """What to do, and its short form: first the advice for copies of the `special` kind, which is the smaller change.
    Copies that are `too_many` dwarf compute: then fewer bytes help, and overlap does not."""
    special = rule.words.advice_for(exposed.special)
    first, fix = special.sentences(frameworks), SHORT.get(exposed.special, rule.fix)
    if exposed.special in (ON_DEVICE, BETWEEN_GPUS) or (too_many and exposed.special == SETS):
        return [*first], fix
    if too_many:
        fewer = rule.words.advice_for("fewer_bytes").fix(frameworks) or "copy fewer bytes"
        text = " ".join([*first, *_fewer_bytes(exposed.direction, frameworks)])
        return [text], f"pin the host memory; {fewer}" if first else fewer
    general: list[Sentence] = [*first, *rule.advice.sentences(frameworks)]
    if rule is EXPOSED_COPY:
        general += _by_direction(rule.advice, exposed.direction, frameworks)
    return general, (special if exposed.special else rule.advice).fix(frameworks) or fix


def _special(device: DeviceTimeline, rows: IntArray, time: Intervals) -> str:
    """The kind of copies, one of SHORT, that run alone for more than half of `time`; empty for none."""
    sets, pageable = device.operations.category[rows] == Category.MEMSET, is_pageable(device)[rows]
    inside, between = (np.isin(device.operations.copy_kind[rows], DIRECTIONS[each]) for each in ("DtoD", "PtoP"))
    kinds = ((SETS, sets), (ON_DEVICE, inside), (BETWEEN_GPUS, between), (PINNING, pageable & ~(inside | between)))
    return next((kind for kind, mine in kinds if 2 * _ran(device, rows[mine], time) > time.total()), "")
