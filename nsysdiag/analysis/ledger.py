"""The idle ledger: slices added up by cause, and how much of the idle time has an explanation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.analysis.assignment import Slices
from nsysdiag.analysis.causes import CAUSES

UNRESOLVED = frozenset(cause.id for cause in CAUSES.values() if cause.unresolved)
ACCEPTED = frozenset(cause.id for cause in CAUSES.values() if cause.accepted)


@dataclass(frozen=True, slots=True)
class Ledger:
    """`total` is ns by cause, causes in order of precedence, none with 0; `labels` the kinds within a cause; `dominant`
    the cause (place in the registry) with most of each gap, `share_known` the part of each gap that is resolved."""

    total: dict[str, int]
    labels: dict[str, dict[str, int]]
    dominant: IntArray
    unresolved_ns: IntArray


def add_up(slices: Slices, gap_count: int) -> Ledger:
    """Totals over all gaps, and each gap's dominant cause."""
    rows, ns = slices.rows, slices.ns
    best = np.zeros(gap_count, dtype=np.int64)
    dominant = np.zeros(gap_count, dtype=np.int32)
    unresolved = np.zeros(gap_count, dtype=np.int64)
    total: dict[str, int] = {}
    labels: dict[str, dict[str, int]] = {}
    for number, cause in enumerate(CAUSES):
        mine = np.flatnonzero(rows.cause == number)
        if len(mine) == 0:
            continue
        total[cause] = int(ns[mine].sum())
        labels |= _labelled(cause, rows.label[mine], ns[mine], slices.labels)
        by_gap = np.zeros(gap_count, dtype=np.int64)
        np.add.at(by_gap, rows.gap[mine], ns[mine])
        dominant = np.where(by_gap > best, np.int32(number), dominant)
        best = np.maximum(best, by_gap)
        if cause in UNRESOLVED:
            unresolved += by_gap
    return Ledger(total, labels, dominant, unresolved)


def _labelled(cause: str, label: IntArray, ns: IntArray, names: list[str]) -> dict[str, dict[str, int]]:
    found = {names[code]: int(ns[label == code].sum()) for code in np.unique(label[label >= 0]).tolist()}
    return {cause: found} if found else {}


def coverage(total: dict[str, int]) -> float | None:
    """1 - unresolved / (idle - what is no fault of the host); None where that is nothing."""
    accountable = sum(ns for cause, ns in total.items() if cause not in ACCEPTED)
    if accountable == 0:
        return None
    return 1 - sum(ns for cause, ns in total.items() if cause in UNRESOLVED) / accountable
