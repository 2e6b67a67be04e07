"""The level of device memory as numbers for a drawing: a band from the lowest to the highest level of each bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, LINE_ROOM, SLOT, Line, Spot, band, stairs
from nsysdiag.document.curve import Curve, Layer, TimeSeries
from nsysdiag.document.figures import percent
from nsysdiag.document.kinds import BYTES
from nsysdiag.document.packed import Level, unpack_level
from nsysdiag.document.words import instant
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from nsysdiag.memory.facts import DeviceMemory

FEWEST_LINES = 3
NEAR = 2
"""The limit is drawn where the peak is at least this fraction of it."""


def draw_level(memory: DeviceMemory, most_spots: int) -> Curve | None:
    """The chart on a linear scale from 0, a slot a bucket, with the limit unless it is far above.

    None where nothing was ever given out. Raises InputError where the report is damaged.
    """
    level = unpack_level(memory)
    peak = max(int(level.highest.max()), memory.peak_bytes)
    if peak <= 0:
        return None
    limit = memory.limit_bytes if memory.limit_bytes and memory.limit_bytes <= NEAR * peak else None
    top = max(peak, limit or 0)
    count = len(level.highest)
    together = -(-count // most_spots)
    highest, lowest = ([_place(value, top) for value in each.tolist()] for each in (level.highest, level.lowest))
    edges, most = level.edges.tolist(), level.highest.tolist()
    return Curve(
        width=SLOT * count,
        height=HEIGHT,
        layers=[
            Layer(band(lowest, highest), "lowest to highest", "area", TimeSeries(edges, most, level.lowest.tolist())),
            Layer(stairs(highest), "highest", "line", TimeSeries(edges, most)),
        ],
        lines=level_lines(top, limit),
        limit=Line(percent(_place(limit, top), HEIGHT), f"limit {format_bytes(limit)}", limit) if limit else None,
        spots=[_spot(level, at, together) for at in range(0, count, together)],
        spot_width=SLOT * together,
        what="Device memory given out",
        kind=BYTES,
        top=top,
        bottom="0",
    )


def _place(value: int, top: int) -> int:
    """The distance from the upper edge."""
    return round(HEIGHT * (1 - min(max(value, 0), top) / top))


def level_lines(top: int, limit: int | None) -> list[Line]:
    """At multiples of a power of two, three to six of them; none near the floor or the limit."""
    step = 1 << max((top // FEWEST_LINES).bit_length() - 1, 0)
    taken = _place(limit, top) if limit else -LINE_ROOM
    places = [(value, _place(value, top)) for value in range(step, top + 1, step)]
    return [
        Line(percent(y, HEIGHT), format_bytes(value), value)
        for value, y in places
        if HEIGHT - y >= LINE_ROOM and abs(y - taken) >= LINE_ROOM
    ]


def _spot(level: Level, at: int, together: int) -> Spot:
    part = slice(at, at + together)
    low, high = int(level.lowest[part].min()), int(level.highest[part].max())
    levels = format_bytes(high) if low == high else f"{format_bytes(low)} to {format_bytes(high)}"
    return Spot(SLOT * at, f"from {instant(int(level.edges[at]))}: {levels}")
