"""The steps that the user names, in place of those that are found."""

from __future__ import annotations

import difflib
import fnmatch

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.config.step import StepChoice
from nsysdiag.errors import UsageError
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, distinct_values
from nsysdiag.iterations.by_range import loop_of_ranges
from nsysdiag.iterations.happened import Kinds
from nsysdiag.iterations.iterations import find_loops
from nsysdiag.iterations.loop import Called, Inner, Loop, loop_of, median_of, pauses, spread_of
from nsysdiag.iterations.window import matching_names, whole_of
from nsysdiag.trace.columns import Strings

FEWEST_CHOSEN = 2
"""One step has nothing that it could be compared with, and --nvtx narrows the time to it."""
MOST_UNEQUAL = 0.25
"""Of the usual number of operations: equal steps deviate by no more."""
MOST_SPARE = 2
"""Fewer repeats may be left behind the last step."""
MOST_NEAR = 5


def chosen_loops(
    choice: StepChoice, devices: list[DeviceTimeline], calls: CallRows, ranges: NvtxRanges, strings: Strings
) -> dict[str, list[Loop]]:
    """The steps of each device that has such, by its key. Raises UsageError where none has: with near names."""
    found = {}
    for device in devices:
        loops = [loop for loop in _chosen(choice, device, calls, ranges, strings) if loop is not None]
        if loops:
            found[device.key] = sorted(loops, key=lambda loop: -loop.total_ns)
    if not found and devices:
        raise _nothing(choice, devices, strings)
    return found


def _chosen(
    choice: StepChoice, device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, strings: Strings
) -> list[Loop | None]:
    whole = whole_of(device)
    if len(whole) == 0:
        return []
    if choice.kind == "nvtx":
        return [loop_of_ranges(device, calls, ranges, _codes(choice.name, ranges), choice.name, whole)]
    if choice.kind == "kernel":
        rows = _kernels(choice.name, device, strings)
        name = int(device.operations.name[rows[0]]) if len(rows) else -1
        return [_from(device.operations.start[rows], Called(anchor=name), whole)]
    loops = find_loops(device, calls, ranges, strings, whole)
    if choice.kind == "every":
        return [_grouped(loop, loop.starts, choice.number, whole) for loop in loops]
    counted = [_counted(choice.number, loop, device, whole) for loop in loops]
    return counted if any(counted) else [_counted(choice.number, None, device, whole)]


def _codes(wanted: str, ranges: NvtxRanges) -> IntArray:
    """The codes of the names that are wanted: `step #` is a step of any number."""
    used = distinct_values(ranges.rows.name)
    kinds = Kinds.of(ranges)
    if wanted in kinds.words:
        same: IntArray = used[kinds.code[used] == kinds.words.index(wanted)]
        return same
    return used[matching_names([ranges.names[name] for name in used.tolist()], wanted)]


def _kernels(wanted: str, device: DeviceTimeline, strings: Strings) -> IntArray:
    """The kernels whose short or whole name is this, or else matches it."""
    operations = device.operations
    kernels = device.running & (operations.category == Category.KERNEL)
    columns = (operations.short_name, operations.name)
    for fits in (lambda text: text == wanted, lambda text: fnmatch.fnmatchcase(text, wanted)):
        found = np.zeros(len(kernels), np.bool_)
        for column in columns:
            found |= np.isin(column, strings.ids_where(fits, column[kernels]))
        if (found & kernels).any():
            return np.flatnonzero(found & kernels)
    return np.empty(0, np.int64)


def _from(starts: IntArray, called: Called, whole: Intervals) -> Loop | None:
    """A step from each of these times to the next."""
    starts = np.unique(starts)
    if len(starts) < FEWEST_CHOSEN:
        return None
    length = np.diff(starts)
    return loop_of(
        called, starts, pauses(length, float(np.median(length)), int(length.sum())), None, int(whole.end[-1])
    )


def _grouped(loop: Loop, starts: IntArray, each: int, whole: Intervals) -> Loop | None:
    """Steps of `each` repeats of a loop, from the first one on; a last one that lacks some is left out."""
    count = len(starts) // each
    made = _from(starts[: count * each : each], loop.called, whole)
    if made is None:
        return None
    return made.with_inner(Inner(loop.called, each, median_of(np.diff(starts)), loop.inner))


def _counted(count: int, loop: Loop | None, device: DeviceTimeline, whole: Intervals) -> Loop | None:
    """So many equal steps: cut where the loop that was found repeats, or else where an operation does whose number is
    nearest to a multiple; of several the one that makes the steps most equal."""
    operations = device.operations
    work = np.flatnonzero(device.running & ~operations.migration)
    since, until = (
        (int(whole.start[0]), int(whole.end[-1])) if loop is None else (int(loop.starts[0]), int(loop.ends[-1]))
    )
    mine = work[(operations.start[work] >= since) & (operations.start[work] < until)]
    of_name = RowsOf(operations.name[mine])
    tried = [] if loop is None else [(loop.called, loop.starts)]
    tried += [(Called(anchor=name), operations.start[mine[of_name[name]]]) for name in of_name.values() if name >= 0]
    best: tuple[float, int, Loop] | None = None
    for place, (called, starts) in enumerate(tried):
        each = round(len(starts) / count)
        if each < 1 or not 0 <= len(starts) - each * count < min(each, MOST_SPARE):
            continue
        made = _grouped(loop_of(called, starts, np.zeros(len(starts) - 1, np.bool_), None, until), starts, each, whole)
        if made is not None and len(made) == count:
            unequal = _unequal(made, operations.start[work])
            if best is None or (unequal, place) < best[:2]:
                best = unequal, place, made if each > 1 else made.with_inner(None)
    return best[2] if best is not None and best[0] <= MOST_UNEQUAL else None


def _unequal(loop: Loop, start: IntArray) -> float:
    """How much the numbers of operations of the steps differ, as a share of the usual one."""
    size = np.diff(np.searchsorted(start, loop.starts))
    middle = median_of(size)
    return spread_of(size, middle) / max(middle, 1)


def _nothing(choice: StepChoice, devices: list[DeviceTimeline], strings: Strings) -> UsageError:
    """What is wrong with the choice, and what there is instead."""
    if choice.kind == "nvtx":
        return UsageError(
            f"fewer than two NVTX ranges named '{choice.name}' launch GPU work, so they are no steps",
            hint="name a range around the launches of each step",
        )
    if choice.kind == "kernel":
        known = sorted({name for device in devices for name in _names(device, strings)})
        near = difflib.get_close_matches(choice.name, known, MOST_NEAR, 0.3) or known[:MOST_NEAR]
        return UsageError(
            f"fewer than two kernels are named '{choice.name}', so none begins a step",
            hint="near names: " + ", ".join(near) if near else "there are no kernels to choose from",
        )
    if choice.kind == "count":
        return UsageError(
            f"nothing that repeats divides the work into {choice.number} equal steps",
            hint="name the range or the kernel that begins a step: --step NVTX, --step kernel=NAME",
        )
    return UsageError(
        f"fewer than two steps of {choice.number} repeats are in the trace",
        hint="see how many steps nsysdiag analyze finds, or name them: --step NVTX, --step kernel=NAME",
    )


def _names(device: DeviceTimeline, strings: Strings) -> list[str]:
    operations = device.operations
    kernels = device.running & (operations.category == Category.KERNEL)
    short = distinct_values(operations.short_name[kernels])
    return strings.texts(short if (short >= 0).any() else distinct_values(operations.name[kernels]))
