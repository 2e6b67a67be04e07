"""Levels over slots of one width as paths of an SVG: the distance of each from the upper edge."""

from __future__ import annotations

from nsysdiag.output.bars import SLOT


def stairs(levels: list[int]) -> str:
    """A line from slot to slot; `levels` is not empty."""
    return f"M0 {levels[0]}" + "".join(f"V{level}H{SLOT * (at + 1)}" for at, level in enumerate(levels))


def band(lowest: list[int], highest: list[int]) -> str:
    """The area between two lines of equally many slots."""
    back = "".join(f"V{lowest[at]}H{SLOT * at}" for at in range(len(lowest) - 1, -1, -1))
    return f"{stairs(highest)}{back}z"
