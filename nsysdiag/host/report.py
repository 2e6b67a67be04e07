"""What the host's threads did while the devices were in use: every step in order."""

from __future__ import annotations

from nsysdiag.arrays.spill import evict
from nsysdiag.errors import InputError
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.host.advice import advice
from nsysdiag.host.change_points import change_points
from nsysdiag.host.contention import contention
from nsysdiag.host.facts import HostReport
from nsysdiag.host.states import thread_states
from nsysdiag.host.sync_latency import latencies, sync_latency
from nsysdiag.host.thread_table import thread_rows, thread_totals
from nsysdiag.host.threads import host_scene
from nsysdiag.host.windows import Working, host_windows, window_edges
from nsysdiag.wakeups.host_trace import HostTrace


def host_report(
    host_trace: HostTrace, host: HostActivity, devices: list[DeviceTimeline], working: list[Working]
) -> HostReport | None:
    """The host from the start of the first to the end of the last of the devices' windows, whatever lies between the
    parts of a window included; None where no window holds any time, or times are too far apart to lay all threads side
    by side."""
    parts = [each.parts for each in working if len(each.parts)]
    if not parts:
        return None
    low, high = min(int(part.start[0]) for part in parts), max(int(part.end[-1]) for part in parts)
    try:
        scene = host_scene(host_trace, host, devices, low, high)
    except InputError:
        return None
    states = thread_states(scene)
    scheduled = bool(states.known.any())
    edges = window_edges(low, high)
    late = latencies(scene)
    windows = host_windows(scene, states if scheduled else None, working, late, edges)
    evict()
    threads = thread_rows(scene, states, thread_totals(scene, states))
    contended = contention(scene, states) if scheduled else None
    return HostReport(
        start_ns=low,
        end_ns=high,
        scheduling=scheduled,
        threads=threads,
        thread_count=len(scene.axis.threads),
        contention=contended,
        windows=windows,
        change_points=change_points(windows),
        sync_latency=sync_latency(scene, late, windows, edges),
        advice=advice(threads, contended, high - low),
    )
