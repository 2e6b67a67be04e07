"""The job before and after: the step of its slowest device, its work, and what the judged time is charged to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import column_from
from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.causes import CAUSES
from nsysdiag.comparison import facts, sides, waterfall
from nsysdiag.comparison.rows import RowPairs
from nsysdiag.comparison.sides import DevicePair
from nsysdiag.comparison.significance import Values, drawn_means, drawn_medians, freedom, interval
from nsysdiag.comparison.units import DeviceSides
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.messages import InputError
from nsysdiag.phases.facts import Phase, PhaseSteps
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import format_two_ns

# The judged time by bottleneck, and why a step is slower or faster.


ALIKE = 0.05
"""Of the length: an account whose kernels differ more from those of the unit is of other work."""


def account_changes(pairs: Sequence[DevicePair], mean: facts.Change) -> list[facts.AccountChange]:
    """The judged time of devices by bottleneck, scaled to their mean step. Not to the median one: time that a few
    steps spend would make all other parts of a step look shorter."""
    both = [
        _judged_time([each for pair in pairs for each in pair.before]),
        _judged_time([each for pair in pairs for each in pair.after]),
    ]
    if not all(both):
        return []
    names = sorted({name for side in both for name in side})
    times = []
    for side, step_ns in zip(both, (mean.before_ns, mean.after_ns), strict=True):
        total = sum(side.values())
        times.append(waterfall.adding_up(np.array([side.get(name, 0) * step_ns / total for name in names]), step_ns))
    rows = [
        facts.AccountChange(bottleneck=name, before_ns=was, after_ns=now, change_ns=now - was)
        for name, was, now in zip(names, *times, strict=True)
    ]
    return sorted(rows, key=lambda row: (-max(row.before_ns, row.after_ns), row.bottleneck))


def with_accounts(
    pairs: Sequence[DevicePair], devices: Sequence[facts.DeviceComparison]
) -> list[list[facts.AccountChange]]:
    """The account of each device: of all of them, if that of one differs from its causes, else of none."""
    found = [account_changes([pair], each.length) for pair, each in zip(pairs, devices, strict=True)]
    both = list(zip(found, devices, strict=True))
    if all(rows and of_this_work(rows, each) for rows, each in both) and any(_differs(*each) for each in both):
        return found
    return [[] for _each in found]


def _differs(account: Sequence[facts.AccountChange], device: facts.DeviceComparison) -> bool:
    """Does a bottleneck change by another time than the work and the causes that are its own?"""
    left = Counter({row.bottleneck: row.change_ns for row in account})
    left["kernels"] += left.pop("parallelism", 0)
    for row in (*(each for each in device.parts if each.id != sides.IDLE), *device.ledger):
        left[_bottleneck_of(row.id)] -= row.change.change_ns
    least = waterfall.LEAST_OF_LENGTH * max(device.length.before_ns, device.length.after_ns)
    return any(abs(ns) > least for ns in left.values())


def _bottleneck_of(id: str) -> str:
    return OF_WORK.get(id) or (CAUSES[id].bottleneck if id in CAUSES else "")


def of_this_work(account: Sequence[facts.AccountChange], device: facts.DeviceComparison) -> bool:
    """Whether the kernels take about as long in the account as in the unit that is compared: else the judged phases
    hold other work as well."""
    kernels = [row for row in account if row.bottleneck in KERNELS]
    compute = next((row.change for row in device.parts if row.id == sides.COMPUTE), None)
    if compute is None:
        return True
    pairs = (
        (sum(row.before_ns for row in kernels), compute.before_ns, device.length.before_ns),
        (sum(row.after_ns for row in kernels), compute.after_ns, device.length.after_ns),
    )
    return all(abs(charged - measured) <= ALIKE * length for charged, measured, length in pairs)


def _judged_time(side: Sequence[tuple[Report, DeviceReport]]) -> dict[str, int]:
    """ns by bottleneck in the judged steady phases; nothing if a report has none."""
    found: Counter[str] = Counter()
    for report, device in side:
        if report.diagnosis is None or report.diagnosis.basis not in (*sides.STEADY, "window"):
            return {}
        for each in sides.judged_phases(report, device):
            found.update(each.account)
    return {name: ns for name, ns in found.items() if ns}


MOST, LEAST = 3, 0.1
"""So many changes are named, and none below this share of the largest one."""
PART = 1.1
"""A cause that changed by more of its bottleneck's change is charged to others as well."""


def reasons(
    account: Sequence[facts.AccountChange],
    top: Sequence[facts.PartChange],
    device: facts.DeviceComparison,
    step: facts.Change,
) -> list[facts.Reason]:
    """The largest changes of the account, or if there is none of the parts `top`. `device` is the slowest one."""

    def reason(
        bottleneck: str, cause: str | None, change: facts.AccountChange | facts.Change, causes: list[facts.PartChange]
    ) -> facts.Reason:
        return facts.Reason(bottleneck, cause, change.before_ns, change.after_ns, change.change_ns, causes)

    found = [reason(row.bottleneck, None, row, _causes_of(row, device)) for row in account]
    found = found or [reason(_bottleneck_of(row.id), row.id, row.change, []) for row in top]
    found.sort(key=lambda each: (-abs(each.change_ns), each.bottleneck))
    most = max((abs(each.change_ns) for each in found), default=0)
    least = max(waterfall.LEAST_OF_LENGTH * max(step.before_ns, step.after_ns), LEAST * most)
    return [each for each in found if abs(each.change_ns) >= least][:MOST]


def _causes_of(row: facts.AccountChange, device: facts.DeviceComparison) -> list[facts.PartChange]:
    """The root causes whose time is this bottleneck's and that changed with it, the largest change first."""
    least = waterfall.LEAST_OF_LENGTH * max(device.length.before_ns, device.length.after_ns)
    sign = 1 if row.change_ns > 0 else -1
    found = [
        each
        for each in device.root_ledger
        if _bottleneck_of(each.id) == row.bottleneck
        and least <= sign * each.change.change_ns <= PART * abs(row.change_ns)
    ]
    return sorted(found, key=lambda each: (-abs(each.change.change_ns), each.id))


# The median step before and after: what a program takes step by step, however long a few slow steps last.

SLOW, MOST_SLOW = 2.0, 0.25
"""Times the median: one step that is longer makes a mean uncertain. If more of them are, steps are of several kinds,
such as those that wait for input and those that find it: no median is typical, and only the mean is judged."""
MEDIAN, MEAN = "median", "mean"


class StepChange(Struct, frozen=True):
    """The change of the median (or the mean) step, and the degrees of freedom behind its interval. `slow` if a side
    has a few steps far longer than its median one; `typical`: it has no more than a few."""

    change: facts.Change
    freedom: float | None
    slow: bool
    typical: bool = True


def step_change(
    before: Sequence[sides.Capture], after: Sequence[sides.Capture], noise: float, statistic: str = MEDIAN
) -> StepChange:
    """The change of the median (or mean) step between captures of the same unit of work. `noise` is how much a side
    drifts, as a share."""
    most = max(each.fold for each in (*before, *after))
    both = [[_whole_steps(each, most)[:, None] for each in captures] for captures in (before, after)]
    middle = [float(np.median(np.concatenate(side))) for side in both]
    longer = middle[0] > middle[1]  # the same draws whichever side is called before
    draw = drawn_medians if statistic == MEDIAN else drawn_means
    one, two = draw(both[0], int(longer)), draw(both[1], int(not longer))
    found = interval(one, two)
    bounds = None if found is None else (float(found[0][0]), float(found[1][0]))
    change = waterfall.change_of_step(round(float(one.mean[0])), round(float(two.mean[0])), bounds, noise)
    slow = max(float((np.concatenate(side) > SLOW * at).mean()) for side, at in zip(both, middle, strict=True))
    return StepChange(change, freedom(one, two), 0 < slow <= MOST_SLOW, slow <= MOST_SLOW)


def _whole_steps(capture: sides.Capture, fold: float) -> Values:
    """The length of a unit of work in each stretch of as much work as the largest iteration of any capture, which has
    `fold` units. The median layer is not the median step: steps begin or end with something else."""
    values = capture.table[sides.LENGTH]
    together = max(round(fold / capture.fold), 1)
    count = len(values) // together
    return values[: count * together].reshape(count, together).mean(axis=1) if count else values


def verdict_of(length: facts.Change, step: StepChange | None) -> str:
    """The verdict on the mean length, or on the median step if slow steps hide its change. The latter must be beyond
    chance at half the level of a length, as two tests are wrong twice as often as one. And the mean may have changed by
    as much: else the slow steps make up for it, as steps that wait for what others found."""
    if step is None or not step.slow:
        return length.verdict
    median = step.change.verdict
    if length.low_ns is None or length.high_ns is None:
        return length.verdict
    hidden = length.verdict == facts.SAME and length.low_ns <= step.change.change_ns <= length.high_ns
    if hidden and median in facts.DECIDED and waterfall.outside(step.change, step.freedom, waterfall.OF_LENGTH / 2):
        return median
    return facts.MIXED if {length.verdict, median} == {*facts.DECIDED} else length.verdict


def speedup(change: facts.Change) -> facts.Speedup | None:
    """How many times as fast as before, with its interval; None if a side took no time."""
    if change.before_ns <= 0 or change.after_ns <= 0:
        return None
    low = high = None
    ends = [change.before_ns + each for each in (change.low_ns, change.high_ns) if each is not None]
    if len(ends) == 2 and min(ends) > 0:
        high, low = (_rounded(change.before_ns / end) for end in ends)
    return facts.Speedup(factor=_rounded(change.before_ns / change.after_ns), low=low, high=high)


def _rounded(factor: float) -> float:
    """To seven digits, so that one above 0 stays above 0."""
    return float(f"{factor:.7g}")


MOST_TOP, LEAST_TOP = 3, 0.1
"""How many changes are named as the largest, and how large each must be, as a share of the largest one. Smaller changes
are only in the tables. Round numbers: nothing depends on them closely."""
DIFFER = 0.02
"""Devices whose steps are no further apart keep one step: they wait for each other."""


class ComparedDevice(Struct):
    """A device with its captures, in units of work; its rows in pairs; its changes and, in steps, that of the median
    step."""

    pair: DevicePair
    sides: DeviceSides
    kernels: RowPairs
    gaps: RowPairs
    changes: waterfall.DeviceChanges
    step: StepChange | None = None


class Compared(Struct, frozen=True):
    """A device, and what is written of it."""

    of: ComparedDevice
    made: facts.DeviceComparison


def job_comparison(devices: Sequence[Compared], verdict: str) -> facts.JobComparison:
    """The job over all devices that were compared, at least one."""
    statistic = _statistic(devices)
    before = max(devices, key=lambda each: (_shown(each, statistic).before_ns, each.made.key))
    after = max(devices, key=lambda each: (_shown(each, statistic).after_ns, each.made.key))
    step, mean = _step(before, after, statistic), _step(before, after, MEAN)
    times = [_shown(each, statistic) for each in devices]
    both = [each.before_ns for each in times], [each.after_ns for each in times]
    account = account_changes([each.of.pair for each in devices], mean)
    if len(devices) == 1 and not of_this_work(account, after.made):
        account = []
    top = [] if account else top_changes(after.made, known=after.made.length.low_ns is not None)
    return facts.JobComparison(
        statistic=statistic,
        unit=after.of.sides.unit,
        verdict=verdict,
        device_before=before.made.key,
        device_after=after.made.key,
        devices_differ=any(max(side) > (1 + DIFFER) * min(side) for side in both),
        step=step,
        mean=mean,
        speedup=speedup(step),
        work=after.made.work,
        account=account,
        top=top,
        slow_steps=any(each.made.slow_steps for each in devices),
        why=[] if verdict == facts.SAME else reasons(account, top, after.made, step),
        phases=other_phases(after.of.sides),
    )


def _statistic(devices: Sequence[Compared]) -> str:
    """The median step, unless no median is typical, or the mean of some device changed and the median of none did: the
    slow steps changed."""
    if any(each.of.step is None or not each.of.step.typical for each in devices):
        return MEAN
    mean = any(each.made.length.verdict in facts.DECIDED for each in devices)
    median = any(each.of.step and each.of.step.change.verdict in facts.DECIDED for each in devices)
    return MEAN if mean and not median else MEDIAN


def _shown(device: Compared, statistic: str) -> facts.Change:
    step = device.of.step
    return step.change if step is not None and statistic == MEDIAN else device.made.length


def _step(before: Compared, after: Compared, statistic: str) -> facts.Change:
    """From the slowest device before to the slowest one after."""
    if before is after:
        return _shown(after, statistic)
    noise = max(before.of.changes.noise, after.of.changes.noise)
    return step_change(before.of.sides.before, after.of.sides.after, noise, statistic).change


def top_changes(device: facts.DeviceComparison, *, known: bool) -> list[facts.PartChange]:
    """The kinds of work and the root causes that changed most, at most three: those beyond chance, or, unless chance is
    `known`, those large enough."""
    rows = [*(row for row in device.parts if row.id in sides.WORK), *device.root_ledger]
    counted = [
        row
        for row in rows
        if (row.change.verdict in facts.DECIDED if known else abs(row.change.change_ns) > row.change.least_ns)
    ]
    counted.sort(key=lambda row: (-abs(row.change.change_ns), row.id))
    least = LEAST_TOP * abs(counted[0].change.change_ns) if counted else 0
    return [row for row in counted if abs(row.change.change_ns) >= least][:MOST_TOP]


# Other loops of a program than the compared one: how long their steps are, as the verdict is not about them.

OTHER_WORK = 0.1
"""Numbers of operations of a step that are further apart, as a share, are not the same work."""


def other_phases(device: DeviceSides) -> list[facts.PhaseChange]:
    """The start-up, and the loops whose steps are known and not compared, which are judged together. Loops are the same
    by their place among as many. None if a side has several captures."""
    captures = [*device.before, *device.after]
    if len(captures) > 2:
        return []
    steady = [[phase for phase in each.report.phases if phase.name == "steady"] for each in captures]
    lengths = [[_steps(each, phase.steps) for phase in mine] for each, mine in zip(captures, steady, strict=True)]
    pairs = list(zip(*steady, strict=True)) if len(steady[0]) == len(steady[1]) else []
    loops, steps = {}, []
    for number, both in enumerate(pairs, 1):
        known = [each[number - 1] for each in lengths]
        compared = all(_holds_iterations(phase, capture) for capture, phase in zip(captures, both, strict=True))
        if None not in known and not compared:
            loops[number] = _other_work(*(phase.steps.operations if phase.steps else None for phase in both))
            steps.append([each for each in known if each is not None])
    found = waterfall.corrected([waterfall.changes([one], [two], (), {}) for one, two in steps])
    changed = [
        facts.PhaseChange(number=number, change=each.length, other_work=other_work)
        for (number, other_work), each in zip(loops.items(), found, strict=True)
    ]
    starts = [_start_up(capture) for capture in captures]
    start_up = facts.PhaseChange(number=0, change=waterfall.change_of_part(starts[0], starts[1], 0))
    return [start_up, *changed] if all(starts) else changed


def _holds_iterations(phase: Phase, capture: sides.Capture) -> bool:
    """Are some iterations of the device in the phase?"""
    found = capture.device.iterations
    return found is not None and any(phase.start_ns <= row.start_ns < phase.end_ns for row in found.rows)


def _other_work(one: int | None, two: int | None) -> bool:
    """Have the steps different numbers of operations, as far as they are known?"""
    return one is not None and two is not None and abs(two - one) > OTHER_WORK * max(one, two)


def _start_up(capture: sides.Capture) -> int:
    """Its length in ns from the first CUDA call, 0 if there is none, or if a part of the time was chosen."""
    if any(name in capture.report.settings for name in sides.NARROWING):
        return 0
    first = capture.report.phases[0] if capture.report.phases else None
    return first.end_ns - first.start_ns if first is not None and first.name == "start-up" else 0


def loop_notes(phases: Sequence[facts.PhaseChange]) -> list[str]:
    """How to compare a loop that changed."""
    return [
        f"The mean step of another loop (steady {each.number}) is "
        f"{format_two_ns(each.change.before_ns, each.change.after_ns, ' → ')}: --phase 'steady {each.number}' "
        "compares it."
        for each in phases
        if each.changed
    ]


def _steps(capture: sides.Capture, steps: PhaseSteps | None) -> sides.Capture | None:
    """The capture with the lengths of the steps of a phase alone, or their mean if the report does not hold them; None
    if they are not surely steps. Raises InputError if they are damaged."""
    if steps is None or not steps.of_the_program or not steps.certain:
        return None
    lengths = np.array([float(steps.average_ns)])
    if steps.lengths:
        try:
            lengths = column_from(steps.lengths, steps.count // steps.each) / steps.each
        except ValueError as error:
            file = capture.report.trace.file
            raise InputError(f"the phases of {file} cannot be read: the report is damaged") from error
    return replace(capture, table={sides.LENGTH: lengths})
