"""What the hardware counters of each GPU say: GPU_METRICS, by the names of TARGET_INFO_GPU_METRICS."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from nsysdiag.activity.gpu_metric_names import METRICS, Combine, Unit, matched
from nsysdiag.activity.gpu_metric_samples import Grid, Series, aligned, hertz, in_order, shares
from nsysdiag.timeline.intervals import FloatArray
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.split import Pair
from nsysdiag.trace.trace import Trace

GPU_BITS = 0xFF
"""The low byte of a typeId is the id of the GPU, as in TARGET_INFO_GPU."""

Names = dict[Pair, str]


@dataclass(frozen=True, slots=True)
class GpuMetricSamples:
    """`by_gpu`: the series of each GPU, by the GPU's id and the metric's id; a GPU of which nothing was understood has
    none. `unknown` are the names of metrics that nothing is known of, sorted; `captured` says whether there are rows at
    all."""

    captured: bool
    by_gpu: dict[int, dict[str, Series]]
    unknown: list[str]


def read_gpu_metrics(trace: Trace) -> GpuMetricSamples:
    """All metrics that are known, of all GPUs, in one pass over the table. Ids mean something only together: the same
    metricId can be another metric under another typeId."""
    if not trace.has("GPU_METRICS"):
        return GpuMetricSamples(False, {}, [])
    names = _names(trace)
    wanted = _wanted(names)
    pairs = sorted({pair for parts in wanted.values() for part in parts.values() for pair in part})
    rows = trace.read_split("GPU_METRICS", ("typeId", "metricId"), pairs, "timestamp", "value")
    used = {names[pair] for pair in pairs}
    by_gpu: dict[int, dict[str, Series]] = defaultdict(dict)
    for (gpu, metric), types in wanted.items():
        series = _series(metric, _fullest(types, rows), names, rows)
        if series is not None:
            by_gpu[gpu][metric] = _on_shared_grid(series, by_gpu[gpu])
    return GpuMetricSamples(True, dict(by_gpu), sorted(set(names.values()) - used))


def _names(trace: Trace) -> Names:
    columns = trace.read("TARGET_INFO_GPU_METRICS", "typeId", "metricId", "metricName")
    ids = zip(columns["typeId"].tolist(), columns["metricId"].tolist(), strict=True)
    return {pair: name for pair, name in zip(ids, columns.text("metricName").texts(), strict=True) if name}


def _wanted(names: Names) -> dict[tuple[int, str], dict[int, list[Pair]]]:
    """The pairs of ids that make up each metric of each GPU, by typeId: a GPU may have several."""
    by_type: dict[int, Names] = defaultdict(dict)
    for pair, name in sorted(names.items()):
        by_type[pair[0]][pair] = name
    wanted: dict[tuple[int, str], dict[int, list[Pair]]] = defaultdict(dict)
    for kind, its in by_type.items():
        # Of two ids with one name the lower is read.
        id_of = {name: pair for pair, name in sorted(its.items(), reverse=True)}
        for metric, chosen in matched(its.values()).items():
            wanted[kind & GPU_BITS, metric][kind] = [id_of[name] for name in chosen]
    return wanted


def _fullest(types: dict[int, list[Pair]], rows: dict[Pair, Columns]) -> list[Pair]:
    """The parts of the type with most rows; of equal ones the lowest: their values are never mixed."""
    return max(sorted(types.items()), key=lambda item: sum(len(rows[pair]) for pair in item[1] if pair in rows))[1]


def _series(metric: str, parts: list[Pair], names: Names, rows: dict[Pair, Columns]) -> Series | None:
    """The parts of a metric put together; None without samples, or where a part that has to be added has none."""
    there = [pair for pair in parts if pair in rows]
    adds = METRICS[metric].combine is Combine.ADD
    if not there or (adds and len(there) < len(parts)):
        return None
    found, left_out, capped = [], 0, 0
    for pair in there:
        times, values, repeated = in_order(rows[pair]["timestamp"], rows[pair].reals("value"))
        values, over = shares(values) if METRICS[metric].unit is Unit.SHARE else (hertz(values), 0)
        found.append((times, values))
        left_out, capped = left_out + repeated + int(np.isnan(values).sum()), capped + over
    times, columns = aligned(found)
    grid = Grid.of(times)
    if grid is None or all(np.isnan(column).all() for column in columns):
        return None
    name = tuple(names[pair] for pair in there)
    return Series(metric, name, grid, _combined(columns, adds=adds), left_out, capped)


def _combined(columns: list[FloatArray], *, adds: bool) -> FloatArray:
    if len(columns) == 1:
        return columns[0]
    together: FloatArray = np.minimum(np.sum(columns, axis=0), 1.0) if adds else np.fmax.reduce(columns)
    return together


def _on_shared_grid(series: Series, others: dict[str, Series]) -> Series:
    """With the grid of the metrics before, where it is the same: nsys samples all metrics of a GPU at once."""
    for other in others.values():
        if np.array_equal(other.grid.end, series.grid.end):
            return replace(series, grid=other.grid)
    return series
