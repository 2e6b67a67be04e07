"""Values over time as a drawing and as numbers: curves with a scale, strips with one value each, and sparklines for
cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from nsysdiag.document.bars import HEIGHT, SLOT
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.document.bars import HoverArea, Label, Line
    from nsysdiag.document.kinds import CellKind


Look = Literal["area", "line", "dots"]
LEAST_RANGE = 0.05
"""The height of a small line is at least so much of the whole: what is less is noise and looks like it."""


class TimeSeries(Struct, frozen=True):
    """What a line or an area shows: `values[i]` holds from `edges[i]` to `edges[i + 1]`, None where it is not known.
    `edges` are ns of the trace's clock; a band reaches from `lowest` to the values."""

    edges: Sequence[int]
    values: Sequence[float | None]
    lowest: Sequence[float] = ()


class CurveLayer(Struct, frozen=True):
    """A filled area, a line or dots over it, with what the legend says of it, and the `series` behind it."""

    d: str
    label: str
    look: Look
    series: TimeSeries


class Curve(Struct, frozen=True):
    """Layers of `width` by `height` units; `lines` are the levels of the scale, `bottom` is the label of its floor,
    `limit` a separate level. A `HoverArea` is `spot_width` wide; `labels` are below. The values are `what`, of one
    `kind`, on a scale from 0 to `top`; with `log` it is logarithmic (of 1 more than the value)."""

    width: int
    height: int
    layers: Sequence[CurveLayer]
    lines: Sequence[Line]
    spots: Sequence[HoverArea]
    spot_width: int
    what: str
    kind: CellKind
    top: float
    log: bool = False
    bottom: str = ""
    limit: Line | None = None
    labels: Sequence[Label] = ()


class CurveStrip(Struct, frozen=True):
    """One value over time: `d` is a filled path, `note` a figure next to its title, `label` its text for a screen
    reader. Its `series` is of one `kind`, on a scale from 0 to `top`."""

    title: str
    note: str
    label: str
    d: str
    spots: Sequence[HoverArea]
    spot_width: int
    series: TimeSeries
    kind: CellKind
    top: float


class CurveStrips(Struct, frozen=True):
    """Strips of `width` by `height` units over the same time, each on a scale of its own. `marks` across all are
    at `moments`, in ns."""

    width: int
    height: int
    strips: Sequence[CurveStrip]
    marks: Sequence[int] = ()
    moments: Sequence[int] = ()


class Spark(Struct, frozen=True):
    """A sparkline of a share over time, in a drawing of `width` by `height` units: its last point, its ends in words
    (`said`), and a `label` for screen readers. `change` is from the first to the last share."""

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
