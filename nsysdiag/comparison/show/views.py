"""What the templates of the page draw of a device: the length, the waterfall, what was renamed, the timelines."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.comparison import facts
from nsysdiag.comparison.show import words
from nsysdiag.document import drawings
from nsysdiag.document.axis import MOST_LEVELS, round_step, time_label, time_ticks
from nsysdiag.document.blocks import Chart
from nsysdiag.document.words import counted
from nsysdiag.formats.html.timeline import level_lanes
from nsysdiag.units import format_ns, format_signed_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.document.view import Causes


# What every format draws of a comparison: rows picked out of it, and sums that still add up.

TINY = 0.005
"""Times below this share of a unit of work are folded away, as long as they hardly differ."""
SMALL = 0.01
"""Steps below this share of the largest one are drawn as one."""
LONE = (facts.ADDED, facts.GONE)
IDLE = "idle"


class MatrixRow(Struct, frozen=True):
    """Where the time went that was counted as `id`; `cells` has a (ns, seen ns) for each column."""

    id: str | None
    cells: list[tuple[int, int]]
    total_ns: int


class Matrix(Struct, frozen=True):
    """Time by what it was counted as before (rows) and after (columns). None is the row of what came, the column of
    what went; OTHERS are small ones as one. All rows add up to `total_ns`, and all columns do."""

    columns: list[str | None]
    rows: list[MatrixRow]
    totals: list[int]
    total_ns: int


OTHERS = ""


def entry(id: str, causes: Causes) -> drawings.LegendEntry:
    """The label and colour of a part of the time or of a cause."""
    return drawings.LegendEntry("Idle", IDLE, "") if id == IDLE else drawings.entry_of(id, causes)


def title(id: str, causes: Causes) -> str:
    """The label of a part of the time or of a cause."""
    return entry(id, causes).label


def least(device: facts.DeviceComparison) -> float:
    """The time, in ns, below which something is next to nothing of a unit of work."""
    return TINY * max(device.length.before_ns, device.length.after_ns)


def split(
    rows: Sequence[facts.PartChange], device: facts.DeviceComparison
) -> tuple[list[facts.PartChange], list[facts.PartChange]]:
    """Rows worth a look, and those too small for one that hardly differ."""
    small = least(device)
    tiny = [
        row
        for row in rows
        if row.change.verdict not in facts.DECIDED and max(row.change.before_ns, row.change.after_ns) < small
    ]
    return [row for row in rows if row not in tiny], tiny


def has_roots(device: facts.DeviceComparison) -> bool:
    """Does following wake-ups divide the idle time of either side in another way?"""
    roots, causes = (
        {row.id: (row.change.before_ns, row.change.after_ns) for row in ledger}
        for ledger in (device.root_ledger, device.ledger)
    )
    return roots != causes


def flows(device: facts.DeviceComparison) -> list[facts.Move]:
    """The time that did not stay what it was, most first, without what is next to nothing."""
    small = least(device)
    return [move for move in device.moves if move.before != move.after and move.ns >= small]


def matrix(device: facts.DeviceComparison, most: int) -> Matrix:
    """The moves as a table; beyond the `most` parts with the most time, all are one."""
    size: dict[str, int] = {}
    for move in device.moves:
        for id in {move.before, move.after}:
            if id:
                size[id] = size.get(id, 0) + move.ns
    ids = sorted(size, key=lambda id: (-size[id], id))
    kept: list[str | None] = [None, *(ids if len(ids) <= most else ids[: most - 1])]
    order = [*kept[1:], OTHERS, None]
    cells: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for move in device.moves:
        one, two = (id if id in kept else OTHERS for id in (move.before, move.after))
        ns, seen = cells.get((one, two), (0, 0))
        cells[one, two] = (ns + move.ns, seen + move.seen_ns)
    columns = [id for id in order if any(cells.get((row, id)) for row in order)]
    rows = []
    for id in order:
        its = [cells.get((id, column), (0, 0)) for column in columns]
        if any(map(any, its)):
            rows.append(MatrixRow(id, its, sum(ns for ns, _ in its)))
    totals = [sum(row.cells[at][0] for row in rows) for at in range(len(columns))]
    return Matrix(columns, rows, totals, sum(totals))


def changed_kernels(device: facts.DeviceComparison) -> list[facts.KernelChange]:
    """Kernels that take more or less time beyond chance, or that one side has alone, the largest change first."""
    found = [row for row in device.kernels if row.change.verdict in facts.DECIDED or row.status in LONE]
    return sorted(found, key=lambda row: -abs(row.change.change_ns))


def changed_gap_groups(device: facts.DeviceComparison) -> list[facts.SignatureChange]:
    """Gap groups whose time or cause changed, or may have changed, beyond chance, largest change first; negligible ones
    are left out."""
    small = least(device)

    def matters(row: facts.SignatureChange) -> bool:
        if row.status == facts.RECAUSED:
            return max(row.change.before_ns, row.change.after_ns) >= small
        known = row.status not in facts.UNSEEN
        return known and row.change.verdict != facts.SAME and abs(row.change.change_ns) >= small

    found = [row for row in device.signatures if matters(row)]
    return sorted(found, key=lambda row: -abs(row.change.change_ns))


def lone_findings(device: facts.DeviceComparison) -> list[facts.FindingChange]:
    """Findings that one side has and the other has not."""
    return [row for row in device.findings if row.status in LONE]


# The drawings of the page: the way from the length before to the length after, and both timelines on one scale.

MOST_STEPS = 14
# An axis begins at 0, unless all lengths lie far from it; so much of the longest is always in view.
FAR, LEAST_VIEW, ROOM = 0.6, 0.1, 3


def waterfall(device: facts.DeviceComparison, causes: Causes, most: int = MOST_STEPS) -> drawings.Waterfall:
    """The steps from the length before to the length after, at most so many: small ones are one at the end. By
    bottleneck if the device has an account: then the waterfall of the job has the same parts."""
    before, after = device.length.before_ns, device.length.after_ns
    rows = _steps(device, causes)
    small = SMALL * max((abs(ns) for _key, ns in rows), default=0)
    shown = min(sum(abs(ns) >= small for _key, ns in rows), most - 1)
    shown = len(rows) if len(rows) - shown == 1 else shown
    steps: list[tuple[drawings.LegendEntry | None, str, int]] = [(key, key.label, ns) for key, ns in rows[:shown]]
    if rest := rows[shown:]:
        steps.append((None, counted(len(rest), "smaller step"), sum(ns for _key, ns in rest)))
    ends = list(accumulate((ns for *_key, ns in steps), initial=before))
    lengths = [before, after, *ends]
    ticks = length_ticks(lengths)
    low, high = ticks[0], max(*lengths, 1)
    bars = [
        drawings.WaterfallBar("Before", None, True, 0, before, ""),
        *(
            drawings.WaterfallBar(
                label, key, False, start, start + ns, format_signed_share(ns, before) if before else words.NOTHING
            )
            for (key, label, ns), start in zip(steps, ends, strict=False)
        ),
        drawings.WaterfallBar("After", None, True, 0, after, ""),
    ]
    cut = f"The axis begins at {time_label(low, high)}." if low else ""
    return drawings.Waterfall(bars, low, high, {time_label(ns, high): ns for ns in ticks}, cut)


def _steps(device: facts.DeviceComparison, causes: Causes) -> list[tuple[drawings.LegendEntry, int]]:
    """What each part, or each bottleneck, adds in ns, the largest first."""
    if not device.account:
        return [(entry(step.id, causes), step.change_ns) for step in device.waterfall]
    steps = [(drawings.bottleneck_entry(row.bottleneck), row.change_ns) for row in device.account if row.change_ns]
    return sorted(steps, key=lambda step: -abs(step[1]))


def length_ticks(lengths: list[int]) -> list[int]:
    """The round lengths, in ns, on an axis of some: from 0 unless all lie far from it."""
    high, lowest = max(*lengths, 1), min(lengths)
    far = max(0, round(high - max(ROOM * (high - lowest), LEAST_VIEW * high)))
    low = far if lowest > FAR * high else 0
    between = round_step(high - low, MOST_LEVELS)
    return list(range(low // between * between, high + 1, between))


WORK = (("compute", "Compute"), ("communication", "Communication"), ("copies", "Copies"))


def _legend(
    device: facts.DeviceComparison,
    sides: list[drawings.LaneGroup],
    strips: tuple[facts.Strip, facts.Strip],
    causes: Causes,
) -> list[drawings.LegendEntry]:
    """What ran, then the causes by their time; last those that only begin or end a run."""
    present = {lane.label for side in sides for lane in side.lanes}
    drawn = {area.color for side in sides for lane in side.lanes for area in lane.areas}
    ids = [row.id for row in device.ledger if row.change.before_ns or row.change.after_ns]
    found: dict[str, drawings.LegendEntry] = {}
    for id in (*ids, *(id for strip in strips for id in strip.cause_ids)):
        key = entry(id, causes)
        if key.color in drawn:
            found.setdefault(key.color, key)
    work = [replace(entry(id, causes), label=label) for id, (_, label) in zip(OF_WORK, WORK, strict=True)]
    return drawings.by_bottleneck([*(each for each in work if each.label in present), *found.values()])


View = dict[str, Any]
COARSE = 2
"""Buckets of a whole timeline that are drawn as one: the details are in its steps."""
MOST_PARTS, MOST_FLOWS = 8, 6


def _lengths(device: facts.DeviceComparison, causes: Causes) -> Chart:
    """Both lengths as bars of one scale."""
    bars = [_bar(device, causes, after=after) for after in (False, True)]
    label = "The length before and after, by what the GPU does and why it is idle"
    rows = [
        entry(row.id, causes)
        for row in split(_divided(device), device)[0]
        if row.change.before_ns or row.change.after_ns
    ]
    return Chart(drawings.Stacks([("Before", bars[0]), ("After", bars[1])]), label, legend=drawings.by_bottleneck(rows))


def _divided(device: facts.DeviceComparison) -> list[facts.PartChange]:
    return [row for row in device.parts if row.id != "idle"] + device.ledger


def length(device: facts.DeviceComparison, causes: Causes) -> View:
    """Both lengths as bars of one scale, and the facts about them."""
    names = [device.name_before, *([device.name_after] if device.name_after != device.name_before else [])]
    said = [words.unit_sentence(device.unit), words.workload_sentence(device), words.noise_sentence(device)]
    said += device.notes
    return {
        "name": " before, ".join(names) + (" after" if len(names) > 1 else ""),
        "renamed": len(names) > 1,
        "mark": words.verdict_mark(device.verdict),
        "share": format_signed_share(device.length.change_ns, device.length.before_ns),
        "interval": words.interval_share(device.length),
        "interval_title": words.interval_title(device.unit),
        "has_least": device.unit.kind not in facts.PREDICTED,
        "charts": [_lengths(device, causes)],
        "facts": [fact for fact in said if fact],
    }


def _bar(device: facts.DeviceComparison, causes: Causes, *, after: bool) -> drawings.StackedBar:
    rows = _divided(device)
    keys = [entry(row.id, causes) for row in rows]
    times = [row.change.after_ns if after else row.change.before_ns for row in rows]
    segments = drawings.stack(zip(keys, times, strict=True))
    lengths = device.length.before_ns, device.length.after_ns
    label = f"{'After' if after else 'Before'}: how the time divides into work and causes of idle time"
    return drawings.StackedBar(label, segments, lengths[after], max(lengths))


def waterfall_view(device: facts.DeviceComparison, causes: Causes) -> View:
    """The steps as rows of a table."""
    return {"charts": [Chart(waterfall(device, causes), "What each part of the time adds or takes away")]}


def renaming(device: facts.DeviceComparison, causes: Causes) -> View:
    """The moved time, by its cause before and after; not empty."""
    found = device.renaming
    label = "The idle time that causes lost: how much of it is gone, and how much has another name"
    entries = drawings.LegendEntry("Gone", "gone", ""), drawings.LegendEntry("Under another name", "renamed", "")
    segments = drawings.stack(zip(entries, (found.removed_ns, found.renamed_ns), strict=True))
    table = matrix(device, MOST_PARTS)
    moved = flows(device)
    ids = {*table.columns, *(row.id for row in table.rows)}
    return {
        "tone": words.renaming_tone(found.verdict),
        "charts": [Chart(drawings.StackedBar(label, segments, found.lost_ns), label)] if segments else [],
        "matrix": table,
        "least": least(device),
        "entries": {id: entry(id, causes) if id else drawings.LegendEntry("Others", "idle", "") for id in ids},
        "flows": moved[:MOST_FLOWS],
        "entry": lambda id: None if id is None else entry(id, causes),
        "more": len(moved) - MOST_FLOWS,
    }


def timelines(device: facts.DeviceComparison, causes: Causes) -> View:
    """Both timelines on one scale; nothing if a side has none. Raises InputError if a saved one is damaged."""
    before, after = device.strip_before, device.strip_after
    if before is None or after is None:
        return {"charts": []}
    lengths = [max(strip.end_ns - strip.start_ns, 1) for strip in (before, after)]
    sides = [
        drawings.LaneGroup(
            label,
            strip.start_ns,
            strip.end_ns,
            level_lanes(strip.level, strip.cause_ids, causes, COARSE if strip.level.buckets % COARSE == 0 else 1),
            note=format_ns(length),
        )
        for label, strip, length in zip(("Before", "After"), (before, after), lengths, strict=True)
    ]
    label = "What the GPU did over time, from the first operation of each capture"
    chart = Chart(
        drawings.DrawnLanes(sides, aligned=True), label, legend=_legend(device, sides, (before, after), causes)
    )
    return {"charts": [chart], "ticks": time_ticks(max(lengths))}
