"""NVTX ranges on an axis of threads, placed and nested once for all that asks where the program was."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.arrays.nesting import Nesting
from nsysdiag.events.identity import joint
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import ThreadAxis, distinct
from nsysdiag.limits import short_path


class RangePaths(Struct, frozen=True):
    """The paths of ranges that nest: `code` is that of each range, `above` that of each path without its last name, and
    `name` the last one. Code 0 is the empty path. `levels` are slices of paths of one length, shortest first."""

    code: IntArray
    above: IntArray
    name: IntArray
    levels: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, nesting: Nesting, name: IntArray, width: int) -> RangePaths | None:
        """`name` is an index into `width` names; None where ranges do not nest."""
        if nesting.above is None:
            return None
        code = np.zeros(len(name), dtype=np.int32)
        above, names, levels, count = [np.zeros(1, dtype=np.int64)], [np.zeros(1, dtype=np.int64)], [], 1
        for at, rows in enumerate(nesting.members):
            outer = code[nesting.above[rows]] if at else code[rows]
            keys, place = distinct(joint(outer, name[rows], width))
            code[rows] = count + place
            above.append(keys // width)
            names.append(keys % width)
            levels.append((count, count + len(keys)))
            count += len(keys)
        return cls(code, np.concatenate(above), np.concatenate(names), tuple(levels))

    def used(self, code: IntArray) -> IntArray:
        """The paths of these codes and their beginnings, sorted."""
        found = np.zeros(len(self.above), dtype=np.bool_)
        found[code] = True
        found[0] = True
        for first, behind in reversed(self.levels):
            found[self.above[first:behind][found[first:behind]]] = True
        return np.flatnonzero(found)


class PlacedRanges(Struct, frozen=True):
    """The ranges of the threads of an axis: `row` is the row of each, `name` an index into the names of `ranges`.
    `nesting` has their spans on the axis, `paths` the path of each, None where they do not nest."""

    ranges: NvtxRanges
    axis: ThreadAxis
    row: IntArray
    name: IntArray
    nesting: Nesting
    paths: RangePaths | None

    @classmethod
    def of(cls, ranges: NvtxRanges, axis: ThreadAxis) -> PlacedRanges:
        """All ranges of these threads."""
        lane = axis.lane(ranges.rows.thread)
        row = np.flatnonzero(lane >= 0).astype(np.int32)
        rows = ranges.rows.take(row)
        nesting = Nesting.of(axis.place(lane[row], Intervals(rows.start, rows.end)))
        return cls(ranges, axis, row, rows.name, nesting, RangePaths.of(nesting, rows.name, len(ranges.names)))

    @property
    def spans(self) -> Intervals:
        """The spans of the ranges on the axis."""
        return self.nesting.intervals

    def path_codes(self, rank: IntArray, time: IntArray) -> tuple[IntArray, list[list[str]]]:
        """The ranges open on lane `rank` at each `time`: the code of each time's path, and the path of each code. A
        path has the names of its ranges, outermost first, cut if long together (limits.short_path). Code 0 is the
        empty path; lane -1 always has it."""
        position = np.where(rank >= 0, self.axis.position(np.maximum(rank, 0), time), -1)
        code, paths = self._by_level(position) if self.paths is None else self._of_innermost(self.paths, position)
        return code, [short_path(path) for path in paths]

    def _of_innermost(self, known: RangePaths, position: IntArray) -> tuple[IntArray, list[list[str]]]:
        found = np.append(known.code, 0)[self.nesting.innermost(position)]
        used = known.used(found)
        number = np.zeros(len(known.above), dtype=np.int32)
        number[used] = np.arange(len(used))
        paths: list[list[str]] = [[]]
        above, name = number[known.above[used]], known.name[used]
        for outer, inner in zip(above[1:].tolist(), name[1:].tolist(), strict=True):
            paths.append([*paths[outer], self.ranges.names[inner]])
        return number[found], paths

    def _by_level(self, position: IntArray) -> tuple[IntArray, list[list[str]]]:
        code = np.zeros(len(position), dtype=np.int32)
        paths: list[list[str]] = [[]]
        width = len(self.ranges.names) + 1
        for level in self.nesting.open_at(position):
            inside = np.flatnonzero(level >= 0)
            unique, inverse = distinct(joint(code[inside], self.name[level[inside]], width))
            code[inside] = len(paths) + inverse
            paths += [[*paths[int(key) // width], self.ranges.names[int(key) % width]] for key in unique]
        return code, paths
