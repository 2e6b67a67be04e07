"""What a cell holds: its unit, and how every format writes it. Cells stay numbers until a renderer formats them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from nsysdiag.document.words import instant
from nsysdiag.units import (
    format_bytes,
    format_count,
    format_exact_ns,
    format_hertz,
    format_money,
    format_ns,
    format_share,
    format_signed_ns,
)

MISSING = "–"
"""What stands for None."""


class CellKind(Struct, frozen=True):
    """How values of one unit are written: `show` for readers, `exact` with all digits. `right` ones are aligned as
    numbers, and sorted by value."""

    id: str
    show: Callable[[Any], str] = str
    exact: Callable[[Any], str] | None = None
    right: bool = True

    def text(self, value: object) -> str:
        """A value as text, a dash for None."""
        return MISSING if value is None else self.show(value)


class StatusMark(Struct, frozen=True):
    """A judgement as a sign and words, so that colour is not all that says it; `tone` names a colour of the theme."""

    icon: str
    word: str
    tone: str


def share_of(whole: float) -> CellKind:
    """int, ns: shown as its share of the whole"""
    return CellKind("share", lambda ns: format_share(ns, whole), format_exact_ns)


def money(currency: str) -> CellKind:
    """Amounts of one currency."""
    return CellKind("money", lambda amount: format_money(amount, currency))


TIME = CellKind("time", format_ns, format_exact_ns)
"""int, ns"""
MOMENT = CellKind("moment", instant, format_exact_ns)
"""int, ns of the trace's clock"""
DEPTH = CellKind("depth", lambda depth: format_count(depth) if isinstance(depth, int) else f"{depth:,.1f}")
"""int, or float where it is a mean of counts"""
SHARE = CellKind("share", lambda share: format_share(share, 1))
"""float, 1 for all"""
COUNT = CellKind("count", format_count)
"""int"""
INDEX = CellKind("index")
"""int, the number of a row"""
BYTES = CellKind("bytes", format_bytes)
"""int or float"""
RATE = CellKind("rate", lambda rate: f"{format_bytes(rate)}/s")
"""float, bytes a second"""
RATIO = CellKind("ratio", lambda ratio: f"{ratio:,.2f}")
"""float"""
FIGURE = CellKind("figure")
"""str, aligned like a number"""
TEXT = CellKind("text", right=False)
"""str, or a sentence in parts"""
NAME = CellKind("name", right=False)
"""str or Name, from the trace"""
KEY = CellKind("key", right=False)
"""LegendEntry: a label with its colour"""
PARTS = CellKind(
    "parts", lambda parts: ", ".join(f"{entry.label} +{format_ns(ns)}" for entry, ns in parts), right=False
)
"""tuples of a LegendEntry and ns: what something has more of"""
SIDE = CellKind("side", lambda ns: format_ns(ns) if ns else MISSING, format_exact_ns)
"""int, ns, of one of two sides"""
SIGNED = CellKind("change", lambda ns: format_signed_ns(ns) if ns else MISSING, format_exact_ns)
"""int, ns, the difference of two sides"""
MARK = CellKind("mark", lambda mark: f"{mark.icon} {mark.word}", right=False)
"""Mark"""
KEYS = CellKind("keys", lambda entries: " → ".join(entry.label for entry in entries), right=False)
"""LegendEntry objects, of which each became the next"""
TIMES = CellKind("times", lambda parts: ", ".join(f"{entry.label} {format_ns(ns)}" for entry, ns in parts), right=False)
"""tuples of a LegendEntry and ns: what a time divides into"""
STACK = CellKind("stack", lambda stack: stack.said, right=False)
"""Stack, a stacked bar"""
SPARK = CellKind("spark", lambda spark: spark.said)
"""Spark, a small line"""
CODE = CellKind("code", right=False)
"""str, for a computer: an option, a checksum"""
HERTZ = CellKind("hertz", format_hertz)
"""float"""
BAR = CellKind("bar", lambda _share: "", right=False)
"""float, 1 for a full bar"""


def part(some: float, whole: float) -> float | None:
    """A share, None of nothing."""
    return some / whole if whole else None
