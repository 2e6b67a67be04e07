"""What a thread did behind a wait, in idle time that is charged to the wait: by the findings on both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysdiag.arrays.groups import group_totals
from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.events.identity import joint
from nsysdiag.findings.attribution import Shares
from nsysdiag.findings.hotspots import Hotspot
from nsysdiag.phases.facts import BehindWait, Place
from nsysdiag.report import Finding

NONE = -1


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
    spot = np.full(len(shares), NONE, dtype=np.int64)
    for number, each in enumerate(spots):
        spot[each.rows] = number
    made = np.flatnonzero((shares.wait >= 0) & (spot >= 0) & (shares.counted > 0))
    size = int(max(shares.slice.max(initial=0), shares.behind.max(initial=0))) + 1
    of_slice, bottleneck = np.full(size, NONE, dtype=np.int64), np.zeros(size, dtype=np.int64)
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
