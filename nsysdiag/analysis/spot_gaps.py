"""The gaps of a spot: how much of it lies in each, where they are in the program, and who launched after them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.identity import pid_of, tid_of
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.gap_keys import GapKeys
from nsysdiag.analysis.grouping import group_totals
from nsysdiag.analysis.places import Shares
from nsysdiag.analysis.spots import Spot
from nsysdiag.model import Thread
from nsysdiag.timeline.intervals import IntArray


@dataclass(frozen=True, slots=True)
class SpotGaps:
    """The time of a spot by gap: `gap` are its gaps in order of time, `ns` what each contributes, never 0. Where the
    gaps that its calls opened are more than what it loses itself, they are those gaps."""

    gap: IntArray
    ns: IntArray

    @classmethod
    def of(cls, shares: Shares, spot: Spot) -> SpotGaps:
        """The gaps of a spot whose shares these are."""
        total = np.zeros(int(shares.gap.max()) + 1, dtype=np.int64)
        np.add.at(total, shares.gap, shares.drained if spot.runs_dry else shares.lost)
        gap = np.flatnonzero(total)
        return cls(gap, total[gap])

    @property
    def longest(self) -> int:
        """The gap that contributes most, of equal ones the first."""
        return int(self.gap[np.argmax(self.ns)])

    @property
    def median_ns(self) -> int:
        """The lower of the two middle ones where their number is even."""
        return int(np.sort(self.ns)[(len(self.ns) - 1) // 2])

    def leading(self, code: IntArray) -> tuple[int, float]:
        """Of a code for each gap of the device the one with most time here, and its share."""
        groups = group_totals(code[self.gap], self.ns)
        return int(groups.code[0]), int(groups.total[0]) / int(self.ns.sum())

    def typical(self, keys: GapKeys) -> int:
        """The first gap of the signature with most of the time."""
        leading, _ = self.leading(keys.code)
        return int(self.gap[np.argmax(keys.code[self.gap] == leading)])

    def path(self, keys: GapKeys, spot: Spot) -> list[str]:
        """The NVTX path: the spot's own, that of most of its time, or what all of its paths begin with."""
        if spot.path is not None:
            return keys.paths[spot.path]
        leading, share = self.leading(keys.path)
        if share > 0.5:
            return keys.paths[leading]
        return _common_beginning([keys.paths[code] for code in np.unique(keys.path[self.gap]).tolist()])

    def threads(self, context: GapContext) -> tuple[Thread | None, int]:
        """The launching thread with most of the time (None: unknown), and the number of others."""
        known = context.lane[self.gap] >= 0
        groups = group_totals(context.lane[self.gap][known], self.ns[known])
        if len(groups.code) == 0:
            return None, 0
        identity = int(context.axis.threads[int(groups.code[0])])
        name = context.thread_names.get(identity)
        return Thread(pid=pid_of(identity), tid=tid_of(identity), name=name), len(groups.code) - 1


def _common_beginning(paths: list[list[str]]) -> list[str]:
    common: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return common
