"""The job before and after: the step of its slowest device, its work, and what the judged time is charged to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.facts import (
    AccountChange,
    Change,
    DeviceComparison,
    JobComparison,
    PartChange,
    SideTrace,
    Speedup,
)
from nsysdiag.comparison.side import LENGTH, STEADY, WORK, Capture, judged_phases
from nsysdiag.comparison.significance import LEVEL, Values, drawn_means, drawn_medians, freedom, interval
from nsysdiag.comparison.units import DeviceSides
from nsysdiag.comparison.waterfall import (
    DECIDED,
    MIXED,
    SAME,
    UNKNOWN,
    DeviceChanges,
    adding_up,
    change_of_step,
    outside,
)
from nsysdiag.messages import NotComparableError
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report

# Which device of one report is which of another, and which reports and devices may be compared at all.

UNNAMED = ("", "GPU")
MOST_FILES = 3


class DevicePair(Struct, frozen=True):
    """A device in each report before and in each after."""

    before: list[tuple[Report, DeviceReport]]
    after: list[tuple[Report, DeviceReport]]


def require_names(reports: Sequence[Report | WhatIf]) -> None:
    """Raise NotComparableError for a redacted report: numbers that replace names follow the order in one report."""
    if are_redacted(reports):
        raise NotComparableError(
            "a redacted report has numbers instead of names, which differ between reports",
            hint="compare the traces themselves with --redact",
        )


def are_redacted(reports: Sequence[Report | WhatIf]) -> bool:
    """Has any of them pseudonyms for names? Then what its file is called may be a name, too."""
    return any("redacted" in report.settings for report in reports)


def read_from(traces: Sequence[SideTrace], files: Sequence[str | None]) -> list[SideTrace]:
    """The captures with the names of the files they were read from, if those are not the traces themselves; None if not
    read from a file."""
    return [
        replace(trace, given=file) if file and file != trace.file else trace
        for trace, file in zip(traces, files, strict=True)
    ]


def paired(
    before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool
) -> tuple[list[DevicePair], list[str]]:
    """The devices that all reports have, and notes on the others. Raises NotComparableError if a report has no device
    that worked, or if GPU models differ without --across-gpus."""
    reports = [*before, *after]
    rows = [[device for device in report.devices if device.window_ns] for report in reports]
    for report, devices in zip(reports, rows, strict=True):
        if not devices:
            raise NotComparableError(f"{report.trace.file} has no GPU work to compare")
    # No key is common where single devices merely have different numbers.
    keys = [device.key for device in rows[0] if all(any(each.key == device.key for each in row) for row in rows)]
    notes = _left_out(reports, rows, keys)
    matched = [[next(device for device in devices if device.key == key) for devices in rows] for key in keys]
    if not keys:
        matched = [[devices[place] for devices in rows] for place in range(min(map(len, rows)))]
    pairs = []
    for devices in matched:
        each = list(zip(reports, devices, strict=True))
        pairs.append(DevicePair(each[: len(before)], each[len(before) :]))
        notes += _models(pairs[-1], across_gpus=across_gpus)
    return pairs, list(dict.fromkeys(notes))


def _left_out(reports: Sequence[Report], rows: Sequence[Sequence[DeviceReport]], keys: list[str]) -> list[str]:
    few = min(map(len, rows))
    further = [
        [device.key for device in row if device.key not in keys] if keys else [device.key for device in row[few:]]
        for row in rows
    ]
    notes = [] if keys else ["The devices have different numbers; they are compared in order."]
    return notes + [
        f"{report.trace.file} has more devices, which are left out: {', '.join(more)}."
        for report, more in zip(reports, further, strict=True)
        if more
    ]


def _models(pair: DevicePair, *, across_gpus: bool) -> list[str]:
    rows = [*pair.before, *pair.after]
    names = sorted({device.name for _report, device in rows} - set(UNNAMED))
    if len(names) < 2:
        unnamed = dict.fromkeys(report.trace.file for report, device in rows if device.name in UNNAMED)
        if not unnamed:
            return []
        more = [f"{len(unnamed) - MOST_FILES:,} more"] if len(unnamed) > MOST_FILES else []
        which = " and ".join([*list(unnamed)[:MOST_FILES], *more])
        are = "does not name its GPU" if len(unnamed) == 1 else "do not name their GPUs"
        return [f"{which} {are}: it is unknown whether both sides ran on the same model."]
    if not across_gpus:
        raise NotComparableError(
            f"the GPUs are of different models: {', '.join(names)}",
            hint="add --across-gpus to compare them anyway",
        )
    left, right = (_named(side) for side in (pair.before, pair.after))
    return [f"The GPUs are of different models: {left} before, {right} after."]


def _named(side: Sequence[tuple[Report, DeviceReport]]) -> str:
    """The models of a side, each once."""
    names = ("an unnamed one" if device.name in UNNAMED else device.name for _report, device in side)
    return " and ".join(dict.fromkeys(names))


# The median step before and after: what a program takes step by step, however long a few slow steps last.

SLOW = 2.0
"""Times the median: one step that is longer makes a mean uncertain. Steps of a loop differ by less."""
MEDIAN, MEAN = "median", "mean"


class StepChange(Struct, frozen=True):
    """The change of the median (or the mean) step, and the degrees of freedom behind its interval. `slow` where a side
    has steps far longer than its median one."""

    change: Change
    freedom: float | None
    slow: bool


def step_change(
    before: Sequence[Capture], after: Sequence[Capture], noise: float, statistic: str = MEDIAN
) -> StepChange:
    """The change of the median (or mean) step between captures of the same unit of work. `noise` is how much a side
    drifts, as a share."""
    most = max(each.fold for each in (*before, *after))
    sides = [[_whole_steps(each, most)[:, None] for each in captures] for captures in (before, after)]
    middle = [float(np.median(np.concatenate(side))) for side in sides]
    longer = middle[0] > middle[1]  # the same draws whichever side is called before
    draw = drawn_medians if statistic == MEDIAN else drawn_means
    one, two = draw(sides[0], int(longer)), draw(sides[1], int(not longer))
    found = interval(one, two)
    bounds = None if found is None else (float(found[0][0]), float(found[1][0]))
    change = change_of_step(round(float(one.mean[0])), round(float(two.mean[0])), bounds, noise)
    slow = any(float(np.concatenate(side).max()) > SLOW * at for side, at in zip(sides, middle, strict=True))
    return StepChange(change, freedom(one, two), slow)


def _whole_steps(capture: Capture, fold: float) -> Values:
    """The length of a unit of work in each stretch of as much work as the largest iteration of any capture, which has
    `fold` units. The median layer is not the median step: steps begin or end with something else."""
    values = capture.table[LENGTH]
    together = max(round(fold / capture.fold), 1)
    count = len(values) // together
    return values[: count * together].reshape(count, together).mean(axis=1) if count else values


def verdict_of(length: Change, step: StepChange | None) -> str:
    """The verdict on the mean length, or on the median step if slow steps hide its change. The latter must be beyond
    chance at half the level, as two tests are wrong twice as often as one."""
    if step is None or not step.slow:
        return length.verdict
    median = step.change.verdict
    if length.verdict == SAME and median in DECIDED and outside(step.change, step.freedom, LEVEL / 2):
        return median
    return MIXED if {length.verdict, median} == {*DECIDED} else length.verdict


def speedup(change: Change) -> Speedup | None:
    """How many times as fast as before, with its interval; None where a side took no time."""
    if change.before_ns <= 0 or change.after_ns <= 0:
        return None
    low = high = None
    ends = [change.before_ns + each for each in (change.low_ns, change.high_ns) if each is not None]
    if len(ends) == 2 and min(ends) > 0:
        high, low = (_rounded(change.before_ns / end) for end in ends)
    return Speedup(factor=_rounded(change.before_ns / change.after_ns), low=low, high=high)


def _rounded(factor: float) -> float:
    """To seven digits, so that one above 0 stays above 0."""
    return float(f"{factor:.7g}")


MOST_TOP, LEAST_TOP = 3, 0.1
DIFFER = 0.02
"""Devices whose steps are no further apart keep one step: they wait for each other."""


class Compared(Struct, frozen=True):
    """A device with its captures, the changes that were found, and what is written of it."""

    pair: DevicePair
    sides: DeviceSides
    changes: DeviceChanges
    step: StepChange | None
    made: DeviceComparison


def job_comparison(devices: Sequence[Compared], verdict: str) -> JobComparison:
    """The job over all devices that were compared, at least one."""
    statistic = _statistic(devices)
    before = max(devices, key=lambda each: (_shown(each, statistic).before_ns, each.made.key))
    after = max(devices, key=lambda each: (_shown(each, statistic).after_ns, each.made.key))
    step, mean = _step(before, after, statistic), _step(before, after, MEAN)
    times = [_shown(each, statistic) for each in devices]
    sides = [each.before_ns for each in times], [each.after_ns for each in times]
    account = _account(devices, mean)
    return JobComparison(
        statistic=statistic,
        unit=after.sides.unit,
        verdict=verdict,
        device_before=before.made.key,
        device_after=after.made.key,
        devices_differ=any(max(side) > (1 + DIFFER) * min(side) for side in sides),
        step=step,
        mean=mean,
        speedup=speedup(step),
        work=after.made.work,
        account=account,
        top=[] if account and len(devices) > 1 else _top(after.made),
        slow_steps=any(each.made.slow_steps for each in devices),
    )


def _statistic(devices: Sequence[Compared]) -> str:
    """The median step, unless the mean of some device changed and the median of none did: the slow steps changed."""
    if any(each.step is None for each in devices):
        return MEAN
    mean = any(each.made.length.verdict in DECIDED for each in devices)
    median = any(each.step and each.step.change.verdict in DECIDED for each in devices)
    return MEAN if mean and not median else MEDIAN


def _shown(device: Compared, statistic: str) -> Change:
    return device.step.change if device.step is not None and statistic == MEDIAN else device.made.length


def _step(before: Compared, after: Compared, statistic: str) -> Change:
    """From the slowest device before to the slowest one after."""
    if before is after:
        return _shown(after, statistic)
    noise = max(before.changes.noise, after.changes.noise)
    return step_change(before.sides.before, after.sides.after, noise, statistic).change


def _account(devices: Sequence[Compared], mean: Change) -> list[AccountChange]:
    """The judged time of the devices by bottleneck, scaled to the mean step. Not to the median one: time that a few
    steps spend would make all other parts of a step look shorter."""
    sides = [
        _judged_time([each for device in devices for each in device.pair.before]),
        _judged_time([each for device in devices for each in device.pair.after]),
    ]
    if not all(sides):
        return []
    names = sorted({name for side in sides for name in side})
    times = []
    for side, step_ns in zip(sides, (mean.before_ns, mean.after_ns), strict=True):
        total = sum(side.values())
        times.append(adding_up(np.array([side.get(name, 0) * step_ns / total for name in names]), step_ns))
    rows = [
        AccountChange(bottleneck=name, before_ns=was, after_ns=now, change_ns=now - was)
        for name, was, now in zip(names, *times, strict=True)
    ]
    return sorted(rows, key=lambda row: (-max(row.before_ns, row.after_ns), row.bottleneck))


def _judged_time(side: Sequence[tuple[Report, DeviceReport]]) -> dict[str, int]:
    """ns by bottleneck in the judged steady phases; nothing where a report has none."""
    found: Counter[str] = Counter()
    for report, device in side:
        if report.diagnosis is None or report.diagnosis.basis not in (*STEADY, "window"):
            return {}
        for each in judged_phases(report, device):
            found.update(each.account)
    return {name: ns for name, ns in found.items() if ns}


def _top(device: DeviceComparison) -> list[PartChange]:
    """The kinds of work and the root causes that changed most, at most three: those beyond chance, or, if chance is
    unknown, those large enough."""
    rows = [*(row for row in device.parts if row.id in WORK), *device.root_ledger]
    known = device.length.verdict != UNKNOWN
    counted = [
        row
        for row in rows
        if (row.change.verdict in DECIDED if known else abs(row.change.change_ns) > row.change.least_ns)
    ]
    counted.sort(key=lambda row: (-abs(row.change.change_ns), row.id))
    least = LEAST_TOP * abs(counted[0].change.change_ns) if counted else 0
    return [row for row in counted if abs(row.change.change_ns) >= least][:MOST_TOP]
