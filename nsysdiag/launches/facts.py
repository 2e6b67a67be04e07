"""Launches as plain data: how work was launched, how deep the queue was, and what graphs cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from nsysdiag.fields import (
    ZERO_IF_NONE,
    ApiName,
    Base64,
    Buckets,
    CallName,
    CauseId,
    Count,
    KernelName,
    MeanCount,
    Moment,
    Ns,
    NsByCause,
    Number,
    OwnText,
    RangeName,
    TotalCount,
    TotalNs,
)
from nsysdiag.record import Packed, PackedColumn, Record


class ApiRow(Record, frozen=True):
    """All calls of one CUDA API function by the threads of the device's processes, inside the window."""

    name: ApiName
    cause: CauseId | None
    count: TotalCount
    total_ns: TotalNs
    mean_ns: Ns
    median_ns: Ns
    min_ns: Ns
    max_ns: Ns


class Distribution(Record, frozen=True):
    """A distribution of durations from 0 up.

    Percentile p is the smallest duration that p percent do not exceed. `bins` is a histogram with edges at 1, 2 and 5
    times powers of ten. It has (start of the bin in ns, count) from the first nonempty bin to the last. The lowest bin
    is from 0 to 100 ns.
    """

    count: TotalCount
    total_ns: TotalNs
    p5_ns: Ns
    p25_ns: Ns
    p50_ns: Ns
    p75_ns: Ns
    p95_ns: Ns
    p99_ns: Ns
    max_ns: Ns
    bins: list[tuple[Ns, Count]]


class QueueDrains(Record, frozen=True):
    """How often the queue drained during one call, or one kind of host code: `cause` and `call` of the next launching
    thread when the last operation ended. `idle_ns` is the length of the gaps that followed, `median_depth` how many
    operations were outstanding at the last launch before. `is_call`: `call` names a call, and is not a description."""

    cause: CauseId
    call: CallName
    count: TotalCount
    idle_ns: TotalNs
    median_depth: Count
    is_call: bool = False


class QueueDepth(Packed, frozen=True):
    """Queue depth: the operations launched and not finished, at each moment.

    An operation counts from the end of its launch call to its own end; if it starts before its call returns, from the
    beginning of the call. Each node of a graph counts. Migrations of unified memory never count; operations without a
    launch row count while they run. Percentiles are over the time of the window; `empty_ns` is the time at depth 0, of
    `observed_ns`.

    The series covers [start_ns, end_ns), with time between the parts of a window, in `buckets` equal buckets. It has
    `lowest`, `highest` and `mean` depth, the mean in thousandths. `drains` holds the calls that cost most, at most
    twenty; `drain_count` and `drain_idle_ns` are over all.
    """

    observed_ns: TotalNs
    empty_ns: TotalNs
    mean: MeanCount
    p5: Count
    p25: Count
    p50: Count
    p75: Count
    p95: Count
    max: Count
    start_ns: Moment
    end_ns: Moment
    buckets: Buckets
    lowest: Base64
    mean_thousandths: Base64
    highest: Base64
    drain_count: TotalCount
    drain_idle_ns: TotalNs
    drains: list[QueueDrains]
    encoding: OwnText = "base64(zlib(little-endian int64))"

    def columns(self) -> Iterable[PackedColumn]:
        """The three series."""
        return [PackedColumn(text, self.buckets, 8) for text in (self.lowest, self.mean_thousandths, self.highest)]


class LaunchBoundPhase(Record, frozen=True):
    """A launch-bound phase, in which launches took longer than the device took for their work: from the start of its
    first gap to the end of its last. `median_work_ns` is the time of the operations of one launch, `nvtx` the ranges
    open at its first and at its last launch."""

    start_ns: Moment
    end_ns: Moment
    launches: TotalCount
    busy_ns: TotalNs
    idle_ns: TotalNs
    median_interval_ns: Ns
    median_work_ns: Ns
    nvtx: list[RangeName]


class LaunchBound(Record, frozen=True):
    """All launch-bound phases of a device; `causes` divides their idle time as the ledger does, `rows` are those
    with most of it, at most twenty."""

    count: TotalCount
    launches: TotalCount
    span_ns: TotalNs
    busy_ns: TotalNs
    idle_ns: TotalNs
    causes: NsByCause
    rows: list[LaunchBoundPhase]


class GraphRow(Record, frozen=True):
    """All launches of one CUDA graph. `nodes` is the number of nodes that ran, None if the trace holds whole graphs
    only; `executable` is nsys's number of the instantiated graph, None if the trace has none, and then launches
    belong together that have the same lowest node. `between_ns` is the idle time between the nodes of one launch."""

    name: KernelName
    executable: Number | None
    launches: TotalCount
    nodes: TotalCount | None
    api_ns: TotalNs
    median_api_ns: Ns
    work_ns: TotalNs
    between_ns: TotalNs
    between_gaps: TotalCount


class GraphLaunches(Record, frozen=True):
    """The cost of graph launches compared with single launches. `nodes`, and `node_api_ns`, the time in their calls,
    are of launches recorded node by node; `untraced` counts calls inside the window without any other row, `partial`
    launches that lack nodes which others of the same graph have. `rows` are the graphs with most work, at most twenty
    of `count`. Other kernels, launched one by one, are `outside`: their number, their time, and the names of at most
    three with most of it."""

    count: TotalCount
    launches: TotalCount
    nodes: TotalCount
    api_ns: TotalNs
    node_api_ns: TotalNs
    work_ns: TotalNs
    between_ns: TotalNs
    untraced: TotalCount
    rows: list[GraphRow]
    partial: TotalCount = 0
    outside: TotalCount = 0
    outside_ns: TotalNs = 0
    outside_kernels: list[KernelName] = []


class FunctionThread(Record, frozen=True):
    """A thread of the driver that ran host functions: how many, and for how long."""

    pid: Number
    tid: Number
    count: TotalCount
    ran_ns: TotalNs


class StreamFunctions(Record, frozen=True):
    """Host functions in the streams of a device: how many, and for how long streams waited for them, a sum over
    streams. `threads` ran them, that with most time first; empty if the export does not say."""

    count: TotalCount
    held_ns: TotalNs
    threads: list[FunctionThread] = []


class Launch(Record, frozen=True):
    """How work was launched.

    A long queue delay (start minus api_end, at least 0) is good: the host is ahead. `calls` counts the calls that
    launched anything. `call` is the duration of single kernel launches, `interval` the time from one launching call to
    the next, `kernel` the duration of kernels. `in_a_row` are the intervals that are not pauses, and `in_a_row_ns` is
    their total: launches a second are counted over that. `to_start` (from the beginning of the call to the start of
    the kernel) and `queue_delay` are of kernels outside graphs. `queue_full_ns` is the time in which launching threads
    waited for space in a full command buffer: the host was ahead.
    """

    launched_ops: TotalCount
    unlaunched_ops: TotalCount
    found_device_idle: TotalCount
    median_queue_delay_ns: Ns | None
    median_interval_ns: Ns | None
    median_kernel_ns: Ns | None
    api: list[ApiRow]
    calls: TotalCount = 0
    kernel: Distribution | None = None
    call: Distribution | None = None
    interval: Distribution | None = None
    to_start: Distribution | None = None
    queue_delay: Distribution | None = None
    queue_full_ns: TotalNs = 0
    queue_depth: QueueDepth | None = None
    launch_bound: Annotated[LaunchBound | None, ZERO_IF_NONE] = None
    graphs: Annotated[GraphLaunches | None, ZERO_IF_NONE] = None
    in_a_row: TotalCount = 0
    in_a_row_ns: TotalNs = 0
    functions: Annotated[StreamFunctions | None, ZERO_IF_NONE] = None
