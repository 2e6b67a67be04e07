"""What the templates of the page draw of a device: the length, the waterfall, what was renamed, the timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.drawings import strips, waterfall
from nsysdiag.comparison.show.rows import entry, flows, least, matrix, split
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import Segment, stack
from nsysdiag.units import format_signed_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import DeviceComparison, Move, PartChange
    from nsysdiag.document.view import Causes

View = dict[str, object]
MOST_PARTS, MOST_FLOWS = 8, 6


class Flow(Struct, frozen=True):
    """Time that was counted as one thing and is counted as another; None where it came or went."""

    before: LegendEntry | None
    after: LegendEntry | None
    move: Move


def length(device: DeviceComparison, causes: Causes) -> View:
    """Both lengths as bars of one scale, and the facts about them."""
    rows = [row for row in device.parts if row.id != "idle"] + device.ledger
    longest = max(device.length.before_ns, device.length.after_ns)
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
        "bars": [
            ("Before", device.length.before_ns, _bar(rows, longest, causes, after=False)),
            ("After", device.length.after_ns, _bar(rows, longest, causes, after=True)),
        ],
        "legend": [
            entry(row.id, causes) for row in split(rows, device)[0] if row.change.before_ns or row.change.after_ns
        ],
        "facts": [fact for fact in facts if fact],
    }


def _bar(rows: Sequence[PartChange], longest: int, causes: Causes, *, after: bool) -> list[Segment]:
    keys = [entry(row.id, causes) for row in rows]
    times = [row.change.after_ns if after else row.change.before_ns for row in rows]
    return stack(
        ((key.label, ns, key.color or None, key.part) for key, ns in zip(keys, times, strict=True)), whole=longest
    )


def waterfall_view(device: DeviceComparison, causes: Causes) -> View:
    """The steps from the length before to the length after."""
    return {"drawn": waterfall(device, causes)}


def renaming(device: DeviceComparison, causes: Causes) -> View:
    """The moved time, by its cause before and after; not empty."""
    found = device.renaming
    table = matrix(device, MOST_PARTS)
    moved = flows(device)
    ids = {*table.columns, *(row.id for row in table.rows)}
    return {
        "tone": words.renaming_tone(found.verdict),
        "split": stack(
            (
                ("Gone", found.removed_ns, None, "gone"),
                ("Under another name", found.renamed_ns, None, "renamed"),
            )
        ),
        "matrix": table,
        "least": least(device),
        "entries": {id: entry(id, causes) if id else LegendEntry("Others", "idle", "") for id in ids},
        "flows": [_flow(move, causes) for move in moved[:MOST_FLOWS]],
        "more": len(moved) - MOST_FLOWS,
    }


def _flow(move: Move, causes: Causes) -> Flow:
    before, after = (entry(id, causes) if id is not None else None for id in (move.before, move.after))
    return Flow(before, after, move)


def timelines(device: DeviceComparison, causes: Causes) -> View:
    """Both timelines on one scale; both sides have one. Raises InputError where a saved one is damaged."""
    return {"strips": strips(device, causes)}
