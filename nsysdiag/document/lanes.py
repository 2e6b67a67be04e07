"""Timelines without scripts as a drawing and as numbers: lanes below each other, with how much of each moment
something took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt


FULL = 255
"""The height of a lane: all of a bucket."""


class Area(Struct, frozen=True):
    """One colour of a lane: `part` names a colour of the theme where `color` is empty. `heights` are int64[n], from 0
    to FULL, for the buckets of the lane; `label` is what they show."""

    label: str
    part: str
    color: str
    d: str
    heights: npt.NDArray[np.int64]


class DrawnLane(Struct, frozen=True):
    """A lane in `width` by FULL units, a unit of the width a bucket."""

    label: str
    width: int
    paths: list[Area]


class LaneGroup(Struct, frozen=True):
    """The lanes of one device, or of one side of a comparison: equal buckets from `start_ns` to `end_ns`. They are
    `width` of the drawing wide, and a `note` is next to the label."""

    label: str
    start_ns: int
    end_ns: int
    lanes: list[DrawnLane]
    note: str = ""
    width: str = "100%"


class DrawnLanes(Struct, frozen=True):
    """Groups below each other. Those that are `aligned` have a common start, whatever the moment of the trace."""

    groups: Sequence[LaneGroup]
    aligned: bool = False
