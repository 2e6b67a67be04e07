"""What every format draws of a comparison: rows picked out of it, and sums that still add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document.bars import LegendEntry, entry_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import (
        DeviceComparison,
        FindingChange,
        KernelChange,
        Move,
        PartChange,
        SignatureChange,
    )
    from nsysdiag.document.view import Causes


TINY = 0.005
"""Times below this share of a unit of work are folded away, as long as they hardly differ."""
SMALL = 0.01
"""Steps below this share of the largest one are drawn as one."""
DIFFERENT = ("improved", "regressed")
IDLE = "idle"


class WaterfallRow(Struct, frozen=True):
    """A step of the waterfall: it leads from one length to the next. Without an id it is `count` steps as one."""

    id: str
    count: int
    from_ns: int
    to_ns: int

    @property
    def change_ns(self) -> int:
        """What the step adds."""
        return self.to_ns - self.from_ns


class MatrixRow(Struct, frozen=True):
    """Where the time went that was counted as `id`; `cells` has a (ns, seen ns) for each column."""

    id: str | None
    cells: list[tuple[int, int]]
    total_ns: int


class Matrix(Struct, frozen=True):
    """Time by what it was counted as before (rows) and after (columns). None is the row of what came, the column of
    what went; OTHERS are small ones as one. All rows add up to `total_ns`, and all columns do."""

    columns: list[str | None]
    rows: list[MatrixRow]
    totals: list[int]
    total_ns: int


OTHERS = ""


def entry(id: str, causes: Causes) -> LegendEntry:
    """The label and colour of a part of the time or of a cause."""
    return LegendEntry("Idle", IDLE, "") if id == IDLE else entry_of(id, causes)


def title(id: str, causes: Causes) -> str:
    """The label of a part of the time or of a cause."""
    return entry(id, causes).label


def least(device: DeviceComparison) -> float:
    """The time, in ns, below which something is next to nothing of a unit of work."""
    return TINY * max(device.length.before_ns, device.length.after_ns)


def levels(device: DeviceComparison, most: int) -> list[WaterfallRow]:
    """The steps from the length before to the length after, at most so many: small ones are one at the end."""
    steps = device.waterfall
    small = SMALL * max((abs(step.change_ns) for step in steps), default=0)
    shown = min(sum(abs(step.change_ns) >= small for step in steps), most - 1)
    shown = len(steps) if len(steps) - shown == 1 else shown
    found, at = [], device.length.before_ns
    for step in steps[:shown]:
        found.append(WaterfallRow(step.id, 1, at, at + step.change_ns))
        at += step.change_ns
    rest = steps[shown:]
    return [*found, WaterfallRow("", len(rest), at, at + sum(step.change_ns for step in rest))] if rest else found


def split(rows: Sequence[PartChange], device: DeviceComparison) -> tuple[list[PartChange], list[PartChange]]:
    """Rows worth a look, and those too small for one that hardly differ."""
    small = least(device)
    tiny = [
        row
        for row in rows
        if row.change.verdict not in DIFFERENT and max(row.change.before_ns, row.change.after_ns) < small
    ]
    return [row for row in rows if row not in tiny], tiny


def has_roots(device: DeviceComparison) -> bool:
    """Does following wake-ups divide the idle time of either side in another way?"""
    roots, causes = (
        {row.id: (row.change.before_ns, row.change.after_ns) for row in ledger}
        for ledger in (device.root_ledger, device.ledger)
    )
    return roots != causes


def flows(device: DeviceComparison) -> list[Move]:
    """The time that did not stay what it was, most first, without what is next to nothing."""
    small = least(device)
    return [move for move in device.moves if move.before != move.after and move.ns >= small]


def matrix(device: DeviceComparison, most: int) -> Matrix:
    """The moves as a table; beyond the `most` parts with the most time, all are one."""
    size: dict[str, int] = {}
    for move in device.moves:
        for id in {move.before, move.after}:
            if id:
                size[id] = size.get(id, 0) + move.ns
    ids = sorted(size, key=lambda id: (-size[id], id))
    kept: list[str | None] = [None, *(ids if len(ids) <= most else ids[: most - 1])]
    order = [*kept[1:], OTHERS, None]
    cells: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for move in device.moves:
        one, two = (id if id in kept else OTHERS for id in (move.before, move.after))
        ns, seen = cells.get((one, two), (0, 0))
        cells[one, two] = (ns + move.ns, seen + move.seen_ns)
    columns = [id for id in order if any(cells.get((row, id)) for row in order)]
    rows = []
    for id in order:
        its = [cells.get((id, column), (0, 0)) for column in columns]
        if any(map(any, its)):
            rows.append(MatrixRow(id, its, sum(ns for ns, _ in its)))
    totals = [sum(row.cells[at][0] for row in rows) for at in range(len(columns))]
    return Matrix(columns, rows, totals, sum(totals))


def changed_kernels(device: DeviceComparison) -> list[KernelChange]:
    """Kernels that take more or less time beyond chance, or that one side has alone, the largest change first."""
    found = [row for row in device.kernels if row.change.verdict in DIFFERENT or row.status != "both"]
    return sorted(found, key=lambda row: -abs(row.change.change_ns))


def changed_gap_groups(device: DeviceComparison) -> list[SignatureChange]:
    """Gap groups whose time or cause changed, or may have changed, beyond chance, largest change first; negligible ones
    are left out."""
    small = least(device)

    def matters(row: SignatureChange) -> bool:
        if row.status == "recaused":
            return max(row.change.before_ns, row.change.after_ns) >= small
        return row.change.verdict != "same" and abs(row.change.change_ns) >= small

    found = [row for row in device.signatures if matters(row)]
    return sorted(found, key=lambda row: -abs(row.change.change_ns))


def lone_findings(device: DeviceComparison) -> list[FindingChange]:
    """Findings that one side has and the other has not."""
    return [row for row in device.findings if row.status not in ("both", "not_compared")]
