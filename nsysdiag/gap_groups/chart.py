"""All gaps by length: is it a thousand small waits or one long one?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.document import words
from nsysdiag.document.axis import EDGES as FINE_EDGES
from nsysdiag.document.axis import bound, edge_labels, panel
from nsysdiag.document.blocks import PAGE, Chart, Column, Section, Table
from nsysdiag.document.drawings import Bar, Histogram, StackedBar, entry_of, stack
from nsysdiag.document.kinds import COUNT, STACK, TEXT, TIME, share_of
from nsysdiag.document.view import by_time
from nsysdiag.document.view import share_of as some
from nsysdiag.saved.packed_gaps import unpack
from nsysdiag.units import NS_PER, format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from nsysdiag.document.context import Context
    from nsysdiag.document.kinds import CellKind
    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport

EDGES = tuple(NS_PER["us"] * 10**power for power in range(7))


def lengths(device: DeviceReport, context: Context) -> Section | None:
    """The gaps of each decade of lengths, from the shortest decade that has one to the longest; None where all gaps are
    of one decade."""
    rows = _decades(device, context.causes) if device.gaps_packed.count else []
    if len(rows) < 2:
        return None
    columns = (
        Column("Length", TEXT, head=True),
        Column("Gaps", COUNT),
        Column("Time", TIME),
        Column("Of idle", share_of(device.idle_ns)),
        Column("Causes", STACK),
    )
    title = f"All {words.counted(device.gap_count, 'gap')}"
    note = "The bars divide the time by each gap’s largest cause."
    table = Table(title, columns, rows, note=note, sortable=False, limit=PAGE)
    label, count, total, *_more = max(rows, key=lambda row: row[2])
    gist = f"{format_share(total, device.idle_ns)} of the idle time in {words.counted(count, 'gap')} of {label}"
    return Section("gap-lengths", "Gaps by length", [gap_lengths([device], context.causes), table], gist)


def _decades(device: DeviceReport, causes: Causes) -> list[tuple[str, int, int, int, StackedBar | None]]:
    _starts, lengths, codes = unpack(device.gaps_packed)
    decade = np.searchsorted(np.array(EDGES), lengths, side="right")
    longest = max(int(lengths[decade == index].sum()) for index in range(len(EDGES) + 1))
    ids = device.gaps_packed.cause_ids
    rows: list[tuple[str, int, int, int, StackedBar | None]] = []
    for index in range(int(decade.min()), int(decade.max()) + 1):
        mine, code = lengths[decade == index], codes[decade == index]
        total = int(mine.sum())
        by_cause = by_time({ids[each]: int(mine[code == each].sum()) for each in np.unique(code).tolist()})
        segments = stack((entry_of(cause, causes), ns) for cause, ns in by_cause)
        bar = StackedBar("Causes of the gaps of this length", segments, total, longest) if total else None
        rows.append((_label(index), len(mine), total, total, bar))
    return rows


def _tallies(devices: Iterable[DeviceReport]) -> dict[str, npt.NDArray[np.int64]]:
    """The number of gaps in each bin, and their ns, by dominant cause; the cause with the most time first."""
    tallies: dict[str, npt.NDArray[np.int64]] = {}
    for device in devices:
        _starts, lengths, causes = unpack(device.gaps_packed)
        place = np.maximum(np.searchsorted(np.array(FINE_EDGES), lengths, side="right") - 1, 0)
        for cause in np.unique(causes).tolist():
            mine, id = causes == cause, device.gaps_packed.cause_ids[cause]
            number, time = tallies.setdefault(id, np.zeros((2, len(FINE_EDGES)), dtype=np.int64))
            np.add.at(number, place[mine], 1)
            np.add.at(time, place[mine], lengths[mine])
    return dict(sorted(tallies.items(), key=lambda item: (-int(item[1][1].sum()), item[0])))


def gap_lengths(devices: Iterable[DeviceReport], causes: Causes) -> Chart:
    """The number of gaps, of which there is at least one, and their time in finer bins. Raises InputError where a saved
    report is damaged."""
    tallies = _tallies(devices)
    used = np.flatnonzero(sum(number for number, _time in tallies.values()))
    first, behind = int(used[0]), int(used[-1]) + 1
    edges = [*FINE_EDGES[first:behind], *(FINE_EDGES[behind : behind + 1] or [FINE_EDGES[-1]])]
    counts, times = (
        panel([_bar(tallies, row, at, kind, causes) for at in range(first, behind)], kind)
        for row, kind in enumerate((COUNT, TIME))
    )
    return Chart(
        Histogram({"Number of gaps": counts, "Idle time in them": times}, edge_labels(edges), "Length of the gap"),
        "Number of gaps, and idle time in them, by length",
        captions=["Each bar holds the gaps of one range of lengths, divided by each gap’s largest cause."],
        legend=times.legend,
    )


def _bar(tallies: dict[str, npt.NDArray[np.int64]], row: int, at: int, kind: CellKind, causes: Causes) -> Bar:
    """The gaps of one bin: their number or their time by cause."""
    values = {cause: int(tally[row, at]) for cause, tally in tallies.items()}
    parts = [some(cause, value, causes) for cause, value in values.items() if value]
    said = ", ".join(f"{part.label} {kind.show(part.ns)}" for part in parts)
    return Bar(_range(at), parts, f"{_range(at)}: {said or 'none'}")


def _range(at: int) -> str:
    return f"{bound(at)} to {bound(at + 1)}"


def _label(index: int) -> str:
    if index == 0:
        return f"under {_edge(0)}"
    if index == len(EDGES):
        return f"{_edge(-1)} and more"
    return f"{_edge(index - 1)} to {_edge(index)}"


def _edge(index: int) -> str:
    return format_ns(EDGES[index]).replace(".00", "").replace(".0", "")
