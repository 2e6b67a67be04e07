"""Two sides compared, section by section: what became of the length, and where the time went. The page draws the
length, the waterfall, what was renamed and the timelines with templates of its own."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import WIDEST, from_planes, to_planes
from nsysdiag.comparison import step_facts
from nsysdiag.comparison.show import job, tables, views, words
from nsysdiag.comparison.show.views import flows, title
from nsysdiag.document import blocks as b
from nsysdiag.document.columns import BYTES, CODE, COUNT, KEY, MARK, NAME, SIDE, SIGNED, TEXT, TIME, StatusMark
from nsysdiag.document.drawings import safe_color
from nsysdiag.document.names import brief, clip
from nsysdiag.document.view import UNKNOWN_COLOR, Causes
from nsysdiag.document.words import counted
from nsysdiag.formats.html.assets import Blob, Place, unpacked
from nsysdiag.messages import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.comparison.facts import Comparison, DeviceComparison, SideTrace


# Steps of both sides together.


MOST_ROWS, LONGEST, LONGEST_NAME = 8, 60, 200
DAMAGED = "the steps of this comparison contradict themselves: the file is damaged"
SHORT = b.Limit(page=None, ticket=None, summary=None, brief=0)
WORDS = {
    step_facts.ONLY_BEFORE: "only before",
    step_facts.ONLY_AFTER: "only after",
    step_facts.REPLACED: "replaced",
    step_facts.IDLE: "idle",
}
DIFFERENCES = (
    b.Column("What", NAME, head=True, length=100),
    b.Column("Difference", TEXT),
    b.Column("Times", COUNT),
    b.Column("First at", TIME),
    b.Column("Before", SIDE),
    b.Column("After", SIDE),
    b.Column("Change", SIGNED),
)
REST = "Everything else, and what overlaps"


def differences(device: DeviceComparison, causes: Causes) -> list[b.Block]:
    """The largest differences of the typical step in order of time, which add up to that of its length; or why there
    is no such step."""
    steps = device.steps
    if steps is None:
        return [b.Paragraph(device.no_steps, "quiet", SHORT)] if device.no_steps else []
    one, two = steps.before, steps.after
    caption = f"What differs in the typical step: step {one.numbers[0]} before, step {two.numbers[0]} after"
    table = b.Table(caption, DIFFERENCES, _rows(steps, causes), sortable=False, limit=SHORT)
    return [*([b.Paragraph(steps.note, "note", SHORT)] if steps.note else []), table]


def _rows(steps: step_facts.AlignedSteps, causes: Causes) -> list[Sequence[object]]:
    shown = sorted(steps.differences[:MOST_ROWS], key=_when)
    lengths = steps.before.length_ns[0], steps.after.length_ns[0]
    change = lengths[1] - lengths[0]
    rest = change - sum(each.after_ns - each.before_ns for each in shown)
    nothing = (None,) * 3
    return [
        *(_row(each, causes) for each in shown),
        (b.Cell(REST, TEXT), *nothing, None, None, rest),
        (b.Cell("The step", TEXT, strong=True), *nothing, *lengths, change),
    ]


def _when(row: step_facts.StepDifference) -> int:
    """On the side after, if it has it."""
    return row.from_after_ns if row.from_after_ns is not None else row.from_before_ns or 0


def _row(row: step_facts.StepDifference, causes: Causes) -> Sequence[object]:
    change = row.after_ns - row.before_ns
    word = WORDS.get(row.kind, "longer" if change > 0 else "shorter")
    return (_what(row, causes), word, row.count, _when(row), row.before_ns, row.after_ns, change)


def _what(row: step_facts.StepDifference, causes: Causes) -> object:
    if row.kind == step_facts.IDLE:
        named = dict.fromkeys(title(each, causes) for each in (row.cause_before, row.cause_after) if each)
        return b.Cell(f"Idle: {' → '.join(named) or 'unknown'}", TEXT)
    before, after = (", ".join(brief(name) for name in names) for names in (row.names_before, row.names_after))
    if before and after and before != after:
        return b.Name(f"{clip(before, LONGEST)} → {clip(after, LONGEST)}", f"{before} → {after}")
    return b.Name(clip(before or after, LONGEST), "; ".join(row.names_before or row.names_after))


def steps_data(steps: step_facts.AlignedSteps, causes: Causes) -> dict[str, object]:
    """Everything that the scripts draw. Raises InputError if a saved comparison is damaged."""
    blob = Blob()
    counts = steps.before.counts, steps.after.counts
    data = {
        "before": _side(blob, steps.before, steps),
        "after": _side(blob, steps.after, steps),
        "matched": _list(blob, steps.matched),
        "idleMatched": _list(blob, steps.idle_matched),
        "places": {
            "before": _column(blob, steps.places_before, steps.matched, within=counts[0]),
            "after": _column(blob, steps.places_after, steps.matched, within=counts[1]),
            "front": _column(blob, steps.front, steps.matched, 2),
            "idleBefore": _column(blob, steps.idle_before, steps.idle_matched, within=steps.before.idle),
            "idleAfter": _column(blob, steps.idle_after, steps.idle_matched, within=steps.after.idle),
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


def _side(blob: Blob, side: step_facts.SideSteps, steps: step_facts.AlignedSteps) -> dict[str, object]:
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


def _column(
    blob: Blob, text: str, counts: Sequence[int], limit: int | None = None, within: Sequence[int] = ()
) -> Place:
    """The place of a column of so many numbers for each step, each below the limit. Of places, those up to each add up
    to one `within` the number of its step."""
    data = unpacked(text, WIDEST * sum(counts))
    try:
        values = from_planes(data, sum(counts)) if text else np.zeros(sum(counts), dtype=np.int64)
    except ValueError as error:
        raise InputError(DAMAGED) from error
    wrong = limit is not None and int(values.max(initial=-1)) >= limit
    apart = np.where(values % 2, -(values + 1) // 2, values // 2)
    for part, behind in zip(np.split(apart, np.cumsum(counts)[:-1]), within, strict=False):
        places = np.cumsum(part)
        wrong |= bool(len(places)) and not 0 <= int(places.min()) <= int(places.max()) < behind
    if wrong:
        raise InputError(DAMAGED)
    return blob.add(data)


# The baseline that a comparison is with: how many runs it has, and the regressions that it accepts.

MARKS = {
    "exceeded": StatusMark("▲", "more than accepted", "worse"),
    "expired": StatusMark("▲", "expired", "worse"),
    "used": StatusMark("◆", "accepted", "mixed"),
    "unused": StatusMark("○", "not needed", "same"),
}
"""What became of each, the worst first."""
ACCEPTED = (
    b.Column("Accepted up to", CODE, "what", head=True, length=100),
    b.Column("State", MARK, lambda each: b.Cell(MARKS.get(each.status, MARKS["unused"]))),
    b.Column("Until", TEXT, "until"),
    b.Column("Reason", TEXT, "reason", length=500),
)


def baseline(comparison: Comparison) -> b.Section | None:
    """None for a comparison with no baseline."""
    use = comparison.baseline
    if use is None:
        return None
    order = list(MARKS)
    rows = sorted(use.accepted, key=lambda each: order.index(each.status) if each.status in order else len(order))
    said = [each.sentence for each in rows if each.status != "unused"]
    blocks: list[b.Block] = [
        b.Paragraph(use.sentence, "note" if use.spread is None else "plain"),
        b.Table.of("Accepted regressions", ACCEPTED, rows, sortable=False, limit=b.EVERYWHERE),
        b.Lines(said),
    ]
    return b.Section("baseline", f"Baseline {use.name}", blocks)


TOP_STEPS, TOP_WARNINGS, TOP_NOTES = 8, 6, 2
FLOWS = b.Limit(page=0, ticket=6, summary=4, brief=4)
BY_BOTTLENECK = (
    "By bottleneck, as for the job: idle time is charged to the wait that brought it about. All below is by cause: "
    "what the threads of this process did at that time."
)
TRACES = (
    b.Column("Side", TEXT, lambda row: row.side.capitalize(), strong=True),
    b.Column("File", NAME, lambda row: b.Cell(row.trace.file, note=_origin(row.trace)), head=True, length=120),
    b.Column("Size", BYTES, "trace.size_bytes"),
    b.Column("Captured with", TEXT, lambda row: _version(row.trace), length=40),
    b.Column("Window", TEXT, lambda row: "; ".join(row.trace.window), length=200),
    b.Column("Fingerprint", CODE, "trace.fingerprint", length=80),
)


def verdict(comparison: Comparison) -> b.Section:
    """The verdict on all devices, and what lowers the confidence in it."""
    notes = [b.Paragraph(note, "note") for note in comparison.notes]
    said = [b.Paragraph(comparison.headline, "strong", b.TERMINAL)] if comparison.headline else []
    return b.Section(
        "overview", "Verdict", [*said, *_outcome(words.outcome_mark(comparison), comparison.sentence), *notes]
    )


def first_screen(comparison: Comparison) -> b.Section:
    """What a person needs first: the headline, the job, each device in a row, and what makes it less certain."""
    mark = words.outcome_mark(comparison)
    said = b.Paragraph(f"{mark.icon} {mark.word}: {comparison.headline}", words.tone(mark))
    notes = [*words.warnings(comparison), *comparison.notes]
    more = len(notes) - TOP_NOTES
    hint = f"{counted(more, 'more note')}, where" if more > 0 else "Where"
    blocks: list[b.Block] = [said, *(b.Paragraph(note, "note") for note in notes[:TOP_NOTES])]
    blocks += [*job.brief(comparison), *tables.in_brief(comparison)]
    if (found := baseline(comparison)) is not None:
        blocks += found.blocks
    return b.Section(
        "overview", "Before and after", [*blocks, b.Paragraph(f"{hint} the time went: --details", "quiet")]
    )


def of_device(device: DeviceComparison, causes: Causes, *, several: bool) -> list[b.Section]:
    """All about a device. Of `several`, formats other than the page leave out kernels, gaps and findings."""
    found = (
        _length(device, causes, several=several),
        _waterfall(device, causes),
        _renaming(device, causes),
        _timelines(device, causes),
        tables.changes(device, causes, several=several),
        tables.gap_groups(device, causes, several=several),
        tables.kernels(device, several=several),
        tables.copies(device),
        tables.metrics(device),
        tables.findings(device, causes, several=several),
    )
    return [section for section in found if section is not None]


def traces(comparison: Comparison) -> b.Section:
    """The captures of both sides, and what is wrong with them."""
    warnings = b.Lines(words.warnings(comparison), b.Limit(page=0, ticket=TOP_WARNINGS, summary=TOP_WARNINGS), "note")
    rows = words.traces_of(comparison)
    table = b.Table.of("The captures of both sides", TRACES, rows, sortable=False, limit=b.PAGE)
    return b.Section("traces", "Trace health", [warnings, table])


def _version(trace: SideTrace) -> str:
    return f"nsys {trace.nsys_version}" if trace.nsys_version else "unknown version"


def _origin(trace: SideTrace) -> str:
    """Where a capture comes from, and what is wrong with it."""
    origin = [f"predicted with {trace.prediction}"] if trace.prediction else []
    origin += [f"read from {trace.given}"] if trace.given else []
    return "; ".join([*origin, *(f"▲ {each}" for each in trace.warnings)])


def _outcome(mark: StatusMark, sentence: str) -> list[b.Block]:
    return [b.Paragraph(f"{mark.icon} {mark.word}", words.tone(mark)), b.Paragraph(sentence, "strong")]


def _length(device: DeviceComparison, causes: Causes, *, several: bool) -> b.Section:
    facts = [words.length_sentence(device), words.unit_sentence(device.unit)]
    facts += [words.workload_sentence(device), words.noise_sentence(device)]
    fallback: list[b.Block] = [
        *(_outcome(words.verdict_mark(device.verdict), device.sentence) if several else []),
        b.Lines([fact for fact in facts if fact]),
        *(b.Paragraph(note, "note") for note in device.notes),
    ]
    drawn = _custom("length", device, causes, views.length, fallback)
    return b.Section("length", "Length before and after", [drawn])


def _custom(
    name: str,
    device: DeviceComparison,
    causes: Causes,
    view: Callable[[DeviceComparison, Causes], views.View],
    fallback: Sequence[b.Block] = (),
) -> b.Custom:
    """What `templates/sections/compare-NAME.html` draws of a device."""
    return b.Custom(f"sections/compare-{name}.html", partial(view, device, causes), fallback)


def _waterfall(device: DeviceComparison, causes: Causes) -> b.Section:
    """A row for each step, drawn where it is between the lengths."""
    fallback = [b.Chart(views.waterfall(device, causes, TOP_STEPS), "", limit=b.TERMINAL)]
    drawn = _custom("waterfall", device, causes, views.waterfall_view, fallback)
    said = [b.Paragraph(BY_BOTTLENECK, "quiet")] if device.account else []
    return b.Section("waterfall", "From before to after", [drawn, *said])


def _renaming(device: DeviceComparison, causes: Causes) -> b.Section:
    """Did idle time go, or is it counted as something else?"""
    columns = (
        b.Column("Counted as before", KEY, lambda move: _counted(move.before, words.NEW, causes), head=True),
        b.Column("And after", KEY, lambda move: _counted(move.after, words.GONE, causes)),
        b.Column("Time", TIME, "ns"),
        b.Column("At the same place", TIME, lambda move: move.seen_ns or None),
    )
    fallback: list[b.Block] = [
        b.Paragraph(device.renaming.sentence, "strong", limit=b.NOT_PAGE),
        b.Table.of("", columns, flows(device), noun="moves", order="with most time", limit=FLOWS),
    ]
    drawn = _custom("renaming", device, causes, views.renaming, fallback)
    return b.Section("renaming", words.RENAMING, [drawn] if device.moves else fallback)


def _counted(cause: str | None, otherwise: str, causes: Causes) -> str:
    return otherwise if cause is None else title(cause, causes)


def _timelines(device: DeviceComparison, causes: Causes) -> b.Section | None:
    """The typical step of both sides, and both whole timelines; None if nothing of that is known."""
    blocks: list[b.Block] = []
    if device.steps is not None:
        blocks.append(b.Custom("sections/compare-steps.html", partial(_steps, device.steps, causes)))
    blocks += differences(device, causes)
    if device.strip_before is not None and device.strip_after is not None:
        blocks.append(_custom("timelines", device, causes, views.timelines))
    named = "Both timelines" if device.steps is None else "Both timelines, step by step"
    return b.Section("timelines", named, blocks) if blocks else None


def _steps(steps: step_facts.AlignedSteps, causes: Causes) -> views.View:
    return {"data": partial(steps_data, steps, causes), "charts": []}
