"""Our sums against those of the real nsys: kernels by name with count and total time, CUDA API calls with count.

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

from nsysdiag import open_trace

if TYPE_CHECKING:
    from types import ModuleType

    from nsysdiag import Report
    from tests.shared import Shared

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "tests" / "fixtures" / "nsys_stats.json"
RECORDED = json.loads(FIGURES.read_text())["traces"] if FIGURES.exists() else {}
WITH_KERNELS = sorted(name for name, figures in RECORDED.items() if figures["kernels"])
WITH_CALLS = sorted(name for name, figures in RECORDED.items() if figures["api"])
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
