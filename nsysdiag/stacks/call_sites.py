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
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import evenly
from nsysdiag.arrays.intervals import IntArray, Intervals, rows_from, searched
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes import CAUSES, IN_LAUNCH_CALL, places
from nsysdiag.events.callchains import NO_CHAIN, CallChain, CallChains, StackFrame, Stacks
from nsysdiag.events.host import HostActivity
from nsysdiag.events.rows import NamedRows, Rows, narrowed, picked
from nsysdiag.events.samples import PythonStacks
from nsysdiag.gaps.gaps import LaunchFrame
from nsysdiag.ledger.ledger import Slices
from nsysdiag.report import CallSite, CodeFrame, CodeShare

# What many call stacks have in common. Python functions are the same whatever line they have come to.

MOST_FRAMES = 3
"""Functions of a place in the program: one and its callers. If larger, calls by way of other callers are other places;
if smaller, places with equal names fall together."""
MOST_NAMES = 5
"""Innermost functions of a group of gaps that are listed with their shares, the largest first."""
T = TypeVar("T")


def common_site(stacks: list[tuple[str, CallChain]], launch: bool) -> CallSite:
    """The innermost place that half the stacks with code of the program's own have in common, else the commonest.

    ```
    stacks  norm  update  train  main        place  update  train  main
            pack  update  train  main
            pack  update  train  main
                          train  main
    ```
    """
    own = any(stack.own for _, stack in stacks)
    known = [(source, stack.frames) for source, stack in stacks if stack.own == own]
    numbers: dict[StackFrame, int] = {}  # comparing places by numbers is many times faster than by names
    places = [_places(frames, numbers) for _, frames in known]
    counts = Counter(place for each in places for place in each)
    depth = Counter(dict.fromkeys(counts, 0))
    for each in places:
        depth.update(each)
    common = [place for place, count in counts.items() if 2 * count >= len(places)]
    scores = {
        each: (0 if common else -counts[each], depth[each] / counts[each], -counts[each]) for each in common or counts
    }
    leading = min(scores.values())
    names = [(each.symbol, each.module) for each in numbers]
    # Ties are settled by name, whatever the order of the stacks.
    best = min((each for each in scores if scores[each] == leading), key=lambda place: [names[each] for each in place])
    through = [(*each, at[best]) for each, at in zip(known, places, strict=True) if best in at]
    shown = _commonest(frames[at : at + MOST_FRAMES] for _, frames, at in through)
    return CallSite(
        frames=[
            CodeFrame(symbol=each.symbol, module=each.module, python=each.python, line=each.line) for each in shown
        ],
        source=_commonest(source for source, _, _ in through),
        chains=len(through),
        of=len(stacks),
        own=own,
        launch=launch,
    )


def _places(frames: tuple[StackFrame, ...], numbers: dict[StackFrame, int]) -> dict[tuple[int, ...], int]:
    """Every place on a stack, a function with its callers, and how far from the innermost it is first met. The lines of
    functions do not count; `numbers` gets those that are new."""
    functions = (replace(frame, line=None) if frame.line is not None else frame for frame in frames)
    codes = tuple(numbers.setdefault(each, len(numbers)) for each in functions)
    return {codes[at : at + MOST_FRAMES]: at for at in reversed(range(len(codes)))}


def _commonest(values: Iterable[T]) -> T:
    counts = Counter(values)
    return min(counts, key=lambda each: (-counts[each], repr(each)))


def leaf_shares(stacks: list[CallChain]) -> list[CodeShare]:
    """The innermost functions by their share of the samples; one without a name has the name of its module."""
    counts = Counter((stack.leaf.symbol or stack.leaf.module, str(stack.leaf.origin)) for stack in stacks)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
    return [
        CodeShare(symbol=symbol, kind=kind, share=round(count / len(stacks), 4)) for (symbol, kind), count in ranked
    ]


MOST_CHAINS = 10_000
"""Call chains of one kind that are read for one set of groups, however many samples and calls there are."""
SOURCES = ("cuda", "osrt", "sampling", "python")
_SAMPLED = places(lambda cause: cause.sampled)
_ON_THREAD = np.array([cause.side == "host" or cause.id == IN_LAUNCH_CALL for cause in CAUSES.values()])


class SiteKind(IntEnum):
    """The sources of a chain: a call or a sample during the cause, or the launch of the next operation; and the Python
    stacks recorded then."""

    PYTHON = 0
    CALL = 1
    SAMPLE = 2
    PYTHON_LAUNCH = 3
    LAUNCH = 4


_LAUNCHES = (SiteKind.PYTHON_LAUNCH, SiteKind.LAUNCH)


class HostSide(Struct, frozen=True):
    """What tells where gaps come from: how they were split, and what their launching threads did. `dominant` is the
    cause (place in the registry) with most of each gap, `lane` its thread's on the axis, -1 for none."""

    frame: LaunchFrame
    slices: Slices
    dominant: IntArray
    lane: IntArray
    host: HostActivity
    chains: CallChains
    python: PythonStacks


class Place(Struct, frozen=True):
    """The code location of a group of gaps, None without a call chain; and for a group led by host code, the innermost
    functions of its samples."""

    site: CallSite | None
    code: list[CodeShare]


class _Chains(Rows, frozen=True):
    """Call chains that speak for gaps: `source` is a place in SOURCES."""

    gap: IntArray
    kind: IntArray
    source: IntArray
    id: IntArray


def places_of(side: HostSide, group: IntArray, count: int) -> list[Place]:
    """The location of each of `count` groups of gaps with one dominant cause; `group` is the number of each gap's
    group, -1 for none."""
    python = side.python.on_axis(side.host.axis)
    samples = (side.host.samples.position, side.host.samples.id)
    chains = (side.chains.ids("cuda"), side.chains.ids("osrt"), samples[0], python[0])
    focus = _focus(side, group) if any(map(len, chains)) else Owned.empty()
    found = _Chains.concatenate(
        [
            _longest_calls(side, focus),
            _inside(focus, *samples, SiteKind.SAMPLE),
            _launches(side, group),
            _inside(focus, *python, SiteKind.PYTHON),
            _python_launches(side, group, *python),
        ]
    )
    chosen = found.take(_few_of_each(group[found.gap], found.kind))
    stacks: list[Stacks] = []
    for number, name in enumerate(SOURCES):
        ids = chosen.id[chosen.source == number]
        stacks.append(side.python.stacks(distinct_values(ids)) if name == "python" else side.chains.stacks(name, ids))
    stacks_by_kind: list[dict[int, list[tuple[str, CallChain]]]] = [{} for _ in range(count)]
    for at, kind, source, chain in zip(
        group[chosen.gap].tolist(), chosen.kind.tolist(), chosen.source.tolist(), chosen.id.tolist(), strict=True
    ):
        if stack := stacks[source].get(chain):
            stacks_by_kind[at].setdefault(kind, []).append((SOURCES[source], stack))
    computes = set(distinct_values(group[np.isin(side.dominant, _SAMPLED)]).tolist())
    return [_place(each, at in computes) for at, each in enumerate(stacks_by_kind)]


def _focus(side: HostSide, group: IntArray) -> Owned:
    """The time on the thread axis that the dominant causes of the grouped gaps took, with the gap of each piece."""
    rows = side.slices.rows
    grouped = picked(group[rows.gap] >= 0)
    gap, cause, start, end = (taken(each, grouped) for each in (rows.gap, rows.cause, rows.start, rows.end))
    mine = (cause == side.dominant[gap]) & _ON_THREAD[cause] & (side.lane[gap] >= 0)
    gap = gap[mine]
    return Owned.of(side.host.axis.place(taken(side.lane, gap), Intervals(start, end)[mine]), gap)


def _longest_calls(side: HostSide, focus: Owned) -> _Chains:
    """For each gap the call that lasted longest in its focus, of those with a call chain."""
    parts = []
    for source, lane in (("cuda", side.host.api), ("osrt", side.host.os_calls)):
        claimed, _, chain = claimed_calls(focus, lane, side.chains.ids(source))
        ns = claimed.spans.end - claimed.spans.start
        parts.append((claimed.owner, ns, np.full(len(claimed), SOURCES.index(source), dtype=np.int64), chain))
    gap, ns, sources, chain = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((chain, sources, -ns, gap))
    gap, sources, chain = gap[order], sources[order], chain[order]
    first = np.flatnonzero(np.append(True, gap[1:] != gap[:-1])) if len(gap) else gap
    return _chains(SiteKind.CALL, gap[first], sources[first], chain[first])


def claimed_calls(time: Owned, lane: NamedRows, ids: IntArray) -> tuple[Owned, Owned, IntArray]:
    """The pieces of the time inside calls with a chain, the rest, and the chain of each piece. `ids` are the chains of
    the rows of the calls' table, none without a table of chains."""
    if not len(ids):
        return Owned.empty(), time, np.empty(0, dtype=np.int64)
    chain = ids[lane.row]
    known = np.flatnonzero((chain > NO_CHAIN) & (lane.spans.end > lane.spans.start))
    known = known[outermost(lane.spans[known])]
    # A set is asked for: what begins before the call in front of it has ended is not a call of the same thread.
    reach = np.maximum.accumulate(lane.spans.end[known])
    known = known[np.append(True, lane.spans.start[known][1:] >= reach[:-1])[: len(known)]]
    claimed, rest, call = claim(time, lane.spans[known])
    return claimed, rest, chain[known][call]


def _inside(focus: Owned, position: IntArray, ids: IntArray, kind: SiteKind) -> _Chains:
    """The samples or marks inside the focus; `position` is sorted."""
    first, behind = (searched(position, side, "left") for side in (focus.spans.start, focus.spans.end))
    count = behind - first
    sample = rows_from(first, count)
    source = "sampling" if kind is SiteKind.SAMPLE else "python"
    return _chains(kind, np.repeat(focus.owner, count), SOURCES.index(source), ids[sample])


def _launches(side: HostSide, group: IntArray) -> _Chains:
    """The calls that launched the operations behind the gaps, those with a call chain."""
    ids = side.chains.ids("cuda")
    gap = np.flatnonzero((group >= 0) & (side.frame.call >= 0)) if len(ids) else np.empty(0, dtype=np.int64)
    chain = ids[side.frame.call[gap]]
    known = chain > NO_CHAIN
    return _chains(SiteKind.LAUNCH, gap[known], SOURCES.index("cuda"), chain[known])


def _python_launches(side: HostSide, group: IntArray, position: IntArray, marks: IntArray) -> _Chains:
    """The first Python stack inside the call that launched the operation behind each gap."""
    gap = np.flatnonzero((group >= 0) & (side.lane >= 0)) if len(position) else np.empty(0, dtype=np.int64)
    calls = side.chains.api_calls.rows.take(side.frame.call[gap])
    spans = side.host.axis.place(side.lane[gap], Intervals(calls.start, calls.end))
    at = np.searchsorted(position, spans.start)
    inside = at < np.searchsorted(position, spans.end, side="right")
    return _chains(SiteKind.PYTHON_LAUNCH, gap[inside], SOURCES.index("python"), marks[at[inside]])


def _chains(kind: SiteKind, gap: IntArray, source: IntArray | int, chain: IntArray) -> _Chains:
    return _Chains(gap, np.full(len(gap), kind), np.full(len(gap), source), chain)


def _few_of_each(group: IntArray, kind: IntArray) -> IntArray:
    """Rows spread evenly over each group, limited in all for each kind; with more groups than the limit, only the first
    ones have rows."""
    parts = []
    for each in SiteKind:
        mine = np.flatnonzero(kind == each)
        groups = distinct_values(group[mine])[:MOST_CHAINS]
        mine = mine[group[mine] <= groups[-1]] if len(groups) else mine
        parts.append(mine[evenly(narrowed(group[mine]), MOST_CHAINS // max(len(groups), 1))])
    return np.concatenate(parts)


def _place(by_kind: dict[int, list[tuple[str, CallChain]]], computes: bool) -> Place:
    """The first kind of chains with code of the program's own in them, else the first with any."""
    native = (SiteKind.SAMPLE, SiteKind.CALL) if computes else (SiteKind.CALL, SiteKind.SAMPLE)
    kinds = [kind for kind in (SiteKind.PYTHON, *native, *_LAUNCHES) if kind in by_kind]
    own = [kind for kind in kinds if any(stack.own for _, stack in by_kind[kind])]
    site = common_site(by_kind[(own or kinds)[0]], (own or kinds)[0] in _LAUNCHES) if kinds else None
    samples = by_kind.get(SiteKind.SAMPLE) or by_kind.get(SiteKind.PYTHON, [])
    return Place(site, leaf_shares([stack for _, stack in samples]) if computes else [])
