"""The clocks of several files brought together: by the starts of their sessions, refined by the ends of collectives.

All ranks of a collective end together, so the difference of the ends is the difference of the clocks:

```
rank 0, clock 0   [AllReduce]            [AllReduce]      ends at 100, 300
rank 1, clock 1         [----]                 [---]      ends at 140, 342     offset -40 .. -42, the median counts
```

How far the differences are from their median is the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, subtract, union
from nsysdiag.causes import CAUSES
from nsysdiag.events.collectives import KINDS, MEETINGS, Collectives
from nsysdiag.iterations.facts import IterationReport
from nsysdiag.time.facts import WORK
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.pipeline.result import DeviceResult


# What is compared: the timeline of each rank, and the collectives that ranks ran together.


class RankTimeline(Struct, frozen=True):
    """One rank: a device of a file. Ranks of one file have the same `clock`, a number; `epoch_ns` is the UTC of its
    time 0, None if the file does not say. `parts` is the time in `window` by what the device did and, if it was
    idle, by cause: disjoint sets that cover it. Idle time in calls of MPI is exposed communication."""

    rank: str
    file: str
    device: str
    name: str
    clock: int
    epoch_ns: int | None
    collectives: Collectives
    window: Intervals
    parts: dict[str, Intervals]
    iterations: IterationReport | None


def rank_timeline(
    rank: str, file: str, clock: int, epoch_ns: int | None, result: DeviceResult, *, by_mpi: bool
) -> RankTimeline:
    """The timeline of a device that was analyzed; `by_mpi`: its collectives are calls of the host."""
    rows, report = result.slices.rows, result.report
    parts = dict(zip(WORK, result.split.parts, strict=True))
    for number, cause in enumerate(CAUSES):
        mine = rows.cause == number
        if mine.any():
            parts[cause] = union(Intervals(rows.start[mine], rows.end[mine]))
    if len(result.in_mpi):
        parts = _with_mpi(parts, result.in_mpi)
    return RankTimeline(
        rank=rank,
        file=file,
        device=report.key,
        name=report.name,
        clock=clock,
        epoch_ns=epoch_ns,
        collectives=result.meetings if by_mpi else result.collectives,
        window=Intervals.of(report.window.parts),
        parts=parts,
        iterations=report.iterations,
    )


def _with_mpi(parts: dict[str, Intervals], mpi: Intervals) -> dict[str, Intervals]:
    idle = union(*(spans for name, spans in parts.items() if name not in WORK))
    left = {name: spans if name in WORK else subtract(spans, mpi) for name, spans in parts.items()}
    return left | {"exposed_comm": union(parts["exposed_comm"], intersect(idle, mpi))}


def meet_by_mpi(collectives: Iterable[Collectives]) -> bool:
    """Whether the ranks meet in MPI calls only: if any runs communication kernels, these tell more."""
    return not any(map(len, collectives))


class MatchedCollectives(Struct, frozen=True, eq=False):
    """Collectives of one kind that `members` (indices of ranks) ran together. `start` and `end` are tables of ns with a
    row a member and a column a collective; `communicator` is 0 if the trace does not name it."""

    kind: int
    communicator: int
    members: list[int]
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        return int(self.start.shape[1])

    def only(self, rows: list[int]) -> MatchedCollectives:
        """Some of the members, by their rows."""
        members = [self.members[row] for row in rows]
        return MatchedCollectives(self.kind, self.communicator, members, self.start[rows], self.end[rows])

    def at(self, columns: IntArray | BoolArray) -> MatchedCollectives:
        """Some of the collectives."""
        return MatchedCollectives(
            self.kind, self.communicator, self.members, self.start[:, columns], self.end[:, columns]
        )


FEWEST = 3
"""Collectives that two clocks must share to be aligned: one of them that ended late does not move the median of
three."""
FEWEST_FOR_DRIFT, MOST_DRIFT, BETTER = 30, 500e-6, 2
"""Collectives that show drift, ten in each third, and the largest drift that is believed, 500 ppm. BETTER is how many
times smaller it must make the error. If they are more permissive, chance or a slow change of delays passes for
drift."""


class Shift(Struct, frozen=True):
    """The offset from one clock to another: `ns` at the time `pivot`, plus `rate` times the time since then."""

    ns: int
    rate: float = 0.0
    pivot: int = 0

    def forward(self, times: IntArray) -> IntArray:
        """Times of the one clock on the other."""
        return times + self.ns + self._drift(times)

    def back(self, times: IntArray) -> IntArray:
        """Times of the other clock on the one."""
        return times - self.ns - self._drift(times - self.ns)

    def _drift(self, times: IntArray) -> IntArray:
        return np.rint(self.rate * (times - self.pivot)).astype(np.int64)

    def inverse(self) -> Shift:
        """The other way round."""
        return Shift(-self.ns, -self.rate, self.pivot + self.ns)

    def then(self, other: Shift) -> Shift:
        """This one and another behind it, as one."""
        on_the_way = other.rate * (self.pivot + self.ns - other.pivot)
        return Shift(self.ns + other.ns + round(on_the_way), self.rate + other.rate, self.pivot)


def fit(ends: IntArray, reference: IntArray) -> tuple[Shift, int]:
    """The shift from the clock of `ends` to that of `reference`, by the same collectives in order, and its error: the
    limit for 95 of 100 distances from it. Drift is used if it halves the error."""
    apart = reference - ends
    steady = Shift(int(np.median(apart)), 0.0, int(ends[0]))
    error = _error(steady, ends, reference)
    drifting = _drifting(ends, apart)
    if drifting is None or BETTER * _error(drifting, ends, reference) > error:
        return steady, error
    return drifting, _error(drifting, ends, reference)


def _drifting(ends: IntArray, apart: IntArray) -> Shift | None:
    third = len(ends) // 3
    if len(ends) < FEWEST_FOR_DRIFT:
        return None
    early, late = (float(np.median(apart[part])) for part in (slice(third), slice(-third, None)))
    low, high = (float(np.median(ends[part])) for part in (slice(third), slice(-third, None)))
    rate = (late - early) / max(high - low, 1.0)
    rest = apart - np.rint(rate * (ends - ends[0])).astype(np.int64)
    return Shift(int(np.median(rest)), rate, int(ends[0])) if abs(rate) <= MOST_DRIFT else None


def _error(shift: Shift, ends: IntArray, reference: IntArray) -> int:
    return int(np.percentile(np.abs(shift.forward(ends) - reference), 95))


class RankClocks(Struct, frozen=True, eq=False):
    """For each rank the number of its clock, the offset of its times, and the error in ns, None without collectives.
    `how` describes the source of the offsets."""

    clock: list[int]
    shift: list[Shift]
    error: list[int | None]
    how: str

    @property
    def largest_error(self) -> int | None:
        """The largest error of all ranks, None if that of any is unknown."""
        return None if None in self.error else max(error for error in self.error if error is not None)

    def error_between(self, members: list[int]) -> int | None:
        """How far apart the clocks of these ranks may be, 0 if they have one; None if it is not known."""
        if len({self.clock[member] for member in members}) == 1:
            return 0
        errors = [self.error[member] for member in members]
        return None if None in errors else 2 * max(error for error in errors if error is not None)

    def shifted(self, group: MatchedCollectives) -> MatchedCollectives:
        """The group on the common clock."""

        def common(times: IntArray) -> IntArray:
            return np.stack([self.shift[member].forward(row) for member, row in zip(group.members, times, strict=True)])

        return replace(group, start=common(group.start), end=common(group.end))

    def own(self, rank: int, spans: Intervals) -> Intervals:
        """Spans of the common clock on the rank's own one."""
        return Intervals(self.shift[rank].back(spans.start), self.shift[rank].back(spans.end))


def bring_together(ranks: list[RankTimeline], groups: list[MatchedCollectives]) -> RankClocks:
    """The offsets to the clock of the first rank."""
    clock = [rank.clock for rank in ranks]
    if len(set(clock)) == 1:
        return RankClocks(clock, [Shift(0)] * len(ranks), [0] * len(ranks), "one file, one clock")
    first = ranks[0].epoch_ns  # if a file does not say when its time 0 was, its session gives no offset
    by_sessions = {
        rank.clock: 0 if first is None or rank.epoch_ns is None else rank.epoch_ns - first for rank in reversed(ranks)
    }
    known = _along_links(clock[0], _links(ranks, groups))
    shift = [known[number][0] if number in known else Shift(by_sessions[number]) for number in clock]
    error = [known[number][1] if number in known else None for number in clock]
    return RankClocks(clock, shift, error, _how(known, by_sessions))


def _how(known: dict[int, tuple[Shift, int]], by_sessions: dict[int, int]) -> str:
    if len(known) == 1:
        return "by the session start times alone"
    moved = max(abs(shift.ns - by_sessions[clock]) for clock, (shift, _) in known.items())
    drift = max(abs(shift.rate) for shift, _ in known.values())
    apart = f"; they drift by up to {1e6 * drift:.0f} ppm" if drift else ""
    some = "" if len(known) == len(by_sessions) else "; the rest by the session start times alone"
    far = f"up to {format_ns(moved)} from the starts of the sessions"
    return f"aligned by the ends of collectives, {far}{apart}{some}"


def _links(ranks: list[RankTimeline], groups: list[MatchedCollectives]) -> dict[tuple[int, int], tuple[Shift, int]]:
    """The surest way between any two clocks: the shift from the second clock to the first, and its error. Kinds that
    all ranks leave together come before the others."""
    best: dict[tuple[int, int], tuple[bool, int, Shift]] = {}
    for group in groups:
        if len(group) < FEWEST:
            continue
        loose = KINDS[group.kind] not in MEETINGS
        for pair in [(row, other) for row in range(len(group.members)) for other in range(row)]:
            (first, row), (second, other) = sorted((ranks[group.members[each]].clock, each) for each in pair)
            if first == second:
                continue
            shift, error = fit(group.end[other], group.end[row])
            if (first, second) not in best or (loose, error) < best[first, second][:2]:
                best[first, second] = (loose, error, shift)
    return {clocks: (shift, error) for clocks, (_, error, shift) in best.items()}


def _along_links(root: int, links: dict[tuple[int, int], tuple[Shift, int]]) -> dict[int, tuple[Shift, int]]:
    """The shift of every clock that links lead to, with its error; errors add up along the way."""
    known = {root: (Shift(0), 0)}
    both = links | {(second, first): (shift.inverse(), error) for (first, second), (shift, error) in links.items()}
    while ways := [
        (known[first][1] + error, second, first, shift)
        for (first, second), (shift, error) in both.items()
        if first in known and second not in known
    ]:
        error, second, first, shift = min(ways, key=lambda way: way[:3])
        known[second] = (shift.then(known[first][0]), error)
    return known
