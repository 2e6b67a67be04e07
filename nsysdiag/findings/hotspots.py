"""Where a cause costs most: its largest places, the gaps there, and the host code that samples saw in them.

Also what a thread did behind a wait, in idle time that is charged to the wait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.account.bottlenecks import WAITING_FOR_A_SYNC
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import group_totals, longest, median_of
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.causes import CAUSES
from nsysdiag.causes.thread_states import BY_FUNCTIONS
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events.identity import joint, pid_of, tid_of
from nsysdiag.events.samples import LONE_PERIOD_NS, Samples
from nsysdiag.findings.attribution import Shares
from nsysdiag.findings.facts import Finding
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys
from nsysdiag.ledger.ledger import SliceRows
from nsysdiag.phases.facts import BehindWait, Place
from nsysdiag.report import Thread
from nsysdiag.stacks.samples import SampledCode, python_code, sampled_code


class Hotspot(Struct, frozen=True):
    """A hotspot: part of one cause's time that is charged to the bottleneck `bottleneck`. `rows` are its rows in the
    attribution; `kind` and `path` are None for several places. `rest` marks the time of a cause outside its large
    places.

    `lost_ns` is its time in the ledger. `made_ns` is idle time after its calls, which they caused by emptying the
    queue; the ledger gives that another cause. `ceiling_ns` is both. `counted_ns` is the part of it that the account
    charges to the bottleneck, without idle time that a wait before it caused. `behind`: that wait caused so much of its
    time that the rest alone is not a hotspot."""

    cause: str
    bottleneck: str
    kind: int | None
    path: int | None
    rest: bool
    rows: IntArray
    lost_ns: int
    made_ns: int
    ceiling_ns: int
    counted_ns: int
    behind: bool = False

    @property
    def mostly_made(self) -> bool:
        """Whether it is mostly idle time after its calls, under another cause in the ledger."""
        return self.made_ns > self.lost_ns


def spots_of(shares: Shares, window_ns: int, thresholds: FindingThresholds) -> list[Hotspot]:
    """The hotspots of a device from the smallest share of the window on, largest possible saving first. Time of a cause
    that was caused by a wait is charged to the wait; what the thread did then is a hotspot all the same, in the end.

    A cause is divided only if two or more of its places are large; unexplained time is never divided:

    ```
    sync   forward 9%    loss 4%    a, b, c 0.5% each     ->  forward, loss, the rest
    sync   forward 9%               a, b, c 0.5% each     ->  one
    ```
    """
    least = max(thresholds.smallest * window_ns, 1)
    found: list[Hotspot] = []
    key = shares.cause.astype(np.int16) * len(BOTTLENECK_IDS) + shares.bottleneck
    for each in distinct_values(key).tolist():
        cause, bottleneck = divmod(each, len(BOTTLENECK_IDS))
        rows = np.flatnonzero(key == each).astype(np.int32)
        whole = spot_of(shares, (list(CAUSES)[cause], BOTTLENECK_IDS[bottleneck]), rows)
        if whole.ceiling_ns < least:
            continue
        rule = CAUSES[whole.cause]
        divisible = not (rule.unresolved or rule.overlapped)
        found += _divided(shares, whole, least, thresholds.places) if divisible else [whole]
    shown = [spot if max(spot.counted_ns, spot.made_ns) >= least else replace(spot, behind=True) for spot in found]
    notable = [spot.bottleneck in WAITING_FOR_A_SYNC and spot.lost_ns >= least for spot in shown]
    shown = [spot for spot, large in zip(shown, notable, strict=True) if large or not spot.behind]
    return sorted(shown, key=lambda spot: (spot.behind, -spot.ceiling_ns, -spot.lost_ns, spot.cause))


def spot_of(
    shares: Shares,
    cause: tuple[str, str],
    rows: IntArray,
    *,
    kind: int | None = None,
    path: int | None = None,
    rest: bool = False,
) -> Hotspot:
    """The hotspot of these `rows` of the attribution."""
    ns = taken(shares.lost, rows)
    lost, ns = int(ns.sum()), ns + taken(shares.made, rows)
    ceiling, counted = int(ns.sum()), int(ns.sum(where=taken(shares.counts, rows)))
    return Hotspot(*cause, kind, path, rest, rows, lost, ceiling - lost, ceiling, counted)


def _divided(shares: Shares, whole: Hotspot, least: float, most: int) -> list[Hotspot]:
    rows = whole.rows
    width = int((path := taken(shares.path, rows)).max()) + 1
    present, code = distinct(joint(taken(shares.kind, rows), path, width))
    lost, made = (_by_place(code, len(present), taken(side, rows)) for side in (shares.lost, shares.made))
    ceiling = lost + made
    large = np.flatnonzero(ceiling >= least)
    if len(large) < 2:
        return [whole]
    large = large[np.lexsort((large, -ceiling[large], -lost[large]))][:most]
    places = [
        spot_of(
            shares,
            (whole.cause, whole.bottleneck),
            rows[code == at],
            kind=int(present[at]) // width,
            path=int(present[at]) % width,
        )
        for at in large.tolist()
    ]
    rest = spot_of(shares, (whole.cause, whole.bottleneck), rows[~np.isin(code, large)], rest=True)
    return [*places, rest] if rest.ceiling_ns >= least else places


def _by_place(code: IntArray, places: int, ns: IntArray) -> IntArray:
    total = np.zeros(places, dtype=np.int64)
    np.add.at(total, code, ns)
    return total


MANY, SHORT_NS = 20, 500_000
"""An operator of PyTorch takes 5 to 50 µs of the host, up to ten times that while its Python functions are recorded."""


class SpotGaps(Struct, frozen=True):
    """The time of a hotspot by gap: `gap` are its gaps in order of time, `ns` what each contributes, never 0. If its
    calls caused more idle time than they lose themselves, it is that time."""

    gap: IntArray
    ns: IntArray

    @classmethod
    def of(cls, shares: Shares, spot: Hotspot) -> SpotGaps:
        """The gaps of a hotspot with these rows."""
        return cls._of_each(shares, shares.made if spot.mostly_made else shares.lost)

    def charged(self, shares: Shares, spot: Hotspot) -> SpotGaps:
        """The same of what is charged to it, if that is mostly idle time that its calls caused: a part of such time is
        charged to something else."""
        if not spot.mostly_made:
            return self
        found = self._of_each(shares, np.where(shares.counts, shares.made, 0))
        return found if len(found.gap) else self

    @classmethod
    def _of_each(cls, shares: Shares, ns: IntArray) -> SpotGaps:
        total = _by_place(shares.gap, int(shares.gap.max()) + 1, ns)
        gap = np.flatnonzero(total)
        return cls(gap, total[gap])

    @property
    def longest(self) -> int:
        """The gap that contributes most, of equal ones the first."""
        return int(self.gap[np.argmax(self.ns)])

    @property
    def between_operators(self) -> bool:
        """Whether these are many short gaps, as between the kernels of operators that run one by one."""
        return len(self.ns) >= MANY and self.median_ns < SHORT_NS

    @property
    def median_ns(self) -> int:
        """The lower of the two middle ones if their number is even."""
        return median_of(self.ns)

    def leading(self, code: IntArray) -> tuple[int, float]:
        """Given a code for each gap of the device: the code with most time here, and its share."""
        groups = group_totals(code[self.gap], self.ns)
        return int(groups.code[0]), int(groups.total[0]) / int(self.ns.sum())

    def typical(self, keys: GapGroupKeys) -> int:
        """The first gap of the signature with most of the time."""
        leading, _ = self.leading(keys.code)
        return int(self.gap[np.argmax(keys.code[self.gap] == leading)])

    def threads(self, context: GapContext) -> tuple[Thread | None, int]:
        """The launching thread with most of the time (None: unknown), and the number of others."""
        known = context.lane[self.gap] >= 0
        groups = group_totals(context.lane[self.gap][known], self.ns[known])
        if len(groups.code) == 0:
            return None, 0
        identity = int(context.axis.threads[int(groups.code[0])])
        name = context.thread_names.get(identity)
        return Thread(pid=pid_of(identity), tid=tid_of(identity), name=name), len(groups.code) - 1


def path_of(shares: Shares, spot: Hotspot, paths: list[list[str]]) -> list[str]:
    """The NVTX path of a hotspot with these rows: its own, that of most of its time, or the common beginning of all its
    paths."""
    if spot.path is not None:
        return paths[spot.path]
    groups = group_totals(shares.path, shares.made if spot.mostly_made else shares.lost)
    if 2 * int(groups.total[0]) > int(groups.total.sum()):
        return paths[int(groups.code[0])]
    return _common_beginning([paths[code] for code in groups.code[groups.total > 0].tolist()])


def _common_beginning(paths: list[list[str]]) -> list[str]:
    common: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return common


MOST_SAMPLES, MOST_PYTHON = 5_000, 500
"""Slices of a hotspot that are looked at, those with most time, and CPU samples that are read of it; MOST_PYTHON:
Python stacks, each decoded from a payload of its own. More take longer to read; with fewer, shares of functions are
less certain."""
MAY_BE_LOST = 2
"""Samples come unevenly, and some are lost: half of those expected in a stretch stand for all of it."""


def code_in(context: GapContext, slices: IntArray) -> tuple[SampledCode, float]:
    """What the CPU samples inside the longest of `slices` were in, and the share of that time that they stand for.
    If a slice is a wait that was followed to another thread, the samples are those of that thread: they stand for no
    time of the launching one, nor its samples for theirs."""
    rows, total = _longest(context, slices)
    followed, others, period = context.wake_chains.samples(Intervals(rows.start, rows.end))
    own = rows.take(~followed & (context.lane[rows.gap] >= 0))
    spans = context.axis.place(context.lane[own.gap], Intervals(own.start, own.end))
    mine = context.samples.inside(spans)
    code = sampled_code(np.concatenate((mine, others)), context.host_side.chains, MOST_SAMPLES)
    period = max(period, context.samples.period_ns if len(mine) else 0)
    of_others = int((rows.end - rows.start)[followed].sum())
    sampled = of_others * bool(len(others)) + (total - of_others) * bool(len(mine))
    known = min(_standing_for(code, period, total), sampled / max(total, 1))
    return (code, known) if code.count else _recorded(context, slices)


def python_in(context: GapContext, slices: IntArray) -> tuple[SampledCode, float]:
    """The same by samples of Python's own stacks, of the launching threads alone."""
    python = context.host_side.python
    if not len(python.marks):
        return SampledCode(0, {}, {}, python=True), 0.0
    rows, total = _longest(context, slices)
    rows = rows.take(context.lane[rows.gap] >= 0)
    position, mark = python.on_axis(context.axis)
    period = int(np.median(np.diff(position))) if len(position) > 1 else LONE_PERIOD_NS
    spans = context.axis.place(context.lane[rows.gap], Intervals(rows.start, rows.end))
    mine = Samples(position, mark, Intervals.empty()).inside(spans)
    code = python_code(mine, python, MOST_PYTHON)
    return code, _standing_for(code, period, total)


def _longest(context: GapContext, slices: IntArray) -> tuple[SliceRows, int]:
    """The longest of `slices`, at most MOST_SAMPLES, and how many ns they take."""
    ns = context.slices.lengths(slices)
    chosen = longest(ns, np.arange(len(ns)), MOST_SAMPLES)
    return context.slices.rows.take(slices[chosen]), int(ns[chosen].sum())


def _standing_for(code: SampledCode, period_ns: int, total_ns: int) -> float:
    """The share of a time that its samples stand for."""
    return min(MAY_BE_LOST * code.count * period_ns / max(total_ns, 1), 1.0)


def _recorded(context: GapContext, slices: IntArray) -> tuple[SampledCode, float]:
    """The same by the functions that the PyTorch profiler recorded."""
    known = context.slices
    by_functions = np.array([label is BY_FUNCTIONS for label in known.labels] + [False])
    mine = slices[by_functions[known.rows.label[slices]]]
    groups = group_totals(known.rows.text[mine], known.lengths(mine))
    pairs = zip(groups.code.tolist(), groups.total.tolist(), strict=True)
    functions = {typed.plain(known.texts[code]): ns for code, ns in pairs}
    total, whole = sum(functions.values()), int(known.lengths(slices).sum())
    return SampledCode(total, functions, {}, recorded=True), total / max(whole, 1)


# What a thread did behind a wait, in idle time that is charged to the wait: by the findings on both.

NONE = -1
"""The hotspot of a share that none holds: a mark, as hotspots are numbered from 0."""


def place_of(finding: Finding) -> Place:
    """Where it is, and what about."""
    return (finding.cause, finding.variant, tuple(finding.nvtx))


def behind_waits(shares: Shares, spots: Sequence[Hotspot], found: Sequence[Finding]) -> list[BehindWait]:
    """All of one device; `found` are the findings of the `spots`, whose rows are in `shares`.

    ```
    thread   [sync)[host code        ][launch]
    charged   sync  sync      | host          the first part: wait = that of sync, other = that of host code
    ```
    """
    spot = np.full(len(shares), NONE, dtype=np.int32)
    for number, each in enumerate(spots):
        spot[each.rows] = number
    made = np.flatnonzero((shares.wait >= 0) & (spot >= 0) & shares.counts)
    size = int(max(shares.slice.max(initial=0), shares.behind.max(initial=0))) + 1
    of_slice, bottleneck = np.full(size, NONE, dtype=np.int32), np.zeros(size, dtype=np.int8)
    explained = np.flatnonzero(shares.slice >= 0)
    of_slice[shares.slice[explained]] = spot[explained]
    bottleneck[shares.slice[explained]] = shares.bottleneck[explained]
    behind, width = shares.behind[made], len(spots) + 1
    pairs = joint(joint(spot[made], of_slice[behind] + 1, width), bottleneck[behind], len(BOTTLENECK_IDS))
    groups = group_totals(pairs, shares.made[made])
    rows = []
    for code, ns in zip(groups.code.tolist(), groups.total.tolist(), strict=True):
        rest, bottleneck = divmod(code, len(BOTTLENECK_IDS))
        wait, other = divmod(rest, width)
        at = place_of(found[other - 1]) if other else None
        rows.append(BehindWait(place_of(found[wait]), BOTTLENECK_IDS[bottleneck], at, ns))
    return rows
