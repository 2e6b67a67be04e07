"""The way from the length before to the length after, as bars: where each begins and how wide it is.

```
before   [==============================]
sync               [--------------------|
kernel             |-----]
after    [===============]
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document.figures import percent

if TYPE_CHECKING:
    from nsysdiag.document.bars import LegendEntry


class Axis(Struct, frozen=True):
    """The lengths from `low` to `high` in ns, which fill the width, and the ticks on it."""

    low: int
    high: int
    ticks: list[tuple[str, str]]

    def at(self, ns: int) -> str:
        """Where a length is, in per cent of the width."""
        return percent(max(ns - self.low, 0), self.high - self.low)


class Step(Struct, frozen=True):
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

    bars: list[Step]
    axis: Axis
    cut: str
