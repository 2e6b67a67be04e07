"""Time now above time as predicted: two strips on one scale, by what the GPU does and why it is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.bars import LegendEntry, legend_entry
from nsysdiag.document.blocks import PAGE, Chart
from nsysdiag.document.figures import Stack, Stacks, stack
from nsysdiag.document.view import share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsysdiag.document.view import Causes

NOW, PREDICTED = "Now", "Predicted"
DIVIDED = "by what the GPU does and why it is idle"
LEAST_LEGEND = 0.005
"""Of the longer strip: what takes less is too narrow to be seen."""
Strip = list[tuple[LegendEntry, int]]
"""What a strip is made of, and the ns of each."""


def strip(times: Mapping[str, int], causes: Causes, rest: int, rest_is: str = "Idle") -> Strip:
    """Ns by kind of work and by cause of idle time, in order, and idle time besides; less than nothing is nothing."""
    named = [(legend_entry(share_of(id, ns, causes)), max(ns, 0)) for id, ns in times.items()]
    return [*named, (LegendEntry(rest_is, "idle", ""), max(rest, 0))]


def length(strip: Strip) -> int:
    """All of it, in ns."""
    return sum(ns for _entry, ns in strip)


def strips(of: str, now: Strip, predicted: Strip, written: Callable[[int], str] | None = None, id: str = "") -> Chart:
    """Both strips of one thing ("A step"), with their lengths where they are `written`, and one legend; on the page.
    `id` tells them from others in the section."""
    longest = max(length(now), length(predicted), 1)
    legend = dict.fromkeys(entry for strip in (now, predicted) for entry, ns in strip if ns > LEAST_LEGEND * longest)
    rows = []
    for title, held in ((NOW, now), (PREDICTED, predicted)):
        segments = stack(((entry.label, ns, entry.color or None, entry.part) for entry, ns in held), longest)
        drawn = Stack(f"{of} {title.lower()}, {DIVIDED}", segments, longest)
        rows.append((f"{title}: {written(length(held))}" if written else title, drawn))
    return Chart(Stacks(rows), f"{of} now and as predicted, {DIVIDED}", legend=list(legend), limit=PAGE, id=id)
