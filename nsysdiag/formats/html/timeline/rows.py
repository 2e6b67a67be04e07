"""The exact slices of a lane as numbers again, checked, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.codes import WIDEST, from_planes, running_sums
from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.errors import InputError
from nsysdiag.formats.html.carried import unpacked

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.timeline.facts import TimelineLane

    IntArray = npt.NDArray[np.int64]


class Rows(Struct, frozen=True):
    """Slices by start: start and length in ns, number of the name and kind, empty where a lane has none. Starts count
    from `base`."""

    base: int
    start: IntArray
    length: IntArray
    name: IntArray
    kind: IntArray

    def steps(self) -> tuple[IntArray, bool]:
        """Each start as its distance from the end of the slice before, and True, if no slice begins before that; else
        from the start of the slice before, and False."""
        behind = np.concatenate([[self.base], (self.start + self.length)[:-1]]) if len(self.start) else self.start
        apart = self.start - behind
        if bool(np.all(apart >= 0)):
            return apart, True
        return np.diff(self.start, prepend=np.int64(self.base)), False


def rows_of(lane: TimelineLane, base: int, places: IntArray) -> Rows:
    """The slices of a lane; `places` is the number on the page for each name of its timeline. Raises InputError where
    the report is damaged."""
    try:
        steps, length, name, kind = (
            from_planes(unpacked(column, WIDEST * lane.count), lane.count) if column else np.empty(0, dtype=np.int64)
            for column in (lane.starts, lane.lengths, lane.names, lane.kinds)
        )
        start = running_sums(steps, base)
        running_sums(length, int(start[-1]) if len(start) else base)
    except ValueError as error:
        raise InputError("the timeline of this report contradicts itself: the file is damaged") from error
    if len(steps) != lane.count or len(length) != lane.count or (len(name) and int(name.max()) >= len(places)):
        raise InputError("the timeline of this report contradicts itself: the file is damaged")
    return Rows(base, start, length, places[name] if len(name) else name, kind)


def between(streams: list[Rows], start: IntArray, length: IntArray) -> bool:
    """Are these gaps exactly the time between the slices of all `streams`?"""
    busy = union(*(Intervals(rows.start, rows.start + rows.length) for rows in streams))
    return np.array_equal(busy.end[:-1], start) and np.array_equal(busy.start[1:] - busy.end[:-1], length)
