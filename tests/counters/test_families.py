"""What limits families of kernels: by hand, and against a slow count of every nanosecond."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.counters.counters import BANDWIDTH, FEW, ISSUE, LATENCY, TENSOR, _alone, _limit, _mean
from nsysdiag.counters.joins import BusySamples, Parted, SamplesWithin
from nsysdiag.events.gpu_metrics import Grid
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import BY_NAME
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.report import Report
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

US, MS = 1_000, 1_000_000
PERIOD = 100 * US
GEMM, SILU = "nvjet_tst_192x192_64x4", "act_and_mul_kernel"


def program(*, counters: bool = True) -> TraceBuilder:
    """
    ```
    stream 7   [= gemm 3 ms =)    idle    [= silu 3 ms =)[= gemm 3 ms =)
    stream 8                                             [= copy 3 ms =)
    tensor     80%                2%      0%             10%
    DRAM read  20%                1%      85%            99%
    ```
    The copy takes memory bandwidth of its own: the last stretch is of no family alone.
    """
    trace = TraceBuilder(schema="3.24.8").gpu().cuda_device()
    trace.kernel(10 * MS, 13 * MS, name=GEMM, launch=(9 * MS, 9 * MS + US))
    trace.kernel(16 * MS, 19 * MS, name=SILU, launch=(9 * MS + 2 * US, 9 * MS + 3 * US))
    trace.kernel(19 * MS, 22 * MS, name=GEMM, launch=(9 * MS + 4 * US, 9 * MS + 5 * US))
    trace.memcpy(19 * MS, 22 * MS, size=1 << 26, stream=8, launch=(9 * MS + 6 * US, 9 * MS + 7 * US))
    levels = {"Tensor Active [Throughput %]": (80, 2, 0, 10), "DRAM Read Bandwidth [Throughput %]": (20, 1, 85, 99)}
    levels |= {"SMs Active [Throughput %]": (95, 2, 90, 95), "DRAM Write Bandwidth [Throughput %]": (5, 0, 3, 0)}
    ends = (13 * MS, 16 * MS, 19 * MS, 22 * MS)
    for name, values in levels.items() if counters else ():
        times = range(10 * MS + PERIOD, 22 * MS + 1, PERIOD)
        trace.gpu_metric(name, [(time, values[np.searchsorted(ends, time)]) for time in times])
    return trace


def by_family(report: Report) -> dict[str, FamilyTime]:
    return {row.family.partition(" (")[0]: row for row in report.devices[0].kernel_families}


def test_each_family_while_nothing_else_runs(tmp_path: Path) -> None:
    found = by_family(report_of(program(), tmp_path))
    gemm, silu = found["BF16 matrix products"], found["elementwise"]
    assert (gemm.limit, silu.limit) == (TENSOR, BANDWIDTH)
    assert (gemm.tensor_active, gemm.sm_active) == (pytest.approx(0.8), pytest.approx(0.95))
    assert gemm.dram_active == pytest.approx(0.25)
    assert silu.dram_active == pytest.approx(0.88)
    assert (gemm.measured_ns, silu.measured_ns) == (3 * MS, 3 * MS)


def test_without_counters_it_is_not_in_the_trace(tmp_path: Path) -> None:
    report = report_of(program(counters=False), tmp_path)
    assert {(row.limit, row.measured_ns, row.dram_active) for row in by_family(report).values()} == {("", None, None)}
    text = FORMATS["md"].render(report, RenderOptions(details=True)).decode()
    assert "What limits a family is not in this trace" in text


@pytest.mark.parametrize("name", ["html", "md", "txt"])
def test_every_format_says_it(name: str, tmp_path: Path) -> None:
    report = report_of(program(), tmp_path)
    text = FORMATS[name].render(report, RenderOptions(details=True, width=200)).decode()
    assert "tensor cores" in text
    assert "memory bandwidth" in text
    cells = [dict(zip(BY_NAME["kernel_families"].header, row, strict=True)) for row in
             BY_NAME["kernel_families"].cells(report)]  # fmt: skip
    assert {row["limit"] for row in cells} == {TENSOR, BANDWIDTH}


@pytest.mark.parametrize(
    ("active", "issue", "tensor", "memory", "limit"),
    [
        (0.9, 0.2, 0.7, 0.65, TENSOR),
        (0.9, 0.2, 0.3, 0.65, BANDWIDTH),
        (0.9, 0.7, 0.3, 0.4, ISSUE),
        (0.3, 0.1, 0.1, 0.1, FEW),
        (0.9, 0.1, 0.1, 0.1, LATENCY),
        (0.9, 0.1, None, 0.1, ""),
        (None, None, None, 0.8, BANDWIDTH),
        (None, None, None, None, ""),
    ],
)
def test_what_limits(
    active: float | None, issue: float | None, tensor: float | None, memory: float | None, limit: str
) -> None:
    assert _limit(active, issue, tensor, memory) == limit


def test_few_samples_say_nothing() -> None:
    grid = Grid.of(np.arange(1, 13, dtype=np.int64) * 10)
    assert grid is not None
    value = np.full(12, 0.5)
    for length, found in ((90, None), (100, (0.5, 100))):
        alone = SamplesWithin.of(grid, Intervals.of([(0, length)]))
        assert _mean(Parted(value, None, None), alone, alone.ns) == found


SPANS = st.lists(st.tuples(st.integers(0, 250), st.integers(1, 60), st.booleans()), min_size=1, max_size=8)


@given(SPANS, st.lists(st.floats(0, 1), min_size=30, max_size=30), st.booleans())
def test_against_every_nanosecond(spans: list[tuple[int, int, bool]], values: list[float], idle_known: bool) -> None:
    every = Intervals(
        *(np.array(side, dtype=np.int64) for side in zip(*((a, a + n) for a, n, _ in spans), strict=True))
    )
    rows = np.flatnonzero([mine for _, _, mine in spans])
    grid = Grid.of(np.arange(1, 31, dtype=np.int64) * 10)
    assert grid is not None
    value = np.array(values)
    parted = Parted(value, value if idle_known else None, 0.0 if idle_known else None)
    parts = Intervals.of([(5, 290)])
    within = SamplesWithin.of(grid, _alone(every, rows, parts))
    found = _mean(parted, within, BusySamples(grid, union(every)).worked[within.index])
    mine = [any(a <= t < a + n for a, n, own in spans if own) for t in range(300)]
    other = [any(a <= t < a + n for a, n, own in spans if not own) for t in range(300)]
    alone = [m and not o and 5 <= t < 290 for t, (m, o) in enumerate(zip(mine, other, strict=True))]
    area, total, count = 0.0, 0, 0
    for at in range(30):
        sample = range(10 * at, 10 * at + 10)
        ns = sum(alone[t] for t in sample)
        if ns and ns == sum(mine[t] or other[t] for t in sample) and (idle_known or ns == 10):
            area, total, count = area + ns * values[at], total + ns, count + 1
    if count < 10:
        assert found is None
    else:
        assert found == (pytest.approx(area / total), total)
