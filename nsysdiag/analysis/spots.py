"""From the places of a cause to what becomes a finding: the large ones each, the rest of the cause together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.identity import joint
from nsysdiag.activity.streams import distinct
from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.places import Shares
from nsysdiag.config import FindingThresholds
from nsysdiag.timeline.intervals import IntArray


@dataclass(frozen=True, slots=True)
class Spot:
    """Part of one cause's time. `rows` are its places in the shares; `kind` and `path` are None for a spot of several
    places; `rest` marks what a cause has besides its large places."""

    cause: str
    kind: int | None
    path: int | None
    rest: bool
    rows: IntArray
    lost_ns: int
    drained_ns: int
    ceiling_ns: int

    @property
    def runs_dry(self) -> bool:
        """Are the gaps that its calls opened more than what it loses itself?"""
        return self.drained_ns > self.lost_ns


def spots_of(shares: Shares, window_ns: int, busy_ns: int, thresholds: FindingThresholds) -> list[Spot]:
    """The spots of a device that reach the smallest share of the window, those that may bring most first.

    A cause is divided only if two of its places or more are large, and never one that nobody can explain:

    ```
    sync   forward 9 %   loss 4 %   a, b, c 0.5 % each    ->  forward, loss, the rest
    sync   forward 9 %              a, b, c 0.5 % each    ->  one
    ```

    No host can hide more idle time than there is work to hide it under, so the ceiling of drained gaps is `busy_ns`.
    """
    least = max(thresholds.smallest * window_ns, 1)
    found: list[Spot] = []
    for cause in np.unique(shares.cause).tolist():
        rows = np.flatnonzero(shares.cause == cause)
        whole = _spot(shares, list(CAUSES)[cause], rows, busy_ns)
        if whole.ceiling_ns < least:
            continue
        divisible = not CAUSES[whole.cause].unresolved
        found += _divided(shares, whole, busy_ns, least, thresholds.places) if divisible else [whole]
    return sorted(found, key=lambda spot: (-spot.ceiling_ns, -spot.lost_ns, spot.cause))


def _spot(
    shares: Shares,
    cause: str,
    rows: IntArray,
    busy_ns: int,
    *,
    kind: int | None = None,
    path: int | None = None,
    rest: bool = False,
) -> Spot:
    lost, drained = int(shares.lost[rows].sum()), int(shares.drained[rows].sum())
    return Spot(cause, kind, path, rest, rows, lost, drained, max(lost, min(drained, busy_ns)))


def _divided(shares: Shares, whole: Spot, busy_ns: int, least: float, most: int) -> list[Spot]:
    rows = whole.rows
    width = int(shares.path[rows].max()) + 1
    present, code = distinct(joint(shares.kind[rows], shares.path[rows], width))
    lost, drained = (_by_place(code, len(present), side[rows]) for side in (shares.lost, shares.drained))
    ceiling = np.maximum(lost, np.minimum(drained, busy_ns))
    large = np.flatnonzero(ceiling >= least)
    if len(large) < 2:
        return [whole]
    large = large[np.lexsort((large, -ceiling[large], -lost[large]))][:most]
    places = [
        _spot(
            shares,
            whole.cause,
            rows[code == at],
            busy_ns,
            kind=int(present[at]) // width,
            path=int(present[at]) % width,
        )
        for at in large.tolist()
    ]
    rest = _spot(shares, whole.cause, rows[~np.isin(code, large)], busy_ns, rest=True)
    return [*places, rest] if rest.ceiling_ns >= least else places


def _by_place(code: IntArray, places: int, ns: IntArray) -> IntArray:
    total = np.zeros(places, dtype=np.int64)
    np.add.at(total, code, ns)
    return total
