"""The job before and after on a card: its step, its work, what the judged time is charged to, and why it changed."""

from __future__ import annotations

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.comparison import facts
from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.views import least, title
from nsysdiag.diagnosis.entries import label
from nsysdiag.document import blocks as b
from nsysdiag.document.columns import FIGURE, MARK, NAME, SIDE, SIGNED, TEXT, StatusMark
from nsysdiag.document.names import brief as brief_name
from nsysdiag.document.view import Causes
from nsysdiag.units import format_bytes, format_ns, format_signed_ns, format_signed_share, format_two_ns, uncapitalized

# Cells and limits that the tables of a comparison share.

MOST_ROWS, TERMINAL_ROWS, MARKDOWN_ROWS = 300, 4, 6
ALL = b.Limit(page=MOST_ROWS, ticket=0, summary=0, brief=0)
"""The page alone, which has what others list a few of."""


def short(*, several: bool) -> b.Limit:
    """What formats other than the page show of a table: nothing if there are several devices."""
    return b.Limit(page=0, ticket=0 if several else MARKDOWN_ROWS, summary=TERMINAL_ROWS, brief=0)


def times(of: str = "") -> tuple[b.Column, ...]:
    """The columns of both times and the change in ns, which are fields at the path `of`."""
    sides = (b.Column("Before", SIDE, f"{of}before_ns"), b.Column("After", SIDE, f"{of}after_ns"))
    return (*sides, b.Column("Change", SIGNED, f"{of}change_ns"))


TIMES = times()


def marked(mark: StatusMark) -> b.Cell:
    """A verdict with its sign, in its tone."""
    return b.Cell(mark, tone=words.tone(mark))


def judged(change: facts.Change) -> b.Cell:
    """The verdict on a change with its sign."""
    return marked(words.change_mark(change.verdict))


def share_of_before(change: facts.Change) -> str | None:
    """The change as a share of the time before, None of nothing."""
    return format_signed_share(change.change_ns, change.before_ns) if change.before_ns else None


def changed(change: facts.Change) -> b.Cell:
    """The difference, which shows its interval to the pointer."""
    return b.Cell(change.change_ns, hint=f"95% interval {words.interval_ns(change)}")


MOST_BOTTLENECKS, TICKET_BOTTLENECKS = 4, 6
LEAST, LEAST_OF_PART = 0.005, 0.02
"""A bottleneck whose part changes by less of the step, or of itself, is neither a gain nor a loss."""
APART = 0.02
"""Of the median step: a mean that is farther from it is shown as well."""
DECIDED, UNKNOWN = ("improved", "regressed", "same"), "unknown"
"""Verdicts with which a part of the step is a gain or a loss; else it is only more or less, or unknown as the whole."""
OTHER_WORK = b.Cell(StatusMark("≠", "other work", "mixed"), tone="note")
OVERVIEW = (
    b.Column("The job", TEXT, head=True, length=40),
    b.Column("Before", FIGURE),
    b.Column("After", FIGURE),
    b.Column("Change", FIGURE),
    b.Column("Verdict", MARK),
)
STEPS = {"median": "Step time (median)", "mean": "Step time (mean)"}


def card(comparison: facts.Comparison, causes: Causes) -> b.Section | None:
    """None for a comparison of an older version."""
    job = comparison.job
    if job is None:
        return None
    rows = [*_steps(job), *(_time(f"… {title(row.id, causes)}", row.change) for row in job.top)]
    blocks = [
        b.Table("Step and work of the job", OVERVIEW, rows, sortable=False, limit=b.EVERYWHERE),
        *why(comparison, causes),
        *_account(job, f"The mean {words.unit_name(job.unit)} by bottleneck, over all GPUs", len(job.account)),
        *_devices(comparison, "Each GPU, mean of a unit of work"),
    ]
    return b.Section("job", "The job", blocks)


def brief(comparison: facts.Comparison, most: int = MOST_BOTTLENECKS) -> list[b.Block]:
    """The same in few lines, with so many bottlenecks, under a headline that names what changed most."""
    job = comparison.job
    if job is None:
        return []
    overview = b.Table("", OVERVIEW, _steps(job), sortable=False, limit=b.EVERYWHERE)
    reasons = why(comparison, Causes(comparison.causes))
    return [overview, *reasons, *_account(job, "", most), *_devices(comparison, "")]


def _steps(job: facts.JobComparison) -> list[tuple[object, ...]]:
    step = _time(_step_title(job), job.step)
    if job.verdict not in DECIDED:
        step = (*step[:-1], marked(words.verdict_mark(job.verdict)))
    rows = [step]
    if job.statistic == "median" and (job.slow_steps or _apart(job)):
        rows.append(_time(f"Step time (mean{', with slow steps' if job.slow_steps else ''})", job.mean))
    for row in (row for row in job.work if row.differs or row.id != facts.THREADS):
        show = format_bytes if row.id == facts.BYTES else words.count_label
        ratio = f"{row.after / row.before:.2f}×" if row.before and row.after else None
        differs = OTHER_WORK if row.differs else None
        rows.append((words.work_title(row.id, job.unit), show(row.before), show(row.after), ratio, differs))
    return [*rows, *map(_phase, job.phases)]


def _phase(phase: facts.PhaseChange) -> tuple[object, ...]:
    """A program starts once, which has no verdict."""
    if not phase.number:
        return (*_time("Start-up", phase.change)[:-1], None)
    *times, share, mark = _time(f"Step of another loop (steady {phase.number}), mean", phase.change)
    if phase.change.low_ns is not None:
        share = f"{share}, 95% interval {words.interval_ns(phase.change)}"
    return (*times, share, OTHER_WORK if phase.other_work else mark)


def _step_title(job: facts.JobComparison) -> str:
    if job.unit.kind == "window":
        return "Window"
    if job.unit.kind in ("iterations", "step"):
        return STEPS.get(job.statistic, "Step time")
    parts = "parts of steps" if job.unit.part_of_step else "steady phase" if job.unit.kind == "phases" else "window"
    return f"The same work ({parts})"


def _time(name: str, change: facts.Change) -> tuple[object, ...]:
    before, after = (words.time_label(ns) for ns in (change.before_ns, change.after_ns))
    return (name, before, after, words.change_label(change), judged(change))


def _apart(job: facts.JobComparison) -> bool:
    """Whether the mean step of a side is not about its median one: the parts below add up to the mean."""
    sides = (job.step.before_ns, job.mean.before_ns), (job.step.after_ns, job.mean.after_ns)
    return any(abs(mean - median) > APART * median for median, mean in sides)


def _account(job: facts.JobComparison, caption: str, most: int) -> list[b.Block]:
    """The parts of the mean step, the largest ones. Less time is a gain, if whole steps of the same work are compared.
    Whether it is chance is not known of a part."""
    step = max(job.mean.before_ns, job.mean.after_ns, 1)

    def mark(row: facts.AccountChange) -> StatusMark:
        small = abs(row.change_ns) < max(LEAST * step, LEAST_OF_PART * max(row.before_ns, row.after_ns))
        if job.verdict == UNKNOWN or small:
            return words.change_mark(UNKNOWN if job.verdict == UNKNOWN else "same")
        return words.account_mark(row.change_ns, decided=job.verdict in DECIDED)

    whole = "Of the step" if words.unit_name(job.unit) == "step" else "Of the whole"
    columns = (
        b.Column("Bottleneck", TEXT, lambda row: label(row.bottleneck), head=True, length=40),
        *TIMES[:2],
        b.Column("Change", SIGNED, lambda row: b.Cell(row.change_ns, tone=words.tone(mark(row)))),
        b.Column(whole, FIGURE, lambda row: words.change_of_whole(row.change_ns, step), spare=True),
        b.Column("Verdict", MARK, lambda row: marked(mark(row))),
    )
    rows = job.account[:most]
    return [b.Table.of(caption, columns, rows, sortable=False, limit=b.EVERYWHERE)] if rows else []


def _devices(comparison: facts.Comparison, caption: str) -> list[b.Block]:
    """A row for each of several devices."""
    if len(comparison.devices) < 2:
        return []
    interval = words.interval_title(comparison.devices[0].unit)
    columns = (
        b.Column("GPU", NAME, "key", head=True, length=24),
        *times("length."),
        b.Column("Of before", FIGURE, lambda device: share_of_before(device.length)),
        b.Column(interval, FIGURE, lambda device: words.interval_ns(device.length), spare=True),
        b.Column("Verdict", MARK, lambda device: marked(words.verdict_mark(device.verdict))),
    )
    return [b.Table.of(caption, columns, comparison.devices, sortable=False, limit=b.EVERYWHERE)]


# Why a step is slower or faster, in words: the three largest changes of its parts, each with what happened.
#
# ```
# Synchronization +22.6 ms: more waiting, 14.3 → 36.9 ms; stream waits 3.10 → 25.2 ms
# Kernels -8.10 ms: fused: 3 elementwise kernels gone, 1 new (triton_poi_fused_add_0), 12.1 → 4.00 ms
# ```

MOST_FAMILIES, MOST_CAUSES = 2, 2
WORTH_NAMING = 0.2
"""Of the change of the first family: one that changed less is not named."""
MORE_CALLS = 0.02
"""Of the launches: a smaller difference is none."""
GRAPHS = "kernels in CUDA graphs were recorded as wholes, so they are not compared by name"
TITLES = {"improved": "Why it is faster", "regressed": "Why it is slower"}
FAMILIES = {
    "products": "matrix product",
    "attention": "attention",
    "elementwise": "elementwise",
    "communication": "communication",
}
OF_KERNELS = ("kernels", "parallelism")


def why(comparison: facts.Comparison, causes: Causes) -> list[b.Block]:
    """Nothing if nothing changed, or with a prediction, whose parts are in a table."""
    job = comparison.job
    device = next((each for each in comparison.devices if job is not None and each.key == job.device_after), None)
    if job is None or device is None or not job.why:
        return []
    lines = [_reason(each, device, causes) for each in job.why]
    return [b.Heading(TITLES.get(job.verdict, "What changed most")), b.Lines(lines)]


def _reason_label(reason: facts.Reason, causes: Causes) -> str:
    return title(reason.cause, causes) if reason.cause else label(reason.bottleneck)


def _reason(reason: facts.Reason, device: facts.DeviceComparison, causes: Causes) -> list[b.Part]:
    """The change and what happened."""
    if reason.bottleneck in OF_KERNELS:
        said = _kernels_said(reason, device)
    elif reason.bottleneck in OF_WORK.values():
        said = [_more(reason, "time that kernels do not hide")]
    else:
        said = [_waiting(reason, device, causes)]
    return [f"{_reason_label(reason, causes)} {format_signed_ns(reason.change_ns)}: ", *said]


def _more(reason: facts.Reason, what: str) -> str:
    return f"{'more' if reason.change_ns > 0 else 'less'} {what}, {_two(reason.before_ns, reason.after_ns)}"


def _two(before: int, after: int) -> str:
    if before and after:
        return format_two_ns(before, after, " → ")
    return f"{format_ns(before)} → none" if before else f"none → {format_ns(after)}"


def _waiting(reason: facts.Reason, device: facts.DeviceComparison, causes: Causes) -> str:
    """More or less waiting; of launches how many more; then the causes that changed with it."""
    own = _reason_label(reason, causes)
    rows = [row for row in reason.causes if title(row.id, causes) != own][:MOST_CAUSES]
    said = _launches(device) if reason.bottleneck == "launch" else ""
    return "; ".join([said or _more(reason, "waiting"), *(_cause(row, least(device), causes) for row in rows)])


def _launches(device: facts.DeviceComparison) -> str:
    """How many more or fewer launches a step has; empty if that is unknown or about the same."""
    calls = next((row for row in device.work if row.id == facts.LAUNCHES), None)
    if calls is None or abs(calls.after - calls.before) <= MORE_CALLS * calls.before:
        return ""
    which = "more" if calls.after > calls.before else "fewer"
    return f"{which} launches, {calls.before:,.4g} → {calls.after:,.4g} a {words.unit_name(device.unit)}"


def _cause(row: facts.PartChange, tiny: float, causes: Causes) -> str:
    """`file reads 16.2 ms, gone`."""
    name = uncapitalized(title(row.id, causes))
    before, after = row.change.before_ns, row.change.after_ns
    if after < tiny <= before:
        return f"{name} is gone"
    return f"{name} is new" if before < tiny <= after else f"{name} {_two(before, after)}"


def _kernels_said(reason: facts.Reason, device: facts.DeviceComparison) -> list[b.Part]:
    """What became of the family that changed most, and of the next, which may have taken its work."""
    grew = reason.change_ns > 0
    found = [each for each in device.families if (each.change_ns > 0) == grew][:1]
    if not found:
        graphs = any(row.id == "graph" for row in device.workload)
        return [_more(reason, "time in them"), f"; {GRAPHS}" if graphs else ""]
    large = WORTH_NAMING * abs(found[0].change_ns)
    found += [each for each in device.families if each is not found[0] and abs(each.change_ns) >= large]
    said: list[b.Part] = []
    for each in found[:MOST_FAMILIES]:
        said += [*(["; "] if said else []), *_family(each)]
    return said


def _family(change: facts.FamilyChange) -> list[b.Part]:
    """`fused: 3 elementwise kernels gone, 1 new (triton_poi_fused_add_0), 12.1 → 4.00 ms`."""
    kind = FAMILIES.get(change.family, "")
    times = f", {_two(change.before_ns, change.after_ns)}"
    if change.how in ("renamed", "replaced") and change.names_before == change.names_after == 1:
        return [
            _name(change.name_before),
            f" {change.how}, now ",
            _name(change.name_after),
            times,
        ]
    if change.how in ("fused", "renamed", "replaced"):
        gone = f"{change.how}: {_counted(change.names_before, kind)} gone, {change.names_after:,} new ("
        return [gone, _name(change.name_after), f"){times}"]
    names = change.names_after if change.how == "added" else change.names_before
    name = _name(change.name_after if change.how == "added" else change.name_before)
    if change.how in ("added", "gone"):
        word = "new" if change.how == "added" else "gone"
        return [f"{_counted(names, kind)} {word} (", name, f"){times}"]
    runs = f", {change.count_before:,.4g} → {change.count_after:,.4g} runs" if change.how in ("more", "fewer") else ""
    what = f"{change.how} runs of " if runs else f"{change.how}: "
    return [f"{what}{_counted(names, kind)} (", *([name] if names == 1 else ["mostly ", name]), f"){runs}{times}"]


def _name(kernel: str) -> b.Name:
    return b.Name(brief_name(kernel))


def _counted(names: int, kind: str) -> str:
    return f"{names:,} {f'{kind} ' if kind else ''}{'kernel' if names == 1 else 'kernels'}"
