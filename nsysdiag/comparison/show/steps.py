"""Steps of both sides together: what the scripts of the page draw, and the largest differences as a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import WIDEST, from_planes, to_planes
from nsysdiag.comparison.show.views import title
from nsysdiag.comparison.step_facts import IDLE, ONLY_AFTER, ONLY_BEFORE, REPLACED
from nsysdiag.document.blocks import Block, Cell, Column, Limit, Name, Paragraph, Table
from nsysdiag.document.columns import COUNT, NAME, SIDE, SIGNED, TEXT, TIME
from nsysdiag.document.drawings import safe_color
from nsysdiag.document.names import brief, clip
from nsysdiag.document.view import UNKNOWN_COLOR
from nsysdiag.formats.html.assets import Blob, Place, unpacked
from nsysdiag.messages import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from nsysdiag.comparison.facts import DeviceComparison
    from nsysdiag.comparison.step_facts import AlignedSteps, SideSteps, StepDifference
    from nsysdiag.document.view import Causes

MOST_ROWS, LONGEST, LONGEST_NAME = 8, 60, 200
DAMAGED = "the steps of this comparison contradict themselves: the file is damaged"
SHORT = Limit(page=None, ticket=None, summary=None, brief=0)
WORDS = {ONLY_BEFORE: "only before", ONLY_AFTER: "only after", REPLACED: "replaced", IDLE: "idle"}
DIFFERENCES = (
    Column("What", NAME, head=True, length=100),
    Column("Difference", TEXT),
    Column("Times", COUNT),
    Column("First at", TIME),
    Column("Before", SIDE),
    Column("After", SIDE),
    Column("Change", SIGNED),
)
REST = "Everything else, and what overlaps"


def differences(device: DeviceComparison, causes: Causes) -> list[Block]:
    """The largest differences of the typical step in order of time, which add up to that of its length; or why there
    is no such step."""
    steps = device.steps
    if steps is None:
        return [Paragraph(device.no_steps, "quiet", SHORT)] if device.no_steps else []
    one, two = steps.before, steps.after
    caption = f"What differs in the typical step: step {one.numbers[0]} before, step {two.numbers[0]} after"
    table = Table(caption, DIFFERENCES, _rows(steps, causes), sortable=False, limit=SHORT)
    return [*([Paragraph(steps.note, "note", SHORT)] if steps.note else []), table]


def _rows(steps: AlignedSteps, causes: Causes) -> list[Sequence[object]]:
    shown = sorted(steps.differences[:MOST_ROWS], key=_when)
    lengths = steps.before.length_ns[0], steps.after.length_ns[0]
    change = lengths[1] - lengths[0]
    rest = change - sum(each.after_ns - each.before_ns for each in shown)
    nothing = (None,) * 3
    return [
        *(_row(each, causes) for each in shown),
        (Cell(REST, TEXT), *nothing, None, None, rest),
        (Cell("The step", TEXT, strong=True), *nothing, *lengths, change),
    ]


def _when(row: StepDifference) -> int:
    """On the side after, where it has it."""
    return row.from_after_ns if row.from_after_ns is not None else row.from_before_ns or 0


def _row(row: StepDifference, causes: Causes) -> Sequence[object]:
    change = row.after_ns - row.before_ns
    word = WORDS.get(row.kind, "longer" if change > 0 else "shorter")
    return (_what(row, causes), word, row.count, _when(row), row.before_ns, row.after_ns, change)


def _what(row: StepDifference, causes: Causes) -> object:
    if row.kind == IDLE:
        named = dict.fromkeys(title(each, causes) for each in (row.cause_before, row.cause_after) if each)
        return Cell(f"Idle: {' → '.join(named) or 'unknown'}", TEXT)
    before, after = (", ".join(brief(name) for name in names) for names in (row.names_before, row.names_after))
    if before and after and before != after:
        return Name(f"{clip(before, LONGEST)} → {clip(after, LONGEST)}", f"{before} → {after}")
    return Name(clip(before or after, LONGEST), "; ".join(row.names_before or row.names_after))


def steps_data(steps: AlignedSteps, causes: Causes) -> dict[str, object]:
    """Everything that the scripts draw. Raises InputError where a saved comparison is damaged."""
    blob = Blob()
    counts = steps.before.counts, steps.after.counts
    data = {
        "before": _side(blob, steps.before, steps),
        "after": _side(blob, steps.after, steps),
        "matched": _list(blob, steps.matched),
        "idleMatched": _list(blob, steps.idle_matched),
        "places": {
            "before": _places(blob, steps.places_before, steps.matched, counts[0]),
            "after": _places(blob, steps.places_after, steps.matched, counts[1]),
            "front": _column(blob, steps.front, steps.matched, 2),
            "idleBefore": _places(blob, steps.idle_before, steps.idle_matched, steps.before.idle),
            "idleAfter": _places(blob, steps.idle_after, steps.idle_matched, steps.after.idle),
        },
        "steps": len(steps.matched),
        "names": blob.add(
            json.dumps([clip(name, LONGEST_NAME) for name in steps.names], separators=(",", ":")).encode()
        ),
        "kinds": steps.kinds,
        "causes": [
            {"title": "Unknown", "color": UNKNOWN_COLOR},
            *({"title": title(each, causes), "color": safe_color(causes[each].color)} for each in steps.cause_ids),
        ],
    }
    lists = (steps.before.counts, steps.after.counts, steps.matched, steps.idle_matched)
    if (
        len({len(each) for each in lists}) > 1
        or len(steps.kinds) != len(steps.names)
        or max(steps.kinds, default=0) > 2
    ):
        raise InputError(DAMAGED)
    return {**data, "bytes": blob.text()}


def _side(blob: Blob, side: SideSteps, steps: AlignedSteps) -> dict[str, object]:
    lists = (side.numbers, side.length_ns, side.carried_ns, side.counts, side.idle)
    if len({len(each) for each in lists}) > 1:
        raise InputError(DAMAGED)
    most = {"names": len(steps.names), "stream": len(side.streams), "marks": 4}
    of_idle = {"causes": len(steps.cause_ids) + 1, "idle_marks": 4}
    return {
        "numbers": _list(blob, side.numbers),
        "lengths": _list(blob, side.length_ns),
        "carried": _list(blob, side.carried_ns),
        "counts": _list(blob, side.counts),
        "idle": _list(blob, side.idle),
        "streams": [clip(label, LONGEST) for label in side.streams],
        "columns": {
            **{name: _column(blob, getattr(side, name), side.counts) for name in ("apart", "lengths")},
            **{name: _column(blob, getattr(side, name), side.counts, limit) for name, limit in most.items()},
            **{name: _column(blob, getattr(side, name), side.idle, limit) for name, limit in of_idle.items()},
        },
    }


def _list(blob: Blob, values: Sequence[int]) -> Place:
    if min(values, default=0) < 0:
        raise InputError(DAMAGED)
    return blob.add(to_planes(np.array(values, dtype=np.int64)))


def _column(blob: Blob, text: str, counts: Sequence[int], limit: int | None = None) -> Place:
    """The place of a column, each number of which is below the limit."""
    values = _values(text, sum(counts))
    if limit is not None and len(values) and int(values.max()) >= limit:
        raise InputError(DAMAGED)
    return blob.add_packed(text, WIDEST * sum(counts))


def _places(blob: Blob, text: str, counts: Sequence[int], limits: Sequence[int]) -> Place:
    """The place of a column of places, each below the limit of its step."""
    values = _values(text, sum(counts))
    steps = np.where(values % 2, -(values + 1) // 2, values // 2)
    for part, limit in zip(np.split(steps, np.cumsum(counts)[:-1]), limits, strict=False):
        places = np.cumsum(part)
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < limit:
            raise InputError(DAMAGED)
    return blob.add_packed(text, WIDEST * sum(counts))


def _values(text: str, count: int) -> npt.NDArray[np.int64]:
    try:
        return from_planes(unpacked(text, WIDEST * count), count) if text else np.zeros(count, dtype=np.int64)
    except ValueError as error:
        raise InputError(DAMAGED) from error
