"""Stacked bars as numbers: where each segment begins, how wide it is, its colour and that of the text on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document.view import UNKNOWN_COLOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# How many per cent of a bar a share and one more character of a label take, at the width of a narrow page.
SHARE_PERCENT, CHARACTER_PERCENT = 6.5, 1.15
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


class Segment(Struct, frozen=True):
    """A part of a stacked bar. `x` and `width` are per cent of the bar; `color` is a fill, or None with a `kind`.

    `has_share` and `has_label` say what is drawn on it: only what fits. A `faded` one is drawn paler.
    """

    label: str
    ns: int
    x: str
    width: str
    color: str | None
    ink: str | None
    kind: str
    has_share: bool
    has_label: bool
    faded: bool = False


class StackedBar(Struct, frozen=True):
    """A stacked bar: what it shows in words, and what its segments add up to. In a cell it is `width` of the cell wide;
    `said` stands above it, and for it in formats without drawings. One that is `over_time` has labels without shares on
    it, and below it `ticks`: where each is in per cent, and its label; it begins at `start_ns`."""

    label: str
    segments: list[Segment]
    whole: int
    width: str = "100%"
    said: str = ""
    over_time: bool = False
    ticks: tuple[tuple[str, str], ...] = ()
    start_ns: int = 0


class Stacks(Struct, frozen=True):
    """Stacked bars below each other on one scale, each under what stands above it."""

    rows: Sequence[tuple[str, StackedBar]]


def stack(parts: Iterable[tuple[str, int, str | None, str]], whole: int = 0) -> list[Segment]:
    """Segments for (label, ns, colour, kind), in order, without empty ones. They fill the whole bar, or their part of a
    longer `whole`."""
    rows = [part for part in parts if part[1] > 0]
    total = max(sum(part[1] for part in rows), whole)
    segments, before = [], 0
    for label, ns, color, kind in rows:
        fill = safe_color(color) if color else None
        width = 100 * ns / total
        segments.append(
            Segment(
                label=label,
                ns=ns,
                x=percent(before, total),
                width=percent(ns, total),
                color=fill,
                ink=ink_on(fill) if fill else None,
                kind=kind,
                has_share=width >= SHARE_PERCENT,
                has_label=width >= SHARE_PERCENT + CHARACTER_PERCENT * len(label),
            )
        )
        before += ns
    return segments


def percent(part: int, whole: int) -> str:
    """A share as a length for SVG: `12.345%`."""
    return f"{100 * part / whole if whole else 0:.3f}%"


def safe_color(color: str) -> str:
    """The colour where it is `#rrggbb`, else grey: colours come from the report, which may be an untrusted file."""
    return color if _COLOR.fullmatch(color) else UNKNOWN_COLOR


def ink_on(color: str) -> str:
    """Black or white, whichever stands out more from `color` (#rrggbb): always at a contrast of 4.5 or more."""
    light = _luminance(color)
    return "#000000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#ffffff"


def _luminance(color: str) -> float:
    """The relative luminance of an sRGB colour, as WCAG defines it."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else float(((each + 0.055) / 1.055) ** 2.4) for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
