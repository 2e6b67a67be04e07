"""GPU metrics made by hand for the output tests."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from nsysdiag.counters.facts import Clocks, GpuMetric, GpuMetrics, IterationMetrics, KernelMetrics, RangeMetrics

US, MS = 1_000, 1_000_000
BUCKETS = 200
TITLES = {
    "sm_active": ("SM active", "SMs Active [Throughput %]"),
    "sm_issue": ("SM issue", "SM Issue [Throughput %]"),
    "tensor_active": ("Tensor active", "Tensor Active [Throughput %]"),
    "dram_read": ("DRAM read", "DRAM Read Bandwidth [Throughput %]"),
    "dram_write": ("DRAM write", "DRAM Write Bandwidth [Throughput %]"),
    "nvlink_rx": ("NVLink received", "NVLink RX Throughput [Throughput %]"),
}


def series(values: list[int]) -> str:
    """Buckets as a report packs them."""
    return base64.b64encode(zlib.compress(np.array(values, dtype="<i2").tobytes())).decode()


def metric(identifier: str = "sm_active", kernels: float | None = 0.71, **changes: object) -> GpuMetric:
    """A share: busy in each second half of twenty buckets, and not sampled in the last twenty."""
    title, name = TITLES.get(identifier, (identifier, identifier))
    level = round(1000 * min(kernels or 0, 1))
    made: dict[str, object] = {
        "id": identifier,
        "title": title,
        "unit": "share",
        "names": [name],
        "samples": 900,
        "left_out": 2,
        "capped": 1,
        "window": None if kernels is None else round(0.6 * kernels, 6),
        "kernels": kernels,
        "compute": kernels,
        "gaps": 0.02,
        "gap_samples": 310,
        "idle": 0.02,
        "lowest": 0.0,
        "highest": 0.98,
        "peak_bytes_per_second": 2_000_000_000_000 if identifier.startswith("dram") else None,
        "series": series([level * (at // 10 % 2) for at in range(BUCKETS - 20)] + [-1] * 20),
    }
    return GpuMetric(**(made | changes))  # type: ignore[arg-type]


def clock(low: float = 0.3) -> Clocks:
    """A clock that is low for a part of the time."""
    return Clocks(
        max_hz=1_980_000_000,
        source="chip",
        limit=0.9,
        judged_ns=50 * MS,
        mean_hz=1_845_000_000,
        lowest_hz=1_410_000_000,
        low_ns=round(50 * MS * low),
        low_mean_hz=1_530_000_000 if low else None,
    )


def means(**changes: float | None) -> dict[str, float | None]:
    """The means of one row."""
    known: dict[str, float | None] = {"sm_active": 0.94, "sm_issue": 0.31, "tensor_active": 0.62}
    return known | {"dram_read": 0.22, "dram_write": 0.08, "nvlink_rx": 0.0} | changes


def kernel(name: str, gpu_ns: int, *, whole: bool = True, **changes: float | None) -> KernelMetrics:
    """A kernel that takes 60 µs, or 600 µs where `whole`."""
    each = (600 if whole else 60) * US
    return KernelMetrics(
        name=name,
        short_name=name,
        count=gpu_ns // each,
        long_count=gpu_ns // each if whole else 0,
        gpu_ns=gpu_ns,
        samples=gpu_ns // (100 * US),
        whole=whole,
        means=means(**changes),
    )


def gpu_metrics(names: list[str] | None = None, **changes: object) -> GpuMetrics:
    """What a device of 100 ms measured; `names` go to all that a trace names."""
    told = names or ["step #", "forward"]
    values = zip(TITLES, (0.71, 0.22, 0.41, 0.36, 0.11, 0.0), strict=True)
    hertz = {"title": "GPC clock", "unit": "Hz", "names": ["GPC Clock Frequency [MHz]"], "window": 1.5e9}
    hertz |= {"compute": 1.845e9, "gaps": 3.45e8, "idle": None, "lowest": 3.45e8, "highest": 1.98e9}
    rows = [metric(identifier, kernels) for identifier, kernels in values]
    rows.append(metric("gpc_clock", 1.845e9, **hertz, series=series([1845] * BUCKETS)))
    if names:
        rows += [metric(name, 0.1, title=name, unit=name, names=[name]) for name in names]
    made: dict[str, object] = {
        "gpu": 0,
        "period_ns": 100 * US,
        "metrics": rows,
        "clocks": clock(),
        "ranges": [
            RangeMetrics(name=name, count=25, gpu_ns=(80 - at) * MS, samples=810, means=means(tensor_active=None))
            for at, name in enumerate(told)
        ],
        "kernels": [
            *(kernel(name, 30 * MS) for name in names or ["ampere_sgemm_128x64_tn"]),
            kernel("vectorized_elementwise_kernel", 15 * MS, whole=False, sm_active=0.27, dram_read=0.81),
        ],
        "iterations": [IterationMetrics(index=0, length_ns=MS, samples=10, means=means())],
        "start_ns": 90 * MS,
        "end_ns": 190 * MS,
        "buckets": BUCKETS,
    }
    return GpuMetrics(**(made | changes))  # type: ignore[arg-type]
