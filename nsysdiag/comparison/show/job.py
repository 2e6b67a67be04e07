"""The job before and after on a card: its step, its work, and what the judged time is charged to."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nsysdiag.comparison.facts import (
    BYTES,
    THREADS,
    Change,
    Comparison,
    DeviceComparison,
    JobComparison,
    PartChange,
    PhaseChange,
)
from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.views import entry, has_roots, split, title
from nsysdiag.comparison.show.why import why
from nsysdiag.diagnosis.entries import label
from nsysdiag.document.blocks import (
    EVERYWHERE,
    NOT_PAGE,
    PAGE,
    Block,
    Cell,
    Column,
    Details,
    Limit,
    Paragraph,
    Section,
    Table,
)
from nsysdiag.document.columns import FIGURE, KEY, MARK, NAME, SIDE, SIGNED, TEXT, StatusMark
from nsysdiag.document.view import Causes
from nsysdiag.units import format_bytes, format_signed_share

# Cells and limits that the tables of a comparison share.

MOST_ROWS, TERMINAL_ROWS, MARKDOWN_ROWS = 300, 4, 6
ALL = Limit(page=MOST_ROWS, ticket=0, summary=0, brief=0)
"""The page alone, which has what others list a few of."""
TIMES = (Column("Before", SIDE), Column("After", SIDE), Column("Change", SIGNED))


def short(*, several: bool) -> Limit:
    """What formats other than the page show of a table: nothing where there are several devices."""
    return Limit(page=0, ticket=0 if several else MARKDOWN_ROWS, summary=TERMINAL_ROWS, brief=0)


def times_of(change: Change) -> tuple[int, int, int]:
    """The cells of TIMES, in ns."""
    return change.before_ns, change.after_ns, change.change_ns


def marked(mark: StatusMark) -> Cell:
    """A verdict with its sign, in its tone."""
    return Cell(mark, tone=words.tone(mark))


def judged(change: Change) -> Cell:
    """The verdict on a change with its sign."""
    return marked(words.change_mark(change.verdict))


def share_of_before(change: Change) -> str | None:
    """The change as a share of the time before, None of nothing."""
    return format_signed_share(change.change_ns, change.before_ns) if change.before_ns else None


def timed(change: Change) -> tuple[object, ...]:
    """The cells of TIMES; the difference shows its interval to the pointer."""
    return change.before_ns, change.after_ns, Cell(change.change_ns, hint=f"95% interval {words.interval_ns(change)}")


MOST_BOTTLENECKS, TICKET_BOTTLENECKS = 4, 6
LEAST, LEAST_OF_PART = 0.005, 0.02
"""A bottleneck whose part changes by less of the step, or of itself, is neither a gain nor a loss."""
APART = 0.02
"""Of the median step: a mean that is farther from it is shown as well."""
DECIDED, UNKNOWN = ("improved", "regressed", "same"), "unknown"
"""Verdicts with which a part of the step is a gain or a loss; else it is only more or less, or unknown as the whole."""
OTHER_WORK = Cell(StatusMark("≠", "other work", "mixed"), tone="note")
OVERVIEW = (
    Column("The job", TEXT, head=True, length=40),
    Column("Before", FIGURE),
    Column("After", FIGURE),
    Column("Change", FIGURE),
    Column("Verdict", MARK),
)
ACCOUNT = (
    Column("Bottleneck", TEXT, head=True, length=40),
    *TIMES,
    Column("Of the step", FIGURE, spare=True),
    Column("Verdict", MARK),
)
STEPS = {"median": "Step time (median)", "mean": "Step time (mean)"}


def card(comparison: Comparison, causes: Causes) -> Section | None:
    """None for a comparison of an older version."""
    job = comparison.job
    if job is None:
        return None
    rows = [*_steps(job), *(_time(f"… {title(row.id, causes)}", row.change) for row in job.top)]
    blocks = [
        Table("Step and work of the job", OVERVIEW, rows, sortable=False, limit=EVERYWHERE),
        *why(comparison, causes),
        *_account(job, f"The mean {words.unit_name(job.unit)} by bottleneck, over all GPUs", len(job.account)),
        *_devices(comparison, "Each GPU, mean of a unit of work"),
    ]
    return Section("job", "The job", blocks)


def brief(comparison: Comparison, most: int = MOST_BOTTLENECKS) -> list[Block]:
    """The same in few lines, with so many bottlenecks, under a headline that names what changed most."""
    job = comparison.job
    if job is None:
        return []
    overview = Table("", OVERVIEW, _steps(job), sortable=False, limit=EVERYWHERE)
    reasons = why(comparison, Causes(comparison.causes))
    return [overview, *reasons, *_account(job, "", most), *_devices(comparison, "")]


def _steps(job: JobComparison) -> list[tuple[object, ...]]:
    step = _time(_step_title(job), job.step)
    if job.verdict not in DECIDED:
        step = (*step[:-1], marked(words.verdict_mark(job.verdict)))
    rows = [step]
    if job.statistic == "median" and (job.slow_steps or _apart(job)):
        rows.append(_time(f"Step time (mean{', with slow steps' if job.slow_steps else ''})", job.mean))
    for row in (row for row in job.work if row.differs or row.id != THREADS):
        show = format_bytes if row.id == BYTES else words.count_label
        ratio = f"{row.after / row.before:.2f}×" if row.before and row.after else None
        differs = OTHER_WORK if row.differs else None
        rows.append((words.work_title(row.id, job.unit), show(row.before), show(row.after), ratio, differs))
    return [*rows, *map(_phase, job.phases)]


def _phase(phase: PhaseChange) -> tuple[object, ...]:
    """A program starts once, which has no verdict."""
    if not phase.number:
        return (*_time("Start-up", phase.change)[:-1], None)
    *times, share, mark = _time(f"Step of another loop (steady {phase.number}), mean", phase.change)
    if phase.change.low_ns is not None:
        share = f"{share}, 95% interval {words.interval_ns(phase.change)}"
    return (*times, share, OTHER_WORK if phase.other_work else mark)


def _step_title(job: JobComparison) -> str:
    if job.unit.kind == "window":
        return "Window"
    if job.unit.kind in ("iterations", "step"):
        return STEPS.get(job.statistic, "Step time")
    parts = "parts of steps" if job.unit.part_of_step else "steady phase" if job.unit.kind == "phases" else "window"
    return f"The same work ({parts})"


def _time(name: str, change: Change) -> tuple[object, ...]:
    before, after = (words.time_label(ns) for ns in (change.before_ns, change.after_ns))
    return (name, before, after, words.change_label(change), judged(change))


def _apart(job: JobComparison) -> bool:
    """Whether the mean step of a side is not about its median one: the parts below add up to the mean."""
    sides = (job.step.before_ns, job.mean.before_ns), (job.step.after_ns, job.mean.after_ns)
    return any(abs(mean - median) > APART * median for median, mean in sides)


def _account(job: JobComparison, caption: str, most: int) -> list[Block]:
    """The parts of the mean step, the largest ones. Less time is a gain, if whole steps of the same work are compared.
    Whether it is chance is not known of a part."""
    step = max(job.mean.before_ns, job.mean.after_ns, 1)
    rows = []
    for row in job.account[:most]:
        mark = words.account_mark(row.change_ns, decided=job.verdict in DECIDED)
        if abs(row.change_ns) < max(LEAST * step, LEAST_OF_PART * max(row.before_ns, row.after_ns)):
            mark = words.change_mark("same")
        if job.verdict == UNKNOWN:
            mark = words.change_mark(UNKNOWN)
        share = words.change_of_whole(row.change_ns, step)
        change = Cell(row.change_ns, tone=words.tone(mark))
        rows.append((label(row.bottleneck), row.before_ns, row.after_ns, change, share, marked(mark)))
    whole = "Of the step" if words.unit_name(job.unit) == "step" else "Of the whole"
    columns = [replace(column, title=whole) if column.spare else column for column in ACCOUNT]
    return [Table(caption, columns, rows, sortable=False, limit=EVERYWHERE)] if rows else []


def _devices(comparison: Comparison, caption: str) -> list[Block]:
    """A row for each of several devices."""
    if len(comparison.devices) < 2:
        return []
    interval = words.interval_title(comparison.devices[0].unit)
    columns = (
        Column("GPU", NAME, "key", head=True, length=24),
        Column("Before", SIDE, "length.before_ns"),
        Column("After", SIDE, "length.after_ns"),
        Column("Change", SIGNED, "length.change_ns"),
        Column("Of before", FIGURE, lambda device: share_of_before(device.length)),
        Column(interval, FIGURE, lambda device: words.interval_ns(device.length), spare=True),
        Column("Verdict", MARK, lambda device: marked(words.verdict_mark(device.verdict))),
    )
    return [Table.of(caption, columns, comparison.devices, sortable=False, limit=EVERYWHERE)]


# What changed: the parts of the time and the idle time by cause, before and after.

TOP_CAUSES, BRIEF_CAUSES = 10, 4
INTERVAL = "95% interval"
COUNTS = (
    "Less time is better. A change counts if its 95% interval excludes 0 and it exceeds “counts above”, the effect of "
    "chance or drift alone."
)
TOGETHER = " Devices are judged together: if only one changed, its interval must exclude 0 by more."
BOUNDS = "Bounds are predicted for the whole length only, not for parts and causes."
ROOTS = (
    "By root cause: each wait is charged to what the thread that ended it did. The same idle time, divided differently"
)
PARTS = (Column("Part", KEY, head=True), *TIMES, Column("Of before", FIGURE))
PER_UNIT = (
    Column("Part", KEY, head=True),
    *TIMES,
    Column("Of before", FIGURE, spare=True),
    Column(INTERVAL, FIGURE, spare=True),
    Column("Verdict", MARK),
)


def changes(device: DeviceComparison, causes: Causes, *, several: bool) -> Section | None:
    """The parts of the time, and the idle time by cause: each level adds up to the one above."""
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    if not parts and not device.ledger:
        return None
    predicted = device.unit.kind in words.PREDICTED
    blocks = [
        Table("Time for a unit of work", _titled(PER_UNIT, device), _overview(device, parts, causes), limit=NOT_PAGE),
        _parts("The parts of the time; they add up to the length", "Part", parts, device, causes),
        *_folded("The idle time by cause; the causes add up to it", device.ledger, device, causes),
        *(_folded(ROOTS, device.root_ledger, device, causes) if has_roots(device) else []),
        Paragraph(BOUNDS if predicted else COUNTS + (TOGETHER if several else ""), "quiet", PAGE),
    ]
    return Section("changes", "What changed", blocks)


def in_brief(comparison: Comparison) -> list[Block]:
    """With a prediction, the parts and the largest causes of the slowest device, whose length is above."""
    job, causes = comparison.job, Causes(comparison.causes)
    found = [
        each
        for each in comparison.devices
        if each.unit.kind in words.PREDICTED and job is not None and each.key in (job.device_before, job.device_after)
    ]
    if not found:
        return []
    device = found[-1]
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    rows = [(title(row.id, causes), row.change) for row in parts]
    rows += [(f"… {title(row.id, causes)}", row.change) for row in split(device.ledger, device)[0][:BRIEF_CAUSES]]
    cells = [(label, *times_of(change), share_of_before(change)) for label, change in rows]
    return [Table("", PARTS, cells, sortable=False, limit=EVERYWHERE)]


def _overview(device: DeviceComparison, parts: Sequence[PartChange], causes: Causes) -> list[tuple[object, ...]]:
    """Length, parts, and under the idle time its causes, of which small ones share a row."""
    shown, tiny = split(device.ledger, device)
    rows = [("Length", device.length), *((title(row.id, causes), row.change) for row in parts)]
    rows += [(f"… {title(row.id, causes)}", row.change) for row in shown[:TOP_CAUSES]]
    found: list[tuple[object, ...]] = [
        (label, *times_of(change), share_of_before(change), words.interval_ns(change), judged(change))
        for label, change in rows
    ]
    if rest := [row.change for row in (*shown[TOP_CAUSES:], *tiny)]:
        before, after, change = (sum(times) for times in zip(*map(times_of, rest), strict=True))
        found.append((f"… {len(rest):,} more", before, after, change, None, None, None))
    return found


def _titled(columns: Sequence[Column], device: DeviceComparison) -> list[Column]:
    """The columns, with that of the interval called what it is."""
    title = words.interval_title(device.unit)
    return [replace(column, title=title) if column.title == INTERVAL else column for column in columns]


def _parts(
    caption: str,
    head: str,
    rows: Sequence[PartChange],
    device: DeviceComparison,
    causes: Causes,
    *,
    sortable: bool = True,
) -> Table:
    interval = words.interval_title(device.unit)
    columns = (
        Column(head, KEY, lambda row: entry(row.id, causes), head=True),
        Column("Before", SIDE, "change.before_ns"),
        Column("After", SIDE, "change.after_ns"),
        Column("Change", SIGNED, "change.change_ns"),
        Column(interval, FIGURE, lambda row: Cell(words.interval_ns(row.change), order=row.change.low_ns or 0)),
        Column("Counts above", SIDE, "change.least_ns"),
        Column("Verdict", MARK, lambda row: judged(row.change)),
    )
    return Table.of(caption, columns, rows, sortable=sortable, limit=PAGE)


def _folded(caption: str, rows: Sequence[PartChange], device: DeviceComparison, causes: Causes) -> list[Block]:
    shown, tiny = split(rows, device)
    if not shown or len(tiny) < 2:
        shown, tiny = list(rows), []
    note = "Causes with less than half a percent of the length on both sides, and without a change that counts"
    table = _parts(note, "Cause", tiny, device, causes, sortable=False)
    return [
        _parts(caption, "Cause", shown, device, causes),
        Details(f"{len(tiny):,} more with next to no time on either side", [table]),
    ]
