"""Utilization as plain data: what a dashboard shows of a device, what it really did, and how far the two are apart.

Shares are 0..1. None is what was not measurable: without a window, without kernels, or without what the chip can hold.
"""

from __future__ import annotations

from typing import Annotated

from nsysdiag.fields import (
    Bytes,
    Count,
    KernelName,
    MeanCount,
    Moment,
    Ns,
    OwnText,
    Period,
    PerSecond,
    Sentence,
    Share,
    TotalCount,
    TotalNs,
    WhyNone,
)
from nsysdiag.record import Record


class UtilizationSeries(Record, frozen=True):
    """A share over time. Period i of `periods` is [start_ns + i * period_ns, ...); in a window of several parts, only
    time inside them counts.

    So a period is weighted by its time inside, and the weighted mean is the whole share. `lowest` and `highest` are
    over the periods wholly inside, or over all without such. `values` holds one value for each `step_ns`: one period,
    or as many together as keep the list below 2,000 values; None for a step outside all parts. `period_ns` was doubled
    if the window has over a million of the requested periods.
    """

    period_ns: Period
    periods: Count
    lowest: Share
    highest: Share
    start_ns: Moment
    step_ns: Period
    values: list[Share | None]


class SmEstimate(Record, frozen=True):
    """SM activity estimated from launch shapes.

    `sm_active_share` is the mean share of SMs with at least one block; `resident_share` is the blocks relative to all
    that the SMs could hold of these kernels. Both are over the window, and over the time in which a kernel ran
    (`..._running`). `sm_active_computing` is that of kernels of known shape without communication, while any of these
    ran. Kernels without a known shape count as no SMs there, and as all SMs in `sm_active_at_most`; `covered_share` of
    the kernels' time excludes them. `missing` says what the trace lacks, empty if nothing.
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
    """How much of the chip a kernel name fills by its launch shapes: an estimate.

    Sums are over streams. `blocks` is the median over its launches. `threads` per block, `registers` per thread,
    `shared_bytes` per block, `blocks_per_sm` and `limit` are those of its launch shape with most time, of `shapes`.
    `waves`, `sm_share` and `resident_share` are means weighted by time. `limit` is what keeps it from filling the chip
    further: warps, blocks, registers, shared memory, or "grid too small". None without the number of SMs, or the limits
    of an SM.
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


class FlopRate(Record, frozen=True):
    """Arithmetic of a device, by the operations of one GPU in a step that the user gave (`flops_per_step`), in its
    median steady step of `step_ns`.

    `precision` is what the user gave, or else that of nearly all time of matrix products; empty if unknown.
    `peak_flops_per_second` is the dense peak in it, as published for GPUs of this name, and `share` the part of it;
    None if unknown. `refused`: the rate would be above the peak, so there is none. `sentence` says all of it."""

    flops_per_step: MeanCount
    step_ns: Ns
    precision: OwnText
    peak_flops_per_second: PerSecond | None
    flops_per_second: PerSecond | None
    share: Share | None
    refused: bool
    sentence: Sentence


class Utilization(Record, frozen=True):
    """What a dashboard shows of a device, compared with what the device did.

    `util_time_share` is the share of the window in which at least one kernel or graph ran: NVML's definition of
    `utilization.gpu`, over the whole window. `util_period_share` is the share of short periods in which any ran at all,
    as a coarse poll shows it. The other shares divide the window; busy is all but idle.

    `sm_active_share` is SM activity over the window: measured if `sm_source` is `gpu-metrics`, estimated from launch
    shapes if it is `estimate`. The field `estimate` always holds the estimate. `efficiency` is SM activity divided by
    `util_time_share`. `sentence` compares the dashboard with the device. `kernels` are those with most time. `flops`
    is the arithmetic per second, None unless its operations were given. Older reports hold only three of the shares.
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
    flops: Annotated[FlopRate | None, WhyNone("it needs --flops-per-step")] = None
