"""What the templates of the page draw of a device: the length, the waterfall, what was renamed, the timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.drawings import strips, waterfall
from nsysdiag.comparison.show.rows import entry, flows, least, matrix, split
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.blocks import Chart
from nsysdiag.document.figures import Stack, Stacks, stack
from nsysdiag.units import format_signed_share

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import DeviceComparison, Move, PartChange
    from nsysdiag.document.view import Causes

View = dict[str, object]
MOST_PARTS, MOST_FLOWS = 8, 6


class Flow(Struct, frozen=True):
    """Time that was counted as one thing and is counted as another; None where it came or went."""

    before: LegendEntry | None
    after: LegendEntry | None
    move: Move


def length_charts(device: DeviceComparison, causes: Causes) -> list[Chart]:
    """Both lengths as bars of one scale."""
    bars = [_bar(device, causes, after=after) for after in (False, True)]
    label = "The length before and after, by what the GPU does and why it is idle"
    rows = [
        entry(row.id, causes)
        for row in split(_divided(device), device)[0]
        if row.change.before_ns or row.change.after_ns
    ]
    return [Chart(Stacks([("Before", bars[0]), ("After", bars[1])]), label, legend=rows)]


def _divided(device: DeviceComparison) -> list[PartChange]:
    return [row for row in device.parts if row.id != "idle"] + device.ledger


def length(device: DeviceComparison, causes: Causes) -> View:
    """Both lengths as bars of one scale, and the facts about them."""
    names = [device.name_before, *([device.name_after] if device.name_after != device.name_before else [])]
    facts = [words.unit_sentence(device.unit), words.workload_sentence(device), words.noise_sentence(device)]
    facts += device.notes
    return {
        "name": " before, ".join(names) + (" after" if len(names) > 1 else ""),
        "renamed": len(names) > 1,
        "mark": words.verdict_mark(device.verdict),
        "share": format_signed_share(device.length.change_ns, device.length.before_ns),
        "interval": words.interval_share(device.length),
        "interval_title": words.interval_title(device.unit),
        "has_least": device.unit.kind not in words.PREDICTED,
        "chart": length_charts(device, causes)[0],
        "facts": [fact for fact in facts if fact],
    }


def _bar(device: DeviceComparison, causes: Causes, *, after: bool) -> Stack:
    rows = _divided(device)
    keys = [entry(row.id, causes) for row in rows]
    times = [row.change.after_ns if after else row.change.before_ns for row in rows]
    parts = ((key.label, ns, key.color or None, key.part) for key, ns in zip(keys, times, strict=True))
    lengths = device.length.before_ns, device.length.after_ns
    label = f"{'After' if after else 'Before'}: how the time divides into work and causes of idle time"
    return Stack(label, stack(parts, whole=max(lengths)), lengths[after])


def waterfall_charts(device: DeviceComparison, causes: Causes) -> list[Chart]:
    """The steps from the length before to the length after."""
    return [Chart(waterfall(device, causes), "What each part of the time adds or takes away")]


def waterfall_view(device: DeviceComparison, causes: Causes) -> View:
    """The steps as rows of a table."""
    return {"drawn": waterfall(device, causes)}


def renaming_charts(device: DeviceComparison, _causes: Causes) -> list[Chart]:
    """How much of what causes lost is gone; nothing where none lost any."""
    found = device.renaming
    parts = [("Gone", found.removed_ns, None, "gone"), ("Under another name", found.renamed_ns, None, "renamed")]
    label = "The idle time that causes lost: how much of it is gone, and how much has another name"
    segments = stack(parts)
    return [Chart(Stack(label, segments, found.lost_ns), label)] if segments else []


def renaming(device: DeviceComparison, causes: Causes) -> View:
    """The moved time, by its cause before and after; not empty."""
    found = device.renaming
    table = matrix(device, MOST_PARTS)
    moved = flows(device)
    ids = {*table.columns, *(row.id for row in table.rows)}
    return {
        "tone": words.renaming_tone(found.verdict),
        "charts": renaming_charts(device, causes),
        "matrix": table,
        "least": least(device),
        "entries": {id: entry(id, causes) if id else LegendEntry("Others", "idle", "") for id in ids},
        "flows": [_flow(move, causes) for move in moved[:MOST_FLOWS]],
        "more": len(moved) - MOST_FLOWS,
    }


def _flow(move: Move, causes: Causes) -> Flow:
    before, after = (entry(id, causes) if id is not None else None for id in (move.before, move.after))
    return Flow(before, after, move)


def timelines_charts(device: DeviceComparison, causes: Causes) -> list[Chart]:
    """Both timelines on one scale; nothing where a side has none. Raises InputError where a saved one is damaged."""
    drawn = strips(device, causes)
    label = "What the GPU did over time, from the first operation of each capture"
    return [Chart(drawn.lanes, label, legend=drawn.legend)] if drawn else []


def timelines(device: DeviceComparison, causes: Causes) -> View:
    """Both timelines on one scale; both sides have one. Raises InputError where a saved one is damaged."""
    return {"strips": strips(device, causes)}
