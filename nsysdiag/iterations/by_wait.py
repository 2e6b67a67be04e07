"""Steps of any length and any work, from one wait of the host to the next.

```
thread    |launch a a b|wait  |launch c a|wait |launch b b c a|wait      |
device         |a a b|          |c a|            |b b c a|
steps          |----------------|----------------|-----------------------|
```

Nothing that runs on the device comes once in each of them. That the host waits is all that shows where one ends.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import Called, Inner, Loop, median_of
from nsysdiag.iterations.outer import REGULAR, RepeatCounts

FEWEST_WAITS = 20
"""Fewer waits may come for any reason."""
LEAST_REACH = 0.5
"""Of the time: waits over less of it are not those of its loop."""
FEWEST_KERNELS = 2
"""In a repeat: who waits for each kernel makes no steps of them."""
OFTEN, MOSTLY = 0.1, 0.8
"""Kernels come again if so many repeats have them; such are so many of all kernels, at least."""
BOTH = 0.8
"""Of the repeats: so many take input and give results where they are those of requests."""
MOST_WAITS_OF_A_STEP = 4
SIZES = 16
"""Times the bytes of another one: a copy of another kind, such as a result and no flag."""
HOST_WAIT, READ_BACK = "host wait", "read-back"


class _HostWaits(Struct, frozen=True):
    """Waits of the host between kernels: where the next operation starts, and what kind of wait it was: a number of a
    call, or of a size of copies to the host, which are below 0."""

    starts: IntArray
    kind: IntArray

    @classmethod
    def of(cls, happened: Happened, device: DeviceTimeline, issued: IntArray) -> _HostWaits:
        """Those without a kernel between them are one, of the kind of the last."""
        order = np.argsort(issued, kind="stable")
        code = happened.code[order]
        waits = np.flatnonzero(np.isin(happened.code, list(happened.waits)))
        downloads = np.flatnonzero(np.isin(code, list(happened.downloads)))
        size = device.operations.size[happened.operations[order[downloads]]]
        behind = np.append(np.searchsorted(issued[order], happened.time[waits]), downloads + 1)
        kind = np.append(happened.code[waits], -1 - np.floor(np.log(np.maximum(size, 1)) / np.log(SIZES)))
        by_time = np.lexsort((kind, behind))
        behind, kind = behind[by_time], kind[by_time].astype(np.int64)
        kernels = np.append(0, np.cumsum(np.isin(code, list(happened.kernels))))[behind]
        kept = np.append(np.diff(kernels) > 0, True)[: len(kernels)] & (behind < len(order)) & (kernels > 0)
        starts, first = np.unique(happened.time[order[behind[kept]]], return_index=True)
        return cls(starts, kind[kept][first])

    def period(self) -> int:
        """After how many waits the kinds come again, 1 where all are alike, or nothing shows a longer period."""
        for each in range(2, MOST_WAITS_OF_A_STEP + 1):
            same = float((self.kind[each:] == self.kind[:-each]).mean())
            if same >= REGULAR and float((self.kind[1:] == self.kind[:-1]).mean()) < 1 - REGULAR / each:
                return each
        return 1


def by_wait(happened: Happened, device: DeviceTimeline, whole: Intervals) -> Loop | None:
    """The loop, in doubt unless its repeats take input and give results: several may be a step. None where the host
    hardly waits, or the repeats have nothing in common."""
    issued = happened.issued_at[happened.operations]
    if not len(issued) or (issued < 0).any():
        return None
    waits, end = _HostWaits.of(happened, device, issued), int(whole.end[-1])
    if len(waits.starts) < FEWEST_WAITS or end - int(waits.starts[0]) < LEAST_REACH * whole.total():
        return None
    each = waits.period()
    first = _first(waits, each, happened)
    starts = waits.starts[first::each]
    if first == each - 1:
        starts = np.append(happened.time[int(np.argmin(issued))], starts)
    found = RepeatCounts.of(happened, starts, None, end)
    if not _repeats(found, happened):
        return None
    read = _in_most(happened.downloads, found)
    loop = happened.loop_from(Called(label=READ_BACK if read else HOST_WAIT), starts, end)
    if each > 1:
        return loop.with_inner(Inner(loop.called, each, median_of(np.diff(waits.starts))))
    return loop if read and _in_most(happened.uploads, found) else replace(loop, certain=False)


def _first(waits: _HostWaits, each: int, happened: Happened) -> int:
    """Behind which wait of a period a step begins: where the device is idle for longest."""
    before = np.searchsorted(happened.time[: len(happened.end)], waits.starts)
    idle = waits.starts - np.maximum.accumulate(happened.end)[np.maximum(before - 1, 0)]
    return int(np.argmax([np.median(idle[at::each]) for at in range(each)]))


def _repeats(found: RepeatCounts, happened: Happened) -> bool:
    """Whether repeats have several kernels, mostly such as others have too."""
    kernels = [count for code, count in found.count.items() if code in happened.kernels]
    again = sum(int(count.sum()) for count in kernels if float((count > 0).mean()) >= OFTEN)
    total = sum(kernels, start=np.zeros(found.size, np.int64))
    return float(np.median(total)) >= FEWEST_KERNELS and again >= MOSTLY * int(total.sum())


def _in_most(codes: frozenset[int], found: RepeatCounts) -> bool:
    """Whether some of these are in most repeats."""
    held = sum((found.count[code] for code in codes if code in found.count), start=np.zeros(found.size, np.int64))
    return float((held > 0).mean()) >= BOTH
