"""What is compared: the timeline of each rank, and the collectives that ranks ran together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, subtract, union
from nsysdiag.causes import CAUSES
from nsysdiag.events.collectives import Collectives
from nsysdiag.report import IterationReport

if TYPE_CHECKING:  # the package of the pipeline imports this one
    from nsysdiag.pipeline.result import DeviceResult

WORK = ("compute", "exposed_comm", "exposed_copy")


class RankTimeline(Struct, frozen=True):
    """One rank: a device of a file. Ranks of one file have the same `clock`, a number; `epoch_ns` is the UTC of its
    time 0, None where the file does not say. `parts` is the time in `window` by what the device did and, where it was
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
    """The timeline of a device that was analysed; `by_mpi`: its collectives are calls of the host."""
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


def meet_by_mpi(results: list[DeviceResult]) -> bool:
    """Whether the ranks meet in MPI calls only: where any runs communication kernels, these tell more."""
    return not any(len(result.collectives) for result in results)


class Group(Struct, frozen=True, eq=False):
    """Collectives of one kind that `members` (indices of ranks) ran together. `start` and `end` are tables of ns with a
    row a member and a column a collective; `communicator` is 0 where the trace does not name it."""

    kind: int
    communicator: int
    members: list[int]
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        return int(self.start.shape[1])

    def only(self, rows: list[int]) -> Group:
        """Some of the members, by their rows."""
        members = [self.members[row] for row in rows]
        return Group(self.kind, self.communicator, members, self.start[rows], self.end[rows])

    def at(self, columns: IntArray | BoolArray) -> Group:
        """Some of the collectives."""
        return Group(self.kind, self.communicator, self.members, self.start[:, columns], self.end[:, columns])
