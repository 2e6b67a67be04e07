"""What the host's threads did as plain data: time on CPUs, who had the CPU meanwhile, and how it went over time.

Times are integer nanoseconds of the trace's clock. `None` means that the trace does not tell, never zero.
"""

from __future__ import annotations

from nsysdiag.fields import (
    ApiName,
    Count,
    Index,
    Moment,
    Ns,
    Number,
    OwnText,
    PerSecond,
    ProcessName,
    Ratio,
    Sentence,
    Share,
    ThreadName,
    TotalCount,
    TotalNs,
    Varying,
)
from nsysdiag.record import Record
from nsysdiag.units import NS_PER


class Stall(Record, frozen=True):
    """The longest time that a thread was off its CPU: `what` is its OS or CUDA call, None if no call was traced;
    `preempted`: it was ready to run and had no CPU."""

    start_ns: Moment
    ns: TotalNs
    what: ApiName | None
    preempted: bool


class HostThread(Record, frozen=True):
    """One thread of a process that uses a GPU. on_cpu_ns + off_cpu_ns + unknown_ns = the length of the range.

    `launches` is how many of its calls launched operations that ran in the range, by device key. `preempted_ns` is the
    part of `off_cpu_ns` in which it was ready and had no CPU, in `preemptions` stretches. `switches` is how often it
    went off a CPU; `involuntary` and `voluntary` divide them by the recorded scheduler state, None without one. `cpus`
    is the number of CPUs it ran on, `migrations` how often it continued on another one. All of these are None without
    scheduling events of the thread; `on_cpu_estimate_ns` may then be an estimate from CPU samples.

    `api_ns` and `os_ns` are the time inside CUDA and OS calls, `sync_ns` that inside synchronizations; None if
    such calls were not captured.
    """

    pid: Number
    tid: Number
    name: ThreadName | None
    process: ProcessName | None
    launches: dict[OwnText, TotalCount]
    api_calls: TotalCount
    sync_calls: TotalCount
    on_cpu_ns: TotalNs | None
    off_cpu_ns: TotalNs | None
    unknown_ns: TotalNs | None
    preempted_ns: TotalNs | None
    preemptions: TotalCount | None
    on_cpu_estimate_ns: TotalNs | None
    switches: TotalCount | None
    voluntary: TotalCount | None
    involuntary: TotalCount | None
    cpus: Count | None
    migrations: TotalCount | None
    worst_stall: Stall | None
    api_ns: TotalNs | None
    sync_ns: TotalNs | None
    os_ns: TotalNs | None


class CpuHolder(Record, frozen=True):
    """A thread that ran on a CPU while threads of the GPU's processes waited for it; or all threads of another process
    together, then `tid` is None. `ns` is the sum of the waiting threads' times."""

    pid: Number
    process: ProcessName | None
    tid: Number | None
    thread: ThreadName | None
    ns: TotalNs


class CpuLimit(Record, frozen=True):
    """Threads of one process never ran on more than `cpus` CPUs at once, although up to `wanted` of them were ready.
    For `ns`, at least one thread waited while all `cpus` were taken. The trace shows `cpus_seen` CPUs in all."""

    pid: Number
    process: ProcessName | None
    cpus: Count
    wanted: Count
    ns: TotalNs
    cpus_seen: Count


class Contention(Record, frozen=True):
    """The time that the threads of the GPU's processes waited for a CPU, summed over the threads.

    `held_ns` is the part of `preempted_ns` in which another thread in the trace had the CPU; `holders` divide it, most
    time first, at most ten of `holder_count`. `cpus_used` is the number of CPUs these threads ran on, `cpus_seen` that
    of CPUs with scheduling events.
    """

    preempted_ns: TotalNs
    held_ns: TotalNs
    holders: list[CpuHolder]
    holder_count: Count
    cpus_used: Count
    cpus_seen: Count
    limits: list[CpuLimit]


class HostWindow(Record, frozen=True):
    """One of the equal windows of time. Synchronizations, launches and kernels count where they begin, synchronizations
    of all threads of the GPU's processes.

    `switches` is how often threads of the GPU's processes went off a CPU. `busy_share` is the mean over the devices.
    `off_cpu_share`, `preempted_share` and `crowded_share` are means over the threads that launch work: off a CPU; off
    it although ready to run; off it while other threads had the CPU that they left. `sync_late_p50_ns` is the median
    time from the end of the work that their synchronizations waited for to the return.
    """

    start_ns: Moment
    end_ns: Moment
    switches: TotalCount | None
    sync_calls: TotalCount
    sync_p50_ns: Ns | None
    sync_p99_ns: Ns | None
    sync_total_ns: TotalNs
    launches_per_second: PerSecond
    kernels_per_second: PerSecond
    busy_share: Share | None
    off_cpu_share: Share | None
    preempted_share: Share | None
    crowded_share: Share | None
    sync_late_p50_ns: Ns | None

    @property
    def switches_per_second(self) -> float | None:
        """Context switches a second, None if scheduling was not captured."""
        return None if self.switches is None else self.switches * NS_PER["s"] / max(self.end_ns - self.start_ns, 1)


class ChangePoint(Record, frozen=True):
    """From the window `window` on, which begins at `start_ns`, a column of the windows stays changed: `before` and
    `after` are its medians. A rate of switches is one a second."""

    metric: OwnText
    window: Index
    start_ns: Moment
    before: Varying
    after: Varying


class SyncPart(Record, frozen=True):
    """The synchronizations of some of the windows, from the end of the work waited for to the return."""

    windows: Count
    switches_per_second: PerSecond
    preempted_share: Share | None
    crowded_share: Share | None
    calls: TotalCount
    p50_ns: Ns | None
    p99_ns: Ns | None


class SyncLatency(Record, frozen=True):
    """How long synchronizations took to return after the end of their work.

    `quiet` and `busy` are the quarters of the windows with the least and the most of `by`: `crowded_share`, or, if that
    is constant, `switches`. The ratios are busy over quiet. None if scheduling was not captured, the windows do not
    differ, or one side has too few calls.
    """

    calls: TotalCount
    p50_ns: Ns
    p99_ns: Ns
    quiet: SyncPart | None
    busy: SyncPart | None
    p50_ratio: Ratio | None
    p99_ratio: Ratio | None
    by: OwnText | None


class HostReport(Record, frozen=True):
    """The threads of the processes that use GPUs, from the start of the first to the end of the last device's window.

    `threads` are at most fifty of `thread_count`: those that launch work first, then those with most time on a CPU and
    the longest stalls. `scheduling` says whether context switches were captured at all; without them there is no
    `contention`, and nothing is said about time off a CPU. `shortage` says which limits show, and who had the CPUs that
    launching threads waited for.
    """

    start_ns: Moment
    end_ns: Moment
    scheduling: bool
    threads: list[HostThread]
    thread_count: Count
    contention: Contention | None
    windows: list[HostWindow]
    change_points: list[ChangePoint]
    sync_latency: SyncLatency | None
    shortage: list[Sentence] = []
