"""What was not recorded: launches without a kernel, operations without a launch, events that nsys reports as lost. Also
the capture that would show more, and what no capture of nsys shows."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, sorted_times
from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.diagnosis.facts import NOTABLE_UNKNOWN
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import joint, once, process_of
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf
from nsysdiag.findings.facts import Finding
from nsysdiag.ledger.untraced_graphs import PartialReplays, has_operations, is_outermost
from nsysdiag.report import Capability, DeviceReport, NotRecorded
from nsysdiag.trace.capabilities import CPU_SAMPLES, OS_RUNTIME, SCHEDULING, recapture_command
from nsysdiag.units import format_count, format_share

FEWEST, NOTABLE, MOST = 10, 0.02, 0.2
"""The number and the share of missing rows to be reported, and the share from which nothing is concluded."""
DOUBTED = 0.5
"""Factor on the confidence of findings on a device with missing rows."""
BEFORE_WORK = "before_work"
"""The cause of findings on time before the first work of a device."""
_KERNEL_LAUNCH = re.compile(r"cu(da)?Launch(Cooperative)?(Kernel.*|Grid.*)?(_v\d+)?(_ptsz)?")
_BEGIN, _END = re.compile(r"cu(da)?StreamBeginCapture.*"), re.compile(r"cu(da)?StreamEndCapture.*")


class Missing(Struct, frozen=True):
    """Of a device: `unseen` of the `launches` of its processes have no operation, `unlaunched` of its `operations` no
    launch, and `malformed` of them were left out. `reported` says that nsys lost events. The cut ends of a slice are
    counted separately: `before` operations were launched before it began, `after` launches run after it ends. Of
    `replays`, launches of graphs, `partial` lack nodes that others of the same graph have."""

    unseen: int = 0
    launches: int = 0
    unlaunched: int = 0
    operations: int = 0
    malformed: int = 0
    reported: bool = False
    before: int = 0
    after: int = 0
    partial: int = 0
    replays: int = 0

    @property
    def cut(self) -> int:
        """How many operations the ends of a slice separate from their launches."""
        return self.before + self.after

    @property
    def sliced(self) -> bool:
        """Whether the trace begins or ends in the middle of queued work."""
        return max(self.before, self.after) >= FEWEST

    @property
    def unseen_share(self) -> float:
        """The share of the launches of which nothing was recorded but the call."""
        return self.unseen / self.launches if self.unseen >= FEWEST else 0.0

    def reasons(self) -> list[str]:
        """Parts of a sentence, one for each way in which rows are missing; the worst first."""
        found = []
        if self.unseen_share >= NOTABLE:
            found.append(f"{_of(self.unseen, self.launches)} kernel launches have no kernel in it")
        if self._is_notable(self.malformed):
            found.append(f"{_of(self.malformed, self.operations)} operations have times that cannot be")
        if self._is_notable(self.unlaunched):
            found.append(f"{_of(self.unlaunched, self.operations)} operations have no launch in it")
        if self.partial:
            found.append(f"{_of(self.partial, self.replays)} launches of CUDA graphs lack nodes that others have")
        if self.reported:
            found.append("nsys reports that events were lost")
        return found

    def _is_notable(self, rows: int) -> bool:
        return rows >= FEWEST and rows >= NOTABLE * self.operations

    def note(self) -> list[str]:
        """Sentences for the device, if anything is missing, and if the trace is a slice."""
        reasons = self.reasons()
        if not reasons:
            return self._slice_note()
        return [
            f"The trace is incomplete: {'; '.join(reasons)}. Busy and idle time are those of what was recorded."
            " Capture a shorter time, or fewer kinds of events.",
            *self._slice_note(),
        ]

    def _slice_note(self) -> list[str]:
        """The note on a trace that begins or ends in the middle of queued work."""
        ends = [
            f"{format_count(count)} {what}"
            for count, what in (
                (self.before, "operations were launched before it begins"),
                (self.after, "kernels were launched and start after it ends"),
            )
            if count >= FEWEST
        ]
        return [f"The trace is a slice of a longer run: {', and '.join(ends)}."] if ends else []


def _of(part: int, whole: int) -> str:
    return f"{format_count(part)} of {format_count(whole)} ({format_share(part, whole)})"


class UnseenLaunches(Struct, frozen=True):
    """The process of each kernel launch of a trace; whether only the call was recorded; and whether that is because it
    runs after the end of the trace."""

    process: IntArray
    unseen: BoolArray
    after: BoolArray
    known: bool = True

    @classmethod
    def unknown(cls) -> UnseenLaunches:
        """For a trace of which only a part was read: at its borders, launches and operations are always separated."""
        return cls._none(known=False)

    @classmethod
    def _none(cls, *, known: bool = True) -> UnseenLaunches:
        nothing = np.empty(0, dtype=np.bool_)
        return cls(np.empty(0, dtype=np.int64), nothing, nothing, known=known)

    @classmethod
    def of(cls, activity: DeviceActivity) -> UnseenLaunches:
        """Of successful launches, outermost calls only; not those that were recorded into a graph, which run later."""
        calls = activity.api_calls.rows
        launches = activity.api_calls.called(_KERNEL_LAUNCH)
        launches = launches[(calls.returned[launches] == 0) & (calls.correlation[launches] > 0)]
        if len(launches) == 0 or activity.left_out_gpus:
            return cls._none()
        launches = launches[is_outermost(activity, launches)]
        launches = launches[~_into_graphs(activity, launches)]
        unseen = ~has_operations(activity, launches)
        operations = activity.operations
        if np.count_nonzero((operations.correlation <= 0) & ~operations.migration) >= np.count_nonzero(unseen) > 0:
            return cls._none()  # their operations may be those without an id
        after = run_after_the_end(activity, launches, unseen)
        return cls(taken(calls.process, launches), unseen & ~after, after)


def missing_of(
    device: DeviceTimeline,
    activity: DeviceActivity,
    launches: UnseenLaunches,
    partial: PartialReplays,
    *,
    reported: bool,
) -> Missing:
    """What is missing of one device."""
    owners = distinct_values(device.operations.process)
    mine: BoolArray = once(launches.process, lambda each: np.isin(each, owners))
    # Impossible rows are reported by themselves.
    unseen = max(int(np.count_nonzero(mine & launches.unseen)) - device.malformed, 0)
    unlaunched = (device.launch < 0) & ~device.operations.migration & (device.operations.correlation > 0)
    before = launched_before_the_begin(device, activity)
    traced = len(activity.api_calls.rows) > 0 and launches.known
    return Missing(
        unseen=unseen,
        launches=int(np.count_nonzero(mine)),
        unlaunched=int(np.count_nonzero(unlaunched & ~before)) if traced else 0,
        operations=len(device.operations) + device.malformed,
        malformed=device.malformed,
        reported=reported,
        before=int(np.count_nonzero(before & unlaunched)) if traced else 0,
        after=int(np.count_nonzero(mine & launches.after)),
        partial=len(partial.calls) if len(partial.spans.get(device.number, ())) else 0,
        replays=partial.launches,
    )


def unseen_everywhere(launches: UnseenLaunches) -> list[str]:
    """A sentence if kernels were launched and a trace without any device holds none."""
    count = int(np.count_nonzero(launches.unseen))
    return [f"{format_count(count)} kernel launches, but no kernel: GPU work was not recorded"] if count else []


def _into_graphs(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """True for launches while their process records a graph, on whatever thread."""
    calls = activity.api_calls.rows
    begins, ends = map(activity.api_calls.called, (_BEGIN, _END))
    result = np.zeros(len(launches), dtype=np.bool_)
    if len(begins) == 0:
        return result
    of_process = RowsOf(process_of(calls.thread[launches]))
    for owner in distinct_values(process_of(calls.thread[begins])).tolist():
        rows = of_process[owner]
        time = calls.start[launches[rows]]
        begun, ended = (sorted_times(calls.start[at[process_of(calls.thread[at]) == owner]]) for at in (begins, ends))
        result[rows] = np.searchsorted(begun, time, side="right") > np.searchsorted(ended, time, side="right")
    return result


# The cut ends of a slice: launches whose kernels ran after its end, operations that were launched before it began.
#
# ```
# slice            |-------------------------------------------------|
# thread   [A][B]  .        [C]    [D]                       [E][F]   .
# device           . [==A==)[==B==)[==C==)          [==D==============.   [==E==)[==F==)
#                     no launch: A, B                        no kernel: E, F
# ```


MOST_QUEUED = 1_024
"""About how many launches a stream queues before a launch call blocks (CUDA's launch queue): no more are cut."""
_DEVICE_SYNC = re.compile(r"cuda(Device|Thread)Synchronize|cuCtxSynchronize")


def run_after_the_end(activity: DeviceActivity, launches: IntArray, unseen: BoolArray) -> BoolArray:
    """Which of the kernel launches, rows of the table of calls, have no kernel because the slice ends before it."""
    result = np.zeros(len(launches), dtype=np.bool_)
    process = taken(activity.api_calls.rows.process, launches)
    for owner in distinct_values(process[unseen]).tolist():
        mine = np.flatnonzero(unseen & (process == owner))
        cut = _behind_the_last(activity, owner, launches[mine])
        result[mine[cut]] = True
    return result


def _behind_the_last(activity: DeviceActivity, process: int, launches: IntArray) -> BoolArray:
    """Launches after the launch of the last started kernel, if earlier work may still run when the calls of the process
    end. They are no older than its longest operation, no more than the queue holds, and no device synchronization
    returned after them."""
    calls, operations = activity.api_calls.rows, activity.operations
    its = np.flatnonzero(operations.process == process)
    kernels = its[operations.category[its] == Category.KERNEL]
    if len(kernels) == 0:
        return np.zeros(len(launches), dtype=np.bool_)
    last = kernels[np.argmax(operations.start[kernels])]
    issued = calls.start[activity.launch[last]] if activity.launch[last] >= 0 else operations.start[last]
    cut: BoolArray = calls.start[launches] > issued
    own = np.flatnonzero(calls.process == process)
    stopped = int(calls.end[own].max()) - int(operations.end[its].max())
    longest = int((operations.end[its] - operations.start[its]).max())
    possible = np.count_nonzero(cut) <= MOST_QUEUED and stopped <= longest
    return cut & possible & ~_synchronized_after(activity, own, launches)


def _synchronized_after(activity: DeviceActivity, own: IntArray, launches: IntArray) -> BoolArray:
    """Launches after which a synchronization of the device began and came back, as all calls that slices hold did:
    their kernels have run."""
    calls = activity.api_calls.rows
    waits = named_like(activity.api_calls.names, _DEVICE_SYNC)
    done = own[waits[calls.name[own]]]
    return calls.start[launches] < int(calls.start[done].max(initial=-1))


def launched_before_the_begin(device: DeviceTimeline, activity: DeviceActivity) -> BoolArray:
    """Operations of a device whose launch is before the slice. Their correlation ids are below those of all calls of
    their process, and they are no more than the queues of its streams hold."""
    operations = device.operations
    processes, process = distinct(operations.process)
    first = np.array([activity.first_correlation.get(each, 0) for each in processes.tolist()], dtype=np.int64)
    before: BoolArray = (device.launch < 0) & (operations.correlation > 0)
    before &= operations.correlation < first[process] if len(processes) else False
    ids, number = distinct(operations.correlation[before])
    launches = distinct_values(joint(process[before], number, len(ids)))
    queues = len(distinct_values(device.stream_code[before]))
    return before & (len(launches) <= MOST_QUEUED * queues)


# The capture that would show more, and what no capture of nsys shows.


_ALWAYS_WORTH = (OS_RUNTIME, SCHEDULING, CPU_SAMPLES)
_NEEDED = ("kernels", "cuda-api")
MPI = "mpi"
NOTABLE_MIGRATION = 0.1
"""Share of the time of kernels in which pages migrated, from which a note of the device says so. A smaller share
changes the time of kernels little."""
EACH_RANK = "trace.%h.%p"
"""Under mpirun each rank is profiled separately: nsys inserts its host and process id here."""


def recapture(
    devices: list[DeviceReport], capabilities: list[Capability], findings: list[Finding], frameworks: list[str]
) -> str | None:
    """The `nsys profile` line that records what is missing and what was there; None if nothing is missing. Host code
    without a name needs CPU samples with call chains, and the program's own ranges. MPI calls are asked for if
    `frameworks` of the program has MPI: some versions record them as NVTX ranges only."""
    absent = {each.id for each in capabilities if not each.available and each.recapture}
    present = {capability.id for capability in capabilities if capability.available}
    os_calls = OS_RUNTIME in present | absent
    if not devices:
        needed = absent & {*_NEEDED, *_ALWAYS_WORTH}
        return recapture_command(present | needed, os_calls=os_calls) if needed else None
    unnamed = any(each.unnamed and each.share >= NOTABLE_UNKNOWN for each in findings)
    chains = ("--backtrace=dwarf",) if unnamed and CPU_SAMPLES in absent else ()
    wanted = {
        kind
        for device in devices
        for cause, ns in device.ledger.items()
        if ns > 0
        for kind in CAUSES[cause].resolved_by
    }
    wanted |= {CPU_SAMPLES} if unnamed else set()
    # Before the first work of a device there are no gaps, whose ledger would have it.
    starts = (each for each in findings if each.cause == BEFORE_WORK and each.bottleneck == UNKNOWN)
    wanted |= {kind for each in starts if each.share >= NOTABLE_UNKNOWN for kind in CAUSES[FALLBACK].resolved_by}
    beside = present | ({MPI} if MPI in frameworks else set())
    output = EACH_RANK if MPI in frameworks else "trace"
    if not (absent & wanted or unnamed):
        return None
    return recapture_command(beside | absent & wanted, chains, output, os_calls=os_calls)


def device_notes(
    *, sharing: str | None, malformed: int, narrowed_away: bool, migrated_share: float, batched: bool
) -> list[str]:
    """Sentences about one device that a reader must know before trusting its numbers."""
    notes = [sharing] if sharing else []
    if malformed:
        notes.append(f"{malformed:,} malformed operation rows were left out (no valid start and end).")
    if narrowed_away:
        notes.append("No GPU work of this device is in the chosen time.")
    if migrated_share >= NOTABLE_MIGRATION:
        notes.append(
            f"Pages of unified memory migrated during {format_share(migrated_share, 1)} of the time in which kernels"
            " ran: part of their time is page-fault handling. Prefetch with cudaMemPrefetchAsync."
        )
    if batched:
        notes.append(
            "The driver ran in WDDM mode, which batches launches: launch latency includes the time in its batch."
        )
    return notes


def left_out_gpus(activity: DeviceActivity) -> list[str]:
    """A sentence if there were too many GPUs to analyze them all."""
    if not activity.left_out_gpus:
        return []
    way = ": --same-gpu takes one device number of several processes for one GPU" if activity.assumed_apart else ""
    total = format_count(activity.left_out_gpus + len(activity.devices))
    return [f"work on {total} GPUs: only the {len(activity.devices)} with most operations were analyzed{way}"]


def malformed_warnings(malformed: dict[str, int]) -> list[str]:
    """A sentence for each kind of host rows of which some were left out."""
    return [
        f"{format_count(count)} malformed {kind} row{'s' if count > 1 else ''} left out (no valid start and end)"
        for kind, count in malformed.items()
        if count
    ]


_UNSEEN = (
    ("temperature, power draw, and why clocks were low", "nvidia-smi -q -d PERFORMANCE, or DCGM", "amd-smi metric"),
    ("swapping and page faults of the host", "vmstat 1, or sar -B", ""),
    ("device memory that other programs use", "nvidia-smi", "amd-smi process"),
    ("generation and width of the PCIe link", "nvidia-smi -q", "amd-smi metric --pcie"),
    ("CPU quotas of a container", "cat /sys/fs/cgroup/cpu.max", ""),
    ("hardware errors that cost time (ECC, Xid)", "dmesg, or nvidia-smi -q -d ECC", "dmesg, or amd-smi metric --ecc"),
    ("what limits a single kernel inside", "Nsight Compute", "rocprof-compute"),
)
"""What no such trace shows, the program that does, and its counterpart for GPUs of AMD if that is another one."""
NOT_RECORDED = tuple(NotRecorded(what=what, tool=tool) for what, tool, _ in _UNSEEN)


def not_recorded(frameworks: list[str]) -> list[NotRecorded]:
    """What no such trace shows, with the tools of the GPUs' vendor."""
    if "rocm" not in frameworks:
        return list(NOT_RECORDED)
    return [NotRecorded(what=what, tool=of_amd or tool) for what, tool, of_amd in _UNSEEN]
