"""Stacked bars and steps as numbers for a drawing: one path a colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.bottlenecks import BOTTLENECKS, title_of
from nsysdiag.document.figures import percent, safe_color
from nsysdiag.document.kinds import TIME
from nsysdiag.document.view import UNKNOWN_COLOR, WORK, share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsysdiag.document.kinds import CellKind
    from nsysdiag.document.view import Causes, Share


# The height of the drawing in its own units, and the slot of one bar; the browser stretches both.
HEIGHT, SLOT = 1000, 10
# So many bars fill the width; fewer leave a part of it empty, or they would be as wide as a page.
FEWEST_SLOTS = 20
# Lines closer than this, in units of the drawing, would write over each other.
LINE_ROOM = 90


class Bar(Struct, frozen=True):
    """`parts` from the bottom up, called `name`; `tooltip` is what the pointer shows. `faded` bars do not count."""

    name: str
    total: int
    parts: list[Share]
    tooltip: str
    slow: bool
    faded: bool


class Path(Struct, frozen=True):
    """All rectangles of one colour: `part` names a colour of the theme where `color` is empty."""

    part: str
    color: str
    faded: bool
    d: str


class BarMark(Struct, frozen=True):
    """A sign above a bar; `x` is its middle in per cent of the width."""

    x: str
    kind: str


class Line(Struct, frozen=True):
    """A level across the bars, `y` from the top in per cent of the height, and the `value` that is there."""

    y: str
    label: str
    value: float


class HoverArea(Struct, frozen=True):
    """Where the pointer finds the bar, in units of the drawing."""

    x: int
    tooltip: str


class Label(Struct, frozen=True):
    """A label below a drawing; `x` is its middle in per cent of the width."""

    x: str
    text: str


class LegendEntry(Struct, frozen=True):
    """What a colour means. That of a cause or of a part of the window is a shade of the one of its bottleneck, `group`;
    None for the bottleneck itself, and for what has none."""

    label: str
    part: str
    color: str
    group: LegendEntry | None = None


class BarChart(Struct, frozen=True):
    """A drawing of `width` by HEIGHT units with slots of SLOT, and what is over it unstretched. `bottom` stands at the
    floor, which is drawn then, `labels` below it. The `bars` behind it are of one `kind`; each stands for `what`, and
    `top` fills the height."""

    width: int
    height: int
    slot: int
    paths: list[Path]
    marks: list[BarMark]
    lines: list[Line]
    spots: list[HoverArea]
    legend: list[LegendEntry]
    cut: bool
    bars: Sequence[Bar]
    top: int
    what: str = ""
    kind: CellKind = TIME
    bottom: str = ""
    labels: Sequence[Label] = ()

    @property
    def kinds(self) -> set[str]:
        """The kinds of marks that the chart has."""
        return {mark.kind for mark in self.marks}


def draw_bars(
    bars: list[Bar],
    top: int,
    levels: dict[str, int],
    *,
    what: str = "",
    kind: CellKind = TIME,
    fewest: int = FEWEST_SLOTS,
) -> BarChart | None:
    """The bars in order, with lines at the levels; `top` is the length that fills the height, longer ones are cut off.

    `levels` has the text of each line and its value, `what` each bar stands for, `kind` is that of the values. None
    without bars.
    """
    if not bars or top <= 0:
        return None
    width = max(len(bars), fewest) * SLOT
    room = 0 if len(bars) > FEWEST_SLOTS * SLOT else 2  # gaps of less than a pixel only blur
    return BarChart(
        width=width,
        height=HEIGHT,
        slot=SLOT,
        paths=_paths(bars, top, SLOT - room),
        marks=[
            BarMark(percent(at * SLOT + SLOT // 2, width), "slow" if bar.slow else "left-out")
            for at, bar in enumerate(bars)
            if bar.slow or bar.faded
        ],
        lines=_lines(top, levels),
        spots=[HoverArea(at * SLOT, bar.tooltip) for at, bar in enumerate(bars)],
        legend=_legend(bars),
        cut=any(bar.total > top for bar in bars),
        bars=bars,
        top=top,
        what=what,
        kind=kind,
    )


def _paths(bars: list[Bar], top: int, width: int) -> list[Path]:
    """One path for each colour of the bars that count, and one of those that do not."""
    drawn: dict[tuple[str, str, bool], list[str]] = {}
    left = (SLOT - width) // 2
    for at, bar in enumerate(bars):
        below = before = 0
        for share in bar.parts:
            before += share.ns
            level = min(HEIGHT, round(HEIGHT * before / top))
            if level > below:
                entry = legend_entry(share)
                key = (entry.part, entry.color, bar.faded)
                drawn.setdefault(key, []).append(
                    f"M{at * SLOT + left} {HEIGHT - level}h{width}v{level - below}h-{width}z"
                )
            below = level
    return [Path(part, color, faded, "".join(pieces)) for (part, color, faded), pieces in drawn.items()]


def _lines(top: int, levels: dict[str, int]) -> list[Line]:
    """The levels that are inside the drawing, without those that are upon one before them."""
    lines: list[Line] = []
    taken: list[int] = []
    for label, ns in levels.items():
        at = round(HEIGHT * (1 - ns / top))
        if 0 <= at < HEIGHT and all(abs(at - other) >= LINE_ROOM for other in taken):
            lines.append(Line(percent(at, HEIGHT), label, ns))
            taken.append(at)
    return lines


def _legend(bars: Iterable[Bar]) -> list[LegendEntry]:
    """The colours in use: what ran, then the causes with the most time first."""
    total: dict[str, int] = {}
    shares: dict[str, Share] = {}
    for share in (share for bar in bars for share in bar.parts):
        shares.setdefault(share.id, share)
        total[share.id] = total.get(share.id, 0) + share.ns
    causes = sorted((id for id in shares if not shares[id].part), key=lambda id: (-total[id], id))
    return by_bottleneck(legend_entry(shares[id]) for id in (*(id for id in WORK if id in shares), *causes))


def legend_entry(share: Share) -> LegendEntry:
    """The label and colour of some time."""
    group = bottleneck_entry(share.bottleneck) if share.bottleneck in BOTTLENECKS else None
    return LegendEntry(share.label, share.part, safe_color(share.color) if share.color else "", group)


def entry_of(id: str, causes: Causes) -> LegendEntry:
    """The label and colour of a kind of work or of a cause, by its id."""
    return legend_entry(share_of(id, 0, causes))


def bottleneck_entry(bottleneck: str, text: str = "") -> LegendEntry:
    """The title, or the `text`, and the colour of a bottleneck; one of a later version is grey."""
    known = BOTTLENECKS.get(bottleneck)
    color = "" if known and known.part else known.color if known else UNKNOWN_COLOR
    return LegendEntry(text or title_of(bottleneck), known.part if known else "", color)


def by_bottleneck(entries: Iterable[LegendEntry]) -> list[LegendEntry]:
    """The entries in groups by bottleneck; bottlenecks are in the order of their first entries."""
    kept = list(entries)
    places: dict[LegendEntry | None, int] = {}
    for at, each in enumerate(kept):
        places.setdefault(each.group or each, at)
    return sorted(kept, key=lambda each: places[each.group or each])


def stairs(levels: list[int]) -> str:
    """A line from slot to slot; `levels` is not empty."""
    return f"M0 {levels[0]}" + "".join(f"V{level}H{SLOT * (at + 1)}" for at, level in enumerate(levels))


def band(lowest: list[int], highest: list[int]) -> str:
    """The area between two lines of equally many slots."""
    back = "".join(f"V{lowest[at]}H{SLOT * at}" for at in range(len(lowest) - 1, -1, -1))
    return f"{stairs(highest)}{back}z"


# The way from the length before to the length after, as bars: where each begins and how wide it is.
#
# ```
# before   [==============================]
# sync               [--------------------|
# kernel             |-----]
# after    [===============]
# ```


class Axis(Struct, frozen=True):
    """The lengths from `low` to `high` in ns, which fill the width, and the ticks on it."""

    low: int
    high: int
    ticks: list[tuple[str, str]]

    def at(self, ns: int) -> str:
        """The position of a length, in per cent of the width."""
        return percent(max(ns - self.low, 0), self.high - self.low)


class WaterfallBar(Struct, frozen=True):
    """A bar: a length from the left, or a step `from_ns` one length `to_ns` the next. `begin` and `end` are where lines
    lead to the bars above and below; `entry` is None for a length, and for small steps as one."""

    label: str
    entry: LegendEntry | None
    is_length: bool
    from_ns: int
    to_ns: int
    share: str
    x: str
    width: str
    begin: str
    end: str

    @property
    def ns(self) -> int:
        """The length, or what the step adds."""
        return self.to_ns - self.from_ns


class Waterfall(Struct, frozen=True):
    """The bars from before to after. `cut` says where the axis begins, empty where at 0."""

    bars: list[WaterfallBar]
    axis: Axis
    cut: str
