"""What figures have in common: they cover exactly the drawing that they replace. How all of them look stands once in
the script that draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsysdiag.document.figures import safe_color
from nsysdiag.document.names import plain

if TYPE_CHECKING:
    from nsysdiag.document.bars import LegendEntry

Figure = dict[str, Any]
SCALE_WIDTH = 94
"""The room right of the bars, in pixels, in which the drawings write their scale."""
AXIS = {"showgrid": False, "zeroline": False, "fixedrange": True, "showline": False, "automargin": False}


def figure(traces: list[Figure], *, margin: tuple[int, int, int, int], **layout: Any) -> Figure:
    """A figure of bars; `margin` in pixels: above, right, below, left."""
    above, right, below, left = margin
    room = {"t": above, "r": right, "b": below, "l": left, "pad": 0}
    return {"data": traces, "layout": {"margin": room, **layout}}


def key_color(entry: LegendEntry) -> str:
    """The colour of a part of the window by the theme, that of a cause by itself."""
    return f"var(--{entry.part})" if entry.part else safe_color(entry.color)


def trace(entry: LegendEntry, group: int, **more: Any) -> Figure:
    """Bars of one entry of the legend; those of one `group` are hidden together."""
    look = {"color": key_color(entry), "line": {"width": 0}}
    return {"type": "bar", "name": plain(entry.label), "legendgroup": str(group), "marker": look} | more


def decimals(scale: int) -> int:
    """How many decimals a time in a unit of so many ns needs to be exact."""
    return len(str(scale)) - 1


def note(text: str, **place: Any) -> Figure:
    """A text of our own on the figure."""
    return {"text": text, "showarrow": False, "xref": "paper", "yref": "paper", **place}
