"""The first stage: what is read of a trace, and the window of each device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.arrays.spill import Kept, laid
from nsysdiag.config.file import parse_step
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import Counters, read_counters
from nsysdiag.diagnosis.missing import UnseenLaunches
from nsysdiag.events.calls import read_api_calls
from nsysdiag.events.device import DeviceActivity, DeviceTimeline, device_activity, operations_by_gpu
from nsysdiag.events.host import large_tables
from nsysdiag.events.memory import FittingSpan, part_that_fits
from nsysdiag.events.nvtx import NvtxRanges, read_ranges
from nsysdiag.events.operations import read_operations
from nsysdiag.iterations.chosen import AnalysisWindow, CarriedSteps, chosen_loops, window_of
from nsysdiag.iterations.iterations import find_loops
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.named import layers_named
from nsysdiag.messages import UsageError
from nsysdiag.trace.capabilities import was_asked
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.trace import Trace

Progress = Callable[[str, float], None]
"""Takes what is done next, and the share of the work that is done, 0 to 1."""


def silent(_step: str, _share: float) -> None:
    """Progress that is not shown."""


HOST_TABLES = ("OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS")


class Reading(Struct, frozen=True):
    """What was read of a trace. `chosen` are the steps that the user names, by the key of the device, empty where they
    are found; `windows` the time under analysis of each device, by its key. `shown` are the keys of the devices that
    are reported; what one of them waits for may be another one, so all are analyzed."""

    trace: Trace
    settings: Settings
    ranges: NvtxRanges
    activity: DeviceActivity
    strings: Strings
    shown: frozenset[str]
    chosen: dict[str, list[Loop]]
    windows: dict[str, AnalysisWindow]
    counters: Future[Counters]
    unseen: Future[UnseenLaunches]

    @property
    def devices(self) -> list[DeviceTimeline]:
        """All devices."""
        return self.activity.devices

    def loops(self, device: DeviceTimeline, whole: Intervals) -> list[Loop]:
        """What repeats on a device in its whole time."""
        return find_loops(device, self.activity.api_calls, self.ranges, self.strings, whole)

    @property
    def host_unseen(self) -> bool:
        """Whether the trace shows nothing of the host but its CUDA calls."""
        return not any(map(self.trace.has, HOST_TABLES))

    @property
    def asked(self) -> frozenset[str]:
        """The kinds of evidence that were asked for at capture, and of which the trace has none."""
        told = self.trace.capabilities()
        return frozenset(each.id for each in told if was_asked(told, each.id))


def read(
    trace: Trace,
    settings: Settings,
    background: Background,
    progress: Progress,
    steps: CarriedSteps | None = None,
) -> Reading:
    """Reads ranges, the work of all GPUs and the calls that launched it. `steps` are those that another trace shows,
    None where they are found or chosen. Raises UsageError for settings that do not fit the trace."""
    progress("reading device activity", 0.0)
    part = _part(trace, settings)
    trace.read_ahead(large_tables(trace))  # while the ranges are read
    ranges, strings = read_ranges(trace), trace.strings
    activity = read_activity(trace, ranges, settings)
    chosen = _chosen(activity, ranges, strings, settings) if steps is None else steps.loops(activity.devices)
    shown = _shown(activity, settings)
    windows = _windows(activity, ranges, strings, settings, part, chosen, shown, cut=trace.cut, layers=_layers(trace))
    return Reading(
        trace,
        settings,
        ranges,
        activity,
        strings,
        shown,
        chosen,
        windows,
        counters=background.begin(read_counters, trace, activity.devices),
        unseen=background.begin(_unseen, trace, activity),
    )


def _part(trace: Trace, settings: Settings) -> FittingSpan | None:
    """The part of the trace that the memory limit allows to read, which is all that is read from now on."""
    if settings.memory_limit is None:
        return None
    Kept.most = Kept.least
    found = part_that_fits(trace, settings.memory_limit, settings.start_ns, settings.end_ns)
    if found is None:
        return None
    if settings.nvtx is not None or settings.iterations is not None:
        raise UsageError(
            "the trace exceeds the memory limit, and --nvtx and --iterations need all of it",
            hint="choose a time with --from and --to, or raise --memory-limit",
        )
    trace.only_between(found.read_from, found.end)
    trace.warn(found.reason)
    return found


def read_activity(trace: Trace, ranges: NvtxRanges, settings: Settings) -> DeviceActivity:
    """What all GPUs did, and the API calls that launched it."""
    recorded = laid(read_operations(trace))
    api_calls = laid(read_api_calls(trace, recorded.latest_ns))
    operations = laid(operations_by_gpu(trace, recorded, api_calls, same_gpu=settings.same_gpu), recorded, api_calls)
    del recorded
    return device_activity(trace, ranges, api_calls, operations, settings.communication_patterns)


def _shown(activity: DeviceActivity, settings: Settings) -> frozenset[str]:
    """The keys of the devices that are reported: all, or those that the settings name by key, by the number in it, or
    by a part of the GPU's name."""
    wanted, every = settings.device, activity.devices
    if wanted is None:
        return frozenset(each.key for each in every)
    exact = [device for device in every if wanted in (device.key, device.key.removeprefix("gpu"))]
    found = exact or [device for device in every if wanted.lower() in device.gpu.name.lower()]
    if not found:
        known = ", ".join(f"{device.key} ({device.gpu.name})" for device in every) or "none"
        raise UsageError(f"the trace has no device '{wanted}'", hint=f"devices in this trace: {known}")
    return frozenset(each.key for each in found)


def _chosen(
    activity: DeviceActivity, ranges: NvtxRanges, strings: Strings, settings: Settings
) -> dict[str, list[Loop]]:
    if settings.step is None:
        return {}
    return chosen_loops(parse_step(settings.step), activity.devices, activity.api_calls, ranges, strings)


def _windows(
    activity: DeviceActivity,
    ranges: NvtxRanges,
    strings: Strings,
    settings: Settings,
    part: FittingSpan | None,
    chosen: dict[str, list[Loop]],
    shown: frozenset[str],
    *,
    cut: bool,
    layers: int,
) -> dict[str, AnalysisWindow]:
    """The window of each device, by its key. One that holds nothing on any device is a mistake, not a healthy
    result."""
    found = {
        device.key: window_of(
            device, activity.api_calls, ranges, strings, settings, part, chosen.get(device.key), cut=cut, layers=layers
        )
        for device in activity.devices
    }
    narrowed = [window for key, window in found.items() if window.narrowed and key in shown]
    if narrowed and not any(window.length_ns for window in narrowed):
        spans = [
            f"{key} works from {window.whole.start[0]:,} to {window.whole.end[0]:,} ns"
            for key, window in found.items()
            if len(window.whole) and key in shown
        ]
        reason = typed.plain(narrowed[0].reason)
        raise UsageError(f"no GPU work is in the chosen time: {reason}", hint="; ".join(spans) or None)
    return found


def _layers(trace: Trace) -> int:
    """How many layers the Python functions of the PyTorch profiler name; 0 in other traces."""
    if not trace.cut:
        return 0
    return layers_named(text for text in trace.read("StringIds", "value").text("value").texts() if text)


def _unseen(trace: Trace, activity: DeviceActivity) -> UnseenLaunches:
    """Launches of which nothing was recorded but the call."""
    return UnseenLaunches.unknown() if trace.partial else UnseenLaunches.of(activity)
