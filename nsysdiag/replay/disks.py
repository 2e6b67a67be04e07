"""Threads that read files at once: one disk may serve them all, one after the other.

```
A    [read ....][decode][read ........][decode]
B    [decode][read ........][decode][read ........]     half of the decoding: each read waits longer for the other
```
"""

from __future__ import annotations

from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes import PLACE
from nsysdiag.causes.input_output import IO_WAIT
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.sources import asks_others

AT_ONCE = 0.1
"""Of the time of reads: threads that read at once for less use no disk together."""


def reads_ns(changes: Changes) -> int:
    """For how long in a step, or in the window, any thread reads files, in ns, as far as the changes leave the reads;
    0 if never two of them read at once. A disk that serves one at a time is no faster."""
    model = changes.model
    reads = _reads(model)
    ns = (model.pieces.end - model.pieces.start)[reads]
    together = model.ever(reads)
    if not len(ns) or ns.sum() < (1 + AT_ONCE) * together:
        return 0
    left = float((ns * changes.time[reads]).sum()) / float(ns.sum())
    return round(left * together / model.stretch.count)


def _reads(model: Model) -> BoolArray:
    found: BoolArray = (model.pieces.cause == PLACE[IO_WAIT.id]) & ~asks_others(model)
    return found
