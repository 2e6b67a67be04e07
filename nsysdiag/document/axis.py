"""The scales of charts: round steps, labels that differ wherever values do, and bins of lengths."""

from __future__ import annotations

from nsysdiag.document.columns import TIME, CellKind
from nsysdiag.document.drawings import Bar, BarChart
from nsysdiag.document.svg import Mark, percent
from nsysdiag.units import NS_PER, format_count

# Templates and figures get finished labels from here. The timeline, which zooms, follows the same rules in
# `templates/assets/timeline/scale.js`.

EDGES: list[int] = [step * 10**power for power in range(19) for step in (1, 2, 5)]
"""1, 2 and 5 of every decade that an int64 holds."""
UNITS = ("s", "ms", "µs")
MOST_TICKS, MOST_LEVELS = 5, 4
"""How many labels fit below a drawing, and next to it."""
LEAST_APART = 0.09
"""Of a bar's width: labels that are closer touch on a narrow page."""


def unit_of(longest: int) -> tuple[int, str]:
    """The unit that suits the longest time of an axis: its length in ns, and its name."""
    unit = next((unit for unit in UNITS if longest >= NS_PER[unit]), "ns")
    return NS_PER[unit], unit


def time_label(ns: int, longest: int | None = None) -> str:
    """A time of at least 0 ns with all nonzero digits, in its own unit or that of the `longest` of its axis.

    It is not rounded, so labels of different times differ.
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


def time_ticks(top: int) -> list[Mark]:
    """Round times on an axis from 0 to `top` ns: where each is in per cent of it, and its label."""
    return [Mark(percent(ns, top), label) for label, ns in time_levels(top, MOST_TICKS).items()]


def moment_labels(moments: list[int]) -> list[str]:
    """Ascending moments in ns as labels in one unit, with enough digits to distinguish them, and precise to at least a
    hundredth of the span."""
    if not moments:
        return []
    scale, unit = unit_of(max(map(abs, moments)))
    fine = max(1, (moments[-1] - moments[0]) // 100)
    for digits in range(10):
        labels = [f"{moment / scale:,.{digits}f} {unit}" for moment in moments]
        if scale // 10**digits <= fine and len(set(labels)) == len(set(moments)):
            break
    return labels


def edge_ticks(moments: list[int]) -> list[Mark]:
    """Ascending moments below a bar from the first to the last: where each is in per cent, and its label. Of those that
    would touch the one before them only the last is labelled."""
    labels, span = moment_labels(moments), moments[-1] - moments[0]
    kept: list[int] = []
    for at, moment in enumerate(moments):
        last = at == len(moments) - 1
        room = span * LEAST_APART
        if kept and moment - moments[kept[-1]] < room:
            if not last:
                continue
            kept = kept[:-1] if len(kept) > 1 else kept
        kept.append(at)
    return [Mark(percent(moments[at] - moments[0], span), labels[at]) for at in kept]


MOST_EDGES = 9
"""More edges of bins than this would write over each other on a narrow page: then only those of decades are named."""


def edge_labels(edges: list[int]) -> dict[int, str]:
    """The edges of bins from the first to that behind the last, in ns: their labels by place."""
    every = len(edges) <= MOST_EDGES
    return {at: time_label(edge) for at, edge in enumerate(edges) if every or str(edge).strip("0") in ("", "1")}


def bound(at: int) -> str:
    """Where a bin begins, in the unit that suits it: `200 µs`."""
    return "more" if at == len(EDGES) else time_label(EDGES[at])


def panel(bars: list[Bar], kind: CellKind) -> BarChart:
    """A panel of a histogram: the bars from edge to edge, the highest as high as the panel."""
    top = max(1, *(bar.total for bar in bars))
    return BarChart(bars, top, (time_levels if kind is TIME else count_levels)(top), kind=kind, fewest=1)
