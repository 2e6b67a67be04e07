"""The hardware counters of each device: its series, the figures for other parts of the analysis, and notes if there are
none or they contradict the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.counters.facts import GpuMetric, GpuMetrics
from nsysdiag.counters.joins import rounded
from nsysdiag.counters.masks import Sampled
from nsysdiag.counters.report import Measured
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metrics import Chip, GpuMetricSamples, chip_of, gpu_numbers, read_chips, read_gpu_metrics
from nsysdiag.fields import Text
from nsysdiag.report import Gap
from nsysdiag.units import format_share
from nsysdiag.utilization.sm_activity import MeasuredSm

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

FEWEST_GAP_SAMPLES = 10
MOST_NAMES, LONGEST_NAME = 5, 60


class Counters(Struct, frozen=True):
    """All that was sampled, the chips that the trace describes, and the GPU of each device by its key."""

    samples: GpuMetricSamples
    chips: list[Chip]
    number_of: dict[str, int]

    def of(self, device: DeviceTimeline) -> Measured | None:
        """The series of a device; None where there are none, or where it is not certain which are its own."""
        number = self.number_of.get(device.key)
        series = self.samples.by_gpu.get(number) if number is not None else None
        if number is None or series is None:
            return None
        return Measured(number, series, chip_of(number, self.chips))

    def absence(self, device: DeviceTimeline) -> list[str]:
        """Why a device has no metrics although the trace has some; empty where it has, or where none were captured."""
        if not self.samples.captured or self.of(device) is not None:
            return []
        measured = sorted(self.samples.by_gpu)
        if not measured:
            return [_nothing_known(self.samples.unknown)]
        gpus = f"GPU {', '.join(map(str, measured))}"
        number = self.number_of.get(device.key)
        if number is None:
            return [
                f"The GPU metrics of {gpus} could not be matched: the trace does not show which GPU this device is."
            ]
        return [f"GPU metrics were captured of {gpus}, not of this one, which is GPU {number}."]


def read_counters(trace: Trace, devices: Sequence[DeviceTimeline]) -> Counters:
    """What the trace holds for its devices."""
    samples = read_gpu_metrics(trace)
    chips = read_chips(trace) if samples.captured else []
    numbers = gpu_numbers(devices, chips, set(samples.by_gpu)) if samples.captured else {}
    return Counters(samples, chips, numbers)


def _nothing_known(names: list[str]) -> str:
    if not names:
        return "GPU_METRICS has rows that cannot be read: no names, or no usable values."
    shown = ", ".join(f"'{typed.name(Text.METRIC, name[:LONGEST_NAME])}'" for name in names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"GPU_METRICS holds no metric that is known here, but {shown}{more}."


def measured_sm_active(found: GpuMetrics | None) -> MeasuredSm | None:
    """What the counters say about the activity of the SMs; None where it was not captured."""
    row = _sm_active(found)
    return None if row is None or row.window is None else MeasuredSm(row.window)


def with_sm_active(gaps: list[Gap], measured: Measured | None) -> list[Gap]:
    """The gaps with the SM activity by the samples that are wholly inside each."""
    if measured is None or "sm_active" not in measured.series or not gaps:
        return gaps
    spans = Intervals.of([(gap.start_ns, gap.end_ns) for gap in gaps])
    means = Sampled.of(measured.series["sm_active"]).whole(spans)
    return [replace(gap, sm_active=rounded(mean)) for gap, mean in zip(gaps, means.tolist(), strict=True)]


def gap_notes(found: GpuMetrics | None, limit: float) -> list[str]:
    """What speaks against the gaps: SMs that were active in them."""
    row = _sm_active(found)
    if row is None or row.gaps is None or row.gaps < limit or row.gap_samples < FEWEST_GAP_SAMPLES:
        return []
    return [
        f"In the gaps {format_share(row.gaps, 1)} of the SMs were active by the GPU's own counters. Another program "
        "used the GPU, or the trace lacks kernels: this time was not idle."
    ]


def _sm_active(found: GpuMetrics | None) -> GpuMetric | None:
    return next((row for row in found.metrics if row.id == "sm_active"), None) if found is not None else None
