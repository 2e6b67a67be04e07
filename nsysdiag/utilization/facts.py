"""Utilization as plain data: what a dashboard shows of a device, what it really did, and how far the two are apart.

Shares are 0..1. None is what was not measurable: without a window, without kernels, or without what the chip can hold.
"""

from __future__ import annotations

from nsysdiag.fields import (
    Bytes,
    Count,
    KernelName,
    MeanCount,
    Moment,
    OwnText,
    Period,
    Sentence,
    Share,
    TotalCount,
    TotalNs,
)
from nsysdiag.record import Record


class UtilizationSeries(Record, frozen=True):
    """A share over time. Period i of `periods` is [start_ns + i * period_ns, ...); of a window in several parts only
    time inside them counts, so a period weighs as much as is inside, and their weighted mean is the share as a whole.

    `lowest` and `highest` are over the periods that are inside as a whole; over all where none is. `values` holds one
    value for each `step_ns`, which is a period, or as many of them together as keep the list below 2,000 values; None
    for a step that no part touches. `period_ns` was doubled where the window has over a million of those asked for.
    """

    period_ns: Period
    periods: Count
    lowest: Share
    highest: Share
    start_ns: Moment
    step_ns: Period
    values: list[Share | None]


class SmEstimate(Record, frozen=True):
    """SM activity as the launch shapes of kernels allow it: an estimate, never a measurement.

    `sm_active_share` is the mean share of the SMs that hold at least one block, `resident_share` how much the blocks
    are of all that the SMs could hold of these kernels; both over the window, and over the time in which a kernel ran
    (`..._running`); `sm_active_computing` is that of the kernels of known shape that are no communication, while any of
    these ran. Kernels without a known shape count as nothing there, and as all SMs in `sm_active_at_most`; they
    are what `covered_share`, of the kernels' time, leaves out. `missing` says what the trace lacks, empty if nothing.
    """

    sm_active_share: Share | None = None
    resident_share: Share | None = None
    sm_active_running: Share | None = None
    resident_running: Share | None = None
    sm_active_at_most: Share | None = None
    covered_share: Share | None = None
    missing: OwnText = ""
    source: OwnText = "estimate"
    sm_active_computing: Share | None = None


class KernelShape(Record, frozen=True):
    """What one kernel name fills of the chip by its launch shapes: an estimate. Sums are over streams.

    `blocks` is the median over its launches; `threads` a block, `registers` a thread, `shared_bytes` a block,
    `blocks_per_sm` and `limit` are those of the one of its `shapes` that took most time. `waves`, `sm_share` and
    `resident_share` are means weighted by time. `limit` says what keeps it from filling the chip further: warps,
    blocks, registers, shared memory, or "grid too small". None without the number of SMs, or of what an SM holds.
    """

    name: KernelName
    short_name: KernelName
    count: TotalCount
    total_ns: TotalNs
    shapes: Count
    blocks: Count
    threads: Count
    registers: Count
    shared_bytes: Bytes
    blocks_per_sm: Count | None
    waves: MeanCount | None
    sm_share: Share | None
    resident_share: Share | None
    limit: OwnText | None


class Utilization(Record, frozen=True):
    """What a dashboard shows of a device beside what it did.

    `util_time_share` is the share of the window in which at least one kernel or graph ran: what NVML documents for
    `utilization.gpu`, over the window as a whole. `util_period_share` is the share of short periods in which any ran at
    all: what a coarse poll shows. The other shares divide the window; busy is all but idle.

    `sm_active_share` is SM activity over the window: measured where `sm_source` is `gpu-metrics`, worked out from
    launch shapes where it is `estimate`, which stands beside it either way. `efficiency` is SM activity divided by
    `util_time_share`. `sentence` says what a dashboard shows and what is true. `kernels` are those with most time.
    Reports of before hold three of the shares alone.
    """

    util_time_share: Share | None = None
    busy_share: Share | None = None
    compute_share: Share | None = None
    exposed_comm_share: Share | None = None
    exposed_copy_share: Share | None = None
    idle_share: Share | None = None
    util_period_share: Share | None = None
    by_time: UtilizationSeries | None = None
    by_period: UtilizationSeries | None = None
    sm_active_share: Share | None = None
    sm_source: OwnText | None = None
    estimate: SmEstimate = SmEstimate()
    efficiency: Share | None = None
    sentence: Sentence = ""
    kernels: list[KernelShape] = []
    notes: list[Sentence] = []
