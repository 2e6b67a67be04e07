"""As many exact rows as there is room for: counted first, then weighed as they are packed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import structs

from nsysdiag.analysis.lanes.exact import exact_parts
from nsysdiag.analysis.lanes.packing import NameTable, Packing, exact_size
from nsysdiag.analysis.lanes.source import Source, rows_in
from nsysdiag.model_timeline import TimelineLane
from nsysdiag.timeline.intervals import IntArray, Intervals

CAUTION, FEWEST_ROWS = 0.9, 300
"""How far under the room the next try aims, and the number of rows below which there is none."""

Chosen = Callable[[Source, Intervals, int], IntArray]
"""The rows of a source to keep, by the exact parts and the number of rows that there is room for."""


@dataclass(frozen=True, slots=True)
class Room:
    """So many rows, which take so many bytes in a report together with their names."""

    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """Lanes, the time [start, end) in ns in which they hold every row, and all names so far."""

    lanes: list[TimelineLane]
    exact: list[tuple[int, int]]
    names: NameTable


def fitted(packing: Packing, sources: list[Source], wanted: Intervals, room: Room, chosen: Chosen) -> Fitted:
    """The lanes of `sources`, exact around as many of the gaps `wanted`, the first ones first, as there is room for.

    What packed rows weigh is known once they are packed; where it is too much, the next try has fewer of them.
    """
    rows = room.rows
    while True:
        parts = exact_parts(sources, wanted, packing.low, packing.high, rows)
        trial = packing.fork()
        lanes = [trial.slices(source, chosen(source, parts, rows)) for source in sources]
        size = exact_size(lanes) + trial.names.size() - packing.names.size()
        if size <= room.size or rows <= FEWEST_ROWS:
            break
        held = min(sum(lane.count for lane in lanes), rows)
        rows = max(int(held * max(room.size, 0) / size * CAUTION), FEWEST_ROWS)
    lanes = [structs.replace(lane, levels=packing.shares(source)) for lane, source in zip(lanes, sources, strict=True)]
    return Fitted(lanes, list(zip(parts.start.tolist(), parts.end.tolist(), strict=True)), trial.names)


def rows_of(source: Source, parts: Intervals) -> IntArray:
    """The rows of a source that touch the parts."""
    return rows_in(source.start, source.end, source.reach, parts)
