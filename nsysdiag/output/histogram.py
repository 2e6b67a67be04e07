"""Histograms over lengths: bars side by side from one edge to the next, with the edges written below.

```
 12 |      ██
    |  ██  ██
    |__██__██______██__
     10us 20us 50us 100us
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.output.bars import Bar, BarChart, draw_bars
from nsysdiag.output.figures import percent
from nsysdiag.output.lengths import edge_label, round_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.output.view import Share

# More edges than this would write over each other on a narrow page: then only those of decades are named.
MOST_LABELS = 9
LEVELS = 4


@dataclass(frozen=True, slots=True)
class Tick:
    """An edge: where it is, in bins from the left and in per cent of the width, and what stands below it."""

    at: int
    x: str
    label: str


@dataclass(frozen=True, slots=True)
class Column:
    """What lies in one bin: `parts` from the bottom up, and what the pointer shows."""

    parts: list[Share]
    told: str


def draw_columns(columns: list[Column], told: Callable[[int], str]) -> BarChart | None:
    """The columns side by side with lines at round values, which `told` writes; None where all are empty."""
    bars = [
        Bar(sum(part.ns for part in each.parts), each.parts, each.told, slow=False, faded=False) for each in columns
    ]
    top = max((bar.total for bar in bars), default=0)
    return draw_bars(bars, top, levels(top, told), fewest=1)


def levels(top: int, told: Callable[[int], str]) -> dict[str, int]:
    """Round values up to the top, by what `told` writes for them."""
    return {told(step): step for step in round_steps(top, LEVELS)}


def ticks(edges: list[int]) -> list[Tick]:
    """The edges of the bins from the first to that behind the last, in ns."""
    named = list(enumerate(edges))
    if len(edges) > MOST_LABELS:
        named = [(at, edge) for at, edge in named if str(edge).strip("0") in ("", "1")]
    return [Tick(at, percent(at, len(edges) - 1), edge_label(edge)) for at, edge in named]
