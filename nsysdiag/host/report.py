"""What the host's threads did while the devices were in use: every step in order."""

from __future__ import annotations

from bisect import insort

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.buckets import StepFunction, count_open, time_by_level
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import FloatArray, IntArray, Intervals, sorted_times, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.fields import Sentence
from nsysdiag.host.facts import ChangePoint, Contention, CpuHolder, CpuLimit, HostReport, HostThread, HostWindow
from nsysdiag.host.sync_latency import Working, host_windows, latencies, sync_latency, window_edges
from nsysdiag.host.threads import CpuStretches, HostScene, ThreadStates, host_scene, thread_rows
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.messages import InputError
from nsysdiag.typed import say
from nsysdiag.units import NS_PER, capitalized, format_ns, format_share
from nsysdiag.wakeups.loaders import HostTrace

# A shortage of CPUs in sentences: what shows it, and what to do about it.

NOTABLE_SHARE = 0.01
"""Of the range: from so much lost time of a launching thread on there is something to tell."""
FEWER = "start fewer threads (OMP_NUM_THREADS, worker processes)"
OWN_CPU = "bind the launching thread to a CPU of its own (taskset, numactl)"
UNTRACED = "a call that nsys does not trace, such as CPython's timed waits for a lock"


def evidence(threads: list[HostThread], contention: Contention | None, span: int) -> list[Sentence]:
    """Sentences on CPU limits of a process, and on the threads that had the CPUs a launching thread waited for. Empty
    if no launching thread lost much time and no limit was found."""
    if contention is None:
        return []
    lines = [_shortage_limit(limit, span) for limit in contention.limits]
    worst = _worst(threads, span)
    if worst is not None and contention.holders:
        lines.append(_neighbours(worst, contention.holders, span))
    return lines


def advice(host: HostReport) -> list[str]:
    """What to do about it, in the order of the evidence."""
    if host.contention is None:
        return []
    lines = [
        f"Give the process more CPUs, or {FEWER}."
        if limit.cpus_seen <= limit.cpus
        else f"Look for a CPU limit (the container's CPU quota or cpuset, taskset, numactl), or {FEWER}."
        for limit in host.contention.limits
    ]
    if _worst(host.threads, host.end_ns - host.start_ns) is not None and host.contention.holders:
        crowded = _crowded(host.contention.holders)
        apart = f"Keep other jobs off these CPUs, or {OWN_CPU}."
        lines.append(f"{capitalized(FEWER)}, or {OWN_CPU}." if crowded else apart)
    return list(dict.fromkeys(lines))


def _worst(threads: list[HostThread], span: int) -> HostThread | None:
    lost = [row for row in threads if row.launches and (row.preempted_ns or 0) >= NOTABLE_SHARE * span]
    return max(lost, key=lambda row: row.preempted_ns or 0, default=None)


def _shortage_limit(limit: CpuLimit, span: int) -> Sentence:
    who = say("{} ({})", typed.process(limit.process), limit.pid) if limit.process else f"process {limit.pid}"
    waited = f"For {format_ns(limit.ns)} ({format_share(limit.ns, span)} of the time) at least one waited"
    return say(
        "Threads of {} never ran on more than {} at once, although up to {} were ready. {} while all {} were taken. "
        "The trace shows {}.",
        who,
        _cpus(limit.cpus),
        limit.wanted,
        waited,
        limit.cpus,
        _cpus(limit.cpus_seen),
    )


def _cpus(count: int) -> str:
    return f"{count} CPU{'s' if count != 1 else ''}"


def _neighbours(row: HostThread, holders: list[CpuHolder], span: int) -> Sentence:
    """For a launching thread that lost time: who had the CPUs most, of the GPU's processes or of others."""
    lost, crowded = row.preempted_ns or 0, _crowded(holders)
    first = next(holder for holder in holders if (holder.tid is not None) == crowded)
    unless = f" (unless it waited for it in {UNTRACED})" if crowded and row.involuntary is None else ""
    return say(
        "{} {}, which launches work, was ready and had no CPU for {} ({} of the time). While "
        "threads waited, {} had their CPUs for {}{}.",
        typed.thread(row.name) or "thread",
        row.tid,
        format_ns(lost),
        format_share(lost, span),
        _name(first),
        format_ns(first.ns),
        unless,
    )


def _crowded(holders: list[CpuHolder]) -> bool:
    """Did threads of the GPU's processes have the CPUs, rather than others?"""
    own, others = (sum(each.ns for each in holders if (each.tid is not None) == mine) for mine in (True, False))
    return own >= others


def _name(holder: CpuHolder) -> Sentence:
    if holder.tid is not None:
        name = say("{} ", typed.thread(holder.thread)) if holder.thread else ""
        return say("thread {}{} of process {}", name, holder.tid, holder.pid)
    name = say("{} ", typed.process(holder.process)) if holder.process else ""
    return say("process {}{}", name, holder.pid)


# When it began: the window from which on a column of the windows stays changed for the worse.

FACTOR = 2.0
"""How many times more, or less, the median must be from then on."""
LEAST_AFTER = 3
"""Windows that the change must last for; it lasts to the end of the range."""
QUIET_SHARE = 0.2
"""The part of the range that must be stable before a change point: the beginning of a program is not representative."""
KEPT_SHARE = 0.8
"""So many of the windows on either side must be on that side of the border."""
FEWEST_SYNCS, FEWEST_COUNTED = 5, 10
"""Synchronizations that a window must have for its median to count. FEWEST_COUNTED are switches, launches or kernels
that a window of one side must have in the median. Fewer change from window to window by chance."""


class WindowMetric(Struct, frozen=True):
    """A column, whether more of it is worse, and the least change that counts. Of what is `counted` a second, a window
    must hold some on one side at least."""

    id: str
    more_is_worse: bool
    least: float
    counted: bool = False


METRICS = (
    WindowMetric("switches_per_second", True, 100.0, counted=True),
    WindowMetric("off_cpu_share", True, 0.1),
    WindowMetric("preempted_share", True, 0.1),
    WindowMetric("crowded_share", True, 0.1),
    WindowMetric("sync_p50_ns", True, 20_000.0),
    WindowMetric("sync_late_p50_ns", True, 20_000.0),
    WindowMetric("launches_per_second", False, 10.0, counted=True),
    WindowMetric("kernels_per_second", False, 10.0, counted=True),
    WindowMetric("busy_share", False, 0.2),
)


def change_points(windows: list[HostWindow]) -> list[ChangePoint]:
    """The changes that last, one at most for each metric, the earliest first."""
    found = []
    seconds = min((window.end_ns - window.start_ns for window in windows), default=0) / NS_PER["s"]
    for metric in METRICS:
        values = np.array([_value(window, metric.id) for window in windows], dtype=np.float64)
        at = _change(values, metric, FEWEST_COUNTED / seconds if metric.counted and seconds else 0.0)
        if at is not None:
            found.append(
                ChangePoint(
                    metric=metric.id,
                    window=at,
                    start_ns=windows[at].start_ns,
                    before=round(float(np.nanmedian(values[:at])), 6),
                    after=round(float(np.nanmedian(values[at:])), 6),
                )
            )
    return sorted(found, key=lambda each: each.window)


def _value(window: HostWindow, metric: str) -> float:
    """NaN if the window does not tell."""
    if metric in ("sync_p50_ns", "sync_late_p50_ns") and window.sync_calls < FEWEST_SYNCS:
        return np.nan
    value = getattr(window, metric)
    return np.nan if value is None else float(value)


def _change(values: FloatArray, metric: WindowMetric, fewest: float) -> int | None:
    """The first window of the change, None if there is none; one side must come to `fewest` at least.

    ```
    values   2 3 2 2 3 2 9 8 9 9 7 9      from the seventh on
             2 3 2 2 9 9 9 2 3 2 2 3      a spike: the median of the rest is what it was
             2 3 9 2 9 2 3 9 2 3 9 2      no side keeps to itself
    ```
    """
    known = np.flatnonzero(~np.isnan(values))
    if len(known) < max(0.8 * len(values), 1):
        return None
    series = values[known] if metric.more_is_worse else -values[known]
    if np.ptp(series) < metric.least:  # no two medians are further apart
        return None
    first, last = max(LEAST_AFTER, int(np.ceil(QUIET_SHARE * len(series)))), len(series) - LEAST_AFTER
    before, after = _medians(series)[:-1], _medians(series[::-1])[-2::-1]
    low, high = np.sort(np.abs([before, after]), axis=0)
    changed = (after - before >= metric.least) & (high >= np.maximum(FACTOR * low, fewest))
    borders = np.flatnonzero(changed) + 1
    places = []
    for at in borders[(borders >= first) & (borders <= last)].tolist():
        worse = series > (before[at - 1] + after[at - 1]) / 2  # on the far side of the middle between both medians
        own = np.append(~worse[:at], worse[at:])
        if min(own[:at].mean(), own[at:].mean()) >= KEPT_SHARE and own[at : at + LEAST_AFTER].all():
            places.append((int(np.count_nonzero(own)), -at))
    # The border with most values on their own side, the first of several.
    return int(known[-max(places)[1]]) if places else None


def _medians(series: FloatArray) -> FloatArray:
    """The median of the first value, of the first two, and so on to all. They are few: there is one for a window."""
    ordered: list[float] = []
    medians = []
    for value in series.tolist():
        insort(ordered, value)
        middle = len(ordered) // 2
        medians.append((ordered[middle] + ordered[-middle - 1]) / 2)
    return np.array(medians)


# Who had the CPUs while threads of the GPU's processes waited for one, and whether a limit shows.

MOST_HOLDERS = 10
"""Threads and processes that are listed as holders of CPUs, most time first; `holder_count` counts all."""
STARVED_SHARE = 0.05
"""Of the range: for so long a thread of a process must have waited for a CPU before a limit is looked for."""
AT_LIMIT_SHARE = 0.9
"""Of that time: for so long its own threads must have taken all CPUs up to the limit."""
SLIVER = 1_000
"""A number of threads that run at once for less than a thousandth of the time is an overlap of events."""


def contention(scene: HostScene, states: ThreadStates) -> Contention:
    """The time that all threads waited for a CPU, and the threads and processes that had it."""
    cpus, away = scene.host_trace.tables.cpus, states.away
    lost, held = away.take(states.preempted), away.take(states.held)
    wanted = cpus.wanted_ns(held.cpu, held.spans) if len(held) else np.zeros(len(cpus.thread), dtype=np.int64)
    rows = np.flatnonzero(wanted > 0)
    holders = _holders(scene, cpus.thread[rows], wanted[rows])
    return Contention(
        preempted_ns=lost.spans.total(),
        held_ns=int(wanted[rows].sum()),
        holders=holders[:MOST_HOLDERS],
        holder_count=len(holders),
        cpus_used=len(distinct_values(states.running.cpu)),
        cpus_seen=len(cpus.numbers),
        limits=_limits(scene, states),
    )


def _holders(scene: HostScene, thread: IntArray, ns: IntArray) -> list[CpuHolder]:
    """Threads of the scene's processes one by one, those of others by process; most time first. Of programs that were
    not traced only the number is reported: they belong to others."""
    host_trace = scene.host_trace
    traced = set(host_trace.traced_processes.tolist())
    own = np.isin(process_of(thread), distinct_values(process_of(scene.axis.threads)))
    present, code = distinct(np.where(own, thread, process_of(thread)))
    total = np.zeros(len(present), dtype=np.int64)
    np.add.at(total, code, ns)
    found = []
    for holder, its in zip(present.tolist(), total.tolist(), strict=True):
        tid = tid_of(holder) or None
        found.append(
            CpuHolder(
                pid=pid_of(holder),
                process=host_trace.program(process_of(holder)) if process_of(holder) in traced else None,
                tid=tid,
                thread=host_trace.thread_names.get(holder) if tid else None,
                ns=its,
            )
        )
    return sorted(found, key=lambda row: (-row.ns, row.pid, row.tid or 0))


def _limits(scene: HostScene, states: ThreadStates) -> list[CpuLimit]:
    """The limits that the processes show, one at most for each."""
    process = process_of(scene.axis.threads)
    lost = states.away.take(states.preempted)
    found = []
    for number in distinct_values(process[lost.lane]).tolist():
        mine = np.flatnonzero(process == number)
        waiting = lost.take(np.isin(lost.lane, mine))
        if union(waiting.spans).total() >= STARVED_SHARE * scene.span:
            limit = _limit(scene, states.running.take(np.isin(states.running.lane, mine)), waiting, number)
            if limit is not None:
                found.append(limit)
    return found


def _limit(scene: HostScene, running: CpuStretches, waiting: CpuStretches, process: int) -> CpuLimit | None:
    """The CPU limit of a process: the largest number of CPUs that it used at once. A limit exists if its own threads
    nearly always had all of these when one of them had to wait. The process must never have run on any other CPU.
    Threads that take turns on their own, for a lock, for example, use other CPUs too.

    ```
    A   [runs ......)[waits)[runs ....
    B   [runs)[waits)[runs ......)[waits)        never three at once, though all three could have run: a limit of 2
    C   [waits)[runs ......)[waits)[runs
    ```
    """
    at_once = _open(running.spans, scene)
    cpus = _most(time_by_level(at_once, Intervals.of([(scene.low, scene.high)])), scene.span)
    if len(distinct_values(running.cpu)) > cpus:
        return None
    starved = union(waiting.spans)
    levels = time_by_level(at_once, starved)
    at_limit = int(levels[cpus:].sum())
    if cpus == 0 or at_limit < AT_LIMIT_SHARE * starved.total():
        return None
    both = Intervals(np.append(running.start, waiting.start), np.append(running.end, waiting.end))
    wanted = _most(time_by_level(_open(both, scene), starved), starved.total())
    return CpuLimit(
        pid=pid_of(process),
        process=scene.host_trace.program(process),
        cpus=cpus,
        wanted=wanted,
        ns=at_limit,
        cpus_seen=len(scene.host_trace.tables.cpus.numbers),
    )


def _open(spans: Intervals, scene: HostScene) -> StepFunction:
    return count_open(sorted_times(spans.start), sorted_times(spans.end), scene.low, scene.high)


def _most(levels: IntArray, whole: int) -> int:
    """The highest level that holds, or is exceeded, for more than a sliver of the time."""
    above = np.cumsum(levels[::-1])[::-1]
    reached = np.flatnonzero(SLIVER * above > whole)
    return int(reached[-1]) if len(reached) else 0


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


def host_report(scene: HostScene, states: ThreadStates, working: list[Working]) -> HostReport:
    """All that is reported of the host's threads and CPUs."""
    edges, late = window_edges(scene.low, scene.high), latencies(scene)
    windows = host_windows(scene, states if states.scheduled else None, working, late, edges)
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
        sync_latency=sync_latency(scene, late, windows, edges),
        shortage=evidence(threads, contended, scene.span),
    )
