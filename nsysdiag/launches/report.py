"""How work reached a device: calls and delays, queue depth and drains, launch-bound phases, graphs."""

from __future__ import annotations

import msgspec
import numpy as np

from nsysdiag.arrays.intervals import BoolArray, Intervals, coverage
from nsysdiag.causes import QUEUE_FULL
from nsysdiag.config.settings import Thresholds
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.rows import distinct_values
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.launches.graphs import graph_launches
from nsysdiag.launches.launch_bound import find_launch_bound, launch_bound_report
from nsysdiag.launches.launches import launch_summary
from nsysdiag.launches.queue_depth import find_drains, outstanding, queue_depth
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.ledger.untraced_graphs import PartialReplays, untraced_count
from nsysdiag.report import Launch, QueueDepth


def launch_report(
    context: GapContext,
    window: AnalysisWindow,
    inside: BoolArray,
    activity: DeviceActivity,
    layered: LayeredEvidence,
    untraced: dict[int, Intervals],
    partial: PartialReplays,
    ahead: QueueDepth | None,
    limits: Thresholds,
) -> Launch:
    """Everything about the launches of one device; `inside` marks its operations inside the window, `ahead` is how far
    the host was."""
    device, frame, calls = context.device, context.frame, activity.api_calls.rows
    phases = find_launch_bound(device, calls, frame, context.ledger, window.parts, limits)
    unseen = untraced_count(device, activity, untraced, window.parts)
    return msgspec.structs.replace(
        launch_summary(device, activity.api_calls, inside, frame, context.slices, window),
        queue_full_ns=_queue_full_ns(device, activity, context.axis, layered, window.parts),
        queue_depth=ahead,
        launch_bound=launch_bound_report(phases, context, calls),
        graphs=graph_launches(device, calls, inside, frame.gaps, context.strings, unseen, partial.calls),
    )


def depth_of_queue(
    context: GapContext, layered: LayeredEvidence, activity: DeviceActivity, parts: Intervals, limits: Thresholds
) -> QueueDepth | None:
    """The queue depth over the window, and what drained the queue. Also releases the sorted times."""
    calls = activity.api_calls
    work = outstanding(context.device, calls.rows)
    drains = find_drains(context.frame, work, context.lane, context.axis, layered.before, calls, limits.drain_depth)
    return queue_depth(work, parts, drains)


def _queue_full_ns(
    device: DeviceTimeline, activity: DeviceActivity, axis: ThreadAxis, layered: LayeredEvidence, parts: Intervals
) -> int:
    """The time inside the window in which threads that launch on the device waited for space in a command buffer. The
    trace does not show for which of their devices."""
    spans = [layer.spans for layer in layered.before[QUEUE_FULL] if len(layer)]
    if not spans:
        return 0
    calls = activity.api_calls.rows
    feeding = axis.rank(distinct_values(calls.thread[device.launch[device.launch >= 0]]))
    total = 0
    for each in spans:
        mine = each[np.isin(each.start // axis.stride, feeding)]
        start = axis.time(mine.start)
        total += int(coverage(parts, Intervals(start, start + mine.end - mine.start)).sum())
    return total
