"""The hardware counters of each GPU (GPU_METRICS): which are understood, their samples in time, and of which GPU."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import FloatArray, IntArray, Intervals
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.trace.columns import Columns, Pair

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


# The GPU metrics that are understood, by the names that they bear on different chips and in versions of nsys.
#
# To add a metric, add it to `METRICS`. A name is compared without its unit, letter case and doubled spaces:
#
# ```
# SMs Active [Throughput %]      sms active            %       newer versions
# SM Active                      sm active                     older ones, where the unit goes without saying
# GPC Clock Frequency [MHz]      gpc clock frequency   mhz
# Compute Warps in Flight [Avg]  compute warps in flight  avg  another quantity: not read
# ```


class MetricUnit(StrEnum):
    """What the values of a metric are once they are read: a share from 0 to 1, or cycles a second."""

    SHARE = "share"
    HERTZ = "Hz"


class Combine(StrEnum):
    """How several rows of the same moment become one value: parts of a whole add up; of units that work side by side
    the busiest counts, which is the least that their time together can be."""

    ADD = "add"
    LARGEST = "largest"


class MetricKind(Struct, frozen=True):
    """`names` are alternatives, the first that a trace has in full is read; the parts of an alternative are combined.
    Each part is a pattern for whole names. `joined` metrics are averaged over ranges, kernels and iterations too."""

    id: str
    title: str
    names: tuple[tuple[str, ...], ...]
    unit: MetricUnit = MetricUnit.SHARE
    combine: Combine = Combine.ADD
    joined: bool = False


def _of(*names: str) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in names)


def _link(direction: str) -> tuple[tuple[str, ...], ...]:
    """What NVLink carries for the program; packet headers ("protocol data") are none of it."""
    user = (f"nvlink {direction} requests user data", f"nvlink {direction} responses user data")
    return (user, (f"nvlink {direction} throughput",), (f"nvlink {direction} bandwidth",))


METRICS: dict[str, MetricKind] = {
    metric.id: metric
    for metric in (
        MetricKind("sm_active", "SM active", _of("sms? active"), joined=True),
        MetricKind("sm_issue", "SM issue", _of("sm issue( active)?"), joined=True),
        MetricKind("tensor_active", "Tensor active", _of("tensor active( / fp16 active)?"), joined=True),
        MetricKind("warps_in_flight", "Compute warps in flight", _of("compute warps in flight")),
        MetricKind("unallocated_warps", "Unallocated warps in active SMs", _of("unallocated warps in active sms")),
        MetricKind("gr_active", "Graphics and compute engine active", _of("gr active", "gpu active")),
        MetricKind(
            "dram_read",
            "DRAM read",
            _of("dram read (bandwidth|throughput)", "gpu memory read (bandwidth|throughput)"),
            joined=True,
        ),
        MetricKind(
            "dram_write",
            "DRAM write",
            _of("dram write (bandwidth|throughput)", "gpu memory write (bandwidth|throughput)"),
            joined=True,
        ),
        MetricKind(
            "pcie_rx", "PCIe received", _of("pcie rx (throughput|bandwidth)", "pcie read (bandwidth|throughput)")
        ),
        MetricKind("pcie_tx", "PCIe sent", _of("pcie tx (throughput|bandwidth)", "pcie write (bandwidth|throughput)")),
        MetricKind("nvlink_rx", "NVLink received", _link("rx"), joined=True),
        MetricKind("nvlink_tx", "NVLink sent", _link("tx"), joined=True),
        MetricKind(
            "copy_engine",
            "Busiest copy engine",
            _of(r"(a?sync )?copy engine active( \d+)?"),
            combine=Combine.LARGEST,
        ),
        MetricKind("gpc_clock", "GPC clock", _of("gpc clock frequency"), unit=MetricUnit.HERTZ),
        MetricKind("sys_clock", "SYS clock", _of("sys clock frequency"), unit=MetricUnit.HERTZ),
    )
}
"""Every metric by its id, in the order in which they are shown."""

_UNITS = {MetricUnit.SHARE: ("", "%", "throughput %"), MetricUnit.HERTZ: ("", "hz", "mhz")}
LONGEST = 200
"""Characters of a name that is compared with those of metrics: no metric has a longer one."""
_NAME = re.compile(r"(?P<base>.*?)(\[(?P<unit>[^\]]*)\])?", re.DOTALL)


def matched(names: Iterable[str]) -> dict[str, list[str]]:
    """The names that each metric is made of, by the id of the metric; metrics that none of the names means are left
    out. Equal names count once."""
    known = {name: _split(name) for name in sorted(set(names)) if len(name) <= LONGEST}
    found = {metric.id: _names_of(metric, known) for metric in METRICS.values()}
    return {metric: chosen for metric, chosen in found.items() if chosen}


def is_metric(name: str) -> bool:
    """Whether a name, with its unit, is that of a metric or of a part of one."""
    if len(name) > LONGEST:
        return False
    known = {name: _split(name)}
    parts = ((metric, part) for metric in METRICS.values() for alternative in metric.names for part in alternative)
    return any(_meant(part, _UNITS[metric.unit], known) for metric, part in parts)


def _names_of(metric: MetricKind, known: dict[str, tuple[str, str]]) -> list[str]:
    for alternative in metric.names:
        parts = [_meant(pattern, _UNITS[metric.unit], known) for pattern in alternative]
        if all(parts):
            # Of two names for one part, such as with and without a unit, both would be counted: the first is taken.
            several = metric.combine is Combine.LARGEST
            return [name for part in parts for name in (part if several else part[:1])]
    return []


def _meant(pattern: str, units: tuple[str, ...], known: dict[str, tuple[str, str]]) -> list[str]:
    return [name for name, (base, unit) in known.items() if unit in units and re.fullmatch(pattern, base)]


def _split(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit: both in small letters, with single spaces."""
    match = _NAME.fullmatch(" ".join(name.split()).casefold())
    assert match is not None
    return match["base"].strip(), (match["unit"] or "").strip()


# Their samples in time, and which GPU they are of.

GPU_BITS = 0xFF
"""The low byte of a typeId is the id of the GPU, as in TARGET_INFO_GPU."""

Names = dict[Pair, str]


class GpuMetricSamples(Struct, frozen=True):
    """`by_gpu`: the series of each GPU, by the GPU's id and the metric's id; a GPU of which nothing was understood has
    none. `unknown` are the names of metrics that nothing is known of, sorted; `captured` says whether there are rows at
    all."""

    captured: bool
    by_gpu: dict[int, dict[str, MetricSeries]]
    unknown: list[str]


def read_gpu_metrics(trace: Trace) -> GpuMetricSamples:
    """All metrics that are known, of all GPUs, in one pass over the table. Ids mean something only together: the same
    metricId can be another metric under another typeId."""
    if not trace.has("GPU_METRICS"):
        return GpuMetricSamples(False, {}, [])
    metrics = trace.read("TARGET_INFO_GPU_METRICS", "typeId", "metricId", "metricName").tuples()
    names = {(kind, metric): name for kind, metric, name in metrics if name}
    wanted = _wanted(names)
    pairs = sorted({pair for parts in wanted.values() for part in parts.values() for pair in part})
    rows = trace.read_split("GPU_METRICS", ("typeId", "metricId"), pairs, "timestamp", "value")
    used = {names[pair] for pair in pairs}
    by_gpu: dict[int, dict[str, MetricSeries]] = defaultdict(dict)
    for (gpu, metric), types in wanted.items():
        # Of several types the one with most rows, of equal ones the lowest: their values are never mixed.
        held = {kind: sum(len(rows[pair]) for pair in parts if pair in rows) for kind, parts in sorted(types.items())}
        series = _series(metric, types[max(held, key=held.__getitem__)], names, rows)
        if series is not None:
            # nsys samples all metrics of a GPU at once: they share one grid.
            same = [each.grid for each in by_gpu[gpu].values() if np.array_equal(each.grid.end, series.grid.end)]
            by_gpu[gpu][metric] = replace(series, grid=same[0]) if same else series
    return GpuMetricSamples(True, dict(by_gpu), sorted(set(names.values()) - used))


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


def _series(metric: str, parts: list[Pair], names: Names, rows: dict[Pair, Columns]) -> MetricSeries | None:
    """The parts of a metric put together; None without samples, or where a part that has to be added has none."""
    there = [pair for pair in parts if pair in rows]
    adds = METRICS[metric].combine is Combine.ADD
    if not there or (adds and len(there) < len(parts)):
        return None
    found, left_out, capped = [], 0, 0
    for pair in there:
        times, values, unusable = in_order(rows[pair]["timestamp"], rows[pair].reals("value"))
        values, over = shares(values) if METRICS[metric].unit is MetricUnit.SHARE else (hertz(values), 0)
        found.append((times, values))
        left_out, capped = left_out + unusable + int(np.isnan(values).sum()), capped + over
    times, columns = aligned(found)
    grid = Grid.of(times)
    if grid is None or all(np.isnan(column).all() for column in columns):
        return None
    value = columns[0]
    if len(columns) > 1:
        value = np.minimum(np.sum(columns, axis=0), 1.0) if adds else np.fmax.reduce(columns)
    return MetricSeries(metric, tuple(names[pair] for pair in there), grid, value, left_out, capped)


class Chip(Struct, frozen=True):
    """A row of TARGET_INFO_GPU. `memory_bytes_per_second` and `clock_hz` are the chip's maximum, None if the trace
    does not say."""

    number: int
    ordinal: int
    memory_bytes_per_second: int | None
    clock_hz: int | None


def read_chips(trace: Trace) -> list[Chip]:
    """The GPUs that the trace describes."""
    rows = trace.read("TARGET_INFO_GPU", "id", "cuDevice", "memoryBandwidth", "clockRate").tuples()
    chips = {Chip(number, ordinal, memory or None, clock or None) for number, ordinal, memory, clock in rows}
    return sorted(chips, key=lambda chip: (chip.number, chip.ordinal))


def gpu_numbers(devices: Sequence[DeviceTimeline], chips: list[Chip], measured: set[int]) -> dict[str, int]:
    """The GPU of each device, by the device's key; devices of which it is not certain are left out.

    By the trace's map of devices; else the only GPU there is; else by the CUDA number of the GPU, where no other device
    has it too: processes that see different GPUs may use one number for several.
    """
    found = {device.key: device.gpu_id for device in devices if device.gpu_id is not None}
    open_ = [device for device in devices if device.gpu_id is None]
    numbers = {chip.number for chip in chips} or measured
    if len(numbers) == 1 and (chips or len(devices) == 1):
        return found | {device.key: next(iter(numbers)) for device in open_}
    by_ordinal: dict[str, int] = {}
    for device in open_:
        ordinals = {ordinal for _, ordinal in device.ids}
        possible = {chip.number for chip in chips if chip.ordinal in ordinals}
        if len(ordinals) == len(possible) == 1:
            by_ordinal[device.key] = next(iter(possible))
    claimed = Counter([*found.values(), *by_ordinal.values()])
    return found | {key: number for key, number in by_ordinal.items() if claimed[number] == 1}


def chip_of(number: int, chips: list[Chip]) -> Chip | None:
    """The description of a GPU, None if there is none, or several that differ."""
    found = [chip for chip in chips if chip.number == number]
    return found[0] if len(found) == 1 else None


HOLE = 2
"""After more than so many periods without a sample nothing is known of the time before the next one's own period."""


class Grid(Struct, frozen=True, eq=False):
    """The time of each sample: a value is the average over the sampling interval that ends at its timestamp.

    ```
    timestamps     t0    t1    t2                t3    t4
    samples    [---)[----)[----)           [-----)[----)
                0     1     2       hole      3     4
    ```

    `start` and `end` rise, and no two samples overlap. `period_ns` is the median step; the first sample, and one after
    a hole, stand for one period.
    """

    start: IntArray
    end: IntArray
    period_ns: int

    @property
    def spans(self) -> Intervals:
        """The time of each sample."""
        return Intervals(self.start, self.end)

    @classmethod
    def of(cls, times: IntArray) -> Grid | None:
        """The grid of rising timestamps; None for fewer than two, which tell no period."""
        if len(times) < 2:
            return None
        steps = np.diff(times)
        period = int(np.median(steps))
        length = np.append(np.int64(period), np.where(steps > HOLE * period, period, steps))
        return cls(times - length, times, period)


class MetricSeries(Struct, frozen=True, eq=False):
    """A metric of one GPU: `value` has an element for each sample of `grid`, NaN if there is no valid one.

    `names` are those of the trace. `left_out` counts invalid values: NULL, out of range, or a second row of the same
    moment. `capped` counts those a little over a full share, which count as full.
    """

    metric: str
    names: tuple[str, ...]
    grid: Grid
    value: FloatArray
    left_out: int
    capped: int


LATEST = 1 << 60
"""No session lasts 36 years; what is later would not survive being multiplied."""


def in_order(times: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray, int]:
    """Rows by time, one for each timestamp that can be, with the largest of its values; how many rows were left out."""
    rows = len(times)
    possible = (times >= 0) & (times <= LATEST)
    if not possible.all():
        times, values = times[possible], values[possible]
    if np.any(times[1:] <= times[:-1]):
        order = np.lexsort((np.where(np.isnan(values), -np.inf, values), times))
        times, values = times[order], values[order]
        last = np.append(times[1:] != times[:-1], True)
        times, values = times[last], values[last]
    return times, values, rows - len(times)


MOST_PERCENT = 110.0
"""A share over 100% by no more than this comes from rounding, and from counters that are not read at one moment."""
LEAST_HERTZ, MOST_HERTZ = 1e6, 1e11
"""Clocks: values up to the first are in MHz, larger ones in Hz; above the second, in Hz, they are damage. A GPU's clock
is far from both: below 1,000,000 MHz, above 1 MHz, and below 100 GHz."""


def shares(percent: FloatArray) -> tuple[FloatArray, int]:
    """Percentages as shares from 0 to 1, NaN for what is none, and how many were a little over 100%."""
    none = (percent < 0) | (percent > MOST_PERCENT)
    capped = int(((percent > 100) & ~none).sum())
    return np.where(none, np.nan, np.minimum(percent, 100.0) / 100), capped


def hertz(values: FloatArray) -> FloatArray:
    """Clocks in Hz, NaN for invalid ones, 0 among them.

    Real exports hold 1.57e+09 under a name that ends in "[MHz]". So values over a million are taken as Hz, smaller ones
    as MHz.
    """
    scaled = np.where(values > LEAST_HERTZ, values, values * 1e6)
    return np.where((scaled <= 0) | (scaled > MOST_HERTZ), np.nan, scaled)


def aligned(parts: list[tuple[IntArray, FloatArray]]) -> tuple[IntArray, list[FloatArray]]:
    """The moments that all parts have, which rise in each, and the values of each part there."""
    times = parts[0][0]
    if all(np.array_equal(times, other) for other, _ in parts[1:]):
        return times, [values for _, values in parts]
    for other, _ in parts[1:]:
        times = np.intersect1d(times, other, assume_unique=True)
    return times, [values[np.searchsorted(own, times)] for own, values in parts]
