"""Values over time as numbers for a drawing: curves with a scale beside them, and strips with one value each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.document.bars import Label, Line, Spot


Look = Literal["area", "line", "dots"]


@dataclass(frozen=True, slots=True)
class Layer:
    """A filled area, a line or dots over it, with what the legend says of it."""

    d: str
    label: str
    look: Look


@dataclass(frozen=True, slots=True)
class Curve:
    """Layers of `width` by `height` units; `lines` are the levels of the scale, `bottom` is what stands at its floor,
    `limit` a level of its own. A spot is `spot_width` wide; `labels` stand below."""

    width: int
    height: int
    layers: Sequence[Layer]
    lines: Sequence[Line]
    spots: Sequence[Spot]
    spot_width: int
    bottom: str = ""
    limit: Line | None = None
    labels: Sequence[Label] = ()


@dataclass(frozen=True, slots=True)
class Strip:
    """One value over time: `d` is filled, `note` a figure beside its title, `label` its words for a screen reader."""

    title: str
    note: str
    label: str
    d: str
    spots: Sequence[Spot]
    spot_width: int


@dataclass(frozen=True, slots=True)
class Strips:
    """Strips of `width` by `height` units over the same time, each on a scale of its own, with `marks` across all."""

    width: int
    height: int
    strips: Sequence[Strip]
    marks: Sequence[int] = ()
