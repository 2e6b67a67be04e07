"""A host made by hand for the output tests: a thread that lost its CPU half way, and some that nobody knows."""

from __future__ import annotations

from nsysdiag.host.facts import (
    ChangePoint,
    Contention,
    CpuHolder,
    CpuLimit,
    HostReport,
    HostThread,
    HostWindow,
    Stall,
    SyncLatency,
    SyncPart,
)

US, MS = 1_000, 1_000_000
NAMES = ["python3", "/usr/bin/python3", "gzip"]
WINDOWS, LENGTH = 10, 10 * MS


def host_report(names: list[str] | None = None) -> HostReport:
    """From 0 to 100 ms; `names` are what the trace calls things."""
    told = names or NAMES
    return HostReport(
        start_ns=0,
        end_ns=WINDOWS * LENGTH,
        scheduling=True,
        threads=[launching(told), *(unknown(number, name) for number, name in enumerate(told))],
        thread_count=60,
        contention=contention(told),
        windows=[window(at) for at in range(WINDOWS)],
        change_points=[
            ChangePoint(metric="switches_per_second", window=5, start_ns=50 * MS, before=200.0, after=4_000.0),
            ChangePoint(metric="preempted_share", window=6, start_ns=60 * MS, before=0.0, after=0.4),
            ChangePoint(metric="busy_share", window=8, start_ns=80 * MS, before=0.9, after=0.3),
        ],
        sync_latency=sync_latency(),
        shortage=[f"{told[0]} lost its CPU to {name}" for name in told[:2]],
    )


def launching(names: list[str]) -> HostThread:
    return HostThread(
        pid=4242,
        tid=4242,
        name=names[0],
        process=names[-1],
        launches={"gpu0": 1_200},
        api_calls=2_000,
        sync_calls=80,
        on_cpu_ns=70 * MS,
        off_cpu_ns=25 * MS,
        unknown_ns=5 * MS,
        preempted_ns=20 * MS,
        preemptions=10,
        on_cpu_estimate_ns=None,
        switches=210,
        voluntary=200,
        involuntary=10,
        cpus=2,
        migrations=3,
        worst_stall=Stall(start_ns=61 * MS, ns=4 * MS, what=names[-1], preempted=True),
        api_ns=40 * MS,
        sync_ns=30 * MS,
        os_ns=5 * MS,
    )


def unknown(number: int, name: str) -> HostThread:
    """A thread of which there are samples alone."""
    return HostThread(
        pid=4242,
        tid=4300 + number,
        name=name,
        process=None,
        launches={},
        api_calls=0,
        sync_calls=0,
        on_cpu_ns=None,
        off_cpu_ns=None,
        unknown_ns=None,
        preempted_ns=None,
        preemptions=None,
        on_cpu_estimate_ns=30 * MS,
        switches=None,
        voluntary=None,
        involuntary=None,
        cpus=None,
        migrations=None,
        worst_stall=None,
        api_ns=0,
        sync_ns=0,
        os_ns=None,
    )


def contention(names: list[str]) -> Contention:
    holders = [
        CpuHolder(pid=5000 + at, process=name, tid=None if at else 5001, thread=name, ns=(12 - at) * MS)
        for at, name in enumerate(names)
    ]
    return Contention(
        preempted_ns=60 * MS,
        held_ns=sum(holder.ns for holder in holders),
        holders=holders,
        holder_count=len(holders) + 4,
        cpus_used=2,
        cpus_seen=16,
        limits=[CpuLimit(pid=4242, process=names[0], cpus=2, wanted=5, ns=8 * MS, cpus_seen=16)],
    )


def window(at: int) -> HostWindow:
    late = at >= WINDOWS // 2
    return HostWindow(
        start_ns=at * LENGTH,
        end_ns=(at + 1) * LENGTH,
        switches=40 if late else 2,
        sync_calls=0 if at == 3 else 8,
        sync_p50_ns=None if at == 3 else 400 * US,
        sync_p99_ns=None if at == 3 else 900 * US,
        sync_total_ns=0 if at == 3 else 4 * MS,
        launches_per_second=12_000.0,
        kernels_per_second=12_000.0,
        busy_share=0.3 if at >= 8 else 0.9,
        off_cpu_share=0.45 if late else 0.05,
        preempted_share=0.4 if late else 0.0,
        crowded_share=0.4 if late else 0.0,
        sync_late_p50_ns=None if at == 3 else (90 * US if late else 6 * US),
    )


def sync_latency() -> SyncLatency:
    quiet = SyncPart(
        windows=2,
        switches_per_second=200.0,
        preempted_share=0.0,
        crowded_share=0.0,
        calls=24,
        p50_ns=6 * US,
        p99_ns=9 * US,
    )
    busy = SyncPart(
        windows=2,
        switches_per_second=4e3,
        preempted_share=0.4,
        crowded_share=0.4,
        calls=32,
        p50_ns=90 * US,
        p99_ns=4 * MS,
    )
    return SyncLatency(
        calls=72,
        p50_ns=8 * US,
        p99_ns=4 * MS,
        quiet=quiet,
        busy=busy,
        p50_ratio=15.0,
        p99_ratio=444.444,
        by="crowded_share",
    )
