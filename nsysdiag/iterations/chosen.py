"""The steps that the user names, in place of those that are found."""

from __future__ import annotations

import difflib
import fnmatch

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import median_of
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, intersect, union
from nsysdiag.config.file import StepChoice, parse_step
from nsysdiag.config.settings import Settings
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.capture import beginning_of
from nsysdiag.events.device import DeviceTimeline, of_processes, project
from nsysdiag.events.memory import FittingSpan
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf
from nsysdiag.fields import Sentence
from nsysdiag.iterations.by_range import loop_of_ranges
from nsysdiag.iterations.iterations import find_loops, main_loop
from nsysdiag.iterations.loop import Called, Inner, Loop, spread_of, through
from nsysdiag.iterations.named import Kinds, Passes, passes_in, passes_of
from nsysdiag.messages import UsageError
from nsysdiag.trace.columns import Strings
from nsysdiag.typed import say
from nsysdiag.units import format_exact_ns

# The time under analysis on one device: first to last launched operation, or what the settings narrow it to.

MOST_NAMED = 5
"""Names of ranges in the hint of an error, so that it fits in a line or two. A round number: nothing else depends on
it."""
SINCE_KNOWN = ", from the first that did not wait for work that is not in the trace"


class AnalysisWindow(Struct, frozen=True):
    """`parts` is a set; `whole` the span from first to last launched operation; time of it outside `parts` is edge.
    `asked` is where the time that the user chose begins, if that is before the first operation, else None.
    `inside_run`: the capture begins in the middle of a run. `held`: the first work waited for work that is not in the
    trace, and `whole` begins behind that wait; `late`: some operations before it are left out. `passes` are those of
    such a capture, or the one step that the user names; `named`: the user says what a step is."""

    parts: Intervals
    whole: Intervals
    reason: Sentence
    narrowed: bool
    asked: int | None = None
    inside_run: bool = False
    held: bool = False
    late: bool = False
    passes: Passes | None = None
    named: bool = False

    def edge_ns(self, duration_ns: int | None) -> int | None:
        """The capture before the first and after the last launched operation; None without a known duration."""
        return None if duration_ns is None else max(duration_ns - self.whole.total(), 0)

    @property
    def length_ns(self) -> int:
        return self.parts.total()

    @property
    def outside_ns(self) -> int:
        return self.whole.total() - self.parts.total()


def window_of(
    device: DeviceTimeline,
    api_calls: ApiCalls,
    ranges: NvtxRanges,
    strings: Strings,
    settings: Settings,
    part: FittingSpan | None = None,
    chosen: list[Loop] | None = None,
    *,
    cut: bool = False,
    layers: int = 0,
) -> AnalysisWindow:
    """The window of `device`; without parts if nothing ran, or nothing inside the narrowed time. `part` is what of
    the trace was read, None for all of it; `chosen` are the steps that the user named, None if they are found.
    `cut`: the format of the trace says that it is a part of a run. `layers`: how many the model has, 0 if unknown."""
    calls, (inside_run, known) = api_calls.rows, beginning_of(device, api_calls, cut=cut)
    reason: Sentence
    whole, reason = _whole(device)
    late = known is not None and bool(whole.start[0] < known)
    if known is not None:
        whole, reason = Intervals(np.maximum(whole.start, known), whole.end), reason + SINCE_KNOWN
    narrowed = any(
        each is not None for each in (settings.nvtx, settings.iterations, settings.start_ns, settings.end_ns)
    )
    parts = wanted = whole
    if settings.nvtx is not None:
        wanted = _projected(device, calls, ranges, settings.nvtx)
        parts = intersect(parts, wanted)
        shown = typed.nvtx(settings.nvtx)
        reason = say("NVTX ranges named '{}', each with the operations launched inside it and its own idle time", shown)
    if settings.iterations is not None:
        loop = main_loop(chosen or find_loops(device, api_calls, ranges, strings, whole))
        spans, reason = _iterations(loop, settings.iterations)
        parts = intersect(parts, spans)
    if settings.start_ns is not None or settings.end_ns is not None:
        low = settings.start_ns if settings.start_ns is not None else np.iinfo(np.int64).min // 2
        high = settings.end_ns if settings.end_ns is not None else np.iinfo(np.int64).max // 2
        parts = intersect(parts, Intervals.of([(low, high)])) if high > low else Intervals.empty()
        if wanted is whole and settings.start_ns is not None:
            wanted = Intervals.of([(low, high)])
        reason += f", narrowed to {_bound(settings.start_ns, 'the start')} – {_bound(settings.end_ns, 'the end')}"
    if part is not None:
        parts = intersect(parts, Intervals.of([(part.start, part.end)]))
        reason += ", as far as the memory limit allows"
    narrowed |= part is not None
    named, passes = settings.step is not None, None
    if settings.step is not None and not narrowed and (choice := parse_step(settings.step)).kind == "nvtx":
        passes = _one_step(choice.name, device, calls, ranges, whole)
    elif not named and not narrowed and inside_run:
        passes = passes_of(device, calls, ranges, whole)
    passes = passes and replace(passes, layers=layers)
    before = _before(parts, wanted, whole)
    return AnalysisWindow(parts, whole, reason, narrowed, before, inside_run, known is not None, late, passes, named)


def _one_step(
    wanted: str, device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals
) -> Passes | None:
    """The one range of this name that launches work; None if there are more, or none."""
    rows = ranges.rows.take(np.isin(ranges.rows.name, _codes(wanted, ranges)))
    found = passes_in(device, calls, union(Intervals(rows.start, rows.end)), whole, steps=True)
    return found if found is not None and len(found.spans) < FEWEST_CHOSEN else None


def _before(parts: Intervals, wanted: Intervals, whole: Intervals) -> int | None:
    """Where wanted time begins that reaches the first operation, which `parts` begins with."""
    reaches = len(parts) and parts.start[0] == whole.start[0] and wanted.start[0] < whole.start[0]
    return int(wanted.start[0]) if reaches else None


def whole_of(device: DeviceTimeline) -> Intervals:
    """From the first to the last launched operation of a device; empty if no operation ran."""
    return _whole(device)[0]


def _iterations(found: Loop | None, wanted: tuple[int | None, int | None]) -> tuple[Intervals, str]:
    """The time of the iterations that are wanted, without pauses in which their loop was left."""
    if found is None:
        return Intervals.empty(), "no operation of the device repeats regularly, so no iterations were found"
    first, behind, _ = slice(*wanted).indices(len(found))
    if behind <= first:
        return Intervals.empty(), f"there are {len(found)} iterations, and none of them is chosen"
    which = f"iteration {first}" if behind == first + 1 else f"iterations {first} to {behind - 1}"
    return union(found.spans[first:behind]), f"{which} of {len(found)}, counted from 0"


def _bound(time: int | None, otherwise: str) -> str:
    return otherwise if time is None else format_exact_ns(time)


def _whole(device: DeviceTimeline) -> tuple[Intervals, str]:
    """From the first to the last launched operation. Migrations open and close no window: the CPU may cause them long
    after the last kernel; only if there is nothing else do they count."""
    launched = device.running & ~device.operations.migration
    reason = "first to last launched operation"
    if not launched.any():
        launched, reason = device.running, "first to last migration: nothing was launched"
    if not launched.any():
        return Intervals.empty(), "no operation ran"
    start, end = device.operations.start[launched], device.operations.end[launched]
    return Intervals.of([(int(start.min()), int(end.max()))]), reason


def matching_names(names: list[str], wanted: str) -> list[int]:
    """Positions of the names that equal `wanted` or match it as a glob. Raises UsageError if none does."""
    found = [at for at, name in enumerate(names) if name == wanted]
    found = found or [at for at, name in enumerate(names) if fnmatch.fnmatchcase(name, wanted)]
    if not found:
        close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
        some = ", ".join(f"'{name}'" for name in names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
        hint = f"the names in it: {some}" if names else "the trace has no NVTX ranges"
        hint = "did you mean " + " or ".join(f"'{name}'" for name in close) + "?" if close else hint
        raise UsageError(f"the trace has no NVTX range named '{wanted}'", hint=hint)
    return found


def _projected(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, wanted: str) -> Intervals:
    """NVTX instances on the GPU: each from the first to the last operation that its thread launched inside it, or its
    process if such threads launch nothing. The time inside the range before and after these is included as far as
    the device did nothing.

    ```
    range    [step: load ......, launch, log ..]
    device   ==earlier==|......|==step==|.....
    part                [---------------------)
    ```
    """
    used = distinct_values(ranges.rows.name)
    codes = used[matching_names([ranges.names[name] for name in used.tolist()], wanted)]
    instances = ranges.rows.take(np.isin(ranges.rows.name, codes))
    rows, spans = project(device, calls, instances, device.running)
    if len(rows) == 0:
        everywhere, instances = of_processes(device, calls, instances)
        rows, spans = project(device, everywhere, instances, device.running)
    busy = union(Intervals(device.operations.start[device.running], device.operations.end[device.running]))
    before = np.searchsorted(busy.end, spans.start, side="right") - 1
    behind = np.searchsorted(busy.start, spans.end, side="left")
    free = np.append(busy.end, np.iinfo(np.int64).min)[before]
    taken = np.append(busy.start, np.iinfo(np.int64).max)[behind]
    begin = np.minimum(np.maximum(instances.start[rows], free), spans.start)
    end = np.maximum(np.minimum(instances.end[rows], taken), spans.end)
    # If another operation runs on at either end, nothing is added there.
    begin = np.where(coverage(busy, Intervals(begin, spans.start)) > 0, spans.start, begin)
    return union(Intervals(begin, np.where(coverage(busy, Intervals(spans.end, end)) > 0, spans.end, end)))


FEWEST_CHOSEN = 2
"""One step has nothing that it could be compared with: it is a pass."""
MOST_UNEQUAL = 0.25
"""Of the usual number of operations: equal steps deviate by no more."""
MOST_SPARE = 2
"""Fewer repeats may be left behind the last step."""
MOST_NEAR = 5
"""Names of kernels in the hint of an error. A round number: nothing else depends on it."""


class CarriedSteps(Struct, frozen=True):
    """Steps that were found by another trace: the name of what begins them there, whether that is an NVTX range, and
    the starts on each device, by its key."""

    name: str
    named: bool
    starts: dict[str, IntArray]

    def loops(self, devices: list[DeviceTimeline]) -> dict[str, list[Loop]]:
        """The steps as loops of the devices that have them."""
        called = Called(range=self.name) if self.named else Called(label=self.name)
        found = {
            each.key: _from(self.starts[each.key], called, whole_of(each))
            for each in devices
            if each.key in self.starts
        }
        return {key: [loop] for key, loop in found.items() if loop is not None}


def chosen_loops(
    choice: StepChoice, devices: list[DeviceTimeline], calls: ApiCalls, ranges: NvtxRanges, strings: Strings
) -> dict[str, list[Loop]]:
    """The steps of each device that has such, by its key; no loop for one range that is a step. Raises UsageError if
    none has: with near names."""
    found = {}
    for device in devices:
        loops = [loop for loop in _chosen(choice, device, calls, ranges, strings) if loop is not None]
        if loops:
            found[device.key] = sorted(loops, key=lambda loop: -loop.total_ns)
    if found or not devices:
        return found
    if choice.kind == "nvtx" and any(
        _one_step(choice.name, each, calls.rows, ranges, whole_of(each)) is not None for each in devices
    ):
        return {}
    raise _nothing(choice, devices, strings)


def _chosen(
    choice: StepChoice, device: DeviceTimeline, calls: ApiCalls, ranges: NvtxRanges, strings: Strings
) -> list[Loop | None]:
    whole = whole_of(device)
    if len(whole) == 0:
        return []
    if choice.kind == "nvtx":
        return [loop_of_ranges(device, calls.rows, ranges, _codes(choice.name, ranges), choice.name, whole)]
    if choice.kind == "kernel":
        rows = _kernels(choice.name, device, strings)
        name = int(device.operations.name[rows[0]]) if len(rows) else -1
        return [_from(device.operations.start[rows], Called(anchor=name), whole)]
    loops = find_loops(device, calls, ranges, strings, whole)
    if choice.kind == "every":
        return [_grouped(loop, choice.number) for loop in loops]
    counted = [_counted(choice.number, loop, device, whole) for loop in loops]
    return counted if any(counted) else [_counted(choice.number, None, device, whole)]


def _codes(wanted: str, ranges: NvtxRanges) -> IntArray:
    """The codes of the names that are wanted: `step #` is a step of any number."""
    used = distinct_values(ranges.rows.name)
    kinds = Kinds.of(ranges)
    if wanted in kinds.words:
        return used[kinds.code[used] == kinds.words.index(wanted)]
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
    starts = distinct_values(starts)
    if len(starts) < FEWEST_CHOSEN:
        return None
    return through(called, starts, int(whole.end[-1]))


def _grouped(loop: Loop, each: int) -> Loop | None:
    """Steps of `each` repeats of a loop, in every run of it from the first one on. Repeats that are left over at the
    end of a run are in none, and so is a pause."""
    grouped = [run.borders[: len(run) // each * each + 1 : each] for run in loop.runs]
    starts, ends = (np.concatenate([run[part] for run in grouped]) for part in (slice(-1), slice(1, None)))
    if len(starts) < FEWEST_CHOSEN:
        return None
    left = np.append(starts[1:] > ends[:-1], loop.open[-1] or ends[-1] < loop.ends[-1])
    inner = Inner(loop.called, each, median_of(np.diff(loop.starts)), loop.inner)
    return Loop(loop.called, starts, ends, left, inner=inner, layers=loop.layers)


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
        made = _grouped(through(called, distinct_values(starts), until), each)
        if made is not None and len(made) == count:
            unequal = _unequal(made, operations.start[work])
            if best is None or (unequal, place) < best[:2]:
                best = unequal, place, made if each > 1 else replace(made, inner=None)
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
            f"no NVTX range named '{choice.name}' launches GPU work, so it is not a step",
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
