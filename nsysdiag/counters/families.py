"""What limits each family of kernels, by the GPU's counters over the times when only this family ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, intersect, subtract, union
from nsysdiag.counters.counters import Measured
from nsysdiag.counters.joins import BusySamples, Parted, SamplesWithin, rounded
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metrics import Grid
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.kernels.kernels import families_in

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings

# A sample counts for a family where all that the device did in it is of this family:
#
# ```
# gemm       [==========)      [====)          [=====)
# copy                      [====)
# samples  [  )[  )[  )[  )[  )[  )[  )[  )[  )[  )[  )
# of gemm    1   1   1           no      1    1   1      partly idle ones by their busy part, where idle is known
# ```

NEEDED = ("sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write")
FEWEST = 10
"""Samples: fewer say nothing of a family."""
HIGH = 0.6
"""Of a peak: from here on it limits the kernels, as Nsight Compute judges them; with all below, latency does."""
MEMORY, TENSOR, ISSUE = "memory bandwidth", "tensor cores", "instruction issue"
FEW, LATENCY = "few active SMs", "latency: no peak is near"


def with_limits(
    found: list[FamilyTime], device: DeviceTimeline, parts: Intervals, strings: Strings, measured: Measured | None
) -> list[FamilyTime]:
    """The families with means of the counters, and with what limits each; as they are without counters."""
    if measured is None or not found:
        return found
    rows, families = families_in(device, parts, strings)
    every = Intervals(device.operations.start, device.operations.end)
    alone = {row.family: _alone(every, rows[families == row.family], parts) for row in found}
    means: dict[str, dict[str, tuple[float, int]]] = {title: {} for title in alone}
    busy, work, grid = union(every), None, None
    for metric in NEEDED:
        if (series := measured.series.get(metric)) is None:
            continue
        if work is None or grid is not series.grid:
            grid, work = series.grid, BusySamples(series.grid, busy)
        parted = work.part(series)
        for title, time in alone.items():
            if (mean := _mean(grid, parted, time, busy)) is not None:
                means[title][metric] = mean
    return [_limited(row, means[row.family]) for row in found]


def _alone(every: Intervals, rows: IntArray, parts: Intervals) -> Intervals:
    """The set of time in `parts` in which only the operations at `rows` run."""
    mine = np.zeros(len(every), dtype=np.bool_)
    mine[rows] = True
    return subtract(intersect(union(every[mine]), parts), union(every[~mine]))


def _mean(grid: Grid, parted: Parted, alone: Intervals, busy: Intervals) -> tuple[float, int] | None:
    """The mean of a metric by time, and that time in ns, over the samples whose work is all in the set `alone`; None
    where these are too few."""
    within = SamplesWithin.of(grid, alone)
    samples = grid.spans[within.index]
    only = within.ns == coverage(busy, samples)
    values = parted.value if parted.working is None else parted.working
    value = values[within.index]
    chosen = ~np.isnan(value) & only & (within.whole | (parted.working is not None)) & (within.ns > 0)
    if np.count_nonzero(chosen) < FEWEST:
        return None
    ns = within.ns[chosen]
    return float((value[chosen] * ns).sum() / ns.sum()), int(ns.sum())


def _limited(row: FamilyTime, means: dict[str, tuple[float, int]]) -> FamilyTime:
    share = {metric: mean for metric, (mean, _ns) in means.items()}
    moved = [share[each] for each in ("dram_read", "dram_write") if each in share]
    memory = min(sum(moved), 1.0) if moved else None
    return structs.replace(
        row,
        measured_ns=max((ns for _mean, ns in means.values()), default=None),
        sm_active=rounded(share.get("sm_active")),
        sm_issue=rounded(share.get("sm_issue")),
        tensor_active=rounded(share.get("tensor_active")),
        dram_active=rounded(memory),
        limit=_limit(share.get("sm_active"), share.get("sm_issue"), share.get("tensor_active"), memory),
    )


def _limit(active: float | None, issue: float | None, tensor: float | None, memory: float | None) -> str:
    """What is nearest its peak, if that is high; empty where what would have to be low is not known."""
    near = {MEMORY: memory or 0.0, TENSOR: tensor or 0.0, ISSUE: issue or 0.0}
    first = max(near, key=lambda each: near[each])
    if near[first] >= HIGH:
        return first
    if active is None or tensor is None or memory is None:
        return ""
    return FEW if active < HIGH else LATENCY
