"""What to do about threads that wait for a CPU, each sentence with its evidence."""

from __future__ import annotations

from nsysdiag import typed
from nsysdiag.host.facts import Contention, CpuHolder, CpuLimit, HostThread
from nsysdiag.units import format_ns, format_share

NOTABLE_SHARE = 0.01
"""Of the range: from so much lost time of a launching thread on there is something to advise."""
COUNTS = "OMP_NUM_THREADS, thread pools, worker processes"
FEWER = f"start fewer threads ({COUNTS}), or pin the launching thread to a CPU of its own (taskset, numactl)"
UNTRACED = "a call that nsys does not trace, as are CPython's timed waits for a lock"
APART = "keep other jobs off these CPUs, or pin the launching thread to a CPU of its own (taskset, numactl, cpuset)"


def advice(threads: list[HostThread], contention: Contention | None, span: int) -> list[str]:
    """Sentences; none where no thread that launches work lost much time, and no limit shows."""
    if contention is None:
        return []
    lines = [_limit(limit, span) for limit in contention.limits]
    lost = [row for row in threads if row.launches and (row.preempted_ns or 0) >= NOTABLE_SHARE * span]
    if lost and contention.holders:
        worst = max(lost, key=lambda row: row.preempted_ns or 0)
        lines.append(_neighbours(worst, contention.holders, span))
    return lines


def _limit(limit: CpuLimit, span: int) -> str:
    who = f"{typed.process(limit.process)} ({limit.pid})" if limit.process else f"process {limit.pid}"
    seen = (
        f"Threads of {who} never ran on more than {limit.cpus} CPUs at once, although up to {limit.wanted} could have "
        f"run; for {format_ns(limit.ns)} ({format_share(limit.ns, span)} of the time) at least one waited while all "
        f"{limit.cpus} were taken."
    ).replace(" 1 CPUs", " 1 CPU")
    fewer = f"start fewer threads ({COUNTS})"
    if limit.cpus_seen <= limit.cpus:
        return f"{seen} Give the process more CPUs, or {fewer}."
    return (
        f"{seen} The trace shows {limit.cpus_seen} CPUs: look for a CPU limit (the container's CPU quota or cpuset, "
        f"taskset, numactl), or {fewer}."
    )


def _neighbours(row: HostThread, holders: list[CpuHolder], span: int) -> str:
    """For a launching thread that lost time: who had the CPUs most, of the GPU's processes or of others."""
    lost = row.preempted_ns or 0
    own = [holder for holder in holders if holder.tid is not None]
    others = [holder for holder in holders if holder.tid is None]
    crowded = _together(own) >= _together(others)
    first = own[0] if crowded else others[0]
    unless = f" (unless it waited for it in {UNTRACED})" if crowded and row.involuntary is None else ""
    return (
        f"{typed.thread(row.name) or 'thread'} {row.tid}, which launches work, could have run and had no CPU for "
        f"{format_ns(lost)} ({format_share(lost, span)} of the time); of what all threads waited, {_name(first)} had "
        f"their CPUs for {format_ns(first.ns)}{unless}: {FEWER if crowded else APART}."
    )


def _together(holders: list[CpuHolder]) -> int:
    return sum(holder.ns for holder in holders)


def _name(holder: CpuHolder) -> str:
    if holder.tid is not None:
        name = f"{typed.thread(holder.thread)} " if holder.thread else ""
        return f"thread {name}{holder.tid} of process {holder.pid}"
    name = f"{typed.process(holder.process)} " if holder.process else ""
    return f"process {name}{holder.pid}"
