"""The history of traces by input and device: one series each, the newest run last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nsysdiag.document.bars import HEIGHT, SLOT
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import HistoryLine

MOST_SPARKS = 60
SPARK_RANGE = 0.05
"""The height of a sparkline is at least so much of the window: what is less is noise and looks like it."""
_LATEST = 253_402_300_799


@dataclass(frozen=True, slots=True)
class Spark:
    """The idle share over the runs: a line in a drawing of `width` by HEIGHT units, its last point, and its ends in
    words. `change` is from the first to the last run."""

    width: int
    line: str
    dot: str
    told: str
    label: str
    change: float


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
    """The latest runs as a sparkline, None where there are not two."""
    shares = [idle_share(line) for line in lines[-MOST_SPARKS:]]
    if len(shares) < 2:
        return None
    low, high = min(shares), max(shares)
    pad = max(SPARK_RANGE - (high - low), 0.0) / 2 + 0.1 * max(high - low, SPARK_RANGE)
    places = [_place(share, low - pad, high + pad) for share in shares]
    points = [f"{SLOT * at} {y}" for at, y in enumerate(places)]
    first, last = (format_share(share, 1) for share in (shares[0], shares[-1]))
    lowest, highest = (format_share(share, 1) for share in (low, high))
    return Spark(
        width=SLOT * (len(shares) - 1),
        line="M" + "L".join(points),
        dot=f"M{points[-1]}h0",
        told=f"{first} → {last}",
        label=f"Idle share over {len(shares)} runs: first {first}, last {last}, lowest {lowest}, highest {highest}",
        change=shares[-1] - shares[0],
    )


def _place(value: float, low: float, high: float) -> int:
    """The distance from the upper edge."""
    return round(HEIGHT * (high - value) / (high - low))
