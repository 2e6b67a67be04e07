"""All gaps by length: is it a thousand small waits or one long one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.output.figures import Segment, percent, stack
from nsysdiag.output.packed import unpack
from nsysdiag.output.sections.section import DeviceSection, Page, View
from nsysdiag.units import NS_PER, format_ns

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.model import DeviceReport
    from nsysdiag.output.view import Causes

EDGES = tuple(NS_PER["us"] * 10**power for power in range(7))


@dataclass(frozen=True, slots=True)
class Bin:
    """The gaps of one range of lengths; `segments` cut their time by dominant cause, `bar` is the bar's length."""

    label: str
    count: int
    total_ns: int
    bar: str
    segments: list[Segment]


def view(page: Page, device: DeviceReport) -> View | None:
    """The gaps of each decade of lengths, from the shortest decade that has one to the longest."""
    if not device.gaps_packed.count:
        return None
    _starts, lengths, causes = unpack(device.gaps_packed)
    decade = np.searchsorted(np.array(EDGES), lengths, side="right")
    totals = [int(lengths[decade == index].sum()) for index in range(len(EDGES) + 1)]
    ids = device.gaps_packed.cause_ids
    return {
        "bins": [
            _bin(index, lengths[decade == index], causes[decade == index], max(totals), ids, page.causes)
            for index in range(int(decade.min()), int(decade.max()) + 1)
        ]
    }


def _bin(
    index: int,
    lengths: npt.NDArray[np.int64],
    causes: npt.NDArray[np.int64],
    longest: int,
    ids: list[str],
    known: Causes,
) -> Bin:
    total = int(lengths.sum())
    by_cause = sorted(
        ((ids[cause], int(lengths[causes == cause].sum())) for cause in np.unique(causes).tolist()),
        key=lambda item: (-item[1], item[0]),
    )
    return Bin(
        label=_label(index),
        count=len(lengths),
        total_ns=total,
        bar=percent(total, longest),
        segments=stack((known.title(cause), ns, known[cause].color, "") for cause, ns in by_cause),
    )


def _label(index: int) -> str:
    if index == 0:
        return f"under {_edge(0)}"
    if index == len(EDGES):
        return f"{_edge(-1)} and more"
    return f"{_edge(index - 1)} to {_edge(index)}"


def _edge(index: int) -> str:
    return format_ns(EDGES[index]).replace(".00", "").replace(".0", "")


SECTION = DeviceSection("gap-lengths", "Gaps by length", view)
