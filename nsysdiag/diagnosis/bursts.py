"""Work that comes in bursts: stretches of it, and between them long idle time in which nothing was asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, subtract
from nsysdiag.causes import places
from nsysdiag.causes.cause import Loss
from nsysdiag.config.settings import TriageThresholds
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.ledger.assignment import Slices

MOSTLY = 0.5
# Calls that wait for another program to send something, other than reads of files.
ASKED = re.compile(r"\b_*(epoll_p?wait2?|p?poll|p?select6?|accept4?|recv(from|msg|mmsg)?|mq_(timed)?receive|msgrcv)\b")


@dataclass(frozen=True, slots=True)
class Bursts:
    """The bursts inside the window in order of time, and for each gap of the device whether it is between two."""

    spans: Intervals
    between: BoolArray

    def __len__(self) -> int:
        return len(self.spans)


def find_bursts(gaps: Gaps, slices: Slices, parts: Intervals, limits: TriageThresholds) -> Bursts:
    """What of the window `parts` is between long gaps in which the host had nothing to do; `slices` are by root
    cause.

    ```
    device   [=][==].[=]..........[==].[==]......................[=][=]
    host                [epoll_wait]       [pthread_cond_wait   ]
    bursts   [---------)          [-------)                      [----)
    ```

    A long gap in which the host computed, read files or waited for the device is no pause between bursts.
    """
    length = gaps.end - gaps.start
    between = (length >= limits.burst_gap_ns) & (_waiting(slices, len(gaps)) > MOSTLY * length)
    spans = subtract(parts, Intervals(gaps.start[between], gaps.end[between]))
    return Bursts(spans[spans.end > spans.start], between)


def _waiting(slices: Slices, gap_count: int) -> IntArray:
    """The ns of each gap in which the host waited to be asked for something, or for another thread that was not found
    to have done anything."""
    rows = slices.rows
    asked = np.array([ASKED.search(typed.plain(text)) is not None for text in slices.texts] + [False], dtype=np.bool_)
    waits = np.isin(rows.cause, places(lambda cause: cause.follows_wakeups and cause.loss is not Loss.INPUT))
    waits |= np.isin(rows.cause, places(lambda cause: cause.follows_wakeups)) & asked[rows.text]
    result = np.zeros(gap_count, dtype=np.int64)
    np.add.at(result, rows.gap[waits], slices.lengths(waits))
    return result


def irregularity(spans: Intervals) -> float | None:
    """How far the time from one start to the next is from the median one, in the median of cases, as a share of it;
    None of fewer than three spans."""
    if len(spans) < 3:
        return None
    step = np.diff(spans.start)
    middle = float(np.median(step))
    return float(np.median(np.abs(step - middle))) / middle if middle > 0 else None
