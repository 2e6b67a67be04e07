"""Which candidates really met: a collective runs on all of its ranks at once, from when the last one has come.

```
rank 0   [==========)
rank 1        [=====)         met
rank 2                [===)   did not: another communicator, or another of their order
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, contains
from nsysdiag.events.collectives import KINDS, MEETINGS
from nsysdiag.ranks.clocks import Clocks
from nsysdiag.ranks.matching import MOST_NAMED, Group
from nsysdiag.ranks.timeline import RankTimeline

LEAST_SHARE = 0.9
# A sender may be gone before the receiver comes: what it sent waits in a buffer.
LOOSE_NS = 1_000_000


def confirmed(ranks: list[RankTimeline], groups: list[Group], clocks: Clocks) -> tuple[list[Group], list[str]]:
    """The groups on the common clock, each with ranks that met in nine of ten of its collectives at least, and without
    those collectives in which they did not, or that lie outside a window; in words, who met nobody."""
    found: list[Group] = []
    refusals: list[str] = []
    for group in groups:
        alone: list[int] = []
        for rows in _divided(clocks.shifted(group), clocks):
            part = group.only(rows)
            if len(rows) < 2:
                alone += part.members
                continue
            chosen = _met(clocks.shifted(part), clocks) & _inside(ranks, part)
            if chosen.any():
                found.append(clocks.shifted(part).at(chosen))
        if alone:
            refusals.append(_told(ranks, group, alone))
    return found, refusals


def _divided(group: Group, clocks: Clocks) -> list[list[int]]:
    """The rows of the group apart, each with the rows that meet the first of them."""
    left, parts = list(range(len(group.members))), []
    while left:
        part = [row for row in left if row == left[0] or _met(group.only([left[0], row]), clocks).mean() >= LEAST_SHARE]
        parts.append(part)
        left = [row for row in left if row not in part]
    return parts


def _met(group: Group, clocks: Clocks) -> BoolArray:
    """In which of its collectives the members met; in all where nobody knows how their clocks differ."""
    error = clocks.error_between(group.members)
    if error is None:
        return np.ones(len(group), dtype=np.bool_)
    slack = error + (0 if KINDS[group.kind] in MEETINGS else LOOSE_NS)
    met: BoolArray = group.start.max(axis=0) < group.end.min(axis=0) + slack
    return met


def _inside(ranks: list[RankTimeline], group: Group) -> BoolArray:
    result = np.ones(len(group), dtype=np.bool_)
    for row, at in enumerate(group.members):
        result &= contains(ranks[at].window, group.start[row])
    return result


def _told(ranks: list[RankTimeline], group: Group, alone: list[int]) -> str:
    names = ", ".join(ranks[at].rank for at in alone[:MOST_NAMED])
    more = f" and {len(alone) - MOST_NAMED} more" if len(alone) > MOST_NAMED else ""
    return f"{KINDS[group.kind]}: those of {names}{more} do not run at the same time as those of another rank"
