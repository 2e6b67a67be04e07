"""Axes: round steps, and labels that differ wherever values do.

Templates and figures get finished labels from here. The timeline, which zooms, follows the same rules in
`templates/assets/timeline/scale.js`.
"""

from __future__ import annotations

from nsysdiag.document.figures import percent
from nsysdiag.units import NS_PER, format_count

EDGES: list[int] = [step * 10**power for power in range(19) for step in (1, 2, 5)]
"""1, 2 and 5 of every decade that an int64 holds."""
UNITS = ("s", "ms", "us")
MOST_TICKS, MOST_LEVELS = 5, 4
"""How many labels fit below a drawing, and beside it."""


def unit_of(longest: int) -> tuple[int, str]:
    """The unit that suits the longest time of an axis: its length in ns, and its name."""
    unit = next((unit for unit in UNITS if longest >= NS_PER[unit]), "ns")
    return NS_PER[unit], unit


def time_label(ns: int, longest: int | None = None) -> str:
    """A time of 0 ns or more with all digits that are not 0, in its own unit or that of the `longest` of its axis.

    Labels of different times differ: nothing is rounded.
    """
    scale, unit = unit_of(ns if longest is None else longest)
    whole, rest = divmod(ns, scale)
    digits = f"{rest:0{len(str(scale)) - 1}d}".rstrip("0")
    return f"{whole:,}{'.' if digits else ''}{digits} {unit}"


def round_steps(top: int, most: int = MOST_TICKS) -> list[int]:
    """Multiples of 1, 2 or 5 times a power of ten up to `top`, at most so many, without 0."""
    step = round_step(top, most)
    return list(range(step, top + 1, step))


def round_step(span: int, most: int = MOST_TICKS) -> int:
    """The smallest 1, 2 or 5 times a power of ten of which at most `most` fit into `span`."""
    return next((edge for edge in EDGES if span // edge <= most), EDGES[-1])


def count_levels(top: int, most: int = MOST_LEVELS) -> dict[str, int]:
    """Round numbers up to `top` by their labels."""
    return {format_count(value): value for value in round_steps(top, most)}


def time_levels(top: int, most: int = MOST_LEVELS) -> dict[str, int]:
    """Round times up to `top` ns by their labels, all in one unit."""
    return {time_label(ns, top): ns for ns in round_steps(top, most)}


def time_ticks(top: int) -> list[tuple[str, str]]:
    """Round times on an axis from 0 to `top` ns: where each is in per cent of it, and its label."""
    return [(percent(ns, top), label) for label, ns in time_levels(top, MOST_TICKS).items()]
