"""Two sides compared, section by section: what became of the length, and where the time went. The page draws the
length, the waterfall, what was renamed and the timelines with templates of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nsysdiag.comparison.show import job, tables, views, words
from nsysdiag.comparison.show import job as changes
from nsysdiag.comparison.show.steps import differences, steps_data
from nsysdiag.comparison.show.views import flows, title
from nsysdiag.document.blocks import (
    EVERYWHERE,
    NOT_PAGE,
    PAGE,
    TERMINAL,
    Block,
    Cell,
    Chart,
    Column,
    Custom,
    Limit,
    Lines,
    Paragraph,
    Section,
    Table,
)
from nsysdiag.document.columns import BYTES, CODE, KEY, MARK, NAME, TEXT, TIME, StatusMark
from nsysdiag.document.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.comparison.facts import Comparison, DeviceComparison
    from nsysdiag.comparison.step_facts import AlignedSteps
    from nsysdiag.document.view import Causes


# The baseline that a comparison is with: how many runs it has, and the regressions that it accepts.

MARKS = {
    "exceeded": StatusMark("▲", "more than accepted", "worse"),
    "expired": StatusMark("▲", "expired", "worse"),
    "used": StatusMark("◆", "accepted", "mixed"),
    "unused": StatusMark("○", "not needed", "same"),
}
"""What became of each, the worst first."""
ACCEPTED = (
    Column("Accepted up to", CODE, "what", head=True, length=100),
    Column("State", MARK, lambda each: Cell(MARKS.get(each.status, MARKS["unused"]))),
    Column("Until", TEXT, "until"),
    Column("Reason", TEXT, "reason", length=500),
)


def section(comparison: Comparison) -> Section | None:
    """None for a comparison with no baseline."""
    use = comparison.baseline
    if use is None:
        return None
    order = list(MARKS)
    rows = sorted(use.accepted, key=lambda each: order.index(each.status) if each.status in order else len(order))
    said = [each.sentence for each in rows if each.status != "unused"]
    blocks: list[Block] = [
        Paragraph(use.sentence, "note" if use.spread is None else "plain"),
        Table.of("Accepted regressions", ACCEPTED, rows, sortable=False, limit=EVERYWHERE),
        Lines(said),
    ]
    return Section("baseline", f"Baseline {use.name}", blocks)


TOP_STEPS, TOP_WARNINGS, TOP_NOTES = 8, 6, 2
FLOWS = Limit(page=0, ticket=6, summary=4, brief=4)
BY_BOTTLENECK = (
    "By bottleneck, as for the job: idle time is charged to the wait that brought it about. All below is by cause: "
    "what the threads of this process did at that time."
)
TRACES = (
    Column("Side", TEXT, strong=True),
    Column("File", NAME, head=True, length=120),
    Column("Size", BYTES),
    Column("Captured with", TEXT, length=40),
    Column("Window", TEXT, length=200),
    Column("Fingerprint", CODE, length=80),
)


def verdict(comparison: Comparison) -> Section:
    """The verdict on all devices, and what lowers the confidence in it."""
    notes = [Paragraph(note, "note") for note in comparison.notes]
    said = [Paragraph(comparison.headline, "strong", TERMINAL)] if comparison.headline else []
    return Section(
        "overview", "Verdict", [*said, *_outcome(words.outcome_mark(comparison), comparison.sentence), *notes]
    )


def first_screen(comparison: Comparison) -> Section:
    """What a person needs first: the headline, the job, each device in a row, and what makes it less certain."""
    mark = words.outcome_mark(comparison)
    said = Paragraph(f"{mark.icon} {mark.word}: {comparison.headline}", words.tone(mark))
    notes = [*words.warnings(comparison), *comparison.notes]
    more = len(notes) - TOP_NOTES
    hint = f"{counted(more, 'more note')}, where" if more > 0 else "Where"
    blocks = [said, *(Paragraph(note, "note") for note in notes[:TOP_NOTES]), *job.brief(comparison)]
    blocks += changes.in_brief(comparison)
    if (found := section(comparison)) is not None:
        blocks += found.blocks
    return Section("overview", "Before and after", [*blocks, Paragraph(f"{hint} the time went: --details", "quiet")])


def of_device(device: DeviceComparison, causes: Causes, *, several: bool) -> list[Section]:
    """All about a device. Of `several`, formats other than the page leave out kernels, gaps and findings."""
    found = (
        _length(device, causes, several=several),
        _waterfall(device, causes),
        _renaming(device, causes),
        _timelines(device, causes),
        changes.changes(device, causes, several=several),
        tables.gap_groups(device, causes, several=several),
        tables.kernels(device, several=several),
        tables.copies(device),
        tables.metrics(device),
        tables.findings(device, causes, several=several),
    )
    return [section for section in found if section is not None]


def traces(comparison: Comparison) -> Section:
    """The captures of both sides, and what is wrong with them."""
    rows = []
    for side, held in (("Before", comparison.before), ("After", comparison.after)):
        for trace in held:
            origin = [f"predicted with {trace.prediction}"] if trace.prediction else []
            origin += [f"read from {trace.given}"] if trace.given else []
            note = "; ".join([*origin, *(f"▲ {each}" for each in trace.warnings)])
            version = f"nsys {trace.nsys_version}" if trace.nsys_version else "unknown version"
            window = "; ".join(trace.window)
            rows.append((side, Cell(trace.file, note=note), trace.size_bytes, version, window, trace.fingerprint))
    warnings = Lines(words.warnings(comparison), Limit(page=0, ticket=TOP_WARNINGS, summary=TOP_WARNINGS), "note")
    table = Table("The captures of both sides", TRACES, rows, sortable=False, limit=PAGE)
    return Section("traces", "Trace health", [warnings, table])


def _outcome(mark: StatusMark, sentence: str) -> list[Block]:
    return [Paragraph(f"{mark.icon} {mark.word}", words.tone(mark)), Paragraph(sentence, "strong")]


def _length(device: DeviceComparison, causes: Causes, *, several: bool) -> Section:
    facts = [words.length_sentence(device), words.unit_sentence(device.unit)]
    facts += [words.workload_sentence(device), words.noise_sentence(device)]
    fallback: list[Block] = [
        *(_outcome(words.verdict_mark(device.verdict), device.sentence) if several else []),
        Lines([fact for fact in facts if fact]),
        *(Paragraph(note, "note") for note in device.notes),
    ]
    drawn = _custom("length", device, causes, views.length, fallback)
    return Section("length", "Length before and after", [drawn])


def _custom(
    name: str,
    device: DeviceComparison,
    causes: Causes,
    view: Callable[[DeviceComparison, Causes], views.View],
    fallback: Sequence[Block] = (),
) -> Custom:
    """What `templates/sections/compare-NAME.html` draws of a device."""
    return Custom(f"sections/compare-{name}.html", partial(view, device, causes), fallback)


def _waterfall(device: DeviceComparison, causes: Causes) -> Section:
    """A row for each step, drawn where it is between the lengths."""
    fallback = [Chart(views.waterfall(device, causes, TOP_STEPS), "", limit=TERMINAL)]
    drawn = _custom("waterfall", device, causes, views.waterfall_view, fallback)
    said = [Paragraph(BY_BOTTLENECK, "quiet")] if device.account else []
    return Section("waterfall", "From before to after", [drawn, *said])


def _renaming(device: DeviceComparison, causes: Causes) -> Section:
    """Did idle time go, or is it counted as something else?"""
    columns = (
        Column("Counted as before", KEY, lambda move: _counted(move.before, words.NEW, causes), head=True),
        Column("And after", KEY, lambda move: _counted(move.after, words.GONE, causes)),
        Column("Time", TIME, "ns"),
        Column("At the same place", TIME, lambda move: move.seen_ns or None),
    )
    fallback: list[Block] = [
        Paragraph(device.renaming.sentence, "strong", limit=NOT_PAGE),
        Table.of("", columns, flows(device), noun="moves", order="with most time", limit=FLOWS),
    ]
    drawn = _custom("renaming", device, causes, views.renaming, fallback)
    return Section("renaming", words.RENAMING, [drawn] if device.moves else fallback)


def _counted(cause: str | None, otherwise: str, causes: Causes) -> str:
    return otherwise if cause is None else title(cause, causes)


def _timelines(device: DeviceComparison, causes: Causes) -> Section | None:
    """The typical step of both sides, and both whole timelines; None where nothing of that is known."""
    blocks: list[Block] = []
    if device.steps is not None:
        blocks.append(Custom("sections/compare-steps.html", partial(_steps, device.steps, causes)))
    blocks += differences(device, causes)
    if device.strip_before is not None and device.strip_after is not None:
        blocks.append(_custom("timelines", device, causes, views.timelines))
    named = "Both timelines" if device.steps is None else "Both timelines, step by step"
    return Section("timelines", named, blocks) if blocks else None


def _steps(steps: AlignedSteps, causes: Causes) -> views.View:
    return {"data": partial(steps_data, steps, causes), "charts": []}
