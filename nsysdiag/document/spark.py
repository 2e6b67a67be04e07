"""A small line in a cell: how a share went from one time to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_RANGE = 0.05
"""The height of a line is at least so much of the whole: what is less is noise and looks like it."""


@dataclass(frozen=True, slots=True)
class Spark:
    """A line in a drawing of `width` by `height` units, its last point, its ends in words (`said`), and a `label` for
    screen readers. `change` is from the first to the last share."""

    width: int
    height: int
    line: str
    dot: str
    said: str
    label: str
    change: float


def draw_spark(shares: Sequence[float], label: str) -> Spark:
    """At least two shares, 0..1, in order; `label` says what they are."""
    low, high = min(shares), max(shares)
    pad = max(LEAST_RANGE - (high - low), 0.0) / 2 + 0.1 * max(high - low, LEAST_RANGE)
    lower, upper = low - pad, high + pad
    points = [f"{SLOT * at} {round(HEIGHT * (upper - share) / (upper - lower))}" for at, share in enumerate(shares)]
    first, last, lowest, highest = (format_share(share, 1) for share in (shares[0], shares[-1], low, high))
    return Spark(
        width=SLOT * (len(shares) - 1),
        height=HEIGHT,
        line="M" + "L".join(points),
        dot=f"M{points[-1]}h0",
        said=f"{first} → {last}",
        label=f"{label}: first {first}, last {last}, lowest {lowest}, highest {highest}",
        change=shares[-1] - shares[0],
    )
