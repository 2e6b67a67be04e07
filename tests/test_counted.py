"""The GPU's counters of a simulated run against what its kernels really did: within one per cent."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.arrays.intervals import Intervals, complement, union
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import measured_sm_active
from nsysdiag.counters.facts import GpuMetric, GpuMetrics
from nsysdiag.document.packed import unpack_metric
from nsysdiag.pipeline import analyze
from nsysdiag.report import DeviceReport
from tests.shared import Shared
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.counters import CLOCK, Counters, Course, Span
from tests.simulator.scenarios import scenario
from tests.simulator.scenarios.counted import LATE, SHORT, STEPS

US, MS = 1_000, 1_000_000
NAMES = {
    "sm_active": "SMs Active [Throughput %]",
    "tensor_active": "Tensor Active [Throughput %]",
    "dram_read": "DRAM Read Bandwidth [Throughput %]",
    "dram_write": "DRAM Write Bandwidth [Throughput %]",
}
WITHIN = 0.01


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return scenario("counted_training")


@pytest.fixture(scope="module")
def device(shared: Shared) -> DeviceReport:
    (found,) = shared.report(shared.fixture("sim_gpu_metrics.sqlite")).devices
    return found


@pytest.fixture(scope="module")
def found(device: DeviceReport) -> GpuMetrics:
    assert device.gpu_metrics is not None
    return device.gpu_metrics


def counters(simulation: Simulation) -> Counters:
    assert simulation.counters is not None
    return simulation.counters


def course(simulation: Simulation, metric: str) -> Course:
    return counters(simulation).course(NAMES.get(metric, CLOCK), simulation.gpus[0])


def spans(simulation: Simulation, *names: str) -> list[Span]:
    """When kernels of these names ran, all of them without a name."""
    return sorted((op.start, op.end) for op in simulation.gpus[0].ops if not names or op.name in names)


def row(found: GpuMetrics, metric: str) -> GpuMetric:
    (chosen,) = [each for each in found.metrics if each.id == metric]
    return chosen


@pytest.mark.slow
def test_whose_counters_they_are(found: GpuMetrics) -> None:
    """The other GPU is at work for somebody else, and no device of this trace."""
    assert found.gpu == 0
    assert found.period_ns == 100 * US
    assert [each.id for each in found.metrics] == [*NAMES, "gpc_clock"]
    assert [each.names for each in found.metrics][:4] == [[name] for name in NAMES.values()]
    peaks = [None, None, 2_039_040_000_000, 2_039_040_000_000, None]
    assert [each.peak_bytes_per_second for each in found.metrics] == peaks


@pytest.mark.parametrize("metric", NAMES)
def test_means_of_the_window_and_of_the_work(metric: str, simulation: Simulation, found: GpuMetrics) -> None:
    true, (first, last) = course(simulation, metric), (found.start_ns, found.end_ns)
    chosen = row(found, metric)
    assert chosen.window == pytest.approx(true.mean([(first, last)]) / 100, rel=WITHIN)
    assert chosen.kernels == pytest.approx(true.mean(spans(simulation)) / 100, rel=WITHIN)
    assert chosen.compute == chosen.kernels
    assert (chosen.gaps, chosen.idle, chosen.lowest) == (0.0, 0.0, 0.0)
    top = max(counters(simulation).activity[NAMES[metric]].values()) / 100
    assert chosen.highest is not None
    assert 0.97 * top <= chosen.highest <= top  # short kernels leave pauses in every sample


@pytest.mark.parametrize("metric", NAMES)
def test_means_of_the_kernels(metric: str, simulation: Simulation, found: GpuMetrics) -> None:
    """Long kernels by whole samples: exactly. Short ones share their samples with the end of a long one."""
    by_name = {each.short_name: each for each in found.kernels}
    true = counters(simulation).activity[NAMES[metric]]
    assert {name: each.means[metric] for name, each in by_name.items() if each.whole} == {
        name: pytest.approx(true[name] / 100, abs=1e-6) for name in ("gemm", "index_copy")
    }
    assert by_name["elementwise"].means[metric] == pytest.approx(true["elementwise"] / 100, rel=WITHIN, abs=0)


def test_what_is_behind_the_means_of_the_kernels(found: GpuMetrics) -> None:
    """A kernel of 3 ms holds 29 or 30 whole samples, one of 740 µs 6 or 7, one of 30 µs none."""
    rows = {each.short_name: each for each in found.kernels}
    counts = {name: (each.count, each.long_count, each.gpu_ns, each.whole) for name, each in rows.items()}
    assert counts == {
        "gemm": (STEPS, STEPS, STEPS * 3 * MS, True),
        "index_copy": (STEPS, STEPS, STEPS * 740 * US, True),
        "elementwise": (STEPS * SHORT, 0, STEPS * SHORT * 30 * US, False),
    }
    assert 29 * STEPS <= rows["gemm"].samples <= 30 * STEPS
    assert 6 * STEPS <= rows["index_copy"].samples <= 7 * STEPS


@pytest.mark.parametrize("metric", NAMES)
def test_means_of_the_ranges(metric: str, simulation: Simulation, found: GpuMetrics) -> None:
    """forward launches the two long kernels of each step, optimizer the short ones, step # all of them."""
    true = course(simulation, metric)
    forward = [(start, end + 740 * US + 1_200) for start, end in spans(simulation, "gemm")]
    short = spans(simulation, "elementwise")
    optimizer = [(short[at][0], short[at + SHORT - 1][1]) for at in range(0, len(short), SHORT)]
    steps = [(first[0], last[1]) for first, last in zip(forward, optimizer, strict=True)]
    rows = {each.name: each for each in found.ranges}
    for name, extents in (("forward", forward), ("optimizer", optimizer), ("step #", steps)):
        assert rows[name].count == STEPS
        assert rows[name].gpu_ns == sum(end - start for start, end in extents)
        assert rows[name].means[metric] == pytest.approx(true.mean(extents) / 100, rel=WITHIN)


def test_means_of_the_iterations(simulation: Simulation, device: DeviceReport, found: GpuMetrics) -> None:
    assert device.iterations is not None
    assert [each.index for each in found.iterations] == [each.index for each in device.iterations.rows]
    true = course(simulation, "sm_active")
    for each, its in zip(found.iterations, device.iterations.rows, strict=True):
        assert each.means["sm_active"] == pytest.approx(true.mean([(its.start_ns, its.end_ns)]) / 100, rel=WITHIN)


def test_the_clock(simulation: Simulation, found: GpuMetrics) -> None:
    """It is low from LATE on, and in the pauses, which do not count."""
    clocks = found.clocks
    assert clocks is not None
    work = spans(simulation)
    low = sum(end - max(start, LATE) for start, end in work if end > LATE)
    share = low / sum(end - start for start, end in work)
    assert clocks.low_ns / clocks.judged_ns == pytest.approx(share, abs=WITHIN)
    assert (clocks.max_hz, clocks.source) == (1_410_000_000, "chip")
    assert clocks.lowest_hz == clocks.low_mean_hz == 1_130_000_000
    assert clocks.mean_hz == pytest.approx(course(simulation, CLOCK).mean(work), rel=WITHIN)
    assert row(found, "gpc_clock").gaps == 210_000_000


def test_the_series(simulation: Simulation, found: GpuMetrics) -> None:
    series = unpack_metric(found, row(found, "sm_active"))
    assert len(series) == found.buckets == (found.end_ns - found.start_ns) // found.period_ns
    edges = [found.start_ns + (found.end_ns - found.start_ns) * at // found.buckets for at in range(found.buckets + 1)]
    true = course(simulation, "sm_active")
    off = [
        abs(value - true.mean([(low, high)]) / 100)
        for value, low, high in zip(series.tolist(), edges, edges[1:], strict=False)
    ]
    assert sum(off) / len(off) < WITHIN


def test_long_gaps_show_that_nothing_ran(device: DeviceReport) -> None:
    """Gaps shorter than two periods may hold no whole sample: nothing is known of them."""
    for gap in device.gaps:
        length = gap.end_ns - gap.start_ns
        assert gap.sm_active == 0.0 if length >= 200 * US else gap.sm_active is None or length >= 100 * US
    assert sum(gap.sm_active is not None for gap in device.gaps) == STEPS - 1
    assert device.notes == []


def test_what_other_parts_are_told(device: DeviceReport, found: GpuMetrics) -> None:
    active = row(found, "sm_active")
    assert active.window is not None
    assert measured_sm_active(found) == active.window
    assert device.utilization.sm_source == "gpu-metrics"
    assert device.utilization.sm_active_share == active.window
    assert measured_sm_active(None) is None


@pytest.mark.slow
def test_a_narrowed_window(simulation: Simulation, tmp_path: Path) -> None:
    """Of a kernel that a border cuts, the part inside counts; iterations are of the whole run only."""
    path = simulation.write(tmp_path / "trace.sqlite")
    low, high = 20 * MS, 50 * MS
    (narrowed,) = analyze(path, Settings(start_ns=low, end_ns=high)).devices
    assert narrowed.gpu_metrics is not None
    active = row(narrowed.gpu_metrics, "sm_active")
    true = course(simulation, "sm_active")
    assert active.window == pytest.approx(true.mean([(low, high)]) / 100, rel=WITHIN)
    work = complement(union(complement(union(Intervals.of(spans(simulation))), low, high)), low, high)
    inside = list(zip(work.start.tolist(), work.end.tolist(), strict=True))
    assert active.kernels == pytest.approx(true.mean(inside) / 100, rel=WITHIN)
    assert active.samples == 301
    assert narrowed.gpu_metrics.iterations == []
    assert sum(each.gpu_ns for each in narrowed.gpu_metrics.kernels) == work.total()


@pytest.mark.slow
def test_without_the_counters_the_rest_is_the_same(
    simulation: Simulation, tmp_path: Path, device: DeviceReport
) -> None:
    (without,) = analyze(simulation.write(tmp_path / "trace.sqlite", EVERYTHING.but(gpu_metrics=False))).devices
    assert without.gpu_metrics is None
    assert (without.ledger, without.root_ledger, without.notes) == (device.ledger, device.root_ledger, [])
    assert [gap.sm_active for gap in without.gaps] == [None] * len(without.gaps)
