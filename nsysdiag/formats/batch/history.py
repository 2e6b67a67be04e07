"""The history of traces by input and device, one series each, the newest run last. Also its drawings: a sparkline of
the idle share, and a chart of any value over named runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT, HoverArea, Label, Line
from nsysdiag.document.curve import Curve, CurveLayer, Spark, TimeSeries, draw_spark
from nsysdiag.document.figures import percent
from nsysdiag.document.kinds import TIME
from nsysdiag.document.names import clip
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import HistoryLine
    from nsysdiag.document.kinds import CellKind

MOST_SPARKS = 60
_LATEST = 253_402_300_799


def series(history: Sequence[HistoryLine]) -> dict[tuple[str, str], list[HistoryLine]]:
    """The runs by input and device, in the order of time; equal times keep the order of the file."""
    found: dict[tuple[str, str], list[HistoryLine]] = {}
    for line in sorted(history, key=lambda each: each.at):
        found.setdefault((line.input, line.device), []).append(line)
    return found


def idle_share(line: HistoryLine) -> float:
    """Idle time as a part of the window, 0..1."""
    return line.idle_ns / line.window_ns if line.window_ns > 0 else 0.0


def moment(line: HistoryLine) -> str:
    """When a run was, in UTC to the minute."""
    return datetime.fromtimestamp(min(max(line.at, 0), _LATEST), tz=UTC).strftime("%Y-%m-%d %H:%M")


def spark(lines: Sequence[HistoryLine]) -> Spark | None:
    """The idle share of the latest runs in which the device worked as a line, None where there are not two."""
    shares = [idle_share(line) for line in lines[-MOST_SPARKS:] if line.window_ns > 0]
    return draw_spark(shares, f"Idle share over {len(shares)} runs") if len(shares) > 1 else None


LABEL_LENGTH = 16
FEWEST_SLOTS = 7
"""So many runs fill the width. Each then has room for its name, in narrow windows too."""
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_LEVELS = 5


def draw_line(
    values: Sequence[int | None],
    top: int,
    levels: dict[str, int],
    texts: Sequence[str],
    below: Sequence[Label] = (),
    *,
    what: str = "",
    kind: CellKind = TIME,
) -> Curve:
    """Values from 0 to `top`, which fills the height, a slot a run; the line has gaps where a run has no value.
    `levels` has the text of each level and its value, `texts` what the pointer shows of each value, `below` the names
    of the runs; the values are `what`, of one `kind`."""
    series = TimeSeries(range(len(values) + 1), values)
    slots = max(len(values), FEWEST_SLOTS)
    points = [None if value is None else (_middle(at), _place(value, top)) for at, value in enumerate(values)]
    pieces, drawing = [], False
    for point in points:
        if point is not None:
            pieces.append(f"{'L' if drawing else 'M'}{point[0]} {point[1]}")
        drawing = point is not None
    dots = "".join(f"M{point[0]} {point[1]}h0" for point in points if point)
    return Curve(
        width=slots * SLOT,
        height=HEIGHT,
        layers=[CurveLayer("".join(pieces), "", "line", series), CurveLayer(dots, "", "dots", series)],
        lines=[
            Line(percent(_place(value, top), HEIGHT), label, value) for label, value in levels.items() if value < top
        ],
        spots=[HoverArea(at * SLOT, text) for at, text in enumerate(texts)],
        spot_width=SLOT,
        what=what,
        kind=kind,
        top=top,
        bottom="0",
        labels=below,
    )


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
