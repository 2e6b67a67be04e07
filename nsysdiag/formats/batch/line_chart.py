"""A line from run to run as numbers for a drawing, and the names of the runs below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT, Line, Spot
from nsysdiag.document.figures import percent
from nsysdiag.document.names import clip
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

LABEL_LENGTH = 16
FEWEST_SLOTS = 7
"""So many runs fill the width. Each then has room for its name, in narrow windows too."""
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_LEVELS = 5


@dataclass(frozen=True, slots=True)
class LineChart:
    """A drawing of `width` by `height` units with a slot a run; the line has gaps where a run has no value."""

    width: int
    height: int
    line: str
    dots: str
    lines: list[Line]
    spots: list[Spot]
    spot_width: int


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a run; `x` is the middle of its slot in per cent of the width."""

    x: str
    text: str


def draw_line(values: Sequence[int | None], top: int, levels: dict[str, int], told: Sequence[str]) -> LineChart:
    """Values from 0 to `top`, which fills the height; `levels` has the text of each level and its value, `told` what
    the pointer shows of each value."""
    slots = max(len(values), FEWEST_SLOTS)
    points = [None if value is None else (_middle(at), _place(value, top)) for at, value in enumerate(values)]
    return LineChart(
        width=slots * SLOT,
        height=HEIGHT,
        line=_line(points),
        dots="".join(f"M{point[0]} {point[1]}h0" for point in points if point),
        lines=[Line(percent(_place(value, top), HEIGHT), label) for label, value in levels.items() if value < top],
        spots=[Spot(at * SLOT, text) for at, text in enumerate(told)],
        spot_width=SLOT,
    )


def _line(points: Sequence[tuple[int, int] | None]) -> str:
    pieces, drawing = [], False
    for point in points:
        if point is not None:
            pieces.append(f"{'L' if drawing else 'M'}{point[0]} {point[1]}")
        drawing = point is not None
    return "".join(pieces)


def _middle(at: int) -> int:
    return at * SLOT + SLOT // 2


def _place(value: int, top: int) -> int:
    """The distance from the upper edge."""
    return round(HEIGHT * (1 - min(max(value, 0), top) / top))


def share_levels(top: int, scale: int) -> dict[str, int]:
    """Round shares up to `top` parts of `scale`, and to all of it, by their texts."""
    top = min(top, scale)
    step = next((step for step in STEPS if top / scale <= step * MOST_LEVELS), STEPS[-1])
    count = int(top / scale / step + 1e-9)
    return {format_share(step * at, 1).replace(".0%", "%"): round(step * at * scale) for at in range(1, count + 1)}


def labels(names: Sequence[str]) -> list[Label]:
    """The names of the newest run and of those before it at even distances, as far as there is room."""
    slots = max(len(names), FEWEST_SLOTS)
    step = -(-slots // FEWEST_SLOTS)
    chosen = sorted(range(len(names) - 1, -1, -step))
    return [Label(percent(_middle(at), slots * SLOT), clip(names[at], LABEL_LENGTH)) for at in chosen]
