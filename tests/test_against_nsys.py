"""Our sums against those of the real nsys: kernels by name with count and total time, CUDA API calls with count, NVTX
ranges with the time of their work.

`nsys stats` counts every row. So does the trace layer. The report counts what runs in the window of a device, from its
first launched operation to its last, and leaves malformed rows out; in none of these traces does a kernel lie outside
the window or end before it starts, so there too the figures are equal, to the nanosecond.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nsysdiag import analyze, open_trace
from nsysdiag.gap_groups.groups import normal_range
from tests.builder import MAIN, TraceBuilder
from tests.ranges.test_tree import US, four_kernels

if TYPE_CHECKING:
    from types import ModuleType

    from nsysdiag import Report
    from tests.shared import Shared

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "tests" / "fixtures" / "nsys_stats.json"
RECORDED = json.loads(FIGURES.read_text())["traces"] if FIGURES.exists() else {}
WITH_KERNELS = sorted(name for name, figures in RECORDED.items() if figures["kernels"])
WITH_CALLS = sorted(name for name, figures in RECORDED.items() if figures["api"])
WITH_RANGES = sorted(name for name, figures in RECORDED.items() if figures["ranges"])
NAMED_PROGRAMS = ("starved_training", "graph_replay", "loss_read_each_step", "starved_data_parallel", "slow_rank")
"""Simulated ones with ranges around their launches."""
KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"

Sums = dict[str, tuple[int, int]]
"""Count and total ns by name."""


def trace_path(name: str) -> Path:
    path = Path(os.environ["NSYSDIAG_TRACES"]) / name
    if not path.exists():
        pytest.skip(f"{name} is not among the traces")
    return path


def kernel_sums(path: Path) -> Sums:
    """Every kernel row of the trace by demangled name."""
    with open_trace(path) as trace:
        rows = trace.read(KERNELS, "start", "end", "demangledName")
        ids, group = np.unique(rows["demangledName"], return_inverse=True)
        counts = np.bincount(group)
        totals = np.zeros(len(ids), dtype=np.int64)
        np.add.at(totals, group, rows["end"] - rows["start"])
        return merged(zip(trace.strings.texts(ids), counts.tolist(), totals.tolist(), strict=True))


def call_counts(path: Path) -> Counter[str]:
    """Every CUDA API row of the trace by name."""
    with open_trace(path) as trace:
        ids, counts = np.unique(trace.read(CALLS, "nameId")["nameId"], return_counts=True)
        return bare_names(zip(trace.strings.texts(ids), counts.tolist(), strict=True))


def merged(rows: Any) -> Sums:
    """Rows of one name added up: two ids may stand for the same text."""
    sums: Sums = {}
    for name, count, total in rows:
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + count, before[1] + total)
    return sums


def bare_names(rows: Any) -> Counter[str]:
    """Counts by API name without its version: nsys takes off `_v7000`, but not `_v10000`."""
    counts: Counter[str] = Counter()
    for name, count in rows:
        counts[re.sub(r"_v\d+$", "", name)] += count
    return counts


def reported_sums(report: Report) -> Sums:
    """The kernels of all devices of a report."""
    return merged((row.name, row.count, row.total_ns) for d in report.devices for row in d.kernels)


def range_sums(report: Report) -> Sums:
    """The ranges that launched work, by name without counters."""
    trees = [device.ranges for device in report.devices if device.ranges]
    rows = [row for tree in trees for row in tree.rows if row.instances]
    return merged((normal_range(row.path[-1]), row.instances, row.projected_ns) for row in rows)


def without_counters(sums: Any) -> Sums:
    return merged((normal_range(name), count, total) for name, count, total in sums)


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    """The script that records nsys's figures."""
    loader = SourceFileLoader("record_nsys_stats", str(ROOT / "scripts" / "record_nsys_stats"))
    module = module_from_spec(spec_from_loader(loader.name, loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


@pytest.mark.fixtures
@pytest.mark.real
class TestRecordedFigures:
    @pytest.mark.parametrize("name", WITH_KERNELS)
    def test_kernels_of_the_trace(self, name: str) -> None:
        assert kernel_sums(trace_path(name)) == merged(RECORDED[name]["kernels"])

    @pytest.mark.parametrize("name", WITH_CALLS)
    def test_calls_of_the_trace(self, name: str) -> None:
        assert call_counts(trace_path(name)) == bare_names(RECORDED[name]["api"])

    @pytest.mark.parametrize("name", WITH_KERNELS)
    def test_kernels_of_the_report(self, name: str, shared: Shared) -> None:
        assert reported_sums(shared.report(trace_path(name))) == merged(RECORDED[name]["kernels"])

    @pytest.mark.parametrize("name", WITH_RANGES)
    def test_ranges_of_the_report(self, name: str, shared: Shared) -> None:
        assert range_sums(shared.report(trace_path(name))) == without_counters(RECORDED[name]["ranges"])


@pytest.mark.fixtures
@pytest.mark.real
@pytest.mark.nsys
@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_KERNELS)
def test_program_at_hand(name: str, recorder: ModuleType) -> None:
    """The same with the figures of the nsys that is here, whatever its version."""
    path = trace_path(name)
    figures = recorder.figures(os.environ["NSYSDIAG_NSYS"], path)
    assert kernel_sums(path) == merged(figures["kernels"])
    assert call_counts(path) == bare_names(figures["api"])
    assert {*RECORDED[name]} == {*figures}


@pytest.mark.nsys
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED_PROGRAMS)
def test_ranges_of_simulated_programs(name: str, recorder: ModuleType, shared: Shared) -> None:
    """To the nanosecond, of each name."""
    trace = shared.trace(name)
    figures = recorder.figures(os.environ["NSYSDIAG_NSYS"], trace)["ranges"]
    assert figures
    assert range_sums(shared.report(trace)) == without_counters(figures)


@pytest.mark.nsys
@pytest.mark.slow
class TestWhereNsysIsWrong:
    """As docs/beside-nsys.md lists it: four kernels of 50 µs, launched 10 µs before each, from 100 µs on."""

    @staticmethod
    def both(trace: TraceBuilder, recorder: ModuleType, folder: Path) -> tuple[Sums, dict[str, int]]:
        """The sums of nsys, and our projections by path."""
        path = folder / "trace.sqlite"
        trace.write(path)
        theirs = recorder.figures(os.environ["NSYSDIAG_NSYS"], path)["ranges"]
        found = {
            f"{device.key} {'/'.join(row.path)}": row.projected_ns
            for device in analyze(path).devices
            for row in (device.ranges.rows if device.ranges else ())
            if row.instances
        }
        return merged(theirs), found

    def test_ranges_that_end_on_another_thread_are_left_out(self, recorder: ModuleType, tmp_path: Path) -> None:
        trace = four_kernels().nvtx("step", 80 * US, 500 * US, event_type=60, end_thread=(MAIN[0], 1))
        assert self.both(trace, recorder, tmp_path) == ({}, {"gpu0 step": 350 * US})

    def test_ranges_of_one_name_inside_each_other_count_twice(self, recorder: ModuleType, tmp_path: Path) -> None:
        trace = four_kernels().nvtx("f", 80 * US, 500 * US).nvtx("f", 180 * US, 300 * US)
        assert self.both(trace, recorder, tmp_path) == (
            {"f": (2, 500 * US)},
            {"gpu0 f": 350 * US, "gpu0 f/f": 150 * US},
        )

    def test_an_open_range_ends_with_the_last_that_was_closed(self, recorder: ModuleType, tmp_path: Path) -> None:
        trace = four_kernels().nvtx("init", 10 * US, 150 * US).nvtx("step", 85 * US, None)
        theirs, found = self.both(trace, recorder, tmp_path)
        assert (theirs["step"], found["gpu0 init/step"]) == ((1, 50 * US), 350 * US)

    def test_two_devices_are_one(self, recorder: ModuleType, tmp_path: Path) -> None:
        trace = four_kernels().nvtx("step", 80 * US, 500 * US)
        trace.kernel(300 * US, 900 * US, device=1, context=2, launch=(295 * US, 296 * US))
        assert self.both(trace, recorder, tmp_path) == (
            {"step": (1, 800 * US)},
            {"gpu0 step": 350 * US, "gpu1 step": 600 * US},
        )

    def test_two_domains_of_one_id_end_in_an_error(self, recorder: ModuleType, tmp_path: Path) -> None:
        trace = four_kernels().nvtx("step", 80 * US, 500 * US, domain=1)
        for thread in (MAIN, (MAIN[0], 1)):
            trace.nvtx("library", 10, None, domain=1, event_type=75, thread=thread)
        assert self.both(trace, recorder, tmp_path) == ({}, {"gpu0 step": 350 * US})
