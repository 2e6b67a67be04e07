"""A shortage of CPUs in sentences: what shows it, and what to do about it."""

from __future__ import annotations

from nsysdiag import typed
from nsysdiag.host.facts import Contention, CpuHolder, CpuLimit, HostReport, HostThread
from nsysdiag.units import capitalized, format_ns, format_share

NOTABLE_SHARE = 0.01
"""Of the range: from so much lost time of a launching thread on there is something to tell."""
FEWER = "start fewer threads (OMP_NUM_THREADS, worker processes)"
OWN_CPU = "bind the launching thread to a CPU of its own (taskset, numactl)"
UNTRACED = "a call that nsys does not trace, such as CPython's timed waits for a lock"


def evidence(threads: list[HostThread], contention: Contention | None, span: int) -> list[str]:
    """Sentences on CPU limits of a process, and on the threads that had the CPUs a launching thread waited for. Empty
    if no launching thread lost much time and no limit was found."""
    if contention is None:
        return []
    lines = [_limit(limit, span) for limit in contention.limits]
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


def _limit(limit: CpuLimit, span: int) -> str:
    who = f"{typed.process(limit.process)} ({limit.pid})" if limit.process else f"process {limit.pid}"
    return (
        f"Threads of {who} never ran on more than {limit.cpus} CPUs at once, although up to {limit.wanted} were "
        f"ready. For {format_ns(limit.ns)} ({format_share(limit.ns, span)} of the time) at least one waited while all "
        f"{limit.cpus} were taken. The trace shows {limit.cpus_seen} CPUs."
    ).replace(" 1 CPUs", " 1 CPU")


def _neighbours(row: HostThread, holders: list[CpuHolder], span: int) -> str:
    """For a launching thread that lost time: who had the CPUs most, of the GPU's processes or of others."""
    lost, crowded = row.preempted_ns or 0, _crowded(holders)
    first = next(holder for holder in holders if (holder.tid is not None) == crowded)
    unless = f" (unless it waited for it in {UNTRACED})" if crowded and row.involuntary is None else ""
    return (
        f"{typed.thread(row.name) or 'thread'} {row.tid}, which launches work, was ready and had no CPU for "
        f"{format_ns(lost)} ({format_share(lost, span)} of the time). While threads waited, {_name(first)} had "
        f"their CPUs for {format_ns(first.ns)}{unless}."
    )


def _crowded(holders: list[CpuHolder]) -> bool:
    """Did threads of the GPU's processes have the CPUs, rather than others?"""
    own, others = (sum(each.ns for each in holders if (each.tid is not None) == mine) for mine in (True, False))
    return own >= others


def _name(holder: CpuHolder) -> str:
    if holder.tid is not None:
        name = f"{typed.thread(holder.thread)} " if holder.thread else ""
        return f"thread {name}{holder.tid} of process {holder.pid}"
    name = f"{typed.process(holder.process)} " if holder.process else ""
    return f"process {name}{holder.pid}"
