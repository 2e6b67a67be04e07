"""The time of a device as stacks: idle time by root cause, and the waits of threads by the work that ran.

```
thread    [sync            ][ code ][launch]
device      |==A====|==B===|........|==C===|
waits       |   A   |   B  |                   in sync, by operation
idle                       |  code  |          by cause
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.account.bottlenecks import DeviceWaitCalls
from nsysdiag.arrays.claim import Owned, within
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import least_of_each, sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, overlaps, stretches
from nsysdiag.causes import CAUSES
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.fields import Sentence
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys, normal_paths
from nsysdiag.kernels.names import normal_operation_names
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.ranges.facts import FlameGraph, FlameStack
from nsysdiag.ranges.tree import own_spans
from nsysdiag.stacks.samples import Code, code_of, folded
from nsysdiag.wakeups.batches import RootSlices
from nsysdiag.wakeups.levels import Chains

if TYPE_CHECKING:
    from nsysdiag.events.host import HostActivity
    from nsysdiag.stacks.call_sites import HostSide


MOST_GROUPS = 100
"""Groups whose call chains are read. The others are added to their first frames."""
_IDS = list(CAUSES)


def flame_graph(
    split: WindowSplit,
    context: GapContext,
    keys: GapGroupKeys,
    rooted: RootSlices,
    chains: Chains,
    waits: DeviceWaitCalls,
) -> FlameGraph:
    """The stacks of a device; `context` describes its gaps by their root causes."""
    return FlameGraph(idle=idle_stacks(context, keys, rooted, chains), waits=wait_stacks(split, context, waits))


def idle_stacks(context: GapContext, keys: GapGroupKeys, rooted: RootSlices, chains: Chains) -> list[FlameStack]:
    """The idle time by root cause, ranges of the launching thread, and what the thread at the root did."""
    slices, side = rooted.slices, context.host_side
    rows, path, lane = slices.rows, keys.path_of(slices.rows.gap), taken(context.lane, slices.rows.gap)
    time = Intervals(rows.start, rows.end)
    place = np.empty(len(rows), dtype=np.int64)
    for part in stretches(len(rows)):
        where = joint(rows.cause[part], path[part], max(len(keys.paths), 1))
        place[part] = joint(where, rows.text[part] + 1, len(slices.texts) + 1)
    groups = _StackGroups.of(place, slices.ns)
    mine = (groups.of_row >= 0) & (rooted.thread < 0) & (lane >= 0)
    found = [groups.code(mine, lane, time, side.host, side)]
    left = (groups.of_row >= 0) & (rooted.thread >= 0)
    for level in chains.levels[1:]:
        lane = np.append(level.view.host.axis.lane(rooted.threads), -1)[rooted.thread]
        found.append(groups.code(left & (lane >= 0), lane, time, level.view.host, side))
        left &= lane < 0
    stacks = []
    for at, row in enumerate(groups.first.tolist()):
        cause, text = _IDS[int(rows.cause[row])], int(rows.text[row])
        title = CAUSES[cause].title
        # What shows that a thread ran says nothing beside its functions.
        said = text >= 0 and slices.texts[text] != title and not (CAUSES[cause].sampled and rooted.thread[row] < 0)
        did = [slices.texts[text]] if said else []
        frames = [title, *map(typed.nvtx, keys.paths[int(path[row])]), *did]
        stacks += _with_code(frames, int(groups.total[at]), [each[at] for each in found], cause)
    others = sum_of_each(rows.cause[groups.rest], groups.rest_ns, len(_IDS))
    small = [FlameStack([CAUSES[_IDS[at]].title], int(others[at]), _IDS[at]) for at in np.flatnonzero(others).tolist()]
    return folded([*stacks, *small])


def wait_stacks(split: WindowSplit, context: GapContext, waits: DeviceWaitCalls) -> list[FlameStack]:
    """The time in which threads waited in calls and the device worked, by the operation that ran: of several at once
    the one that counts as its work."""
    axis, side = context.axis, context.host_side
    lane, begun = waits.spans.start // axis.stride, axis.time(waits.spans.start)
    calls = Intervals(begun, begun + waits.spans.end - waits.spans.start)
    call, operation, start, end = _work_in(calls, context.device, split)
    name, names = normal_operation_names(context.device, operation, context.strings)
    path, paths = normal_paths(context, lane, begun)
    place = joint(joint(name, path[call], len(paths)), waits.name[call], max(len(waits.names), 1))
    groups = _StackGroups.of(place, end - start)
    code = groups.code(groups.of_row >= 0, lane[call], Intervals(start, end), side.host, side)
    stacks = []
    for number, row in enumerate(groups.first.tolist()):
        words = [typed.nvtx(each) for each in paths[int(path[call[row]])]]
        frames = [typed.kernel(names[int(name[row])]), *words, waits.names[int(waits.name[call[row]])]]
        stacks += _with_code(frames, int(groups.total[number]), [code[number]])
    others = sum_of_each(name[groups.rest], groups.rest_ns, len(names))
    small = [FlameStack([typed.kernel(names[at])], int(others[at])) for at in np.flatnonzero(others).tolist()]
    return folded([*stacks, *small])


def _work_in(calls: Intervals, device: DeviceTimeline, split: WindowSplit) -> Iterator[IntArray]:
    """The pieces of work inside calls: the call, the operation, and where each begins and ends."""
    found = [(np.empty(0, dtype=np.int64),) * 4]
    for rows, spans, part in own_spans(device, split):
        work, _ = within(Owned.of(spans, rows), part)
        at, piece = overlaps(work.spans, calls)
        both = work.spans[piece], calls[at]
        start, end = np.maximum(*(each.start for each in both)), np.minimum(*(each.end for each in both))
        found.append((at, work.owner[piece], start, end))
    return (np.concatenate(columns) for columns in zip(*found, strict=True))


class _StackGroups(Struct, frozen=True):
    """The groups of rows with most time: a row of each, its time, and the group of every row, -1 for the `rest`."""

    first: IntArray
    total: IntArray
    of_row: IntArray
    rest: IntArray
    rest_ns: IntArray

    @classmethod
    def of(cls, key: IntArray, ns: IntArray) -> _StackGroups:
        """Rows with the same key are a group; only rows with time count."""
        keys, code = distinct(key)
        first = least_of_each(code, np.arange(len(code), dtype=np.int32), len(keys))
        total = sum_of_each(code, ns, len(keys))
        chosen = np.argsort(-total, kind="stable")[:MOST_GROUPS]
        number = np.full(len(first), -1, dtype=np.int8)
        number[chosen] = np.arange(len(chosen))
        of_row = number.take(code)
        rest = np.flatnonzero(of_row < 0)
        return cls(first[chosen], total[chosen], of_row, rest, ns[rest])

    def code(
        self, mine: BoolArray, lane: IntArray, time: Intervals, host: HostActivity, side: HostSide
    ) -> list[Counter[Code]]:
        """The functions of the time of rows that are `mine`, on lanes of a host, by group; none if no function was
        recorded."""
        calls = sum(len(side.chains.ids(each)) for each in ("cuda", "osrt"))
        if not calls + len(host.samples.position) + len(side.python.marks):
            return [Counter[Code]() for _ in self.first]
        rows = np.flatnonzero(mine)
        spans = host.axis.place(lane[rows], time[rows])
        return code_of(Owned.of(spans, self.of_row[rows]), len(self.first), host, side.chains, side.python)


def _with_code(
    frames: Sequence[Sentence], ns: int, found: Sequence[Counter[Code]], cause: str = ""
) -> list[FlameStack]:
    """The stacks of a group: with the functions that are known, and the time without."""
    code = sum(found, Counter[Code]())
    made = [FlameStack([*frames, *each], length, cause) for each, length in code.items()]
    return [*made, FlameStack([*frames], ns - code.total(), cause)]
