"""A comparison in words: a line on how long a step takes before and after and what changed most; the outcome of each
device, and of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsysdiag.bottlenecks import noun_of
from nsysdiag.comparison import facts, waterfall
from nsysdiag.comparison.job import LEAST_TOP, MEAN, MOST_TOP, StepChange
from nsysdiag.comparison.significance import LEAST_CHANGE
from nsysdiag.comparison.work import work_sentence
from nsysdiag.fields import Sentence
from nsysdiag.units import format_ns, format_share, format_signed_ns, format_signed_share, format_two_ns

OTHER_MEAN = 0.02
"""Ratios of means and medians that are further apart are two statements."""
PER_KERNEL = 0.05
"""Times for a kernel, or for a thread, that are no further apart are the same."""


def headline(job: facts.JobComparison, titles: Mapping[str, str]) -> str:
    """One line to paste. Work that is not the same comes first, and another loop that changed last."""
    return f"{_compared(job, titles)}{_loops(job)}"


def _loops(job: facts.JobComparison) -> str:
    """The other loop that changed most: the rest of the line is not about it."""
    changed = [each for each in job.phases if each.changed]
    if not changed:
        return ""
    most = max(changed, key=lambda each: abs(each.change.after_ns / each.change.before_ns - 1))
    times = format_two_ns(most.change.before_ns, most.change.after_ns, " → ")
    return f"; another loop (steady {most.number}) {times}{', of other work' if most.other_work else ''}"


def _compared(job: facts.JobComparison, titles: Mapping[str, str]) -> str:
    if any(row.differs for row in job.work):
        return f"{work_sentence(job.work, job.unit)}; {_lower(_times(job))}{_device(job)} ({_remark(job)}){_mean(job)}"
    top = _top(job, titles)
    if job.verdict == facts.SAME:
        step = job.step
        same = f"{_name(job)} {format_ns(step.before_ns)} → {format_ns(step.after_ns)}{_device(job)}"
        if waterfall.too_small(job.mean):
            return f"{same}: {format_signed_share(step.change_ns, step.before_ns)}, too small to count{top}"
        return f"{same}: {_no_difference(job)}{top}"
    if job.verdict == facts.UNKNOWN and abs(job.step.change_ns) <= job.step.least_ns:
        return f"{_times(job)}{_device(job)}: {format_share(job.step.least_ns, job.step.before_ns)} apart at most{top}"
    if job.verdict in facts.DECIDED and waterfall.is_chance(job.step):  # the slowest device did not change
        return f"{_times(job)}{_device(job)}: no difference beyond chance; {job.verdict} on another GPU{top}"
    return f"{_times(job)}{_device(job)} ({_factor(job)}){_doubt(job)}{_mean(job)}{top}"


def _no_difference(job: facts.JobComparison) -> str:
    if not job.unit.same_work:
        return "no difference beyond chance"
    if abs(job.step.change_ns) > waterfall.LEAST_OF_RUN * job.step.before_ns:
        return f"{format_signed_share(job.step.change_ns, job.step.before_ns)}, which may be chance ({_one_run(job)})"
    return f"no difference that {_one_run(job)} would show"


def _name(job: facts.JobComparison) -> str:
    if job.unit.part_of_step:
        return "Parts of steps, for the same work:"
    if job.unit.kind == facts.ITERATIONS:
        return "Mean step time" if job.statistic == MEAN else "Step time"
    if job.unit.same_work:
        return "Total time of the same work"
    name = "Steady phase" if job.unit.kind == facts.PHASES else "Window"
    return name if any(row.differs for row in job.work) else f"{name}, for the same work:"


def _times(job: facts.JobComparison) -> str:
    """`Step time 34.9 → 18.9 ms`, with both units if they are not the same."""
    return f"{_name(job)} {format_two_ns(job.step.before_ns, job.step.after_ns, ' → ')}"


def _device(job: facts.JobComparison) -> str:
    """The slowest device, if it matters which."""
    if not job.devices_differ:
        return ""
    if job.device_before == job.device_after:
        return f" on {job.device_after}"
    return f" on the slowest GPU ({job.device_before}, then {job.device_after})"


def _factor(job: facts.JobComparison) -> str:
    """`1.85× faster, 95% CI 1.83 to 1.87`; of parts of steps only how much longer they take."""
    if job.speedup is None:
        return "no factor: nothing on one side"
    slower = job.step.change_ns > 0
    words = ("longer", "shorter") if job.unit.part_of_step else ("slower", "faster")
    found = job.speedup
    if slower:
        low, high = (None if each is None else 1 / each for each in (found.high, found.low))
        found = facts.Speedup(factor=1 / found.factor, low=low, high=high)
    text = f"{found.factor:.2f}× {words[0] if slower else words[1]}"
    if found.low is None or found.high is None:
        why = f"{_one_run(job)}: no interval" if job.unit.same_work else "whether this is beyond chance is unknown"
        return f"{text}; {why}"
    if found.low == found.high:
        return f"{text}; all steps of a side take equally long"
    return f"{text}, 95% CI {found.low:.2f} to {found.high:.2f}"


def _one_run(job: facts.JobComparison) -> str:
    """How little there is on each side, if it did the same work."""
    if job.unit.kind != facts.ITERATIONS:
        return "one run a side"
    steps = min(job.unit.count_before, job.unit.count_after)
    return f"{steps} steps a side" if steps > 1 else "one step a side"


def _remark(job: facts.JobComparison) -> str:
    """How the time compares with the work, by the kernels or their threads."""
    rows = {row.id: row for row in job.work if row.differs and row.before and row.after}
    what = next((id for id in (facts.KERNELS, facts.THREADS) if id in rows), None)
    if what is None or not job.step.before_ns:
        return "no difference beyond chance" if job.verdict == facts.SAME else _factor(job)
    each = (job.step.after_ns / rows[what].after) / (job.step.before_ns / rows[what].before)
    one = "kernel" if what == facts.KERNELS else "thread"
    if abs(each - 1) <= PER_KERNEL:
        return f"the same per {one}"
    return f"{each:.2f}× longer per {one}" if each > 1 else f"{1 / each:.2f}× shorter per {one}"


def _doubt(job: facts.JobComparison) -> str:
    if job.unit.part_of_step:
        return ", which does not show what the change did"
    if job.statistic == MEAN and job.slow_steps:
        return ", by the slow steps: the median step shows no difference"
    if job.verdict == facts.MIXED and job.devices_differ:
        return ", not all GPUs alike"
    has_interval = job.speedup is not None and job.speedup.low is not None
    return ", not beyond chance" if has_interval and job.verdict not in (*facts.DECIDED, facts.MIXED) else ""


def _mean(job: facts.JobComparison) -> str:
    """The mean step if its change is another one than that of the median step."""
    mean, step = job.mean, job.step
    if job.statistic == MEAN or job.unit.part_of_step or not (mean.before_ns and step.before_ns):
        return ""
    if abs(mean.after_ns / mean.before_ns - step.after_ns / step.before_ns) <= OTHER_MEAN:
        return ""
    of = "with the slow steps " if job.slow_steps else ""
    return f"; {of}{format_ns(mean.before_ns)} → {format_ns(mean.after_ns)} on average"


def _top(job: facts.JobComparison, titles: Mapping[str, str]) -> str:
    """What changed most: bottlenecks by the account, or causes if there is none."""
    found = [f"{_lower(titles.get(row.id, row.id))} {format_signed_ns(row.change.change_ns)}" for row in job.top]
    if not job.top and job.verdict != facts.SAME:
        # What is chance is not known of bottlenecks one by one: only large parts of the step count.
        rows = sorted(job.account, key=lambda row: (-abs(row.change_ns), row.bottleneck))
        most = max((abs(row.change_ns) for row in rows), default=0)
        least = max(LEAST_CHANGE * max(job.step.before_ns, job.step.after_ns), LEAST_TOP * most)
        large = [row for row in rows if abs(row.change_ns) >= least][:MOST_TOP]
        found = [f"{noun_of(row.bottleneck)} {format_signed_ns(row.change_ns)}" for row in large]
    return f"; {', '.join(found)}" if found else ""


def _lower(text: str) -> str:
    """As within a sentence: `CUDA` stays what it is."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def outcome_sentence(
    unit: facts.Unit, length: facts.Change, step: StepChange | None, work: Sequence[facts.WorkChange]
) -> str:
    """What became of a device: of its work and its time, and what the slow steps do to that."""
    said = device_sentence(unit, length)
    if any(row.differs for row in work):
        said = f"{work_sentence(work, unit)}. {said}"
    if step is not None and step.slow:
        times = f"{format_ns(step.change.before_ns)} before and {format_ns(step.change.after_ns)} after"
        said = f"{said} Some steps take more than twice the median one, which takes {times}."
    return f"{said} The change may not be the reason: no whole steps are compared." if unit.part_of_step else said


def device_sentence(unit: facts.Unit, length: facts.Change) -> str:
    """What became of a unit of work."""
    what = "The mean iteration" if unit.kind == facts.ITERATIONS else "The same work"
    times = f"{what} takes {format_ns(length.after_ns)} instead of {format_ns(length.before_ns)}"
    share = format_signed_share(length.change_ns, length.before_ns)
    if waterfall.outweighed(length):
        return f"{times}: {share}, {interval_text(length)}. That may be chance: a verdict takes 99%."
    if length.verdict == facts.SAME and waterfall.too_small(length):
        least = format_share(length.least_ns, length.before_ns)
        return f"{times}: {share}, {interval_text(length)}. That is too small to count: a verdict takes {least}."
    if length.verdict == facts.SAME:
        seen = max(length.least_ns, (length.high_ns or 0) - length.change_ns, length.change_ns - (length.low_ns or 0))
        return (
            f"{what} takes {format_ns(length.before_ns)} before and {format_ns(length.after_ns)} after: no difference "
            f"beyond chance. Less than {format_share(seen, length.before_ns)} would not be seen."
        )
    if length.verdict == facts.UNKNOWN:
        return f"{times}: the data do not show whether that is more than chance."
    return f"{times}: {share}, {interval_text(length)}."


def interval_text(change: facts.Change) -> str:
    """The interval of a change as shares of the time before."""
    if change.low_ns is None or change.high_ns is None:
        return "no interval"
    low, high = (format_signed_share(ns, change.before_ns) for ns in (change.low_ns, change.high_ns))
    return f"95% interval {low} to {high}"


def overall(devices: Sequence[facts.DeviceComparison]) -> tuple[str, Sentence]:
    """The verdict over all devices and its sentence: of the devices with that verdict, the one whose length changed
    most."""
    verdicts = {device.verdict for device in devices}
    if {facts.IMPROVED, facts.REGRESSED} <= verdicts:
        better = [device.key for device in devices if device.verdict == facts.IMPROVED]
        worse = [device.key for device in devices if device.verdict == facts.REGRESSED]
        return facts.MIXED, f"Better on {', '.join(better)}, worse on {', '.join(worse)}."
    verdict = next(
        (each for each in (facts.MIXED, facts.REGRESSED, facts.IMPROVED, facts.UNKNOWN) if each in verdicts), facts.SAME
    )
    shown = max(
        (device for device in devices if device.verdict == verdict),
        key=lambda device: abs(device.length.change_ns) / max(device.length.before_ns, 1),
    )
    where = f"{shown.key}: " if len(devices) > 1 else ""
    return verdict, where + shown.sentence
