"""What the GPU's own counters measured, as plain data.

Shares are fractions from 0 to 1, times integer nanoseconds. A value that was not sampled is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from nsysdiag.fields import (
    BYTES_PER_SECOND,
    Base64,
    Buckets,
    Count,
    Hertz,
    Index,
    KernelName,
    Moment,
    Ns,
    Number,
    OwnText,
    Period,
    RangeName,
    Share,
    TotalCount,
    TotalNs,
    Varying,
)
from nsysdiag.record import Packed, PackedColumn, Record


class GpuMetric(Record, frozen=True):
    """One metric of a device. `unit` is `share` (of the time, or of the most that the hardware can do) or `Hz`; `names`
    are those of the trace; several are added up, or the largest counts (copy engines).

    Means by time: `window`; `kernels`, while any kernel ran; `compute`, while a kernel other than communication ran.
    `gaps` is over the `gap_samples` samples wholly inside a gap. `lowest` and `highest` are single samples. `idle` is
    the level of all time without operations. If it is known, it splits partly idle samples, so that `kernels`,
    `compute` and the means of ranges and kernels are of the work alone. If it is None, neighbouring idle time is mixed
    in. `samples` are in the window. Of the whole capture, `left_out` counts invalid values (NULL, out of range, a
    second row of the same moment). `capped` counts those a little over 100%, which count as 100%.
    `peak_bytes_per_second` is the rate of a share of 1, if the trace has it. `series` holds the mean of each bucket
    (see GpuMetrics).
    """

    id: OwnText
    title: OwnText
    unit: OwnText
    names: list[OwnText]
    samples: Count
    left_out: Count
    capped: Count
    window: Varying | None
    kernels: Varying | None
    compute: Varying | None
    gaps: Varying | None
    gap_samples: Count
    idle: Varying | None
    lowest: Varying | None
    highest: Varying | None
    peak_bytes_per_second: Annotated[int, BYTES_PER_SECOND] | None
    series: Base64


class RangeMetrics(Record, frozen=True):
    """NVTX ranges of one name, counters in it read `#`: each instance from the first to the last operation launched
    inside it; `gpu_ns` of the window in all. `samples` is the number of samples of each mean, by the id of the
    metric."""

    name: RangeName
    count: TotalCount
    gpu_ns: TotalNs
    samples: Count
    means: dict[OwnText, Varying | None]


class KernelMetrics(Record, frozen=True):
    """The kernels of one name: `gpu_ns` is the time in which any of them ran, `long_count` those that last at least one
    sampling period.

    `whole`: the means are over the samples wholly inside such kernels, which make up at least half of the name's time.
    They include only concurrent work. Otherwise over all samples that overlap the name's time, weighted by the overlap:
    they include work before and after.
    """

    name: KernelName
    short_name: KernelName
    count: TotalCount
    long_count: TotalCount
    gpu_ns: TotalNs
    samples: Count
    whole: bool
    means: dict[OwnText, Varying | None]


class IterationMetrics(Record, frozen=True):
    """Means over one iteration, `length_ns` long, of those that the iteration report lists."""

    index: Index
    length_ns: Ns
    samples: Count
    means: dict[OwnText, Varying | None]


class Clocks(Record, frozen=True):
    """The GPC clock while kernels ran: samples wholly in their time, including pauses shorter than one sampling period,
    so that lower idle clocks do not count.

    `max_hz` is the chip's (`source` is `chip`) or, if unknown or lower than a sample, the highest of all samples
    (`seen`). `low_ns` of the `judged_ns` ran below `limit` of it, at `low_mean_hz` on average.
    """

    max_hz: Hertz
    source: OwnText
    limit: Share
    judged_ns: TotalNs
    mean_hz: Hertz
    lowest_hz: Hertz
    low_ns: TotalNs
    low_mean_hz: Hertz | None


class GpuMetrics(Packed, frozen=True):
    """The counters of a device. A sample's value is the average over the interval that ends at its timestamp, about
    `period_ns` long. `gpu` is the GPU's number in the trace.

    Each series covers [start_ns, end_ns), with time between the parts of a window, in `buckets` equal buckets. Values
    are thousandths of a share or MHz, -1 without samples. `ranges` and `kernels` are those with most time on the GPU,
    at most twenty each.
    """

    gpu: Number
    period_ns: Period
    metrics: list[GpuMetric]
    clocks: Clocks | None
    ranges: list[RangeMetrics]
    kernels: list[KernelMetrics]
    iterations: list[IterationMetrics]
    start_ns: Moment
    end_ns: Moment
    buckets: Buckets
    encoding: OwnText = "base64(zlib(little-endian int16))"

    def columns(self) -> Iterable[PackedColumn]:
        """The series of the metrics that have one."""
        return [PackedColumn(metric.series, self.buckets, 2) for metric in self.metrics if metric.series]
