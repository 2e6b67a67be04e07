"""Where in the program gaps come from: the functions on the launching thread's stack while the cause lasted.

```
device  [==A==)..........................................[==B==)
thread       [cudaStreamSynchronize][ code ][ launch B ]
cause        |------ sync ---------|                         the chain of the longest call in it
cause                               |------|                 the chains of the samples in it
neither                                      |------|        the chain of the launch
```
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from nsysdiag.activity.callchains import NO_CHAIN, CallChains, Frame, Stack
from nsysdiag.activity.host import HostActivity
from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.lane import Lane
from nsysdiag.activity.rows import Rows
from nsysdiag.analysis.assignment import Slices
from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.frame import Frame as GapFrame
from nsysdiag.analysis.grouping import evenly
from nsysdiag.model import CallSite, CodeFrame, CodeShare
from nsysdiag.timeline.assign import Owned, claim
from nsysdiag.timeline.intervals import Intervals
from nsysdiag.timeline.nesting import outermost

MOST_CHAINS = 10_000
"""Call chains of one kind that are read for one set of groups, however many samples and calls there are."""
MOST_NAMES = 5
MOST_FRAMES = 3
SOURCES = ("cuda", "osrt", "sampling")
COMPUTE = list(CAUSES).index("host_compute")
_ON_THREAD = np.array([cause.side == "host" or cause.id == "launch_call" for cause in CAUSES.values()])


class Kind(IntEnum):
    """What a chain belongs to: a call or a sample while the cause lasted, or the launch of the next operation."""

    CALL = 0
    SAMPLE = 1
    LAUNCH = 2


@dataclass(frozen=True, slots=True)
class HostSide:
    """What tells where gaps come from: how they were split, and what their launching threads did. `dominant` is the
    cause (place in the registry) with most of each gap, `lane` its thread's on the axis, -1 for none."""

    frame: GapFrame
    slices: Slices
    dominant: IntArray
    lane: IntArray
    host: HostActivity
    chains: CallChains


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group of gaps comes from, None where no call chain tells; and for a group that host code leads, the
    innermost functions of its samples."""

    site: CallSite | None
    code: list[CodeShare]


@dataclass(frozen=True, slots=True)
class _Chains(Rows):
    """Call chains that speak for gaps: `source` is a place in SOURCES."""

    gap: IntArray
    kind: IntArray
    source: IntArray
    id: IntArray


def places_of(side: HostSide, group: IntArray, count: int) -> list[Place]:
    """The place of each of `count` groups of gaps, whose gaps have one dominant cause; `group` is the number of each
    gap's group, -1 for none."""
    focus = _focus(side, group)
    found = _Chains.concatenate([_longest_calls(side, focus), _samples(side, focus), _launches(side, group)])
    chosen = found.take(_few_of_each(group[found.gap], found.kind))
    stacks = [side.chains.stacks(name, chosen.id[chosen.source == number]) for number, name in enumerate(SOURCES)]
    told: list[dict[int, list[tuple[str, Stack]]]] = [{} for _ in range(count)]
    for at, kind, source, chain in zip(
        group[chosen.gap].tolist(), chosen.kind.tolist(), chosen.source.tolist(), chosen.id.tolist(), strict=True
    ):
        if stack := stacks[source].get(chain):
            told[at].setdefault(kind, []).append((SOURCES[source], stack))
    computes = set(group[side.dominant == COMPUTE].tolist())
    return [_place(each, at in computes) for at, each in enumerate(told)]


def _focus(side: HostSide, group: IntArray) -> Owned:
    """The time on the thread axis that the dominant causes of the grouped gaps took, with the gap of each piece."""
    rows = side.slices.rows
    gap = rows.gap
    leads = (rows.cause == side.dominant[gap]) & _ON_THREAD[rows.cause] & (side.lane[gap] >= 0) & (group[gap] >= 0)
    mine = rows.take(np.flatnonzero(leads))
    spans = side.host.axis.place(side.lane[mine.gap], Intervals(mine.start, mine.end))
    return Owned.of(spans, mine.gap)


def _longest_calls(side: HostSide, focus: Owned) -> _Chains:
    """For each gap the call that lasted longest in its focus, of those with a call chain."""
    parts = [
        _calls_in(focus, lane, side.chains.ids(source), SOURCES.index(source))
        for source, lane in (("cuda", side.host.api), ("osrt", side.host.os_calls))
    ]
    gap, ns, source, chain = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((chain, source, -ns, gap))
    gap, source, chain = gap[order], source[order], chain[order]
    first = np.flatnonzero(np.append(True, gap[1:] != gap[:-1])) if len(gap) else gap
    return _chains(Kind.CALL, gap[first], source[first], chain[first])


def _calls_in(focus: Owned, lane: Lane, ids: IntArray, source: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """For each piece of a call with a chain inside the focus: the gap, its length, the source and the chain."""
    chain = ids[lane.row] if len(ids) else np.full(len(lane), NO_CHAIN, dtype=np.int64)
    known = np.flatnonzero((chain > NO_CHAIN) & (lane.spans.end > lane.spans.start))
    known = known[outermost(lane.spans[known])]
    # A set is asked for: what begins before the call in front of it has ended is no call of the same thread.
    reach = np.maximum.accumulate(lane.spans.end[known])
    known = known[np.append(True, lane.spans.start[known][1:] >= reach[:-1])[: len(known)]]
    claimed, _, call = claim(focus, lane.spans[known])
    ns = claimed.spans.end - claimed.spans.start
    return claimed.owner, ns, np.full(len(claimed), source, dtype=np.int64), chain[known][call]


def _samples(side: HostSide, focus: Owned) -> _Chains:
    """The samples inside the focus."""
    samples = side.host.samples
    first = np.searchsorted(samples.position, focus.spans.start)
    count = np.searchsorted(samples.position, focus.spans.end) - first
    sample = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
    gap = np.repeat(focus.owner, count)
    return _chains(Kind.SAMPLE, gap, np.full(len(gap), SOURCES.index("sampling")), samples.id[sample])


def _launches(side: HostSide, group: IntArray) -> _Chains:
    """The calls that launched the operations behind the gaps, those with a call chain."""
    ids = side.chains.ids("cuda")
    gap = np.flatnonzero((group >= 0) & (side.frame.call >= 0)) if len(ids) else np.empty(0, dtype=np.int64)
    chain = ids[side.frame.call[gap]]
    known = chain > NO_CHAIN
    return _chains(Kind.LAUNCH, gap[known], np.zeros(int(known.sum()), dtype=np.int64), chain[known])


def _chains(kind: Kind, gap: IntArray, source: IntArray, chain: IntArray) -> _Chains:
    return _Chains(gap, np.full(len(gap), kind, dtype=np.int64), source, chain)


def _few_of_each(group: IntArray, kind: IntArray) -> IntArray:
    """Rows spread evenly over each group and kind, all groups together no more than the most of each kind."""
    code = group * len(Kind) + kind
    parts = []
    for each in Kind:
        mine = np.flatnonzero(kind == each)
        groups = len(np.unique(code[mine]))
        parts.append(mine[evenly(code[mine], max(1, MOST_CHAINS // max(groups, 1)))])
    return np.concatenate(parts)


def _place(told: dict[int, list[tuple[str, Stack]]], computes: bool) -> Place:
    """The first kind of chains with code of the program's own in them, else the first with any."""
    order = (Kind.SAMPLE, Kind.CALL, Kind.LAUNCH) if computes else (Kind.CALL, Kind.SAMPLE, Kind.LAUNCH)
    kinds = [kind for kind in order if kind in told]
    own = [kind for kind in kinds if any(stack.own for _, stack in told[kind])]
    site = _site(told[(own or kinds)[0]], (own or kinds)[0] is Kind.LAUNCH) if kinds else None
    return Place(site, _code([stack for _, stack in told.get(Kind.SAMPLE, [])]) if computes else [])


def _site(stacks: list[tuple[str, Stack]], launch: bool) -> CallSite:
    """The innermost place that half the stacks with code of the program's own have in common, else the commonest.

    ```
    stacks  norm  update  train  main        place  update  train  main
            pack  update  train  main
            pack  update  train  main
                          train  main
    ```
    """
    own = any(stack.own for _, stack in stacks)
    told = [(source, _places(stack.frames)) for source, stack in stacks if stack.own == own]
    counts = Counter(place for _, places in told for place in places)
    depth = Counter(dict.fromkeys(counts, 0))
    for _, places in told:
        depth.update(places)
    common = [place for place, count in counts.items() if 2 * count >= len(told)]
    frames = min(
        common or counts,
        key=lambda place: (0 if common else -counts[place], depth[place] / counts[place], -counts[place], repr(place)),
    )
    sources = Counter(source for source, places in told if frames in places)
    return CallSite(
        frames=[_frame(frame) for frame in frames],
        source=min(sources, key=lambda source: (-sources[source], source)),
        chains=counts[frames],
        of=len(stacks),
        own=own,
        launch=launch,
    )


def _places(frames: tuple[Frame, ...]) -> dict[tuple[Frame, ...], int]:
    """Every place on a stack, a function with its callers, and how far from the innermost it is first met."""
    return {frames[at : at + MOST_FRAMES]: at for at in reversed(range(len(frames)))}


def _frame(frame: Frame) -> CodeFrame:
    return CodeFrame(symbol=frame.symbol, module=frame.module, python=frame.python, line=frame.line)


def _code(stacks: list[Stack]) -> list[CodeShare]:
    """The innermost functions by their share of the samples; one without a name goes by its module."""
    counts = Counter((stack.leaf.symbol or stack.leaf.module, str(stack.leaf.origin)) for stack in stacks)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
    return [
        CodeShare(symbol=symbol, kind=kind, share=round(count / len(stacks), 4)) for (symbol, kind), count in ranked
    ]
