"""The history of traces by input and device, one series each, the newest run last."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nsysdiag.document.drawings import Spark
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import HistoryLine

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
    return Spark(shares, f"Idle share over {len(shares)} runs") if len(shares) > 1 else None


STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_LEVELS = 5


def share_levels(top: int, scale: int) -> dict[str, int]:
    """Round shares up to `top` parts of `scale`, and to all of it, by their texts."""
    top = min(top, scale)
    step = next((step for step in STEPS if top / scale <= step * MOST_LEVELS), STEPS[-1])
    count = int(top / scale / step + 1e-9)
    return {format_share(step * at, 1).replace(".0%", "%"): round(step * at * scale) for at in range(1, count + 1)}
