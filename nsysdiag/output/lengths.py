"""Times in bins of 1, 2 and 5 times a power of ten, for charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.output.packed import unpack
from nsysdiag.units import NS_PER, format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from nsysdiag.model import DeviceReport

# 1, 2 and 5 of every decade that an int64 holds: the last is where the last bin begins.
EDGES = [step * 10**power for power in range(19) for step in (1, 2, 5)]
UNITS = ("s", "ms", "us")


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of gaps of one dominant cause in each bin, and their ns."""

    count: npt.NDArray[np.int64]
    ns: npt.NDArray[np.int64]


def tally_gaps(devices: Iterable[DeviceReport]) -> dict[str, Tally]:
    """The gaps of the devices by dominant cause, the cause with the most time first.

    Raises InputError where a saved report is damaged.
    """
    tallies: dict[str, Tally] = {}
    for device in devices:
        _starts, lengths, causes = unpack(device.gaps_packed)
        place = np.maximum(np.searchsorted(np.array(EDGES), lengths, side="right") - 1, 0)
        for cause in np.unique(causes).tolist():
            nothing = np.zeros(len(EDGES), dtype=np.int64)
            tally = tallies.setdefault(device.gaps_packed.cause_ids[cause], Tally(nothing, nothing.copy()))
            mine = causes == cause
            np.add.at(tally.count, place[mine], 1)
            np.add.at(tally.ns, place[mine], lengths[mine])
    return dict(sorted(tallies.items(), key=lambda item: (-int(item[1].ns.sum()), item[0])))


def bound(at: int) -> str:
    """Where a bin begins, in the unit that suits it: `200 us`."""
    return "more" if at == len(EDGES) else edge_label(EDGES[at])


def edge_label(ns: int) -> str:
    """An edge of a bin in the unit that suits it."""
    scale, unit = unit_of(ns)
    return f"{format_count(ns // scale)} {unit}"


def unit_of(longest: int) -> tuple[int, str]:
    """The unit that suits the longest time of an axis: its length in ns, and its name."""
    unit = next((unit for unit in UNITS if longest >= NS_PER[unit]), "ns")
    return NS_PER[unit], unit


def round_steps(top: int, most: int = 5) -> list[int]:
    """Multiples of 1, 2 or 5 times a power of ten up to `top`, at most so many, without 0."""
    step = next((edge for edge in EDGES if top // edge <= most), EDGES[-1])
    return list(range(step, top + 1, step))
