"""What the host's threads did while the devices were in use: every step in order."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.errors import InputError
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.host.change_points import change_points
from nsysdiag.host.contention import contention
from nsysdiag.host.facts import HostReport, HostWindow
from nsysdiag.host.shortage import evidence
from nsysdiag.host.states import ThreadStates
from nsysdiag.host.sync_latency import latencies, sync_latency
from nsysdiag.host.thread_table import thread_rows
from nsysdiag.host.threads import HostScene, host_scene
from nsysdiag.host.windows import Working, host_windows, window_edges
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.wakeups.host_trace import HostTrace


class HostOverTime(Struct, frozen=True):
    """The scene in windows of time, between `edges`: by how much each synchronization was `late`, in ns, and the rows
    that are shown."""

    late: IntArray
    edges: IntArray
    windows: list[HostWindow]


def scene_of(
    host_trace: HostTrace, host: HostActivity, devices: list[DeviceTimeline], windows: list[AnalysisWindow]
) -> HostScene | None:
    """The host from the start of the first to the end of the last device window, including time between the parts of a
    window. None if all windows are empty, or times are too far apart for one axis of all threads."""
    parts = [each.parts for each in windows if len(each.parts)]
    if not parts:
        return None
    low, high = min(int(part.start[0]) for part in parts), max(int(part.end[-1]) for part in parts)
    try:
        return host_scene(host_trace, host, devices, low, high)
    except InputError:
        return None


def over_time(scene: HostScene, states: ThreadStates, working: list[Working]) -> HostOverTime:
    """What threads did, window by window."""
    edges = window_edges(scene.low, scene.high)
    late = latencies(scene)
    return HostOverTime(late, edges, host_windows(scene, states if states.scheduled else None, working, late, edges))


def host_report(scene: HostScene, states: ThreadStates, over_time: HostOverTime) -> HostReport:
    """All that is reported of the host's threads and CPUs."""
    windows = over_time.windows
    threads = thread_rows(scene, states)
    contended = contention(scene, states) if states.scheduled else None
    return HostReport(
        start_ns=scene.low,
        end_ns=scene.high,
        scheduling=states.scheduled,
        threads=threads,
        thread_count=len(scene.axis.threads),
        contention=contended,
        windows=windows,
        change_points=change_points(windows),
        sync_latency=sync_latency(scene, over_time.late, windows, over_time.edges),
        shortage=evidence(threads, contended, scene.span),
    )
