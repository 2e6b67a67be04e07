"""A share beside a length is one of that length: recomputed from the rows of each trace."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.arrays.intervals import Intervals, coverage, union
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.units import format_ns
from tests.builder import TraceBuilder
from tests.diagnosis.programs import PROGRAMS

if TYPE_CHECKING:
    from nsysdiag.phases.facts import Phase
    from nsysdiag.report import Report
    from tests.shared import Shared

MS = 1_000_000
TRACES = sorted(Path(os.environ.get("NSYSDIAG_TRACES", "nowhere")).glob("*.sqlite"))
PRINTED = re.compile(r"^[\w-]+, (?P<length>[\d.,]+ \S+?)(, .*)?: (?P<what>[^:]+) (?P<share>[\d.]+)%(; .+)?\.$")
ROUNDING = 0.001


def _write(name: str, path: Path) -> Path:
    return PROGRAMS[name].run()[0].write(path)


def computed(trace: Path, start: int, end: int) -> float:
    """The share of the time [start, end) with any kernel in it."""
    with closing(sqlite3.connect(trace)) as file, file:
        try:
            rows = file.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
        except sqlite3.OperationalError:
            rows = []
    return float(coverage(union(Intervals.of(rows)), Intervals.of([(start, end)]))[0]) / (end - start)


def wrong(trace: Path, report: Report) -> list[str]:
    """Printed shares that are not shares of the length beside them."""
    found = [each for phase in report.phases for each in _wrong(trace, phase)]
    text = FORMATS["txt"].render(report, RenderOptions()).decode()
    joined = " ".join(text.split())
    labelled = [phase for phase in report.phases if f"{format_ns(phase.counted_ns)}" in joined]
    return found + ([] if labelled or len(report.phases) < 2 else ["no phase in the text has its length"])


def _wrong(trace: Path, phase: Phase) -> list[str]:
    printed = PRINTED.match(phase.sentence)
    if printed is None:
        return [f"no length and share in {phase.sentence!r}"]
    if printed["length"] != format_ns(phase.counted_ns):
        return [f"{phase.sentence!r} is {format_ns(phase.counted_ns)} long"]
    if len(phase.devices) > 1:
        return []
    (device,) = phase.devices
    length, said = phase.end_ns - phase.start_ns, float(printed["share"]) / 100
    between_nodes = device.ledger.get("intra_graph", 0) / length
    by_rows, kernels = computed(trace, phase.start_ns, phase.end_ns) + between_nodes, ("kernels", "parallelism")
    problems = [] if sum(device.account.values()) == length else [f"{phase.sentence!r} is of {device.account}"]
    if phase.bottleneck in kernels and abs(said - by_rows) > ROUNDING:
        problems.append(f"{phase.sentence!r}: kernels take {by_rows:.4f} of it by rows")
    if phase.bottleneck not in (*kernels, "communication", "memory") and said > 1 - by_rows + ROUNDING:
        problems.append(f"{phase.sentence!r}: kernels leave {1 - by_rows:.4f} by rows")
    return problems


@pytest.mark.sampled(quick=32, normal=11)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_of_programs(name: str, shared: Shared) -> None:
    trace = shared.file(f"{name}.sqlite", partial(_write, name))
    assert wrong(trace, shared.report(trace)) == []


@pytest.mark.real
@pytest.mark.parametrize("trace", TRACES or [Path("none")], ids=lambda path: path.stem)
def test_of_real_traces(trace: Path, shared: Shared) -> None:
    assert wrong(trace, shared.report(trace)) == []


def _started(copies_ms: int) -> TraceBuilder:
    """A first call of 830 ms, then copies, then 100 steps of 10 ms."""
    trace = TraceBuilder().process().gpu().api("cudaFree", 10 * MS, 840 * MS)
    begin = 845 * MS
    for at in range(copies_ms):
        trace.memcpy(begin + at * MS, begin + (at + 1) * MS, launch=(begin - 4 * MS, begin - 3 * MS))
    begin += copies_ms * MS
    for at in range(100):
        start = begin + at * 10 * MS
        trace.kernel(start, start + 9 * MS, launch=(start - 200_000, start - 100_000))
    return trace


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("copies_ms", [33, 120])
def test_copies_behind_a_long_first_call(copies_ms: int, tmp_path: Path) -> None:
    """Copies fill the start-up from the first operation on, and are a few per cent of it."""
    report = analyze(_started(copies_ms).write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    start = report.phases[0]
    assert (start.name, start.start_ns, start.bottleneck) == ("start-up", 10 * MS, "startup")
    assert start.share == pytest.approx(830 / (835 + copies_ms), abs=0.01)
    assert wrong(tmp_path / "trace.sqlite", report) == []
