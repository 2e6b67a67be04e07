"""What charts show, as data: every chart is declared here once, and each format draws it in its own way.

The page draws it as SVG (`svg.py`), a notebook as a plotly figure (`formats/figures.py`), text in characters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct

from nsysdiag.arrays.groups import summed
from nsysdiag.bottlenecks import BOTTLENECKS, shown, title_of
from nsysdiag.document.columns import TIME, CellKind
from nsysdiag.document.view import PARTS, UNKNOWN_COLOR, WORK, Causes, Share, share_of
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


def safe_color(color: str) -> str:
    """The colour if it is `#rrggbb`, else grey: colours come from the report, which may be an untrusted file."""
    return color if _COLOR.fullmatch(color) else UNKNOWN_COLOR


# Legends.


class LegendEntry(Struct, frozen=True):
    """What a colour means. That of a cause or of a part of the window is a shade of the one of its bottleneck, `group`;
    None for the bottleneck itself, and for what has none."""

    label: str
    part: str
    color: str
    group: LegendEntry | None = None


def legend_entry(share: Share) -> LegendEntry:
    """The label and colour of some time."""
    group = bottleneck_entry(share.bottleneck) if share.bottleneck in BOTTLENECKS else None
    return LegendEntry(share.label, share.part, safe_color(share.color) if share.color else "", group)


def entry_of(id: str, causes: Causes) -> LegendEntry:
    """The label and colour of a kind of work or of a cause, by its id."""
    return legend_entry(share_of(id, 0, causes))


def bottleneck_entry(bottleneck: str, text: str = "") -> LegendEntry:
    """The title, or the `text`, and the colour of a bottleneck; one of a later version is grey."""
    known = shown(bottleneck)
    color = "" if known and known.part else known.color if known else UNKNOWN_COLOR
    return LegendEntry(text or title_of(bottleneck), known.part if known else "", color)


def by_bottleneck(entries: Iterable[LegendEntry]) -> list[LegendEntry]:
    """The entries in groups by bottleneck; bottlenecks are in the order of their first entries."""
    kept = list(entries)
    places: dict[LegendEntry | None, int] = {}
    for at, each in enumerate(kept):
        places.setdefault(each.group or each, at)
    return sorted(kept, key=lambda each: places[each.group or each])


# Bars side by side, and histograms.

FEWEST_BARS = 20
"""So many bars fill the width; fewer leave a part of it empty, or they would be as wide as a page."""
LEVEL_ROOM = 0.09
"""Levels closer than this part of the height would write over each other."""


class Bar(Struct, frozen=True):
    """`parts` from the bottom up, called `name`; `tooltip` is what the pointer shows. `faded` bars do not count."""

    name: str
    parts: Sequence[Share]
    tooltip: str
    slow: bool = False
    faded: bool = False

    @property
    def total(self) -> int:
        """What its parts add up to."""
        return sum(part.ns for part in self.parts)


class BarChart(Struct, frozen=True):
    """Bars in order, with values of one `kind`; each stands for `what`. `top` fills the height, longer bars are cut
    off. `levels` are lines across them by label; `bottom` is the label of the floor. `named` ones have names below,
    and at least so many places as `fewest`."""

    bars: Sequence[Bar]
    top: int
    levels: Mapping[str, int]
    what: str = ""
    kind: CellKind = TIME
    bottom: str = ""
    named: bool = False
    fewest: int = FEWEST_BARS

    @property
    def legend(self) -> list[LegendEntry]:
        """The colours in use: what ran, the causes with the most time first, and all else."""
        every = [share for bar in self.bars for share in bar.parts]
        shares: dict[str, Share] = {}
        for share in every:
            shares.setdefault(share.id, share)
        total = summed({share.id: share.ns} for share in every)
        causes = sorted((id for id in shares if not shares[id].part), key=lambda id: (-total[id], id))
        others = [id for id in shares if shares[id].part and id not in WORK]
        order = [*(id for id in WORK if id in shares), *causes, *others]
        return by_bottleneck(legend_entry(shares[id]) for id in order)

    @property
    def remarks(self) -> set[str]:
        """What the legend has to explain: bars that are `slow`, `left-out` or `cut` off."""
        flags = ((bar.slow, bar.faded, bar.total > self.top) for bar in self.bars)
        return {name for each in flags for name, there in zip(("slow", "left-out", "cut"), each, strict=True) if there}

    def place(self, value: float) -> float:
        """The height of a value, as a part of the whole."""
        return value / self.top


class Histogram(Struct, frozen=True):
    """Bars above each other by title, over the same bins, whose edges stand below the last: labels by place, in bins.
    The bins are ranges of `what`."""

    panels: Mapping[str, BarChart]
    edges: Mapping[int, str]
    what: str


# Values over time.

Look = Literal["area", "line"]


class TimeSeries(Struct, frozen=True):
    """What a line or an area shows: `values[i]` holds from `edges[i]` to `edges[i + 1]`, None if it is not known.
    `edges` are ns of the trace's clock; a band reaches from `lowest` to the values."""

    edges: Sequence[int]
    values: Sequence[float | None]
    lowest: Sequence[float] = ()


class CurveLayer(Struct, frozen=True):
    """A filled area or a line, with what the legend says of it, and the `series` behind it. A `color` of its own is
    for several devices in one figure."""

    label: str
    look: Look
    series: TimeSeries
    color: str = ""


class Curve(Struct, frozen=True):
    """Layers over each other: values of one `kind`, of `what`, on a scale from 0 to `top`; with `log` it is logarithmic
    (of 1 more than the value). `levels` are lines of the scale by label, `bottom` is the label of its floor, `limit` a
    separate level. `hovers` is how many places the pointer finds. A curve over `names` has a point for each of them,
    instead of steps over time."""

    layers: Sequence[CurveLayer]
    what: str
    kind: CellKind
    top: float
    levels: Mapping[str, float]
    log: bool = False
    bottom: str = ""
    limit: Mapping[str, float] = {}
    hovers: int = 125
    names: Sequence[str] = ()

    def place(self, value: float) -> float:
        """The height of a value, as a part of the whole."""
        held = min(max(value, 0), self.top)
        return math.log1p(held) / math.log1p(self.top) if self.log else held / self.top


class CurveStrip(Struct, frozen=True):
    """A small curve below its title: `note` is a figure next to it, `label` its text for a screen reader."""

    title: str
    note: str
    label: str
    curve: Curve


class CurveStrips(Struct, frozen=True):
    """Small curves over the same time, each on a scale of its own; lines across all at `moments`, in ns."""

    strips: Sequence[CurveStrip]
    moments: Sequence[int] = ()


def shown_levels(chart: BarChart | Curve) -> dict[str, float]:
    """The levels inside the drawing, without those that would write over the floor's label, the limit or one before."""
    limit = chart.limit if isinstance(chart, Curve) else {}
    taken = [*([0.0] if chart.bottom else []), *(chart.place(value) for value in limit.values())]
    found: dict[str, float] = {}
    for label, value in chart.levels.items():
        at = chart.place(value)
        if 0 < at <= 1 and all(abs(at - other) >= LEVEL_ROOM for other in taken):
            found[label] = value
            taken.append(at)
    return found


class Spark(Struct, frozen=True):
    """A small line in a cell: at least two `shares`, 0 to 1, in order; `what` says what they are."""

    shares: Sequence[float]
    what: str

    @property
    def said(self) -> str:
        """Its ends in words."""
        return f"{format_share(self.shares[0], 1)} → {format_share(self.shares[-1], 1)}"

    @property
    def label(self) -> str:
        """What it shows, for a screen reader."""
        ends = (self.shares[0], self.shares[-1], min(self.shares), max(self.shares))
        first, last, lowest, highest = (format_share(share, 1) for share in ends)
        return f"{self.what}: first {first}, last {last}, lowest {lowest}, highest {highest}"

    @property
    def change(self) -> float:
        """From the first to the last share."""
        return self.shares[-1] - self.shares[0]


# Stacked bars.


class Segment(Struct, frozen=True):
    """A part of a stacked bar: `color` is a fill, empty with a `part` of the theme. A `faded` one is drawn paler."""

    label: str
    ns: int
    color: str
    part: str
    faded: bool = False


Timed = TypeVar("Timed", Segment, Share)


class StackedBar(Struct, frozen=True):
    """A stacked bar: what it shows in words, and what its segments add up to. It is as long as its segments, in
    proportion to `longest` if that is more; `said` stands above it in a cell, and for it in formats without drawings.
    One that is `over_time` begins at `start_ns`; it has labels without shares on it, and below it `ticks`: where each
    is in per cent, and its label."""

    label: str
    segments: Sequence[Segment]
    whole: int
    longest: int = 0
    said: str = ""
    over_time: bool = False
    ticks: Sequence[tuple[str, str]] = ()
    start_ns: int = 0


class Stacks(Struct, frozen=True):
    """Stacked bars below each other on one scale, each under what stands above it."""

    rows: Sequence[tuple[str, StackedBar]]


class IcicleCell(Struct, frozen=True):
    """A cell `depth` levels below the whole, from `start` on `ns` wide; `parts` are what it consists of, `tooltip` is
    what the pointer shows."""

    label: str
    depth: int
    start: int
    ns: int
    parts: Sequence[Segment]
    tooltip: str


LEAST_CELL, DEEPEST = 0.004, 10
"""Of an icicle: the share of the whole from which on a cell is drawn, and its levels."""


class TreeRow(Struct, frozen=True):
    """A row of a tree: the names from the outermost to its own, and its time with what it consists of."""

    path: tuple[str, ...]
    ns: int
    parts: Sequence[Segment]
    note: str = ""


class Icicle(Struct, frozen=True):
    """A tree from above: each cell on top of those inside it, as wide as its part of the `whole`."""

    cells: Sequence[IcicleCell]
    whole: int

    @classmethod
    def of(cls, rows: Iterable[TreeRow], name: str) -> Icicle:
        """The rows that are wide enough, each before the rows inside it; the first is the whole, with this name. Each
        begins where its siblings before it end."""
        cells: list[IcicleCell] = []
        free: dict[tuple[str, ...], int] = {(): 0}
        whole = 0
        for row in rows:
            whole = whole or row.ns
            start = free.get(row.path[:-1])
            if start is None or row.ns < LEAST_CELL * whole or len(row.path) >= DEEPEST:
                continue
            free[row.path[:-1]], free[row.path] = start + row.ns if row.path else start, start
            label = row.path[-1] if row.path else name
            time = f"{format_ns(row.ns)}, {format_share(row.ns, whole)}"
            said = f"{' › '.join(row.path) or name}: {time}{row.note and '; ' + row.note}"
            cells.append(IcicleCell(label, len(row.path), start, row.ns, row.parts, said))
        return cls(cells, whole)


def placed(parts: Iterable[Timed], start: int = 0) -> Iterator[tuple[Timed, int]]:
    """Each part with where it begins, one behind the other from `start` on."""
    for part in parts:
        yield part, start
        start += part.ns


def stack(parts: Iterable[tuple[LegendEntry, int]]) -> list[Segment]:
    """Segments for entries of a legend and their ns, in order, without empty ones."""
    return [
        Segment(entry.label, ns, safe_color(entry.color) if entry.color else "", entry.part)
        for entry, ns in parts
        if ns > 0
    ]


def window_stack(times: Iterable[int], labels: Iterable[str] = ()) -> list[Segment]:
    """Segments for compute, exposed communication, exposed copies and idle time, in ns; with `labels` of their own."""
    parts = zip(PARTS.values(), list(labels) or [label for _, label in PARTS.values()], times, strict=True)
    return stack((LegendEntry(label, id, ""), ns) for (id, _), label, ns in parts)


# Timelines.

FULL = 255
"""The height of a lane: all of a bucket."""


class Area(Struct, frozen=True):
    """One colour of a lane: `part` names a colour of the theme where `color` is empty. `heights` are int64[n], from 0
    to FULL, for the buckets of the lane; `label` is what they show."""

    label: str
    part: str
    color: str
    heights: npt.NDArray[np.int64]


class DrawnLane(Struct, frozen=True):
    """A lane of so many equal `buckets`."""

    label: str
    buckets: int
    areas: Sequence[Area]


class LaneGroup(Struct, frozen=True):
    """The lanes of one device, or of one side of a comparison, from `start_ns` to `end_ns`. A `note` is next to the
    label."""

    label: str
    start_ns: int
    end_ns: int
    lanes: Sequence[DrawnLane]
    note: str = ""


class DrawnLanes(Struct, frozen=True):
    """Groups below each other. Those that are `aligned` have a common start and scale, whatever the moment of the
    trace."""

    groups: Sequence[LaneGroup]
    aligned: bool = False


# The way from the length before to the length after.


class WaterfallBar(Struct, frozen=True):
    """A bar: a length from the left, or a step `from_ns` one length `to_ns` the next. `entry` is None for a length, and
    for small steps as one."""

    label: str
    entry: LegendEntry | None
    is_length: bool
    from_ns: int
    to_ns: int
    share: str

    @property
    def ns(self) -> int:
        """The length, or what the step adds."""
        return self.to_ns - self.from_ns


class Waterfall(Struct, frozen=True):
    """The bars from before to after.

    ```
    before   [==============================]
    sync               [--------------------|
    kernel             |-----]
    after    [===============]
    ```

    The axis from `low` to `high` fills the width, with labels at its `ticks`. `cut` says where it begins, empty where
    at 0.
    """

    bars: Sequence[WaterfallBar]
    low: int
    high: int
    ticks: Mapping[str, int]
    cut: str


Drawing = BarChart | Histogram | Curve | CurveStrips | StackedBar | Stacks | Icicle | DrawnLanes | Waterfall
