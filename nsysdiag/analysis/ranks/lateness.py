"""Inside each collective: how long the transfer took, how long each rank waited, and who came late.

```
rank 0   [-- wait ----------|=transfer=)
rank 1        [-- wait -----|=transfer=)
rank 2            [- wait --|=transfer=)
rank 3                      [=transfer=)     late by what it began after more than half of the others had: rank 1
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.analysis.ranks.clocks import Clocks
from nsysdiag.analysis.ranks.matching import Group
from nsysdiag.timeline.intervals import BoolArray, IntArray

LEAST_LATE_NS = 20_000  # what launches differ by without anybody being late


@dataclass(frozen=True, slots=True, eq=False)
class Lateness:
    """A group with, for each collective, what follows from its times. `wait` has a row a member; `last` and `middle`
    are rows: of the rank that began last, and of that with which more than half of the others had begun. `late` says
    where the last one is late by `late_by` for certain: by more than `doubt_ns`."""

    group: Group
    wait: IntArray
    transfer: IntArray
    last: IntArray
    middle: IntArray
    late_by: IntArray
    late: BoolArray
    doubt_ns: int
    spread_ns: int


def lateness_of(group: Group, clocks: Clocks) -> Lateness:
    """Of a group on the common clock."""
    column = np.arange(len(group))
    length = group.end - group.start
    transfer = length.min(axis=0)
    order = np.argsort(group.start, axis=0, kind="stable")
    last, middle = order[-1], order[(len(group.members) - 1) // 2]
    late_by = group.start[last, column] - group.start[middle, column]
    spread = int(np.percentile(group.end.max(axis=0) - group.end.min(axis=0), 95))
    error = clocks.error_between(group.members)
    doubt = max(LEAST_LATE_NS, spread, error or 0)
    return Lateness(
        group=group,
        wait=length - transfer,
        transfer=transfer,
        last=last,
        middle=middle,
        late_by=late_by,
        late=(late_by > doubt) & (error is not None),
        doubt_ns=doubt,
        spread_ns=spread,
    )
