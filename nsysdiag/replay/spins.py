"""Host code that may wait for a device though no call says so: it asks again and again for a flag in memory, which a
kernel sets.

```
device   [== solve ==)            [== solve ======)            [== solve =)
thread   [launch](spins......)[code][launch](spins..........)[code][launch](spins.....)[code]
```

Such code ends as much later as the kernels do. Other code is as long as ever.
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, RowsOf
from nsysdiag.replay.edges import Program
from nsysdiag.replay.moments import EdgeKind, Edges, MomentPlaces
from nsysdiag.replay.pacing import FEWEST, MANY, WAITED_NS, slopes
from nsysdiag.replay.work import Work

AS_MUCH = 0.5, 1.5
"""Code that waits for kernels is longer by 1 ns for each ns that these are longer; other code by none. Work of the host
may grow with that of the device, but hardly by about as much."""
SOON = 0.1
"""Of such code: if kernels always take as long, nothing tells whether it waits for them. It may if so little of it is
behind them: chance makes that of a tenth of all loops in which the host takes longer. A round number."""


class Spins(Rows, frozen=True):
    """Host code that may wait for a device: the `row` of its edge in `Program`, and the moment `target` at which it
    ends. The `operation` that it may wait for is a place in `Work`."""

    row: IntArray
    operation: IntArray
    target: IntArray

    def edges(self, program: Program, work: Work, places: MomentPlaces) -> Edges:
        """From the operations to the ends of such code, in ns as it was."""
        ns = work.length[self.operation] + program.end[self.row] - work.end[self.operation]
        source = places.end[self.operation]
        found = Edges.of(source, self.target, ns, EdgeKind.SPIN, np.arange(len(self)))
        return found.take(found.source < found.target)


def spins_of(program: Program, in_order: Edges, work: Work, thread: IntArray, name: IntArray) -> Spins:
    """Such code of threads that launch. In nearly all cases it ends behind what the thread has launched before; and it
    is as much longer as that ends later, by each kernel that ends last. `thread` launched each operation (-1: unknown),
    and `name` is a code for its name."""
    row, operation = _outstanding(program, work, thread)
    lasts, ran = (program.end - program.start)[row], work.end[operation] - program.start[row]
    kind = joint(distinct(program.thread[row])[1], name[operation], int(name.max(initial=0)) + 1)
    of_kind = RowsOf(kind)
    each = (of_kind[value] for value in of_kind.values())
    found = [rows[lasts[rows] >= ran[rows]] for rows in each if _follows(lasts[rows], ran[rows])]
    chosen = np.concatenate([np.empty(0, np.int64), *found])
    target = np.zeros(len(program), dtype=np.int64)
    target[in_order.row] = in_order.target
    return Spins(row[chosen], operation[chosen], target[row[chosen]])


def _outstanding(program: Program, work: Work, thread: IntArray) -> tuple[IntArray, IntArray]:
    """The rows of host time that begin while something runs, or is queued, that the same thread has launched; and of
    these operations the last to end."""
    rows, operations = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    launched, times = RowsOf(thread), RowsOf(program.thread)
    for each in launched.values():
        mine = launched[each][np.argsort(work.issued[launched[each]], kind="stable")]
        latest = np.maximum.accumulate(work.end[mine])
        last = mine[np.maximum.accumulate(np.where(work.end[mine] == latest, np.arange(len(mine)), 0))]
        row = times[each]
        at = np.searchsorted(work.issued[mine], program.start[row], side="right") - 1
        row, operation = row[at >= 0], last[at[at >= 0]]
        long = np.minimum(work.end[operation], program.end[row]) - program.start[row] >= WAITED_NS
        rows.append(row[long])
        operations.append(operation[long])
    return np.concatenate(rows), np.concatenate(operations)


def _follows(lasts: IntArray, ran: IntArray) -> bool:
    """Whether times of the host last as much longer as what they begin with, which `ran` on since then, in ns."""
    ended = lasts >= ran
    if len(lasts) < FEWEST or np.count_nonzero(ended) < MANY * len(lasts):
        return False
    low, high = slopes(ran[ended], lasts[ended])
    if np.isinf(low):
        return bool(np.count_nonzero(lasts - ran <= SOON * lasts) >= MANY * np.count_nonzero(ended))
    return 0 < low < AS_MUCH[1] and AS_MUCH[0] < high
