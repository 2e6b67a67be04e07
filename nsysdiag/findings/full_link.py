"""Copies that run all the time: the link to the host is the limit, and there is nothing left to overlap.

```
HtoD      [= copy 1 =][= copy 2 =][= copy 3 =]     always busy
kernels               [ k 1 ]     [ k 2 ]          wait for it, below
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import Intervals, intersect, union
from nsysdiag.copies.copies import DIRECTIONS, HOST_DIRECTIONS, PCIE_BYTES_PER_SECOND, is_pageable
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.units import format_share, format_transfer

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
        """The busiest direction inside a set of time, None where it has time left."""
        found = [each for name in HOST_DIRECTIONS if (each := _of(device, judged, name)) is not None]
        return max(found, key=lambda each: each.share, default=None)

    @property
    def sentence(self) -> str:
        """`Copies to the GPU run for 99.8% of the time, at 26.2 GB/s (16 lanes of PCIe 4 carry up to 31.5 GB/s)`."""
        return f"{NAMES[self.direction]} run for {format_share(self.share, 1)} of the time, at {self._rate}"

    def advice(self, faster: Sequence[str], fewer: Sequence[str]) -> str:
        """What to do about the rate and the bytes, with sentences on both; more overlap is no use."""
        packed = [PACKED] if self.direction == HOST_DIRECTIONS[0] else []
        larger = [LARGER] if self.size < SMALL else []
        return " ".join([f"{self.sentence}: more overlap saves nothing.", *faster, *fewer, *packed, *larger])

    @property
    def _rate(self) -> str:
        rate = _shown(self.rate)
        if self.pageable:
            return f"{rate} with pageable memory"
        links = {number: most for number, most in PCIE_BYTES_PER_SECOND.items() if number >= OLDEST}
        fitting = [(number, most) for number, most in sorted(links.items()) if most >= self.rate]
        return f"{rate} (16 lanes of PCIe {fitting[0][0]} carry up to {_shown(fitting[0][1])})" if fitting else rate


def _shown(rate: float) -> str:
    return f"{format_transfer(rate)}/s"


def _of(device: DeviceTimeline, judged: Intervals, name: str) -> FullLink | None:
    operations = device.operations
    mine = np.flatnonzero(np.isin(operations.copy_kind, DIRECTIONS[name]) & device.running)
    spans = Intervals(operations.start[mine], operations.end[mine])
    busy, judged_ns = intersect(union(spans), judged).total(), judged.total()
    inside = (spans.end > judged.start[0]) & (spans.start < judged.end[-1]) if len(judged) else spans.start < 0
    if not judged_ns or busy < FULL * judged_ns or not inside.any():
        return None
    length, size = (spans.end - spans.start)[inside], operations.size[mine][inside]
    pageable = 2 * int(length[is_pageable(device)[mine][inside]].sum()) > int(length.sum())
    return FullLink(name, busy / judged_ns, float(size.sum()) / int(length.sum()) * 1e9, float(size.mean()), pageable)
