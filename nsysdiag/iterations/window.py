"""The time under analysis on one device: first to last launched operation, or what the settings narrow it to."""

from __future__ import annotations

import difflib
import fnmatch

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.intervals import Intervals, coverage, intersect, union
from nsysdiag.config.settings import Settings
from nsysdiag.errors import UsageError
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.memory_fit import FittingSpan
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.projection import project
from nsysdiag.events.rows import distinct_values
from nsysdiag.iterations.iterations import find_loops, main_loop
from nsysdiag.iterations.loop import Loop
from nsysdiag.trace.columns import Strings
from nsysdiag.units import format_exact_ns

MOST_NAMED = 5


class AnalysisWindow(Struct, frozen=True):
    """`parts` is a set; `whole` the span from first to last launched operation; time of it outside `parts` is edge.
    `asked` is where the time that the user chose begins, where that is before the first operation, else None."""

    parts: Intervals
    whole: Intervals
    reason: str
    narrowed: bool
    asked: int | None = None

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
    calls: CallRows,
    ranges: NvtxRanges,
    strings: Strings,
    settings: Settings,
    part: FittingSpan | None = None,
    chosen: list[Loop] | None = None,
) -> AnalysisWindow:
    """The window of `device`; without parts where nothing ran, or nothing inside the narrowed time. `part` is what of
    the trace was read, None for all of it; `chosen` are the steps that the user named, None where they are found."""
    whole, reason = _whole(device)
    narrowed = any(
        each is not None for each in (settings.nvtx, settings.iterations, settings.start_ns, settings.end_ns)
    )
    parts = wanted = whole
    if settings.nvtx is not None:
        wanted = _projected(device, calls, ranges, settings.nvtx)
        parts = intersect(parts, wanted)
        shown = typed.nvtx(settings.nvtx)
        reason = f"NVTX ranges named '{shown}', each with the operations launched inside it and its own idle time"
    if settings.iterations is not None:
        loop = main_loop(chosen or find_loops(device, calls, ranges, strings, whole))
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
    return AnalysisWindow(parts, whole, reason, narrowed or part is not None, _before(parts, wanted, whole))


def _before(parts: Intervals, wanted: Intervals, whole: Intervals) -> int | None:
    """Where wanted time begins that reaches the first operation, which `parts` begins with."""
    reaches = len(parts) and parts.start[0] == whole.start[0] and wanted.start[0] < whole.start[0]
    return int(wanted.start[0]) if reaches else None


def whole_of(device: DeviceTimeline) -> Intervals:
    """From the first to the last launched operation of a device; empty where no operation ran."""
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
    after the last kernel; only where there is nothing else do they count."""
    launched = device.running & ~device.operations.migration
    reason = "first to last launched operation"
    if not launched.any():
        launched, reason = device.running, "first to last migration: nothing was launched"
    if not launched.any():
        return Intervals.empty(), "no operation ran"
    start, end = device.operations.start[launched], device.operations.end[launched]
    return Intervals.of([(int(start.min()), int(end.max()))]), reason


def matching_names(names: list[str], wanted: str) -> list[int]:
    """Positions of the names that equal `wanted` or match it as a glob. Raises UsageError where none does."""
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
    """NVTX instances on the GPU: each from the first to the last operation that its thread launched inside it. The time
    inside the range before and after these is included as far as the device did nothing.

    ```
    range    [step: load ......, launch, log ..]
    device   ==earlier==|......|==step==|.....
    part                [---------------------)
    ```
    """
    used = distinct_values(ranges.rows.name)
    codes = used[matching_names([ranges.names[name] for name in used.tolist()], wanted)]
    instances = ranges.rows.take(np.isin(ranges.rows.name, codes))
    rows, spans = project(device, calls, instances)
    busy = union(Intervals(device.operations.start[device.running], device.operations.end[device.running]))
    before = np.searchsorted(busy.end, spans.start, side="right") - 1
    behind = np.searchsorted(busy.start, spans.end, side="left")
    free = np.append(busy.end, np.iinfo(np.int64).min)[before]
    taken = np.append(busy.start, np.iinfo(np.int64).max)[behind]
    begin = np.minimum(np.maximum(instances.start[rows], free), spans.start)
    end = np.maximum(np.minimum(instances.end[rows], taken), spans.end)
    # Where another operation runs on at either end, nothing is added there.
    begin = np.where(coverage(busy, Intervals(begin, spans.start)) > 0, spans.start, begin)
    return union(Intervals(begin, np.where(coverage(busy, Intervals(spans.end, end)) > 0, spans.end, end)))
