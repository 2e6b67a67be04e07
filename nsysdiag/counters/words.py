"""What the GPU's own counters say, in sentences and as the text of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.names import brief, clip
from nsysdiag.units import format_bytes, format_hertz, format_share

if TYPE_CHECKING:
    from nsysdiag.counters.facts import Clocks, GpuMetric, GpuMetrics, KernelMetrics
    from nsysdiag.report import DeviceReport

TITLE = "GPU counters"
LEAST_LOW, LEAST_KERNEL = 0.05, 0.05
"""Low clocks and kernels are worth a sentence from this share of their time, and of the window, on."""
HALF = 0.5
KERNEL_NAME = 60
COLUMNS = ("sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write", "nvlink_rx", "nvlink_tx")
"""The metrics that have a column in tables by range and kernel, where they were captured."""
SHORT = {
    "sm_active": "SM active",
    "sm_issue": "Issue",
    "tensor_active": "Tensor",
    "dram_read": "DRAM read",
    "dram_write": "DRAM write",
    "nvlink_rx": "NVLink in",
    "nvlink_tx": "NVLink out",
}


def counter_sentences(device: DeviceReport) -> list[str]:
    """At most four sentences; none where no GPU metrics were captured."""
    found = device.gpu_metrics
    if found is None:
        return []
    return [*_activity(found), *_memory(found), *_idlest(device, found), *_clocks(found.clocks)]


def metric(found: GpuMetrics, name: str) -> GpuMetric | None:
    """One metric by its id, None where it was not captured."""
    return next((row for row in found.metrics if row.id == name), None)


def columns(found: GpuMetrics) -> list[str]:
    """Those of COLUMNS that were captured."""
    return [name for name in COLUMNS if metric(found, name) is not None]


def share(mean: float | None) -> str:
    """A share in per cent; what was not sampled is a dash."""
    return "–" if mean is None else format_share(mean, 1)


def rate(row: GpuMetric, mean: float | None) -> str:
    """What a mean share is in bytes a second, empty where the trace does not say."""
    if mean is None or row.peak_bytes_per_second is None:
        return ""
    return f"{format_bytes(mean * row.peak_bytes_per_second)}/s"


def name_of(row: KernelMetrics) -> str:
    """A kernel by its short name, in a sentence."""
    return clip(brief(row.short_name), KERNEL_NAME)


def clock_facts(clocks: Clocks) -> str:
    """The clock in numbers: mean, lowest, and what it is measured against."""
    against = "the chip's highest" if clocks.source == "chip" else "the highest seen"
    return (
        f"mean {format_hertz(clocks.mean_hz)}, lowest {format_hertz(clocks.lowest_hz)}, "
        f"{against} {format_hertz(clocks.max_hz)}"
    )


def _activity(found: GpuMetrics) -> list[str]:
    active = metric(found, "sm_active")
    if active is None:
        return []
    facts = [f"{share(active.window)} of the SMs are active on average over the window"]
    mixed = ", with short idle times between them" if active.idle is None else ""
    facts += [f"{share(active.kernels)} while kernels run{mixed}"] if active.kernels is not None else []
    parts = [
        f"{title} {share(row.kernels)}"
        for name, title in (("sm_issue", "instruction issue"), ("tensor_active", "tensor cores"))
        if (row := metric(found, name)) is not None and row.kernels is not None
    ]
    beside = f"; meanwhile {', '.join(parts)}" if parts else ""
    return [f"By the GPU's own counters {' and '.join(facts)}{beside}."]


def _memory(found: GpuMetrics) -> list[str]:
    """Memory and links while kernels ran."""
    shown = []
    for name, title in (
        ("dram_read", "DRAM reads"),
        ("dram_write", "DRAM writes"),
        ("nvlink_rx", "NVLink in"),
        ("nvlink_tx", "NVLink out"),
    ):
        row = metric(found, name)
        if row is not None and row.kernels is not None and (name.startswith("dram") or row.kernels > 0):
            speed = rate(row, row.kernels)
            shown.append(f"{title} {share(row.kernels)}" + (f" ({speed})" if speed else ""))
    return [f"Of the highest rates, while kernels run: {', '.join(shown)}."] if shown else []


def _idlest(device: DeviceReport, found: GpuMetrics) -> list[str]:
    """Of the kernels that take a while, the one that leaves most SMs idle."""
    rows = [
        (mean, row)
        for row in found.kernels
        if row.gpu_ns >= LEAST_KERNEL * device.window_ns
        and (mean := row.means.get("sm_active")) is not None
        and mean < HALF
    ]
    if not rows:
        return []
    mean, row = min(rows, key=lambda each: (each[0], each[1].name))
    took = format_share(row.gpu_ns, device.window_ns)
    mixed = "" if row.whole else ", with neighbouring work"
    return [f"{name_of(row)} keeps {share(mean)} of the SMs active{mixed}; it runs {took} of the window."]


def _clocks(clocks: Clocks | None) -> list[str]:
    if clocks is None or clocks.low_mean_hz is None or clocks.low_ns < LEAST_LOW * clocks.judged_ns:
        return []
    low = format_share(clocks.low_mean_hz, clocks.max_hz)
    return [
        f"Clocks were at {low} of the maximum during {format_share(clocks.low_ns, clocks.judged_ns)} of the time with "
        f"kernels ({clock_facts(clocks)}). Power or thermal limits, a fixed clock, or a clock still rising after idle "
        "time: the trace cannot tell which."
    ]
