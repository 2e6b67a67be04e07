"""The time that is replayed: as many whole steps of the judged phase as fit, or all of a judged window."""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.diagnosis.facts import TooMany

LEAST_ERROR = 0.005
"""Share of the replayed time: no prediction is better, however well the model reproduces what was recorded. What takes
less changes none."""
FEWEST_STEPS, MOST_STEPS = 3, 100
SETTLING = 4
"""From so many steps on the first one is left out: what was queued before it belongs to the time as it was."""
MOST_OPERATIONS, MOST_AT_ALL = 100_000, 1_000_000
"""Most operations of all devices in the replayed time, each with two moments, its launch and its start: for as many
steps as fit, and for the fewest steps or a window without steps."""
MOST_APART = 0.05
TIMES_APART = "the judged time is in parts, and what is between them would be replayed as well"
"""Why nothing is replayed where more than MOST_APART of the time from the first to the last part is between them: a fix
would be predicted for time that is not judged."""


class Stretch(Struct, frozen=True):
    """The time [borders[0], borders[-1]) in ns; `borders` are those of its steps where `stepwise`, else two. Steps are
    `named` by ranges of the program, or found by what repeats on a device."""

    borders: IntArray
    stepwise: bool
    named: bool = False

    @property
    def per(self) -> Literal["step", "window"]:
        """What lengths are those of."""
        return "step" if self.stepwise else "window"

    @property
    def count(self) -> int:
        """How many steps it holds, or 1."""
        return len(self.borders) - 1

    @property
    def begin(self) -> int:
        """When it begins."""
        return int(self.borders[0])

    @property
    def end(self) -> int:
        """When it ends."""
        return int(self.borders[-1])


class Repeating(Struct, frozen=True):
    """The judged time (a set), and the borders of its steps in ns, None where it has none; ranges may name them."""

    parts: Intervals
    steps: IntArray | None
    named: bool = False


def are_apart(parts: Intervals) -> bool:
    """Whether much of the time from the first to the last of these parts, a set, is between them."""
    whole = int(parts.end[-1] - parts.start[0]) if len(parts) else 0
    return whole - int((parts.end - parts.start).sum()) > MOST_APART * whole


def first_border(steps: int) -> int:
    """The place of the step whose end is the first border of those that count."""
    return int(steps > SETTLING)


def stretch_of(
    parts: Intervals, steps: IntArray | None, starts: IntArray, wanted: int = MOST_OPERATIONS, most: int = 0
) -> Stretch | str:
    """The replayed part of the judged time `parts` (a set) with step borders `steps` (None without steps), or a
    sentence why there is none.

    `starts` are the starts of all operations, ascending. As many steps are replayed as hold `wanted` operations, but
    FEWEST_STEPS at least. These, or a window without steps, may hold `most`, if that is more. Steps are taken from the
    middle, as the first ones of a phase may not be steady."""
    most = max(wanted, most)
    if len(parts) == 0:
        return "no GPU work was recorded in the judged time"
    lo, hi = int(parts.start[0]), int(parts.end[-1])
    inside = np.empty(0, np.int64) if steps is None else steps[(steps >= lo) & (steps <= hi)]
    if len(inside) <= FEWEST_STEPS:
        return _whole(lo, hi, starts, most)
    before = np.searchsorted(starts, inside)
    per_step = max(int(before[-1] - before[0]) // (len(inside) - 1), 1)
    count = min(len(inside) - 1, MOST_STEPS, max(wanted // per_step, FEWEST_STEPS))
    if FEWEST_STEPS * per_step > most:
        return TooMany(f"{FEWEST_STEPS} steps hold more than {most:,} operations, too many to replay")
    first = (len(inside) - 1 - count) // 2
    if before[first] == before[first + count]:
        return "no GPU work was recorded in the steps of the judged time"
    return Stretch(inside[first : first + count + 1], stepwise=True)


def _whole(lo: int, hi: int, starts: IntArray, most: int) -> Stretch | str:
    count = int(np.searchsorted(starts, hi) - np.searchsorted(starts, lo))
    if count > most:
        return TooMany(f"the judged time holds {count:,} operations and no steps, too many to replay")
    if count == 0:
        return "no GPU work was recorded in the judged time"
    return Stretch(np.array([lo, hi], np.int64), stepwise=False)
