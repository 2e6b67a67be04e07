"""A comparison in a line: how long a step takes before and after, and what changed most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.bottlenecks import noun_of
from nsysdiag.comparison.facts import Change, JobComparison, Speedup, WorkChange
from nsysdiag.comparison.job import LEAST_TOP, MEAN, MOST_TOP
from nsysdiag.comparison.side import COPIED, Capture, column, mean_count, total
from nsysdiag.comparison.units import ITERATIONS, PHASES, DeviceSides
from nsysdiag.comparison.waterfall import DECIDED, LEAST_CHANGE, MIXED, SAME, UNKNOWN
from nsysdiag.units import format_bytes, format_ns, format_share, format_signed_ns, format_two_ns

# How much work a step has before and after: kernels, launches, bytes copied. A step with more work takes longer, and
# nothing has become slower.

KERNELS, LAUNCHES, BYTES = "kernels", "launches", "bytes"
LEAST = 0.1
"""The change from which a step has different work. Smaller batches at the end of an epoch, or kernels chosen by size,
change less; another batch size, sequence length or number of layers changes more."""


def work_changes(sides: DeviceSides) -> list[WorkChange]:
    """The work of a step on both sides; none where other units are compared, which are made by the work in them.
    Kernels are left out where graphs were recorded as wholes, bytes where a report does not hold them step by step."""
    if sides.unit.kind != ITERATIONS:
        return []
    both = (sides.before, sides.after)
    found = []
    if not any(total(side, "ops.graph") for side in both) and any(total(side, "ops.kernel") for side in both):
        found.append(_change(KERNELS, _median(sides.before, "ops.kernel"), _median(sides.after, "ops.kernel")))
    calls = [mean_count(side, [each.device.launch.calls for each in side]) for side in both]
    if any(calls):
        found.append(WorkChange(id=LAUNCHES, before=round(calls[0], 3), after=round(calls[1], 3), differs=False))
    if copied := _copied(sides):
        found.append(copied)
    return found


def _copied(sides: DeviceSides) -> WorkChange | None:
    """The bytes of a step. A host that runs ahead copies for several later steps at once, so a median step may have no
    copy: then the bytes of a step are unknown. Whole windows, which include start-up, must also differ in bytes."""
    both = (sides.before, sides.after)
    steps = [_median(side, COPIED) for side in both]
    windows = []
    for side in both:
        rows = [row for each in side for row in each.device.copies.rows if row.operation != "memset"]
        windows.append(mean_count(side, [row.bytes for row in rows]))
    if not any(steps) or any(not step and window for step, window in zip(steps, windows, strict=True)):
        return None
    found, whole = _change(BYTES, *steps), _change(BYTES, *windows)
    agree = whole.differs and (whole.after > whole.before) == (found.after > found.before)
    return replace(found, differs=found.differs and agree)


def goes_with(work: Sequence[WorkChange], length: Change) -> bool:
    """Is the time longer where the work is more, or shorter where it is less? Then the time alone tells nothing."""
    signs = {np.sign(row.after - row.before) for row in work if row.differs}
    return length.verdict in DECIDED and float(np.sign(length.change_ns)) in signs


def _change(id: str, before: float, after: float) -> WorkChange:
    differs = abs(after - before) > LEAST * min(before, after)
    return WorkChange(id=id, before=round(before, 3), after=round(after, 3), differs=differs)


def _median(side: Sequence[Capture], name: str) -> float:
    return float(np.median(np.concatenate(column(side, name))))


OTHER_MEAN = 0.02
"""Ratios of means and medians that are further apart are two statements."""
PER_KERNEL = 0.05
"""Times for a kernel that are no further apart are the same."""


def headline(job: JobComparison, titles: Mapping[str, str]) -> str:
    """One line to paste. Work that is not the same comes first."""
    if any(row.differs for row in job.work):
        return f"{work_sentence(job.work)}; {_lower(_times(job))}{_device(job)} ({_remark(job)}){_mean(job)}"
    top = _top(job, titles)
    if job.verdict == SAME:
        step = job.step
        same = f"{_name(job)} {format_ns(step.before_ns)} → {format_ns(step.after_ns)}{_device(job)}"
        return f"{same}: no difference beyond chance{top}"
    if job.verdict == UNKNOWN and abs(job.step.change_ns) <= job.step.least_ns:
        return f"{_times(job)}{_device(job)}: {format_share(job.step.least_ns, job.step.before_ns)} apart at most{top}"
    return f"{_times(job)}{_device(job)} ({_factor(job)}){_doubt(job)}{_mean(job)}{top}"


def work_sentence(work: Sequence[WorkChange]) -> str:
    """`Not the same work per step: kernels 120 → 240 (2.0×)`."""
    said = []
    for row in work:
        if row.differs:
            before, after = (
                format_bytes(count) if row.id == BYTES else f"{count:,.4g}" for count in (row.before, row.after)
            )
            ratio = f" ({row.after / row.before:.1f}×)" if row.before and row.after else ""
            said.append(f"{row.id} {before} → {after}{ratio}")
    return f"Not the same work per step: {', '.join(said)}"


def _name(job: JobComparison) -> str:
    if job.unit.part_of_step:
        return "Parts of steps, for the same work:"
    if job.unit.kind == ITERATIONS:
        return "Mean step time" if job.statistic == MEAN else "Step time"
    return "Steady phase, for the same work:" if job.unit.kind == PHASES else "Window, for the same work:"


def _times(job: JobComparison) -> str:
    """`Step time 34.9 → 18.9 ms`, with both units where they are not the same."""
    return f"{_name(job)} {format_two_ns(job.step.before_ns, job.step.after_ns, ' → ')}"


def _device(job: JobComparison) -> str:
    """The slowest device, where it matters which."""
    if not job.devices_differ:
        return ""
    if job.device_before == job.device_after:
        return f" on {job.device_after}"
    return f" on the slowest GPU ({job.device_before}, then {job.device_after})"


def _factor(job: JobComparison) -> str:
    """`1.85× faster, 95% CI 1.83 to 1.87`; of parts of steps only how much longer they take."""
    if job.speedup is None:
        return "no factor: nothing on one side"
    slower = job.step.change_ns > 0
    words = ("longer", "shorter") if job.unit.part_of_step else ("slower", "faster")
    found = job.speedup
    if slower:
        low, high = (None if each is None else 1 / each for each in (found.high, found.low))
        found = Speedup(factor=1 / found.factor, low=low, high=high)
    text = f"{found.factor:.2f}× {words[0] if slower else words[1]}"
    if found.low is None or found.high is None:
        return f"{text}; whether this is beyond chance is unknown"
    return f"{text}, 95% CI {found.low:.2f} to {found.high:.2f}"


def _remark(job: JobComparison) -> str:
    """How the time compares with the work, by the kernels."""
    kernels = next((row for row in job.work if row.id == KERNELS and row.differs and row.before and row.after), None)
    if kernels is None or not job.step.before_ns:
        return "no difference beyond chance" if job.verdict == SAME else _factor(job)
    each = (job.step.after_ns / kernels.after) / (job.step.before_ns / kernels.before)
    if abs(each - 1) <= PER_KERNEL:
        return "the same per kernel"
    return f"{each:.2f}× longer per kernel" if each > 1 else f"{1 / each:.2f}× shorter per kernel"


def _doubt(job: JobComparison) -> str:
    if job.unit.part_of_step:
        return ", which does not show what the change did"
    if job.statistic == MEAN and job.slow_steps:
        return ", by the slow steps: the median step shows no difference"
    if job.verdict == MIXED and job.devices_differ:
        return ", not all GPUs alike"
    has_interval = job.speedup is not None and job.speedup.low is not None
    return ", not beyond chance" if has_interval and job.verdict not in (*DECIDED, MIXED) else ""


def _mean(job: JobComparison) -> str:
    """The mean step where slow steps make another change of it."""
    mean, step = job.mean, job.step
    if not job.slow_steps or job.statistic == MEAN or not (mean.before_ns and step.before_ns):
        return ""
    if abs(mean.after_ns / mean.before_ns - step.after_ns / step.before_ns) <= OTHER_MEAN:
        return ""
    return f"; with the slow steps {format_ns(mean.before_ns)} → {format_ns(mean.after_ns)} on average"


def _top(job: JobComparison, titles: Mapping[str, str]) -> str:
    """What changed most: causes of the only device, or bottlenecks by the account of several."""
    found = [f"{_lower(titles.get(row.id, row.id))} {format_signed_ns(row.change.change_ns)}" for row in job.top]
    if not job.top and job.verdict != SAME:
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
