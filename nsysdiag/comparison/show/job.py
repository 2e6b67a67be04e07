"""The job before and after on a card: its step, its work, and what the judged time counts to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.cells import TIMES, judged, marked, share_of_before, times_of
from nsysdiag.comparison.show.rows import title
from nsysdiag.diagnosis.words import label
from nsysdiag.document.blocks import EVERYWHERE, Block, Cell, Column, Section, Table
from nsysdiag.document.kinds import FIGURE, MARK, NAME, TEXT, Mark
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import Change, Comparison, JobComparison
    from nsysdiag.document.view import Causes

MOST_BOTTLENECKS, TICKET_BOTTLENECKS = 4, 6
LEAST, LEAST_OF_PART = 0.005, 0.02
"""A bottleneck whose part changes by less of the step, or of itself, is neither a gain nor a loss."""
APART = 0.02
"""Of the median step: a mean that is farther from it is shown as well."""
DECIDED = ("improved", "regressed", "same")
"""Verdicts with which a part of the step is a gain or a loss; else it is only more or less."""
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
DEVICES = (
    Column("GPU", NAME, head=True, length=24),
    *TIMES,
    Column("Of before", FIGURE),
    Column("95% interval", FIGURE, spare=True),
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
        *_account(job, "The mean step by bottleneck, over all GPUs", len(job.account)),
        *_devices(comparison, "Each GPU, mean of a unit of work"),
    ]
    return Section("job", "The job", blocks)


def brief(comparison: Comparison, most: int = MOST_BOTTLENECKS) -> list[Block]:
    """The same in few lines, with so many bottlenecks, under a headline that names what changed most."""
    job = comparison.job
    if job is None:
        return []
    overview = Table("", OVERVIEW, _steps(job), sortable=False, limit=EVERYWHERE)
    return [overview, *_account(job, "", most), *_devices(comparison, "")]


def _steps(job: JobComparison) -> list[tuple[object, ...]]:
    step = _time(_step_title(job), job.step)
    if job.verdict not in DECIDED:
        step = (*step[:-1], marked(words.verdict_mark(job.verdict)))
    rows = [step]
    if job.statistic == "median" and (job.slow_steps or _apart(job)):
        rows.append(_time(f"Step time (mean{', with slow steps' if job.slow_steps else ''})", job.mean))
    for row in job.work:
        show = format_bytes if row.id == "bytes" else words.count_label
        ratio = f"{row.after / row.before:.2f}×" if row.before and row.after else None
        differs = Cell(Mark("≠", "other work", "mixed"), tone="note") if row.differs else None
        rows.append((words.work_title(row.id), show(row.before), show(row.after), ratio, differs))
    return rows


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
        share = words.change_of_whole(row.change_ns, step)
        change = Cell(row.change_ns, tone=words.tone(mark))
        rows.append((label(row.bottleneck), row.before_ns, row.after_ns, change, share, marked(mark)))
    return [Table(caption, ACCOUNT, rows, sortable=False, limit=EVERYWHERE)] if rows else []


def _devices(comparison: Comparison, caption: str) -> list[Block]:
    """A row for each of several devices."""
    if len(comparison.devices) < 2:
        return []
    rows = []
    for device in comparison.devices:
        share, interval = share_of_before(device.length), words.interval_ns(device.length)
        verdict = marked(words.verdict_mark(device.verdict))
        rows.append((device.key, *times_of(device.length), share, interval, verdict))
    title = words.interval_title(comparison.devices[0].unit)
    columns = [replace(column, title=title) if column.spare else column for column in DEVICES]
    return [Table(caption, columns, rows, sortable=False, limit=EVERYWHERE)]
